"""Importing this module registers the relations of every family."""

from oracle.relations import norm

__all__ = ["norm"]

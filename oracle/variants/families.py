"""Importing this module registers the variants of every family."""

from oracle.variants import norm

__all__ = ["norm"]

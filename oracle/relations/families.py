"""Importing this module registers the relations of every family."""

from oracle.relations import attention, norm

__all__ = ["attention", "norm"]

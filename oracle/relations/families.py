"""Importing this module registers the relations of every family."""

from oracle.relations import attention, norm, rope

__all__ = ["attention", "norm", "rope"]

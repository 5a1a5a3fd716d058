"""Importing this module registers the variants of every family."""

from oracle.variants import attention, norm, rope

__all__ = ["attention", "norm", "rope"]

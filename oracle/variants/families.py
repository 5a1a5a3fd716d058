"""Importing this module registers the variants of every family."""

from oracle.variants import attention, norm

__all__ = ["attention", "norm"]

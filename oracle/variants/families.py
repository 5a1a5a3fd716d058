"""Importing this module registers the variants of every family."""

from oracle.variants import attention, gemm, norm, rope

__all__ = ["attention", "gemm", "norm", "rope"]

"""Importing this module registers the relations of every family."""

from oracle.relations import attention, gemm, norm, rope

__all__ = ["attention", "gemm", "norm", "rope"]

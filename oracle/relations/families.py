"""Importing this module registers the relations of every family."""

from oracle.relations import attention, gemm, reduce, rope, rows

__all__ = ["attention", "gemm", "reduce", "rope", "rows"]

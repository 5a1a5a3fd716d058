"""Importing this module registers the relations of every family."""

from oracle.relations import attention, gemm, quant, reduce, rope, rows

__all__ = ["attention", "gemm", "quant", "reduce", "rope", "rows"]

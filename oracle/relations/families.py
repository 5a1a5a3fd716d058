"""Importing this module registers the relations of every family."""

from oracle.relations import activation, attention, batch, gemm, moe, quant, reduce, rope, rows

__all__ = ["activation", "attention", "batch", "gemm", "moe", "quant", "reduce", "rope", "rows"]

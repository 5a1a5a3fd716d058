"""Importing this module registers the relations of every family."""

from oracle.relations import activation, attention, gemm, quant, reduce, rope, rows

__all__ = ["activation", "attention", "gemm", "quant", "reduce", "rope", "rows"]

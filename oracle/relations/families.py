"""Importing this module registers the relations of every family."""

from oracle.relations import activation, attention, batch, collective, gemm, moe, quant, recurrent, reduce, rope, rows

__all__ = [
    "activation",
    "attention",
    "batch",
    "collective",
    "gemm",
    "moe",
    "quant",
    "recurrent",
    "reduce",
    "rope",
    "rows",
]

"""Importing this module registers the variants of every family."""

from oracle.variants import attention, gemm, gemm_batched, norm, quant, reduce, rope, softmax

__all__ = ["attention", "gemm", "gemm_batched", "norm", "quant", "reduce", "rope", "softmax"]

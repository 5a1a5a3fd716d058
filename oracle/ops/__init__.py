"""The operators, one file per family; importing this package registers them all."""

from oracle.ops import attention, gemm, gemm_batched, norm, quant, reduce, rope

__all__ = ["attention", "gemm", "gemm_batched", "norm", "quant", "reduce", "rope"]

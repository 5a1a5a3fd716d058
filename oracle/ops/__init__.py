"""The operators, one file per family; importing this package registers them all."""

from oracle.ops import attention, attention_flash, gemm, gemm_batched, norm, quant, reduce, rope

__all__ = ["attention", "attention_flash", "gemm", "gemm_batched", "norm", "quant", "reduce", "rope"]

"""The operators, one file per family; importing this package registers them all."""

from oracle.ops import (
    activation,
    attention,
    attention_flash,
    attention_paged,
    gemm,
    gemm_batched,
    gemm_packed,
    gemm_quantised,
    moe_experts,
    moe_routing,
    norm,
    quant,
    reduce,
    rope,
    sampling,
)

__all__ = [
    "activation",
    "attention",
    "attention_flash",
    "attention_paged",
    "gemm",
    "gemm_batched",
    "gemm_packed",
    "gemm_quantised",
    "moe_experts",
    "moe_routing",
    "norm",
    "quant",
    "reduce",
    "rope",
    "sampling",
]

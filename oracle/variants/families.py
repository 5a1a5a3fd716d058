"""Importing this module registers the variants of every family."""

from oracle.variants import (
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
    softmax,
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
    "softmax",
]

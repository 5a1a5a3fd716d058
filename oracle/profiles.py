"""Profiles: sets of operators that a port can claim, as conformance suites have them."""

from __future__ import annotations

PROFILES: dict[str, tuple[str, ...]] = {
    "core": ("sum", "softmax", "matmul", "rmsnorm", "rope", "attention"),
    "dense-llm": (
        "fused_add_rmsnorm",
        "layernorm",
        "qk_norm",
        "silu_and_mul",
        "gelu_and_mul",
        "batched_matmul",
        "attention",
        "attention_varlen",
        "flash_attention",
        "paged_attention_decode",
        "paged_attention_prefill",
        "greedy",
        "temperature_softmax",
        "sample_top_k",
        "sample_top_p",
        "sample_min_p",
        "sample_top_k_top_p",
        "gemm_epilogue",
    ),
    "moe-llm": (
        "silu_and_mul",
        "swiglu_with_limit",
        "grouped_matmul",
        "moe_gate",
        "moe_align_block_size",
        "fused_experts",
        "moe_sum",
        "sample_top_k_top_p",
    ),
    "quantised": (
        "quantise",
        "quantise_static",
        "matmul_a8w8",
        "matmul_a8w8_block_scaled",
        "matmul_w4a16",
        "matmul_a4w4_mxfp4",
        "matmul_a4w4_nvfp4",
        "dequantise",
        "quantise_mx",
        "quantise_nvfp4",
        "quantise_int4",
        "quantise_uint4",
    ),
}
"""Operators by profile."""

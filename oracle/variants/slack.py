"""Why an operator's sigma is more than four times what its controls need, or why no control shows that it is not."""

from __future__ import annotations

RESCALED = (
    "errors that all weights of a row share, an online softmax's rescalings first of all, are added up; kernels "
    "rescale less often than they may, and in a quotient by the sum of the weights such errors cancel, which running "
    "analysis does not see"
)
FEW_SCALES = (
    "a scale is one quotient, and a case has few: a control that is off by anything up to the promised two ulps comes "
    "to 1.5 sigma, where several elements are judged by 6 and one by 8"
)
EXACT_SUMS = (
    "products of codes are exact, and so are most of their sums; sigma counts every addition as one that rounds, "
    "and only those between blocks of very different scale do"
)
PROMISED = (
    "a few roundings, and functions and quotients that are promised in ulps at their worst: a control that is off by "
    "anything up to that comes to 1.5 sigma, where several elements are judged by 6"
)
SHARED = (
    "errors that the terms of a sum share (a factor of a row, a first product, a state's decay) are added up, not in "
    "quadrature, whatever their signs; in the controls they have different ones"
)

_OPERATORS: dict[str, tuple[str, ...]] = {
    RESCALED: (
        "attention",
        "attention_varlen",
        "flash_attention",
        "logsumexp",
        "mla_decode",
        "mla_decode_quantised",
        "mla_prefill",
        "moe_gate",
        "paged_attention_decode",
    ),
    FEW_SCALES: (
        "concat_and_cache_mla_per_tile",
        "quantise",
        "quantise_nvfp4",
        "relu2_and_mul_dynamic_quant",
        "reshape_and_cache_per_block",
        "reshape_and_cache_per_token",
        "silu_and_mul_dynamic_quant",
        "swiglu_with_limit_dynamic_quant",
    ),
    EXACT_SUMS: (
        "fused_experts_mxfp4",
        "matmul_a4w4_mxfp4",
        "matmul_a4w4_nvfp4",
        "matmul_mx",
    ),
    PROMISED: (
        "causal_conv1d_update",
        "causal_conv1d_varlen",
        "merge_attention_states",
        "rope_frequencies",
        "silu_and_mul",
    ),
    SHARED: (
        "attention_sinks_backward",
        "fused_experts_a8w8_block_scaled",
        "fused_experts_w4a16",
        "fused_experts_w4a16_mxfp4",
        "fused_experts_with_shared",
        "selective_scan_varlen",
    ),
}

SLACK: dict[str, str] = {operator: reason for reason, operators in _OPERATORS.items() for operator in operators}
"""Reason by operator."""

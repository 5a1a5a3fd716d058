"""Bugs that shipped, by the issue or change that tells of them, and the mutants that have a fault of the same kind."""

from __future__ import annotations

BUGS: dict[str, tuple[tuple[str, str], ...]] = {
    "ROCm/aiter#3211": (
        ("paged_attention_decode", "page_in_16_bits"),
        ("paged_attention_prefill", "page_in_16_bits"),
        ("mla_decode", "page_in_16_bits"),
    ),
    "ROCm/aiter#2763": (("reshape_and_cache_per_token", "not_limited"),),
    "ROCm/aiter#3451": (("concat_and_cache_mla_per_tile", "no_power"),),
    "ROCm/aiter#3514": (("all_reduce", "chunk_missed"), ("reduce_scatter", "chunk_missed")),
    "ROCm/aiter#3677": (("moe_sum", "ids_ignored"), ("moe_sum", "zero_times_garbage")),
    "ROCm/aiter#4070": (("reshape_and_cache_per_token", "largest_of_fnuz"),),
    "ROCm/aiter#4247": (("moe_gate", "bias_twice"), ("moe_gate", "bias_in_logits")),
    "flashinfer-ai/flashinfer#440": (("merge_attention_states", "nan_where_nothing_is_seen"),),
    "flashinfer-ai/flashinfer#2261": (("matmul_a8w8_block_scaled", "tail_of_n_shares_scale"),),
    "flashinfer-ai/flashinfer#2456": (("sample_top_k", "unclamped"), ("sample_top_p", "unclamped")),
    "flashinfer-ai/flashinfer#3022": (("paged_attention_decode", "first_page_again"),),
    "flashinfer-ai/flashinfer#4267": (
        ("flash_attention", "maximum_from_minus_50000"),
        ("paged_attention_prefill", "maximum_from_minus_50000"),
    ),
    "Dao-AILab/flash-attention#443": (("attention_backward", "nan_where_nothing_is_seen"),),
    "pytorch/pytorch#38839": (("log_softmax", "digits_of_the_maximum"),),
    "pytorch/pytorch#103749": (
        ("attention", "nan_where_nothing_is_seen"),
        ("attention", "mean_where_nothing_is_seen"),
    ),
    "pytorch/pytorch#193893": (("attention", "maximum_from_zero"), ("flash_attention", "maximum_from_zero")),
    "sgl-project/sglang#25519": (("dequantise", "nan_by_value"),),
    "vllm-project/vllm#936": (
        ("attention_varlen", "padding_masked_by_weight"),
        ("paged_attention_decode", "whole_last_page"),
    ),
    "vllm-project/vllm#50979": (("sample_top_k", "ties_together"), ("sample_top_k", "ties_by_index")),
}
"""Issue or pull request to (operator, mutant)."""

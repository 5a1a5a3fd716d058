"""Why PyTorch serves no operator of some names: no function of it says the same."""

from __future__ import annotations

from refsim.conformance.backends.library import by_operator

ABSENT = by_operator(
    {
        "PyTorch draws its random numbers itself; no sampler of it takes them": (
            "sample_top_k",
            "sample_top_p",
            "sample_min_p",
            "sample_top_k_top_p",
            "speculative_chain",
            "sample_by_row",
        ),
        "torch.nn.attention.varlen.varlen_attn, for packed sequences and pages, has CUDA kernels only, for 16 bits": (
            "attention_varlen",
            "paged_attention_decode",
            "paged_attention_decode_quantised",
            "paged_attention_prefill",
            "mla_decode",
            "mla_prefill",
            "mla_decode_quantised",
            "paged_attention_prefill_quantised",
        ),
        "PyTorch has no gradient of the bias or of sinks from a given out and lse": (
            "attention_bias_backward",
            "attention_sinks_backward",
        ),
        "PyTorch has no function that merges parts of an attention": ("merge_attention_states",),
        "torch.distributed has a process per rank, and a backend is one process": (
            "all_gather",
            "all_reduce",
            "all_reduce_rmsnorm",
            "all_to_all",
            "reduce_scatter",
        ),
        "PyTorch leaves formats of small blocks to torchao": (
            "quantise_int4",
            "quantise_uint4",
            "quantise_mx",
            "quantise_nvfp4",
            "rmsnorm_dynamic_quant",
            "silu_and_mul_dynamic_quant",
            "gelu_and_mul_dynamic_quant",
            "relu2_and_mul_dynamic_quant",
            "swiglu_with_limit_dynamic_quant",
            "act_and_mul_static_quant",
            "fused_add_rmsnorm_dynamic_quant",
        ),
        "torch.nn.functional.scaled_mm takes scales of blocks in the order of its CUDA kernels only": (
            "matmul_a4w4_mxfp4",
            "matmul_a4w4_nvfp4",
            "matmul_a8w8_block_scaled",
            "matmul_mx",
            "matmul_a8w8_preshuffled",
        ),
        "PyTorch's weights of 4 bits have zero points as bfloat16 numbers, and a layout of their kernel": (
            "matmul_w4a16",
        ),
        "PyTorch has no cache in this layout": (
            "reshape_and_cache_per_token",
            "reshape_and_cache_quantised",
            "reshape_and_cache_per_block",
            "concat_and_cache_mla_quantised",
            "concat_and_cache_mla_per_tile",
        ),
        "PyTorch has no function that pads and shuffles scales": ("shuffle_scale",),
        "PyTorch has no function for routed experts but grouped_mm, which grouped_matmul judges": (
            "fused_experts",
            "fused_experts_a8w8",
            "fused_experts_a8w8_block_scaled",
            "fused_experts_mxfp4",
            "fused_experts_w4a16_mxfp4",
            "fused_experts_with_shared",
            "moe_align_block_size",
        ),
        "PyTorch has no recurrence of this kind as a function": (
            "causal_conv1d_varlen",
            "gated_delta_rule",
            "selective_scan",
            "selective_scan_varlen",
            "selective_state_update",
        ),
        "PyTorch has no frequencies of rotary embeddings": (
            "rope_frequencies",
            "yarn_frequencies",
            "llama3_frequencies",
            "longrope_frequencies",
        ),
        "PyTorch has no processors of logits": (
            "apply_penalties",
            "apply_logit_bias",
            "apply_token_bitmask",
        ),
    }
)

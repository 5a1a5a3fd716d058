"""Why ONNX Runtime serves no operator of some names: no node with a CPU kernel says the same."""

from __future__ import annotations

from refsim.conformance.backends.library import by_operator

ABSENT = by_operator(
    {
        "no node takes the numbers that a sampler draws by; com.microsoft.Sampling draws its own": (
            "sample_top_k",
            "sample_top_p",
            "sample_min_p",
            "sample_top_k_top_p",
            "speculative_chain",
            "sample_by_row",
        ),
        "no node has packed sequences or pages on CPU": (
            "attention_varlen",
            "paged_attention_decode",
            "paged_attention_decode_quantised",
            "paged_attention_prefill",
            "mla_decode",
            "mla_prefill",
            "mla_decode_quantised",
            "paged_attention_prefill_quantised",
        ),
        "no node is a gradient, or a merge of parts, of attention": (
            "attention_backward",
            "attention_bias_backward",
            "attention_sinks_backward",
            "merge_attention_states",
        ),
        "no node exchanges between ranks on CPU": (
            "all_gather",
            "all_reduce",
            "all_reduce_rmsnorm",
            "all_to_all",
            "reduce_scatter",
        ),
        "no node has this order of weight and norm": (
            "gemma_rmsnorm",
            "t5_rmsnorm",
            "qk_norm",
        ),
        "no node makes scales of blocks, or has them in both factors": (
            "quantise",
            "quantise_int4",
            "quantise_uint4",
            "quantise_mx",
            "quantise_nvfp4",
            "rmsnorm_dynamic_quant",
            "fused_add_rmsnorm_dynamic_quant",
            "layernorm_dynamic_quant",
            "silu_and_mul_dynamic_quant",
            "gelu_and_mul_dynamic_quant",
            "relu2_and_mul_dynamic_quant",
            "swiglu_with_limit_dynamic_quant",
            "act_and_mul_static_quant",
            "matmul_a4w4_mxfp4",
            "matmul_a4w4_nvfp4",
            "matmul_mx",
            "matmul_a8w8_block_scaled",
            "matmul_a8w8_preshuffled",
        ),
        "no node has a cache in the layout of that kernel": (
            "reshape_and_cache",
            "reshape_and_cache_asm",
            "reshape_and_cache_per_token",
            "reshape_and_cache_per_block",
            "concat_and_cache_mla_quantised",
            "concat_and_cache_mla_per_tile",
            "reshape_and_cache_quantised",
            "gather_cache",
        ),
        "no node shuffles for matrix instructions": (
            "shuffle_weight",
            "shuffle_scale",
        ),
        "com.microsoft.MoE routes and computes in one node, by router probabilities": (
            "fused_experts",
            "fused_experts_a8w8",
            "fused_experts_a8w8_block_scaled",
            "fused_experts_mxfp4",
            "fused_experts_w4a16",
            "fused_experts_w4a16_mxfp4",
            "fused_experts_with_shared",
            "grouped_matmul",
            "moe_align_block_size",
            "moe_gate",
            "moe_sum",
        ),
        "no node has this recurrence on slots, or a selective scan": (
            "causal_conv1d_update",
            "causal_conv1d_varlen",
            "selective_scan",
            "selective_scan_varlen",
            "selective_state_update",
        ),
        "no node with a CPU kernel has several positions a token in this form": (
            "mrope",
            "rope_2d",
        ),
        "no node makes frequencies of rotary embeddings": (
            "rope_frequencies",
            "yarn_frequencies",
            "llama3_frequencies",
            "longrope_frequencies",
        ),
        "no node has these processors of logits": (
            "apply_penalties",
            "apply_logit_bias",
            "apply_token_bitmask",
        ),
    }
)

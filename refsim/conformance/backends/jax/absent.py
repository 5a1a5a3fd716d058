"""Why JAX serves no operator of some names: nothing of ``jax.numpy``, ``jax.nn`` and ``jax.lax`` says the same."""

from __future__ import annotations

from refsim.conformance.backends.library import by_operator

ABSENT = by_operator(
    {
        "jax.random draws its numbers itself; no sampler of JAX takes them": (
            "sample_top_k",
            "sample_top_p",
            "sample_min_p",
            "sample_top_k_top_p",
            "speculative_chain",
            "sample_by_row",
        ),
        "JAX has attention over packed sequences and pages in Pallas kernels for TPU and GPU only": (
            "attention_varlen",
            "paged_attention_decode",
            "paged_attention_decode_quantised",
            "paged_attention_prefill",
            "mla_decode",
            "mla_prefill",
            "mla_decode_quantised",
            "paged_attention_prefill_quantised",
        ),
        "JAX has no gradient of attention from a given out and lse: jax.grad works them out again": (
            "attention_backward",
            "attention_bias_backward",
            "attention_sinks_backward",
        ),
        "JAX has no function that merges parts of an attention": ("merge_attention_states",),
        "JAX has no fused function of a norm and what stands around it": (
            "all_reduce_rmsnorm",
            "rmsnorm_dynamic_quant",
            "fused_add_rmsnorm_dynamic_quant",
            "layernorm_dynamic_quant",
            "silu_and_mul_dynamic_quant",
            "gelu_and_mul_dynamic_quant",
            "relu2_and_mul_dynamic_quant",
            "swiglu_with_limit_dynamic_quant",
            "act_and_mul_static_quant",
        ),
        "JAX has no function that makes scales of small blocks; jax.nn.scaled_matmul takes them on GPU": (
            "quantise_int4",
            "quantise_uint4",
            "quantise_mx",
            "quantise_nvfp4",
            "matmul_a4w4_mxfp4",
            "matmul_a4w4_nvfp4",
            "matmul_mx",
            "matmul_a8w8_block_scaled",
            "matmul_a8w8_preshuffled",
            "matmul_w4a16",
        ),
        "JAX has no cache in the layout of that kernel": (
            "reshape_and_cache_per_token",
            "reshape_and_cache_per_block",
            "concat_and_cache_mla_quantised",
            "concat_and_cache_mla_per_tile",
            "reshape_and_cache_quantised",
            "gather_cache",
        ),
        "JAX has no function that shuffles for matrix instructions": (
            "shuffle_weight",
            "shuffle_scale",
        ),
        "JAX has no function for routed experts but jax.lax.ragged_dot, which grouped_matmul judges": (
            "fused_experts",
            "fused_experts_a8w8",
            "fused_experts_a8w8_block_scaled",
            "fused_experts_mxfp4",
            "fused_experts_w4a16",
            "fused_experts_w4a16_mxfp4",
            "fused_experts_with_shared",
            "moe_align_block_size",
        ),
        "JAX has no recurrence as a function; jax.lax.scan runs the user's own": (
            "causal_conv1d_varlen",
            "selective_state_update",
            "gated_delta_rule",
            "selective_scan",
            "selective_scan_varlen",
        ),
        "JAX has no frequencies of rotary embeddings": (
            "rope_frequencies",
            "yarn_frequencies",
            "llama3_frequencies",
            "longrope_frequencies",
        ),
        "JAX has no processors of logits": (
            "apply_penalties",
            "apply_logit_bias",
            "apply_token_bitmask",
        ),
    }
)

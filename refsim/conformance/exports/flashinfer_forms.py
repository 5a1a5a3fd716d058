"""How operators look as definitions of flashinfer-bench, as a table: types of operators, and which axes vary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Params = Mapping[str, Any]

VARIABLE = frozenset(
    (
        *("rows", "tokens", "tokens_q", "tokens_k", "batch", "sequences", "boundaries", "queries", "keys", "splits"),
        *("m", "count", "length", "steps", "positions", "height", "max_position", "scale_rows"),
        *("pages", "max_pages", "blocks", "slots", "source_blocks", "target_blocks", "copies", "most"),
    )
)
"""Axes that count tokens, requests or pages; a name of a dimension means the same in all operators. The leading axes
d0, d1, … vary, too. All others are constants: they belong to a model."""

Axes = Mapping[str, str]


@dataclass(frozen=True)
class FlashinferForm:
    """An operator as a definition.

    Attributes
    ----------
    op_type : str
        The category: one of the published dataset's where it has one, else the operator's family.
    outputs : mapping of str to str, or function
        The axes of outputs that are not laid out like the input whose dtype they have. A function is given the
        parameters and the leading axes; None says that no axis of an input tells how long an output is.
    derived : mapping of str to str
        What the constant axes that no input has are of others: expressions in Python.
    """

    op_type: str
    outputs: Axes | Callable[[Params, tuple[str, ...]], Axes | None] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)


def _same(op_type: str, *names: str) -> dict[str, FlashinferForm]:
    """Operators whose outputs are all laid out like inputs."""
    return {name: FlashinferForm(op_type) for name in names}


def _with(op_type: str, outputs: Axes, *names: str, **derived: str) -> dict[str, FlashinferForm]:
    """Operators with outputs of the same axes."""
    return {name: FlashinferForm(op_type, outputs, derived) for name in names}


def _dynamic(width: str) -> Callable[[Params, tuple[str, ...]], Axes | None]:
    """Axes of scales and codes; blocks of several rows have no axis of an input."""

    def axes(params: Params, leading: tuple[str, ...]) -> Axes | None:
        block = params["block"]
        scale = {"tensor": "one one", "channel": f"one {width}", "token": "rows one"}.get(
            block, "rows blocks_of_columns"
        )
        if scale.endswith("columns") and not block.startswith("1x"):
            return None
        return {"scale": scale, "codes": f"rows {width}"}

    return axes


def _summed(params: Params, leading: tuple[str, ...]) -> Axes:
    axis = params["axis"]
    left = [name for place, name in enumerate(leading) if axis is not None and place != axis % len(leading)]
    return {"out": " ".join(left)}


_DENSE = {"out": "batch heads queries v_dim", "lse": "batch heads queries"}
_MIDDLE = {"middle": "tokens k inner", "out": "tokens width"}
_CACHES = {"new_key_cache": "blocks block_size heads head_dim", "new_value_cache": "blocks block_size heads v_dim"}
_PAGED = {"out": "sequences heads v_dim", "lse": "sequences heads"}

FLASHINFER_FORMS: dict[str, FlashinferForm] = {
    **_same("rmsnorm", "rmsnorm", "gemma_rmsnorm", "t5_rmsnorm", "fused_add_rmsnorm", "qk_norm"),
    "rmsnorm_dynamic_quant": FlashinferForm("rmsnorm", _dynamic("cols")),
    "fused_add_rmsnorm_dynamic_quant": FlashinferForm("rmsnorm", _dynamic("cols")),
    **_same("layernorm", "layernorm", "fused_add_layernorm"),
    "layernorm_dynamic_quant": FlashinferForm("layernorm", _dynamic("cols")),
    **_same("groupnorm", "groupnorm"),
    **_with(
        "activation",
        {"out": "rows half_width"},
        *("silu_and_mul", "gelu_and_mul", "relu2_and_mul", "swiglu_with_limit"),
        half_width="width // 2",
    ),
    **{
        f"{name}_dynamic_quant": FlashinferForm("activation", _dynamic("half_width"), {"half_width": "width // 2"})
        for name in ("silu_and_mul", "gelu_and_mul", "relu2_and_mul", "swiglu_with_limit")
    },
    **_with("activation", {"codes": "rows half_width"}, "act_and_mul_static_quant", half_width="width // 2"),
    **_with("gemm", {"out": "m n"}, "matmul", "gemm_epilogue", "matmul_a8w8", "matmul_a8w8_block_scaled"),
    **_with("gemm", {"out": "m n"}, "matmul_a8w8_preshuffled"),
    **_with("gemm", {"out": "batch m n"}, "batched_matmul"),
    **_with("gemm", {"out": "rows n"}, "grouped_matmul"),
    **_with("attention", _DENSE, "attention", "flash_attention", "attention_quantised"),
    **_same("attention", "attention_backward", "attention_bias_backward"),
    **_with("attention", {"dsinks": "heads"}, "attention_sinks_backward"),
    **_with("gqa_ragged", {"out": "tokens_q heads v_dim", "lse": "heads tokens_q"}, "attention_varlen"),
    **_with("gqa_paged", _PAGED, "paged_attention_decode", "paged_attention_decode_quantised"),
    **_with(
        "gqa_paged",
        {"out": "tokens heads v_dim", "lse": "heads tokens"},
        *("paged_attention_prefill", "paged_attention_prefill_quantised"),
    ),
    **_with("mla_paged", {"out": "sequences queries heads latent", "lse": "sequences queries heads"}, "mla_decode"),
    **_with(
        "mla_paged",
        {"out": "sequences queries heads latent_dim", "lse": "sequences queries heads"},
        "mla_decode_quantised",
    ),
    **_with("mla_ragged", {"out": "tokens_q heads v_dim", "lse": "heads tokens_q"}, "mla_prefill"),
    **_with("merge", {"out": "tokens heads v_dim", "lse": "tokens heads"}, "merge_attention_states"),
    **_same("moe", "fused_experts", "fused_experts_with_shared"),
    **_with("moe", _MIDDLE | {"middle_scale": "tokens k one"}, "fused_experts_a8w8"),
    **_with("moe", _MIDDLE | {"middle_scale": "tokens k inner_blocks"}, "fused_experts_a8w8_block_scaled"),
    **_with("moe", {"ids": "tokens top_k", "weights": "tokens top_k"}, "moe_gate"),
    **_with("moe", {"out": "tokens width"}, "moe_sum"),
    **_same("rope", "rope", "rope_backward", "rope_qk", "mrope", "rope_2d"),
    **_with("rope", {"cos": "count half", "sin": "count half"}, "rope_table"),
    **_with("rope", {"frequencies": "half"}, "rope_frequencies"),
    **_with("rope", {"scaled": "half"}, "llama3_frequencies"),
    **_with("rope", {"scaled": "half", "magnitude": "one"}, "yarn_frequencies", "longrope_frequencies", one="1"),
    **_with(
        "sampling",
        {"tokens": "rows"},
        *("greedy", "sample_top_k", "sample_top_p", "sample_top_k_top_p", "sample_min_p", "sample_by_row"),
    ),
    **_with("sampling", {"emitted": "batch", "next_token": "batch", "tokens": "batch places"}, "speculative_chain"),
    **_same("sampling", "temperature_softmax", "apply_penalties", "apply_logit_bias", "apply_token_bitmask"),
    **_same("reduce", "softmax", "log_softmax", "cumsum"),
    "sum": FlashinferForm("reduce", _summed),
    **_with("reduce", {"out": "..."}, "mean", "logsumexp", "max"),
    **_with("reduce", {"index": "..."}, "argmax"),
    **_with("reduce", {"indices": "rows k", "values": "rows k"}, "topk"),
    "quantise": FlashinferForm("quant", _dynamic("cols")),
    **_with("quant", {"codes": "rows cols"}, "quantise_static"),
    **_with("quant", {"out": "rows cols"}, "dequantise"),
    **_same("kv_cache", "concat_and_cache_mla", "copy_blocks", "gather_cache", "swap_blocks"),
    **_same("kv_cache", "reshape_and_cache", "reshape_and_cache_asm", "reshape_and_cache_flash"),
    **_with("kv_cache", _CACHES, "reshape_and_cache_quantised"),
    **_with(
        "kv_cache",
        _CACHES | {"new_k_scales": "heads cells", "new_v_scales": "heads cells"},
        "reshape_and_cache_per_token",
    ),
    **_with(
        "kv_cache",
        _CACHES | {"new_k_scales": "heads blocks", "new_v_scales": "heads blocks"},
        "reshape_and_cache_per_block",
    ),
    **_with("kv_cache", {"new_cache": "blocks block_size entry"}, "concat_and_cache_mla_quantised"),
    **_with(
        "kv_cache",
        {"new_scale_cache": "blocks block_size tiles", "new_code_cache": "blocks block_size latent"},
        "concat_and_cache_mla_per_tile",
    ),
    **_with("causal_conv1d", {"final_state": "batch dim past"}, "causal_conv1d"),
    **_with("causal_conv1d", {"new_state": "slots dim past"}, "causal_conv1d_update"),
    **_with("causal_conv1d", {"new_state": "slots dim past"}, "causal_conv1d_varlen"),
    **_with("mamba_ssu", {"final_state": "batch dim n"}, "selective_scan"),
    **_with("mamba_ssu", {"new_state": "slots dim n"}, "selective_scan_varlen"),
    **_with("mamba_ssu", {"new_state": "slots heads head_dim n"}, "selective_state_update"),
    **_with("gdn", {"out": "batch heads steps v_dim", "final_state": "batch heads key_dim v_dim"}, "gated_delta_rule"),
}

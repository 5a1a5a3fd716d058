"""Variants of attention of codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from oracle.formats import cast
from oracle.signature import Array
from oracle.variants.attention_flash import ADDED, RIGHT, SLIPS, STYLE, Slip, dense
from oracle.variants.attention_styles import HONEST, MISTAKEN, Style
from oracle.variants.variant import control, mutant

F = np.float32


def _attention(
    inputs: tuple[Any, ...], params: dict[str, Any], style: Style = STYLE, slip: Slip = RIGHT, rule: str = ""
) -> tuple[Array, Array]:
    """The result in its dtype, and the log-sum-exp; ``rule`` names what is done to scales and weights."""
    q, k, v, q_scale, k_scale, v_scale, sinks = inputs
    heads, kv_heads = q.shape[1], max(k.shape[1], 1)
    factors = dict(zip(("q", "k", "v"), (q_scale, k_scale, v_scale), strict=True))
    if rule == "swapped":
        factors["k"], factors["v"] = factors["v"], factors["k"]

    def numbers(codes: Array, name: str) -> Array:
        wide, factor = codes.astype(F), factors[name].astype(F)
        if rule == "bias" and codes.dtype.name == "float8_e4m3fnuz":
            wide = wide * F(2)
        if rule == "no_" + name or folded:
            return wide
        if factor.ndim == 2:
            factor = factor[:, :1] + 0 * factor if rule == "first_head" else factor
            if name == "q":
                factor = np.repeat(factor, heads // kv_heads, axis=1)
            factor = factor[:, :, np.newaxis, np.newaxis]
        scaled: Array = wide * factor
        return scaled

    folded = rule == "folded" and params["scales"] == "tensor"
    if folded:
        scale = q.shape[-1] ** -0.5 if params["scale"] is None else params["scale"]
        params = {**params, "scale": float(F(scale) * q_scale[0] * k_scale[0])}
    if rule == "rounded" or (rule == "codes" and params["weights"] == "codes"):
        style = replace(style, weights=v.dtype.name)
    out, lse = dense(numbers(q, "q"), numbers(k, "k"), numbers(v, "v"), params, style, slip, sinks=sinks)
    if folded:
        out = out * v_scale[0]
    return cast(out.astype(np.float64), params["out_dtype"]), lse


def _variant(name: str, doc: str, register: Any, facts: Any = None, **options: Any) -> None:
    def variant(*inputs: Any, **params: Any) -> Any:
        return _attention(inputs, params, **options)

    variant.__doc__ = doc
    register("attention_quantised", name=name, **facts or {})(variant)


for _name, (_style, _doc) in HONEST.items():
    _variant(_name, f"Dequantised first. {_doc}", control, style=_style)
_variant("scales_folded", "Scales per tensor are multiplied to the scores' scale, and to the result.", control,
         rule="folded")  # fmt: skip
_variant("weights_in_codes", "Weights are rounded to the codes' format where that is granted.", control,
         style=Style(tile=16), rule="codes")  # fmt: skip
for _name, (_style, _doc) in MISTAKEN.items():
    _variant(_name, _doc, mutant, style=_style)
SLIPPED = ("diagonal_one_further", "window_one_wider", "window_ignored", "softcap_ignored", "heads_by_remainder",
           "sink_not_in_lse", "sink_in_lse")  # fmt: skip
for _name in SLIPPED:
    _variant(_name, {**SLIPS, **ADDED}[_name][1], mutant, slip={**SLIPS, **ADDED}[_name][0])
RULES = {
    "query_scale_missing": ("no_q", "Queries are not scaled."),
    "key_scale_missing": ("no_k", "Keys are not scaled."),
    "value_scale_missing": ("no_v", "Values are not scaled."),
    "scales_swapped": ("swapped", "Keys take the values' scales, and values the keys'."),
    "scale_of_first_head": ("first_head", "All heads take the first one's scale."),
    "weights_rounded_unasked": ("rounded", "Weights are rounded to the codes' format, granted or not."),
}
for _name, (_rule, _doc) in RULES.items():
    _variant(_name, _doc, mutant, rule=_rule)
_variant("bias_of_fn", "float8_e4m3fnuz is read as float8_e4m3fn: twice as large.", mutant,
         {"dtypes": ("float8_e4m3fnuz",)}, rule="bias")  # fmt: skip


@mutant("attention_quantised", relation="batches_are_independent")
def order_by_place(*inputs: Any, **params: Any) -> Any:
    """How the keys are tiled depends on where in the batch a sequence stands."""
    one, two = (_attention(inputs, params, HONEST[name][0]) for name in ("two_passes", "online_backwards"))
    for result, other in zip(one, two, strict=True):
        result[1::2] = other[1::2]
    return one

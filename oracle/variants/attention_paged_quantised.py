"""Variants of attention over quantised pages, of one query per sequence and of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import stored, wide
from oracle.variants.attention_flash import ADDED, SLIPS, STYLE
from oracle.variants.attention_paged import WALKS, paged
from oracle.variants.attention_styles import HONEST, MISTAKEN, Style, narrowed
from oracle.variants.variant import control, mutant

DECODE, PREFILL = "paged_attention_decode_quantised", "paged_attention_prefill_quantised"


def _folds(params: dict[str, Any]) -> bool:
    """Whether scales may be multiplied to sums: one for all, and codes that are not rounded once dequantised."""
    return (params["scales"], params["dequantised"]) == ("tensor", "compute")


def _dequantised(rows: Array, factor: Array, pages: Array, places: Array, params: dict[str, Any], slip: str) -> Array:
    """Rows (tokens, kv_heads, size) of codes times their scales."""
    real = factor.dtype
    codes = rows.astype(real)
    if slip == "bias" and rows.dtype.name == "float8_e4m3fnuz":
        codes = codes * real.type(2)
    if slip == "unsigned" and rows.dtype == np.int8:
        codes = np.where(codes < 0, codes + real.type(256), codes)
    if params["scales"] == "token":
        pages = np.where((pages < 0) | (pages >= len(factor)), 0, pages)
        if slip == "logical":
            pages = np.arange(len(pages)) // factor.shape[1] % max(len(factor), 1)
        factor = factor[pages, places]
        factor = factor[:, :1] + 0 * factor if slip == "first_head" else factor
    else:
        factor = (factor[:1] if slip == "first_head" else factor)[np.newaxis]
    numbers: Array = codes * factor[..., np.newaxis]
    fmt = {"unrounded": "compute", "rounded": "bfloat16"}.get(slip, params["dequantised"])
    return numbers if fmt == "compute" else narrowed(numbers, fmt)


def _attention(inputs: tuple[Any, ...], params: dict[str, Any], rule: str = "", **options: Any) -> tuple[Array, Array]:
    """The result and the log-sum-exp (heads, tokens); ``rule`` names what is done to scales, mistakes among it."""
    q, keys, values, k_scale, v_scale, edges, table, lengths, sinks = inputs
    real = wide(q).dtype
    factors = {"key_cache": k_scale.astype(real), "value_cache": v_scale.astype(real)}
    if rule == "swapped":
        factors = {"key_cache": factors["value_cache"], "value_cache": factors["key_cache"]}
    folded = rule == "folded" and _folds(params)

    def rows_of(rows: Array, what: str, pages: Array, places: Array) -> Array:
        if rule == "no_" + what or folded:
            return rows.astype(real)
        return _dequantised(rows, factors[what], pages, places, params, rule)

    if folded:
        scale = q.shape[-1] ** -0.5 if params["scale"] is None else params["scale"]
        params = {**params, "scale": float(real.type(scale) * factors["key_cache"][0])}
    out, lse = paged(q, keys, values, edges, table, lengths, params, rows_of=rows_of, sinks=sinks, **options)
    return stored(out * factors["value_cache"][0] if folded else out, q), lse


def _variant(name: str, doc: str, register: Any, facts: Any = None, **options: Any) -> None:
    def decode(
        q: Any, keys: Any, values: Any, k_scale: Any, v_scale: Any, table: Any, lengths: Any, sinks: Any, **params: Any
    ) -> Any:
        given = (q, keys, values, k_scale, v_scale, np.arange(len(q) + 1), table, lengths, sinks)
        out, lse = _attention(given, params, **options)
        return out, np.ascontiguousarray(lse.T)

    def prefill(*inputs: Any, **params: Any) -> Any:
        return _attention(inputs, params, **options)

    for operator, function in ((DECODE, decode), (PREFILL, prefill)):
        function.__doc__ = doc
        register(operator, name=name, **facts or {})(function)


for _name, (_style, _doc) in HONEST.items():
    _variant(_name, f"Dequantised first. {_doc}", control, style=_style)
_variant(
    "scales_folded", "A scale per tensor is multiplied to the scores' scale, and to the result.", control, rule="folded"
)
for _name, (_style, _doc) in MISTAKEN.items():
    _variant(_name, _doc, mutant, style=_style)
for _name in ("last_token_missed", "whole_last_page", "logical_pages", "next_page_early"):
    _variant(_name, WALKS[_name][1], mutant, tokens=WALKS[_name][0])
for _name in ("window_one_wider", "window_ignored", "softcap_ignored", "sink_not_in_lse", "sink_in_lse"):
    _variant(_name, {**SLIPS, **ADDED}[_name][1], mutant, slip={**SLIPS, **ADDED}[_name][0])
RULES = {
    "scales_swapped": ("swapped", "Keys take the values' scales, and values the keys'."),
    "key_scale_missing": ("no_key_cache", "Keys are not scaled."),
    "value_scale_missing": ("no_value_cache", "Values are not scaled."),
    "scale_of_first_head": ("first_head", "All heads take the first one's scale."),
    "scale_of_logical_page": ("logical", "A token's scale is looked up without the page table."),
    "bias_of_fn": ("bias", "float8_e4m3fnuz is read as float8_e4m3fn: twice as large."),
    "unsigned_codes": ("unsigned", "int8 codes are read as unsigned."),
    "not_rounded": ("unrounded", "Dequantised numbers are not rounded, whatever was asked for."),
    "rounded_to_bfloat16": ("rounded", "Dequantised numbers are rounded to bfloat16, whatever was asked for."),
}
for _name, (_rule, _doc) in RULES.items():
    _variant(_name, _doc, mutant, rule=_rule)
_variant(
    "order_by_page", "How the keys are tiled depends on the number of the first page.", mutant,
    {"relation": "pages_may_be_moved"}, style=lambda row: Style(tile=4) if len(row) and row[0] % 2 else STYLE,
)  # fmt: skip

"""Variants of attention over quantised pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import stored, wide
from oracle.variants.attention_flash import STYLE
from oracle.variants.attention_paged import WALKS, paged
from oracle.variants.attention_styles import HONEST, MISTAKEN, Style
from oracle.variants.variant import control, mutant

OPERATOR = "paged_attention_decode_quantised"


def _decode(
    q: Array, keys: Array, values: Array, k_scale: Array, v_scale: Array, table: Array, lengths: Array,
    params: dict[str, Any], slip: str = "", **options: Any,
) -> tuple[Array, Array]:  # fmt: skip
    real = wide(q).dtype
    factors = {"key_cache": k_scale, "value_cache": v_scale}
    if slip == "swapped":
        factors = {"key_cache": v_scale, "value_cache": k_scale}

    def dequantised(rows: Array, what: str, pages: Array, places: Array) -> Array:
        codes, factor = rows.astype(real), factors[what].astype(real)
        if slip in ("no_" + what, "folded"):
            return codes
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
            by_token: Array = codes * factor[..., np.newaxis]
            return by_token
        factor = factor[:1] if slip == "first_head" else factor
        by_head: Array = codes * factor[np.newaxis, :, np.newaxis]
        return by_head

    edges = np.arange(len(q) + 1)
    if slip == "folded" and params["scales"] != "tensor":
        slip = ""
    if slip == "folded":
        scale = q.shape[-1] ** -0.5 if params["scale"] is None else params["scale"]
        params = {**params, "scale": float(real.type(scale) * k_scale.astype(real)[0])}
    out, lse = paged(q, keys, values, edges, table, lengths, params, rows_of=dequantised, **options)
    if slip == "folded":
        out = out * v_scale.astype(real)[0]
    return stored(out, q), np.ascontiguousarray(lse.T)


def _variant(name: str, doc: str, register: Any, facts: Any = None, slip: str = "", **options: Any) -> None:
    def variant(
        q: Any, keys: Any, values: Any, k_scale: Any, v_scale: Any, table: Any, lengths: Any, **params: Any
    ) -> Any:
        return _decode(q, keys, values, k_scale, v_scale, table, lengths, params, slip, **options)

    variant.__doc__ = doc
    register(OPERATOR, name=name, **facts or {})(variant)


for _name, (_style, _doc) in HONEST.items():
    _variant(_name, f"Dequantised first. {_doc}", control, style=_style)
_variant(
    "scales_folded", "A scale per tensor is multiplied to the scores' scale, and to the result.", control, slip="folded"
)
for _name, (_style, _doc) in MISTAKEN.items():
    _variant(_name, _doc, mutant, style=_style)
for _name in ("last_token_missed", "whole_last_page", "logical_pages", "next_page_early"):
    _variant(_name, WALKS[_name][1], mutant, tokens=WALKS[_name][0])
_variant("scales_swapped", "Keys take the values' scales, and values the keys'.", mutant, slip="swapped")
_variant("key_scale_missing", "Keys are not scaled.", mutant, slip="no_key_cache")
_variant("value_scale_missing", "Values are not scaled.", mutant, slip="no_value_cache")
_variant("scale_of_first_head", "All heads take the first one's scale.", mutant, slip="first_head")
_variant("scale_of_logical_page", "A token's scale is looked up without the page table.", mutant, slip="logical")
_variant("bias_of_fn", "float8_e4m3fnuz is read as float8_e4m3fn: twice as large.", mutant, slip="bias")
_variant("unsigned_codes", "int8 codes are read as unsigned.", mutant, slip="unsigned")
_variant(
    "order_by_page", "How the keys are tiled depends on the number of the first page.", mutant,
    {"relation": "pages_may_be_moved"}, style=lambda row: Style(tile=4) if len(row) and row[0] % 2 else STYLE,
)  # fmt: skip

"""Variants of absorbed latent attention over a quantised cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import stored, wide
from oracle.variants.attention_flash import ADDED, SLIPS, STYLE, Slip
from oracle.variants.attention_mla import absorbed
from oracle.variants.attention_paged import WALKS
from oracle.variants.attention_styles import HONEST, MISTAKEN, Style, narrowed
from oracle.variants.variant import control, mutant


def _dequantised(latent: Array, rope: Array, factor: Array, params: dict[str, Any], rule: str, real: Any) -> Array:
    """The cache (pages, page_size, qk_dim) in numbers; ``rule`` names a mistake."""
    codes, rotated, factor = latent.astype(real), rope.astype(real), factor.astype(real)
    if rule == "bias" and latent.dtype.name == "float8_e4m3fnuz":
        codes = codes * real.type(2)
    if rule == "unsigned" and latent.dtype == np.int8:
        codes = np.where(codes < 0, codes + real.type(256), codes)
    fmt = {"unrounded": "compute", "rounded": "bfloat16"}.get(rule, params["dequantised"])

    def finished(numbers: Array) -> Array:
        return numbers if fmt == "compute" else narrowed(numbers, fmt)

    if params["scales"] == "tensor":
        rotated = rotated if rule == "rope_unscaled" else finished(rotated * factor)
        return np.concatenate([codes if rule == "unscaled" else finished(codes * factor), rotated], axis=-1)
    tile = codes.shape[-1] // factor.shape[-1]
    column = np.arange(codes.shape[-1])
    chosen = {"first_tile": 0 * column, "interleaved": column % factor.shape[-1]}.get(rule, column // tile)
    numbers = codes if rule == "unscaled" else finished(codes * factor[..., chosen])
    if rule == "rope_scaled":
        rotated = rotated * factor[..., -1:]
    return np.concatenate([numbers, rotated], axis=-1)


def _decode(inputs: tuple[Any, ...], params: dict[str, Any], rule: str = "", **options: Any) -> tuple[Array, Array]:
    q, latent, rope, factor, table, lengths, sinks = inputs
    real = wide(q).dtype
    options |= {"sinks": sinks}
    own = {**params, "latent_dim": latent.shape[2]}
    if rule == "folded" and (params["scales"], params["dequantised"]) == ("tensor", "compute"):
        scale = q.shape[-1] ** -0.5 if params["scale"] is None else params["scale"]
        own["scale"] = float(real.type(scale) * factor.astype(real)[0])
        cache = np.concatenate([latent.astype(real), rope.astype(real)], axis=-1)
        out, lse = absorbed(q, cache, table, lengths, own, **options)
        return stored(out * factor.astype(real)[0], q), lse
    cache = _dequantised(latent, rope, factor, params, rule, real)
    out, lse = absorbed(q, cache, table, lengths, own, **options)
    return stored(out, q), lse


def _variant(name: str, doc: str, register: Any, facts: Any = None, **options: Any) -> None:
    def variant(*inputs: Any, **params: Any) -> Any:
        return _decode(inputs, params, **options)

    variant.__doc__ = doc
    register("mla_decode_quantised", name=name, **facts or {})(variant)


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
_variant("diagonal_one_further", SLIPS["diagonal_one_further"][1], mutant, slip=Slip(diagonal=1))
RULES = {
    "scale_missing": ("unscaled", "The latent vector is not scaled."),
    "scale_of_first_tile": ("first_tile", "All columns take the first tile's scale."),
    "tiles_interleaved": ("interleaved", "Column c takes the scale of tile c % tiles."),
    "rotated_part_scaled": ("rope_scaled", "The rotated part has the last tile's scale."),
    "rotated_part_unscaled": ("rope_unscaled", "The rotated part lacks the tensor's scale."),
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

"""Variants of latent attention, and of merging split attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, exp, exp2, exp_by_exp2, log, sequential, stored, wide
from oracle.variants.attention_flash import ADDED, RIGHT, SLIPS, STYLE, Slip, dense, packed, pairs
from oracle.variants.attention_paged import WALKS, Tokens, tokens_of
from oracle.variants.attention_styles import HONEST, MISTAKEN, Style, narrowed
from oracle.variants.variant import control, mutant


def absorbed(
    q: Array,
    cache: Array,
    table: Array,
    lengths: Array,
    params: dict[str, Any],
    style: Style | Callable[[Array], Style] = STYLE,
    slip: Slip = RIGHT,
    tokens: Tokens = tokens_of,
    values: Callable[[Array, int], Array] = lambda c, latent: c[..., :latent],
    scores_of: Callable[[Array, int], Array] = lambda c, latent: c,
    scale: Callable[[int, int], float] | None = None,
    sinks: Array | None = None,
) -> tuple[Array, Array]:
    """Absorbed attention in the compute type: (sequences, queries, heads, latent_dim) and (sequences, queries, heads).

    The options after ``slip`` are mistakes.
    """
    sequences, queries, heads, size = q.shape
    latent = params["latent_dim"]
    out = np.zeros((sequences, queries, heads, latent), wide(q).dtype)
    lse = np.full(q.shape[:3], -np.inf, out.dtype)
    options = {**params, "causal": "bottom_right"}
    if scale and params["scale"] is None:
        options["scale"] = scale(size, latent)
    for at in range(sequences):
        pages, places = tokens(table[at], int(lengths[at]), cache.shape[1])
        if not len(cache):
            pages, places = pages[:0], places[:0]
        rows = cache[np.where((pages < 0) | (pages >= len(cache)), 0, pages), places][np.newaxis, np.newaxis]
        chosen = style if isinstance(style, Style) else style(table[at])
        mean, log_sum = dense(
            scores_of(np.swapaxes(q[at], 0, 1)[np.newaxis], latent), scores_of(rows, latent), values(rows, latent),
            options if options["scale"] is not None else {**options, "scale": max(size, 1) ** -0.5}, chosen, slip,
            sinks=sinks,
        )  # fmt: skip
        out[at], lse[at] = np.swapaxes(mean[0], 0, 1), np.swapaxes(log_sum[0], 0, 1)
    return out, lse


def _decode(name: str, doc: str, register: Any, facts: Any = None, **options: Any) -> None:
    def variant(q: Any, cache: Any, table: Any, lengths: Any, sinks: Any, **params: Any) -> Any:
        out, lse = absorbed(q, cache, table, lengths, params, sinks=sinks, **options)
        return stored(out, q), lse

    variant.__doc__ = doc
    register("mla_decode", name=name, **facts or {})(variant)


for _name, (_style, _doc) in HONEST.items():
    _decode(_name, _doc, control, style=_style)
for _name, (_style, _doc) in MISTAKEN.items():
    _decode(_name, _doc, mutant, style=_style)
for _name, (_walk, _doc) in WALKS.items():
    _decode(_name, _doc, mutant, tokens=_walk)
_decode(
    "rotated_part_left_out", "Scores are those of the latent part alone.", mutant, scores_of=lambda c, n: c[..., :n]
)
_decode("values_are_last_columns", "Values are the last columns of the cache.", mutant,
        values=lambda c, n: c[..., c.shape[-1] - n :])  # fmt: skip
_decode(
    "scale_of_latent_part", "The default scale is 1 / sqrt(latent_dim).", mutant, scale=lambda d, n: max(n, 1) ** -0.5
)
OPTIONS = ("window_one_wider", "window_one_narrower", "window_ignored", "softcap_ignored")
SINKS = ("sink_not_in_lse", "sink_in_lse")
for _name, (_slip, _doc) in {name: {**SLIPS, **ADDED}[name] for name in OPTIONS + SINKS}.items():
    _decode(_name, _doc, mutant, slip=_slip)
_decode("diagonal_one_further", "The diagonal lies one key too far to the right.", mutant, slip=Slip(diagonal=1))
_decode("top_left", "The mask is aligned at the first query.", mutant, slip=Slip(top_left=True, diagonal=1))
_decode(
    "order_by_page", "How the keys are tiled depends on the number of the first page.", mutant,
    {"relation": "pages_may_be_moved"}, style=lambda row: Style(tile=4) if len(row) and row[0] % 2 else STYLE,
)  # fmt: skip


def _written_out(k_nope: Array, k_rope: Array) -> Array:
    return np.concatenate([k_nope, np.repeat(k_rope[:, np.newaxis], k_nope.shape[1], axis=1)], axis=-1)


def _prefill(
    name: str, doc: str, register: Any, facts: Any = None,
    keys: Callable[[Array, Array], Array] = _written_out, style: Any = STYLE, slip: Slip = RIGHT, **change: Any,
) -> None:  # fmt: skip
    def variant(q: Any, k_nope: Any, k_rope: Any, v: Any, cu_q: Any, cu_k: Any, sinks: Any, **params: Any) -> Any:
        if params["scale"] is None and "scale" in change:
            params["scale"] = change["scale"](q.shape[2], k_rope.shape[1])
        return packed(q, keys(k_nope, k_rope), v, pairs(cu_q), pairs(cu_k), params, style, slip, sinks=sinks)

    variant.__doc__ = doc
    register("mla_prefill", name=name, **facts or {})(variant)


for _name, (_style, _doc) in HONEST.items():
    _prefill(_name, _doc, control, style=_style)
for _name, (_style, _doc) in MISTAKEN.items():
    _prefill(_name, _doc, mutant, style=_style)
_prefill("rotated_part_first", "The rotated part of the key stands first.", mutant,
         keys=lambda nope, rope: np.roll(_written_out(nope, rope), rope.shape[1], axis=-1))  # fmt: skip
_prefill("rotated_part_left_out", "Scores are those of the part that is not rotated.", mutant,
         keys=lambda nope, rope: _written_out(nope, 0 * rope))  # fmt: skip
_prefill("scale_of_unrotated_part", "The default scale is 1 / sqrt(nope_dim).", mutant,
         scale=lambda d, rope: max(d - rope, 1) ** -0.5)  # fmt: skip
for _name, (_slip, _doc) in {name: {**SLIPS, **ADDED}[name] for name in OPTIONS + SINKS}.items():
    _prefill(_name, _doc, mutant, slip=_slip)
_prefill("diagonal_one_further", SLIPS["diagonal_one_further"][1], mutant, slip=Slip(diagonal=1))
_prefill("top_left", "The mask is aligned at the first query.", mutant, slip=Slip(top_left=True))


@mutant("mla_prefill", relation="sequences_are_independent")
def order_by_offset(q: Any, k_nope: Any, k_rope: Any, v: Any, cu_q: Any, cu_k: Any, sinks: Any, **params: Any) -> Any:
    """How the keys are tiled depends on where the sequence begins."""
    given = (q, _written_out(k_nope, k_rope), v, pairs(cu_q), pairs(cu_k), params)
    out, lse = packed(*given, sinks=sinks)
    later = packed(*given, Style(tile=4), sinks=sinks)
    for first, last in pairs(cu_q)[1:]:
        out[first:last], lse[:, first:last] = later[0][first:last], later[1][:, first:last]
    return out, lse


LN2 = float(np.log(2.0))


def _merge(
    outs: Array,
    lses: Array,
    base: str,
    total: Sum = sequential,
    two: bool = False,
    divide_first: bool = False,
    power: Any = None,
    start: float = -np.inf,
    weights: str = "",
    unweighted: bool = False,
    largest_in_lse: bool = True,
    splits: slice = slice(None),
    empty: float | None = None,
    accumulator: str = "",
) -> tuple[Array, Array]:
    """The options after ``power`` are mistakes, but for ``two``: exponentials of base 2 whatever the base."""
    wide_outs, like = wide(outs)[splits], outs
    real = wide_outs.dtype.type
    lses = lses[splits].astype(wide_outs.dtype)
    largest = np.maximum(np.max(lses, axis=0, initial=-np.inf), start).astype(wide_outs.dtype)
    shift = np.where(np.isfinite(largest), largest, real(0))
    power = power or (exp2 if base == "2" else (exp_by_exp2 if two else exp))
    weight = power((lses - shift).astype(wide_outs.dtype))
    if weights:
        weight = narrowed(weight, weights)
    sums = total(np.moveaxis(weight, 0, -1))[..., 0]
    safe = np.where(sums == 0, real(1), sums)
    if unweighted:
        weight = np.ones_like(weight)
    if divide_first:
        weight = weight / safe
    if accumulator:
        out = np.zeros(wide_outs.shape[1:], wide_outs.dtype)
        for share, part in zip(weight, wide_outs, strict=True):
            out = narrowed(out + share[..., np.newaxis] * part, accumulator)
    else:
        out = total(np.moveaxis(weight[..., np.newaxis] * wide_outs, 0, -1))[..., 0]
    out = out if divide_first else out / safe[..., np.newaxis]
    logs = log(safe) if base == "e" else (log(safe) / real(LN2)).astype(wide_outs.dtype)
    lse = np.where(sums == 0, real(-np.inf), (shift if largest_in_lse else real(0)) + logs)
    if empty is not None:
        out = np.where((sums == 0)[..., np.newaxis], real(empty), out)
    return stored(out.astype(wide_outs.dtype), like), lse.astype(wide_outs.dtype)


def _merging(name: str, doc: str, register: Any, facts: Any = None, **options: Any) -> None:
    def variant(outs: Any, lses: Any, *, base: str) -> Any:
        return _merge(outs, lses, base, **options)

    variant.__doc__ = doc
    register("merge_attention_states", name=name, **facts or {})(variant)


for _name, _order in ORDERS.items():
    _merging(f"order_{_name}", "The parts are added in an order of its own.", control, total=_order)
_merging("weights_divided", "The weights are divided before they meet the results.", control, divide_first=True)
_merging("exp2", "exp goes through exp2.", control, two=True)
_merging("no_maximum", "No maximum is taken off.", mutant, start=0.0)
_merging("base_e", "The base is e whatever was asked for.", mutant, power=exp)
_merging("mean_of_parts", "The parts are added without weights.", mutant, unweighted=True)
_merging("maximum_not_in_lse", "The log-sum-exp leaves the maximum out.", mutant, largest_in_lse=False)
_merging("last_part_missed", "The last part is left out.", mutant, splits=slice(0, -1))
_merging("nan_where_nothing_is_seen", "A token that saw no key comes out as 0/0.", mutant, empty=np.nan)
_merging("weights_bfloat16", "The weights are rounded to bfloat16.", mutant, weights="bfloat16")
_merging("accumulator_bfloat16", "The accumulator is bfloat16.", mutant, accumulator="bfloat16")


@mutant("merge_attention_states", relation="merged_tokens_are_independent")
def order_by_token(outs: Any, lses: Any, *, base: str) -> Any:
    """The order of the parts depends on where a token stands."""
    out, lse = _merge(outs, lses, base)
    other_out, other_lse = _merge(outs, lses, base, ORDERS["backwards"])
    out[::2], lse[::2] = other_out[::2], other_lse[::2]
    return out, lse

"""Variants of attention with all options, and of packed sequences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import stored, tanh, wide
from oracle.variants.attention_styles import HONEST, MISMASKED, MISTAKEN, Style, attend, heads_of
from oracle.variants.variant import control, mutant

STYLE = HONEST["two_passes"][0]


@dataclass(frozen=True)
class Slip:
    """Mistakes in what is done to scores; the defaults are right.

    Attributes
    ----------
    left, right, diagonal : int
        By how much the window's ends and the diagonal are off.
    top_left : bool
        The window is aligned at the first query.
    window, softcap, softcap_last : bool
        Whether the window and the soft cap count at all; whether the cap comes after what is added.
    alibi : str
        The convention taken, whatever was asked for.
    alibi_heads, sink_heads : str
        "kv" where slope or sink h belongs to key head h.
    bias_scaled : bool
        The bias is added before the scale.
    sink_in_lse : bool or None
        Whether the sink counts in lse whatever was asked for.
    heads_by_remainder : bool
        Query head h reads key head h % kv_heads.
    """

    left: int = 0
    right: int = 0
    diagonal: int = 0
    top_left: bool = False
    window: bool = True
    softcap: bool = True
    softcap_last: bool = False
    alibi: str = ""
    alibi_heads: str = "q"
    sink_heads: str = "q"
    bias_scaled: bool = False
    sink_in_lse: bool | None = None
    heads_by_remainder: bool = False


RIGHT = Slip()


def visible_of(queries: int, keys: int, params: dict[str, Any], slip: Slip = RIGHT) -> Array:
    """Which keys each query sees."""
    causal = params.get("causal", "none")
    left, right = params.get("window_left", -1), params.get("window_right", -1)
    at_first = causal == "top_left" or slip.top_left
    off = np.arange(keys) - np.arange(queries)[:, np.newaxis] - (0 if at_first else keys - queries) - slip.diagonal
    seen: Array = np.ones((queries, keys), bool)
    if causal != "none":
        seen &= off <= 0
    elif right >= 0 and slip.window:
        seen &= off <= right + slip.right
    if left >= 0 and slip.window:
        seen &= off >= -left - slip.left
    return seen


def dense(
    q: Array,
    k: Array,
    v: Array,
    params: dict[str, Any],
    style: Style = STYLE,
    slip: Slip = RIGHT,
    *,
    bias: Array | None = None,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
) -> tuple[Array, Array]:
    """Attention of (batch, heads, queries, head_dim) with all options, in the compute type."""
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    scale = q.shape[-1] ** -0.5 if params["scale"] is None else params["scale"]
    q, k, v = wide(q), wide(k), wide(v)
    real, group = q.dtype.type, heads // max(k.shape[1], 1)
    if slip.heads_by_remainder:
        k, v = (x[:, np.arange(heads) % max(x.shape[1], 1)] for x in (k, v))
    else:
        k, v = heads_of(k, heads), heads_of(v, heads)
    shared = np.arange(heads) // max(group, 1)
    slopes = None if alibi_slopes is None else alibi_slopes[shared if slip.alibi_heads == "kv" else slice(None)]
    row, column = np.arange(queries)[:, np.newaxis], np.arange(keys)
    if (slip.alibi or params.get("alibi", "distance")) == "distance":
        distance = -np.abs(row + keys - queries - column)
    else:
        distance = column - (keys - 1) + 0 * row
    softcap = params.get("softcap") if slip.softcap else None
    visible = visible_of(queries, keys, params, slip)
    if bias is not None:
        visible = visible & (bias > -np.inf)

    def capped(score: Array) -> Array:
        result: Array = tanh(score / real(softcap)) * real(softcap) if softcap else score
        return result

    def adjust(score: Array, part: slice) -> Array:
        if not slip.softcap_last:
            score = capped(score)
        if slopes is not None:
            score = score + (slopes[:, np.newaxis, np.newaxis] * distance[:, part]).astype(q.dtype)
        if bias is not None:
            with np.errstate(all="ignore"):
                score = score + wide(bias[..., part]) * real(scale if slip.bias_scaled else 1)
        return capped(score) if slip.softcap_last else score

    sink = None
    if sinks is not None:
        sink = sinks[shared if slip.sink_heads == "kv" else slice(None)].astype(q.dtype)[:, np.newaxis]
    out, lse = attend(q, k, v, visible, scale, style, adjust, sink)
    counted = params.get("sink_in_lse", True) if slip.sink_in_lse is None else slip.sink_in_lse
    if sinks is not None and not counted:
        lse = attend(q, k, v, visible, scale, style, adjust)[1]
    return out, lse


SLIPS: dict[str, tuple[Slip, str]] = {
    "diagonal_one_further": (Slip(diagonal=1), "The diagonal lies one key too far to the right."),
    "window_one_wider": (Slip(left=1), "One key too many is seen on the left of the window."),
    "window_one_narrower": (Slip(left=-1), "One key too few is seen on the left of the window."),
    "window_right_one_wider": (Slip(right=1), "One key too many is seen on the right of the window."),
    "window_at_first_query": (Slip(top_left=True), "Window and mask are aligned at the first query."),
    "window_ignored": (Slip(window=False), "The window is left out."),
    "softcap_ignored": (Slip(softcap=False), "The soft cap is left out."),
    "heads_by_remainder": (Slip(heads_by_remainder=True), "Query head h reads key head h % kv_heads."),
}
"""Mistakes that attention with a window and a soft cap can have."""

ADDED: dict[str, tuple[Slip, str]] = {
    "softcap_after_bias": (Slip(softcap_last=True), "The soft cap comes after ALiBi and bias."),
    "alibi_by_distance": (Slip(alibi="distance"), "ALiBi is by distance whatever was asked for."),
    "alibi_by_last_key": (Slip(alibi="last_key"), "ALiBi counts from the last key whatever was asked for."),
    "alibi_of_key_head": (Slip(alibi_heads="kv"), "A head takes the slope of its key head."),
    "bias_scaled": (Slip(bias_scaled=True), "The bias is added before the scale is applied."),
    "sink_of_key_head": (Slip(sink_heads="kv"), "A head takes the sink of its key head."),
    "sink_not_in_lse": (Slip(sink_in_lse=False), "The log-sum-exp leaves the sink out whatever was asked for."),
    "sink_in_lse": (Slip(sink_in_lse=True), "The sink counts in the log-sum-exp whatever was asked for."),
}
"""Mistakes with ALiBi, bias and sinks."""


def _flash(name: str, doc: str, register: Any, style: Style = STYLE, slip: Slip = RIGHT, **facts: Any) -> None:
    def variant(q: Any, k: Any, v: Any, bias: Any, alibi_slopes: Any, sinks: Any, **params: Any) -> Any:
        out, lse = dense(q, k, v, params, style, slip, bias=bias, alibi_slopes=alibi_slopes, sinks=sinks)
        return stored(out, q), lse

    variant.__doc__ = doc
    register("flash_attention", name=name, **facts)(variant)


for _name, (_style, _doc) in HONEST.items():
    _flash(_name, _doc, control, _style)
for _name, (_style, _doc) in {**MISTAKEN, **MISMASKED}.items():
    _flash(_name, _doc, mutant, _style)
for _name, (_slip, _doc) in {**SLIPS, **ADDED}.items():
    _flash(_name, _doc, mutant, slip=_slip)


@mutant("flash_attention", relation="batches_are_independent")
def order_by_place(q: Any, k: Any, v: Any, bias: Any, alibi_slopes: Any, sinks: Any, **params: Any) -> Any:
    """How the keys are tiled depends on where in the batch a sequence stands."""
    parts = []
    for at in range(max(len(q), 1)):
        one, style = slice(at, at + 1), HONEST["online_tiles" if at % 2 else "two_passes"][0]
        part_bias = None if bias is None else bias[one]
        parts.append(
            dense(q[one], k[one], v[one], params, style, bias=part_bias, alibi_slopes=alibi_slopes, sinks=sinks)
        )
    out, lse = zip(*parts, strict=True)
    return stored(np.concatenate(out), q), np.concatenate(lse)


def packed(
    q: Array,
    k: Array,
    v: Array,
    queries_of: list[tuple[int, int]],
    keys_of: list[tuple[int, int]],
    params: dict[str, Any],
    style: Style = STYLE,
    slip: Slip = RIGHT,
    *,
    bias: Array | None = None,
    **added: Any,
) -> tuple[Array, Array]:
    """Attention of each sequence on its own, given as (first, last) of its queries and keys.

    ``bias`` is (tokens, columns); ``added`` holds slopes and sinks.
    """
    out = np.zeros((*q.shape[:2], v.shape[2]), wide(q).dtype)
    lse = np.full((q.shape[1], len(q)), -np.inf, out.dtype)
    for (first, last), (first_key, last_key) in zip(queries_of, keys_of, strict=True):
        if first == last:
            continue
        parts = (q[first:last], k[first_key:last_key], v[first_key:last_key])
        q_rows, k_rows, v_rows = (np.swapaxes(x, 0, 1)[np.newaxis] for x in parts)
        own = None if bias is None else bias[first:last, : last_key - first_key][np.newaxis, np.newaxis]
        mean, log_sum = dense(q_rows, k_rows, v_rows, params, style, slip, bias=own, **added)
        out[first:last] = np.swapaxes(mean[0], 0, 1)
        lse[:, first:last] = log_sum[0]
    return stored(out, q), lse


def pairs(edges: Array) -> list[tuple[int, int]]:
    """(first, last) between boundaries."""
    return [(int(first), int(last)) for first, last in pairwise(edges)]


def _used(cu_k: Array, used: Array | None) -> list[tuple[int, int]]:
    whole = pairs(cu_k)
    if used is None:
        return whole
    return [(first, first + int(count)) for (first, _), count in zip(whole, used, strict=True)]


def _added(inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Bias, slopes and sinks by name."""
    return dict(zip(("bias", "alibi_slopes", "sinks"), inputs, strict=True))


def _varlen(name: str, doc: str, register: Any, style: Style = STYLE, slip: Slip = RIGHT, **facts: Any) -> None:
    def variant(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, *added: Any, **params: Any) -> Any:
        return packed(q, k, v, pairs(cu_q), _used(cu_k, used), params, style, slip, **_added(added))

    variant.__doc__ = doc
    register("attention_varlen", name=name, **facts)(variant)


for _name, (_style, _doc) in HONEST.items():
    _varlen(_name, _doc, control, _style)
for _name, (_style, _doc) in {**MISTAKEN, **MISMASKED}.items():
    _varlen(_name, _doc, mutant, _style)
for _name, (_slip, _doc) in {**SLIPS, **ADDED}.items():
    _varlen(_name, _doc, mutant, slip=_slip)


@mutant("attention_varlen")
def lengths_ignored(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, *added: Any, **params: Any
) -> tuple[Array, Array]:
    """All keys of a sequence are taken, used or not."""
    return packed(q, k, v, pairs(cu_q), pairs(cu_k), params, **_added(added))


@mutant("attention_varlen")
def padding_masked_by_weight(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, *added: Any, **params: Any
) -> tuple[Array, Array]:
    """Unused values meet weights of 0, and 0 · NaN is NaN."""
    out, lse = packed(q, k, v, pairs(cu_q), _used(cu_k, used), params, **_added(added))
    for (first, last), (first_key, last_key) in zip(pairs(cu_q), pairs(cu_k), strict=True):
        spoiled = np.isnan(wide(v)[first_key:last_key]).any()
        out[first:last] = np.nan if spoiled else out[first:last]
    return out, lse


@mutant("attention_varlen")
def one_key_of_the_next(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, *added: Any, **params: Any
) -> tuple[Array, Array]:
    """Each sequence takes the first key of the next one, too."""
    keys = [(first, min(last + 1, len(k))) for first, last in _used(cu_k, used)]
    return packed(q, k, v, pairs(cu_q), keys, params, **_added(added))


@mutant("attention_varlen")
def keys_bounded_by_queries(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, *added: Any, **params: Any
) -> tuple[Array, Array]:
    """The keys' boundaries are taken from cu_seqlens_q."""
    keys = [(min(first, len(k)), min(last, len(k))) for first, last in pairs(cu_q)]
    return packed(q, k, v, pairs(cu_q), keys, params, **_added(added))


@mutant("attention_varlen")
def bias_of_first_rows(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, bias: Any, *added: Any, **params: Any
) -> tuple[Array, Array]:
    """Every sequence takes the bias from the first row on."""
    if bias is not None:
        rows = [np.arange(last - first) for first, last in pairs(cu_q)]
        bias = bias[np.concatenate(rows)] if rows else bias
    return packed(q, k, v, pairs(cu_q), _used(cu_k, used), params, **_added((bias, *added)))


@mutant("attention_varlen")
def bias_by_packed_key(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, bias: Any, *added: Any, **params: Any
) -> tuple[Array, Array]:
    """Columns of the bias are counted from the first key of all sequences."""
    if bias is not None and bias.shape[1]:
        bias = np.array(bias)
        for (first, last), (first_key, _) in zip(pairs(cu_q), pairs(cu_k), strict=True):
            bias[first:last] = np.roll(bias[first:last], -first_key, axis=1)
    return packed(q, k, v, pairs(cu_q), _used(cu_k, used), params, **_added((bias, *added)))


@mutant("attention_varlen", relation="sequences_are_independent")
def order_by_offset(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, used: Any, *added: Any, **params: Any
) -> tuple[Array, Array]:
    """How the keys are tiled depends on where the sequence begins."""
    queries, keys = pairs(cu_q), _used(cu_k, used)
    out, lse = packed(q, k, v, queries, keys, params, **_added(added))
    later = packed(q, k, v, queries, keys, params, HONEST["online_tiles"][0], **_added(added))
    for first, last in queries[1:]:
        out[first:last], lse[:, first:last] = later[0][first:last], later[1][:, first:last]
    return out, lse

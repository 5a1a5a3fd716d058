"""Variants of plain attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import format_of, round_to
from oracle.signature import Array
from oracle.variants.arithmetic import stored, wide
from oracle.variants.attention_styles import HONEST, MISMASKED, MISTAKEN, Style, attend, heads_of
from oracle.variants.variant import control, mutant

NARROW = ("float16", "bfloat16")


def seen_keys(queries: int, keys: int, causal: str, shift: int = 0) -> Array:
    """Which keys each query sees; ``shift`` moves the diagonal."""
    row, column = np.arange(queries)[:, np.newaxis], np.arange(keys)
    last = {"none": row * 0 + keys, "top_left": row + shift, "bottom_right": row + keys - queries + shift}[causal]
    return column <= last


def results(out: Array, lse: Array, like: Array) -> tuple[Array, Array]:
    """Stored in their dtypes."""
    return stored(out, like), lse


def _attention(
    q: Array, k: Array, v: Array, causal: str, scale: float | None, style: Style, visible: Array | None = None
) -> tuple[Array, Array]:
    heads = q.shape[1]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    visible = seen_keys(q.shape[2], k.shape[2], causal) if visible is None else visible
    out, lse = attend(wide(q), heads_of(wide(k), heads), heads_of(wide(v), heads), visible, scale, style)
    return results(out, lse, q)


def _styled(name: str, style: Style, doc: str, register: Any, **facts: Any) -> None:
    def variant(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
        return _attention(q, k, v, causal, scale, style)

    variant.__doc__ = doc
    register("attention", name=name, **facts)(variant)


for _name, (_style, _doc) in HONEST.items():
    _styled(_name, _style, _doc, control)
for _name, (_style, _doc) in {**MISTAKEN, **MISMASKED}.items():
    _styled(_name, _style, _doc, mutant)
_styled("accumulator_bfloat16", Style(tile=4, accumulator="bfloat16"), "The accumulator is bfloat16.", mutant)
_styled("scores_rounded", Style(scores="bfloat16"), "Scores are rounded to bfloat16 before exp.", mutant)
_styled("weights_float8", Style(weights="float8_e4m3fn"), "Weights are rounded to float8 before they meet v.", mutant)
STYLE = HONEST["two_passes"][0]


@mutant("attention")
def causal_one_further(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """The diagonal lies one key too far to the right."""
    return _attention(q, k, v, causal, scale, STYLE, seen_keys(q.shape[2], k.shape[2], causal, 1))


@mutant("attention")
def causal_one_short(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """The diagonal itself is hidden."""
    return _attention(q, k, v, causal, scale, STYLE, seen_keys(q.shape[2], k.shape[2], causal, -1))


@mutant("attention")
def top_left_for_bottom_right(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """The mask is aligned at the first query where the last is meant: one version of a library against the next."""
    return _attention(q, k, v, {"bottom_right": "top_left"}.get(causal, causal), scale, STYLE)


@mutant("attention")
def bottom_right_for_top_left(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """The mask is aligned at the last query where the first is meant."""
    return _attention(q, k, v, {"top_left": "bottom_right"}.get(causal, causal), scale, STYLE)


@mutant("attention")
def heads_by_remainder(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """Query head h reads key head h % kv_heads, not h // group."""
    order = np.arange(q.shape[1]) % max(k.shape[1], 1)
    return _attention(q, k[:, order], v[:, order], causal, scale, STYLE)


@mutant("attention")
def mean_where_nothing_is_seen(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> Any:
    """A row whose keys are all hidden comes out as the mean of v: -inf was a large negative number."""
    out, lse = _attention(q, k, v, causal, scale, STYLE)
    if not k.shape[2]:
        return np.full_like(out, np.nan), lse
    mean = heads_of(wide(v), q.shape[1]).mean(axis=2, keepdims=True)
    return np.where(np.isneginf(lse)[..., np.newaxis], stored(mean, q), out), lse


@mutant("attention")
def nan_where_nothing_is_seen(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> Any:
    """A row whose keys are all hidden comes out as 0/0."""
    out, lse = _attention(q, k, v, causal, scale, STYLE)
    return np.where(np.isneginf(lse)[..., np.newaxis], out.dtype.type(np.nan), out), lse


@mutant("attention")
def scale_not_rooted(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """The default scale is 1 / head_dim."""
    return _attention(q, k, v, causal, 1.0 / q.shape[-1] if scale is None else scale, STYLE)


@mutant("attention")
def lse_in_base_two(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """The log-sum-exp is a base-2 logarithm."""
    out, lse = _attention(q, k, v, causal, scale, STYLE)
    return out, lse * lse.dtype.type(np.log2(np.e))


@mutant("attention", dtypes=NARROW)
def stored_toward_zero(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """The result is cut off, not rounded, where it is stored."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    visible = seen_keys(q.shape[2], k.shape[2], causal)
    out, lse = attend(wide(q), heads_of(wide(k), q.shape[1]), heads_of(wide(v), q.shape[1]), visible, scale)
    cut = round_to(out.astype(np.float64), format_of(q.dtype.name), "toward_zero")
    return stored(cut, q), lse


@mutant("attention", relation="batches_are_independent")
def order_by_batch(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """How the keys are tiled depends on where in the batch a sequence stands."""
    styles = HONEST["two_passes"][0], Style(tile=8)
    parts = [
        _attention(q[at : at + 1], k[at : at + 1], v[at : at + 1], causal, scale, styles[at % 2])
        for at in range(len(q))
    ] or [_attention(q, k, v, causal, scale, STYLE)]
    out, lse = zip(*parts, strict=True)
    return np.concatenate(out), np.concatenate(lse)


@mutant("attention", relation="hidden_keys_do_not_matter")
def order_by_hidden_key(q: Array, k: Array, v: Array, *, causal: str, scale: float | None) -> tuple[Array, Array]:
    """How the keys are tiled depends on the last key, which may be hidden."""
    skewed = causal != "none" and k.size > 0 and bool(wide(k)[0, 0, -1, 0] > 4096)
    return _attention(q, k, v, causal, scale, Style(tile=8) if skewed else STYLE)

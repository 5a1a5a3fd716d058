"""One attention in NumPy with the choices that kernels have, and the mistakes that they make, as fields of a Style."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import Sum, exp, exp_by_exp2, exp_promised, in_blocks, log, pairwise, sequential

Adjust = Callable[[Array, slice], Array]
State = tuple[Array, Array, Array]


def narrowed(x: Array, fmt: str) -> Array:
    """Numbers rounded to a narrower format, in the dtype that they had."""
    return round_to(x.astype(np.float64), fmt).astype(x.dtype)


@dataclass(frozen=True)
class Style:
    """How a kernel goes about attention. The fields after ``backwards`` are mistakes; their defaults are right.

    Attributes
    ----------
    tile : int
        Keys per tile of the online softmax; 0 for all at once.
    exp, total : function
        The exponential, and the sum of a tile's weights.
    scale_queries, divide_weights : bool
        Scale q and not the scores; divide the weights and not the result (with tile 0).
    halves : bool
        The scores are added up in two halves of the head dimension.
    splits : int
        Parts of the keys that are worked on apart; their accumulators, maxima and sums are put together at the end.
    backwards : bool
        Tiles from the last to the first.
    start : float
        What the running maximum starts at.
    rescale_out, rescale_total : bool
        Whether the accumulator and the sum follow the maximum.
    added_mask : bool
        Whether hidden keys have -1e30 added to their score, in place of a score of -inf.
    open_tail : bool
        Whether the cells that pad the last tile count as keys with score 0 and value 0.
    scores, weights, accumulator : str
        Formats to which these are rounded on the way; empty for none.
    """

    tile: int = 0
    exp: Callable[[Array], Array] = exp
    total: Sum = sequential
    scale_queries: bool = False
    divide_weights: bool = False
    halves: bool = False
    splits: int = 1
    backwards: bool = False
    start: float = -np.inf
    rescale_out: bool = True
    rescale_total: bool = True
    added_mask: bool = False
    open_tail: bool = False
    scores: str = ""
    weights: str = ""
    accumulator: str = ""


HONEST: dict[str, tuple[Style, str]] = {
    "two_passes": (Style(), "All scores first, then the weights, then the weighted sum."),
    "weights_divided": (Style(divide_weights=True, total=pairwise), "The weights are divided before they meet v."),
    "queries_scaled": (Style(scale_queries=True, total=in_blocks(8)), "The scale goes into q."),
    "exp2": (Style(exp=exp_by_exp2, halves=True), "exp goes through exp2, scores are added up in two halves."),
    "online_tiles": (Style(tile=16), "One pass over tiles of 16 keys with a running maximum."),
    "online_backwards": (Style(tile=8, backwards=True, exp=exp_by_exp2), "Tiles of 8 keys, the last tile first."),
    "splits_merged": (Style(tile=8, splits=2), "The keys in two splits, merged by their maxima and sums."),
    "as_promised": (Style(tile=4, exp=exp_promised), "Tiles of 4 keys; exp is off by anything up to two ulps."),
}
"""Honest styles by name, with what each does its own way."""

MISTAKEN: dict[str, tuple[Style, str]] = {
    "maximum_from_zero": (Style(tile=16, start=0.0), "The running maximum starts at 0."),
    "maximum_from_minus_50000": (Style(tile=16, start=-5e4), "The running maximum starts at -50,000."),
    "accumulator_not_rescaled": (Style(tile=16, rescale_out=False), "The accumulator does not follow the maximum."),
    "sum_not_rescaled": (Style(tile=16, rescale_total=False), "The sum of weights does not follow the maximum."),
    "padding_scored_zero": (Style(tile=16, open_tail=True), "Cells that pad the last tile count with score 0."),
}
"""Wrong styles by name, with what is wrong; of the kind that any attention can have."""

MISMASKED: dict[str, tuple[Style, str]] = {
    "mask_added": (Style(tile=16, added_mask=True), "The mask is a large negative number that is added to scores."),
}
"""Wrong styles where a mask hides keys of which some are infinite, or all that a query has."""


def heads_of(kv: Array, heads: int, axis: int = 1) -> Array:
    """Key or value heads repeated to one per query head."""
    return np.repeat(kv, heads // max(kv.shape[axis], 1), axis=axis)


def attend(
    q: Array, k: Array, v: Array, visible: Array, scale: float, style: Style = HONEST["two_passes"][0],
    adjust: Adjust | None = None, sink: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Weighted mean and log-sum-exp in q's dtype.

    Parameters
    ----------
    q, k, v : array (..., queries, head_dim), (..., keys, head_dim), (..., keys, v_dim)
        In the compute type; leading axes broadcast.
    visible : bool array (..., queries, keys)
        What each query sees.
    adjust : function, optional
        Given scaled scores and the slice of keys that they belong to, returns what becomes of them.
    sink : array (..., queries), optional
        A score that takes weight and gives nothing.
    """
    q, k, v = (np.ascontiguousarray(x) for x in (q, k, v))
    real, keys = q.dtype.type, k.shape[-2]
    shape = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2], visible.shape[:-2]), q.shape[-2])
    visible = np.broadcast_to(visible, (*shape, keys))
    empty = (np.zeros((*shape, v.shape[-1]), q.dtype), np.full(shape, style.start, q.dtype), np.zeros(shape, q.dtype))
    state = empty
    if sink is not None:
        largest = np.maximum(empty[1], np.broadcast_to(sink, shape))
        state = empty[0], largest, style.exp(np.where(np.isneginf(largest), real(-np.inf), sink - largest))
    if style.scale_queries:
        q = q * real(scale)
    tile = style.tile or max(keys, 1)
    firsts = list(range(0, keys, tile))[:: -1 if style.backwards else 1]
    share = -(-len(firsts) // style.splits) or 1
    for start in range(0, len(firsts), share):
        part_state = state if start == 0 else empty
        for first in firsts[start : start + share]:
            part = slice(first, first + tile)
            score = _scores(q, k[..., part, :], style)
            if not style.scale_queries:
                score = score * real(scale)
            if adjust is not None:
                score = adjust(score, part).astype(q.dtype)
            if style.scores:
                score = narrowed(score, style.scores)
            part_state = _after_tile(part_state, score, visible[..., part], v[..., part, :], style)
        state = part_state if start == 0 else _merged(state, part_state, style)
    out, largest, total = state
    safe = np.where(total == 0, real(1), total)
    lse = np.where(total == 0, real(-np.inf), np.where(np.isneginf(largest), real(0), largest) + log(safe))
    return out if style.divide_weights else out / safe[..., np.newaxis], lse


def _after_tile(state: State, score: Array, visible: Array, v: Array, style: Style) -> State:
    """Accumulator, maximum and sum after one more tile of keys."""
    out, largest, total = state
    real, count = score.dtype.type, score.shape[-1]
    score = score + np.where(visible, real(0), real(-1e30)) if style.added_mask else np.where(visible, score, -np.inf)
    score = score.astype(out.dtype)
    if style.open_tail:
        score = np.concatenate([score, np.zeros((*score.shape[:-1], style.tile - count), score.dtype)], axis=-1)
    new = np.maximum(largest, np.max(score, axis=-1, initial=-np.inf).astype(score.dtype))
    base = np.where(np.isneginf(new), real(0), new)
    shrink = style.exp(np.where(np.isneginf(largest), real(-np.inf), largest - base))
    weight = style.exp(score - base[..., np.newaxis])
    total = (total * shrink if style.rescale_total else total) + style.total(weight)[..., 0]
    weight = weight[..., :count]
    if style.divide_weights:
        weight = weight / np.where(total == 0, real(1), total)[..., np.newaxis]
    if style.weights:
        weight = narrowed(weight, style.weights)
    out = (out * shrink[..., np.newaxis] if style.rescale_out else out) + weight @ v
    return narrowed(out, style.accumulator) if style.accumulator else out, new, total


def _merged(one: State, two: State, style: Style) -> State:
    """The state of two splits of the keys."""
    largest = np.maximum(one[1], two[1])
    base = np.where(np.isneginf(largest), 0, largest).astype(largest.dtype)
    first, second = (style.exp(np.where(np.isneginf(m), -np.inf, m - base).astype(m.dtype)) for m in (one[1], two[1]))
    out = one[0] * first[..., np.newaxis] + two[0] * second[..., np.newaxis]
    return out, largest, one[2] * first + two[2] * second


def _scores(q: Array, k: Array, style: Style) -> Array:
    across = np.swapaxes(k, -1, -2)
    if not style.halves:
        product: Array = q @ across
        return product
    middle = q.shape[-1] // 2
    halves: Array = q[..., :middle] @ across[..., :middle, :] + q[..., middle:] @ across[..., middle:, :]
    return halves

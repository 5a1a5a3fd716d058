"""The two products of experts on codes: what the quantised experts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.ops.moe_experts import activated, halves_fit
from oracle.signature import Array
from oracle.vocabulary import accumulate, round_to_format, scaled_matmul


def blocks_fit(sizes: Mapping[str, int], block: int) -> str | None:
    """What is wrong with the dimensions dim_blocks for blocks along dim, or with the halves; or None."""
    for name, blocks in sizes.items():
        dim = name.removesuffix("_blocks")
        if dim != name and blocks != -(-sizes[dim] // block):
            needed = -(-sizes[dim] // block)
            return f"{dim} = {sizes[dim]} has {needed} blocks of {block}, but the scales have {name} = {blocks}"
    return halves_fit(sizes, {})


def by_slot(rows: Any, topk_ids: Array) -> Any:
    """Rows (tokens · k, columns) as (tokens, k, columns)."""
    return rows.reshape(*topk_ids.shape, rows.shape[1])


def missing(topk_ids: Array, columns: int) -> Array:
    """Which elements (tokens, k, columns) of the intermediate nobody computes."""
    nobody: Array = np.broadcast_to((topk_ids < 0)[:, :, np.newaxis], (*topk_ids.shape, columns))
    return nobody


def activated_rows(
    hidden: Any,
    factor: Any,
    weight: Any,
    weight_factor: Any,
    bias: Any,
    topk_ids: Array,
    topk_weights: Any,
    params: Mapping[str, Any],
) -> Any:
    """The activated first product of each token and slot: (tokens · k, inner); 0 where an id is -1.

    ``factor`` broadcasts to hidden, or is None; ``weight_factor`` broadcasts to weight. A weight of the input
    multiplies the product, like a scale, before the bias.
    """
    tokens, k = topk_ids.shape
    inner = weight.shape[1] // 2
    middle: Any = np.zeros_like(hidden, shape=(tokens * k, inner))
    for expert in range(len(weight)):
        rows, slots = np.nonzero(topk_ids == expert)
        if not len(rows):
            continue
        scales = () if factor is None else (factor[rows],)
        if params["weighted"] == "input":
            scales = (*scales, topk_weights[rows, slots][:, np.newaxis])
        both = scaled_matmul(hidden[rows], scales, weight[expert].T, (weight_factor[expert].T,))
        if bias is not None:
            both = accumulate(both, bias[expert])
        if params["halves"] != "compute":
            both = round_to_format(both, params["halves"])
        middle[rows * k + slots] = activated(both[:, :inner], both[:, inner:], params["activation"])
    return middle if params["intermediate"] == "compute" else round_to_format(middle, params["intermediate"])


def summed_rows(
    middle: Any,
    factor: Any,
    weight: Any,
    weight_factor: Any,
    bias: Any,
    topk_ids: Array,
    topk_weights: Any,
    weighted: str,
) -> Any:
    """The second product of each token and slot, and its sum over slots: (tokens, width)."""
    tokens, k = topk_ids.shape
    results: Any = np.zeros_like(middle, shape=(tokens, k, weight.shape[1]))
    for expert in range(len(weight)):
        rows, slots = np.nonzero(topk_ids == expert)
        if not len(rows):
            continue
        at, share = rows * k + slots, topk_weights[rows, slots][:, np.newaxis]
        scales = () if factor is None else (factor[at],)
        scales = (*scales, share) if weighted == "output" else scales
        product = scaled_matmul(middle[at], scales, weight[expert].T, (weight_factor[expert].T,))
        if bias is not None:
            product = accumulate(product, bias[expert] * share if weighted == "output" else bias[expert])
        results[rows, slots] = product
    return np.sum(results, axis=1)


def spread(scale: Any, block: int, size: int, axis: int = -1) -> Any:
    """A scale for each element along an axis."""
    repeated = np.repeat(scale, block, axis=axis)
    return repeated[..., :size] if axis == -1 else repeated[..., :size, :]

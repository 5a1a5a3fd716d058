"""Variants of gating and of the sorting of slots into blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, exp, exp_by_exp2, exp_promised, pairwise, quotient, sequential, wide
from oracle.variants.variant import control, mutant


@dataclass(frozen=True)
class Gate:
    """How a gate is computed; the defaults are the definition's own way."""

    total: Sum = sequential
    exponential: Callable[[Array], Array] = exp
    online: bool = False
    logits: Callable[[Array], Array] = wide
    weight_total: Sum = sequential
    divide: Callable[[Any, Any], Array] = np.divide
    reciprocal: bool = False
    chosen_only: bool = False
    biased_weights: bool = False
    bias_twice: bool = False
    bias_in_logits: bool = False
    group_score: str = ""
    masked: str = ""
    groups_wrap: bool = False
    renormalise: bool | None = None
    scaling: float | None = None
    scaled_first: bool = False
    hidden_last: bool = False
    worst_last: bool = False
    weights_sorted: bool = False
    highest_first: str = ""
    scores_to: str = ""


def _softmax(x: Array, style: Gate) -> Array:
    """Shares of each row, by the maximum of the row or a running one."""
    if not style.online:
        weight = style.exponential(x - x.max(axis=-1, keepdims=True))
        total = style.total(weight)
        return weight * (1 / total) if style.reciprocal else style.divide(weight, total)
    largest, total = x[:, :1], np.ones_like(x[:, :1])
    for at in range(1, x.shape[1]):
        new = np.maximum(largest, x[:, at : at + 1])
        shift = np.where(np.isneginf(new), 0, new)
        total = total * style.exponential(largest - shift) + style.exponential(x[:, at : at + 1] - shift)
        largest = new
    return style.exponential(x - largest) / total


def _sigmoid(x: Array, style: Gate) -> Any:
    with np.errstate(over="ignore"):
        below = 1 + style.exponential(-x)
        return style.divide(np.ones_like(below), below)


def _softplus(x: Array, style: Gate) -> Any:
    if x.dtype == np.float64:
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    with np.errstate(over="ignore"):
        return np.where(x > 20, x, np.log1p(style.exponential(x)))


def _score(x: Array, scoring: str, style: Gate) -> Any:
    if scoring == "softmax":
        return _softmax(x, style)
    return _sigmoid(x, style) if scoring == "sigmoid" else np.sqrt(_softplus(x, style))


def _first(scores: Array, count: int) -> Array:
    return np.argsort(-scores, axis=-1, kind="stable")[..., :count]


def _restricted(choice: Array, params: dict[str, Any], style: Gate) -> Array:
    """The scores with those of other groups taken out."""
    tokens, experts = choice.shape
    groups = params["groups"]
    members = choice.reshape(tokens, groups, experts // groups)
    if style.groups_wrap:
        members = np.swapaxes(choice.reshape(tokens, experts // groups, groups), 1, 2)
    falling = -np.sort(-members, axis=-1)
    how = style.group_score or params["group_score"]
    best = falling[..., 0] + falling[..., 1] if how == "top_two" else falling[..., 0]
    kept = np.zeros((tokens, groups), bool)
    np.put_along_axis(kept, _first(best, params["top_groups"]), True, axis=-1)
    rest = 0.0 if (style.masked or params["masked"]) == "zero" else -np.inf
    return np.where(np.repeat(kept, experts // groups, axis=-1), choice, choice.dtype.type(rest))


def gate(logits: Array, bias: Array | None, params: dict[str, Any], style: Gate) -> tuple[Array, Array]:
    """The gate in float32, float64 for float64 logits."""
    x = style.logits(logits)
    x = x if x.dtype == np.float64 else x.astype(np.float32)
    scores = _score(x, params["scoring"], style)
    if style.bias_in_logits and bias is not None:
        scores = _score(x + bias, params["scoring"], style)
    if style.scores_to:
        scores = round_to(scores, style.scores_to).astype(x.dtype)
    choice = scores
    if bias is not None and not style.bias_in_logits:
        choice = scores + bias * x.dtype.type(2 if style.bias_twice else 1)
    if style.hidden_last and choice.shape[1] > params["top_k"] and params["groups"] == 1:
        choice = np.concatenate([choice[:, :-1], np.full_like(choice[:, -1:], -np.inf)], axis=-1)
    if params["groups"] > 1:
        choice = _restricted(choice, params, style)
    ids = _first(choice, params["top_k"])
    if style.highest_first == "always" or style.highest_first == params["scoring"]:
        ids = choice.shape[1] - 1 - _first(choice[:, ::-1], params["top_k"])
    if style.worst_last and choice.shape[1] > params["top_k"] > 1:
        ids[:, -1] = _first(choice, params["top_k"] + 1)[:, -1]
    weights = np.take_along_axis(choice if style.biased_weights else scores, ids, axis=-1)
    if style.weights_sorted:
        weights = -np.sort(-weights, axis=-1)
    scaling = x.dtype.type(params["scaling"] if style.scaling is None else style.scaling)
    renormalise = params["renormalise"] if style.renormalise is None else style.renormalise
    if renormalise and style.chosen_only and params["scoring"] == "softmax":
        taken = np.take_along_axis(x, ids, axis=-1)
        weights = style.exponential(taken - taken.max(axis=-1, keepdims=True))
    with np.errstate(all="ignore"):
        if renormalise:
            total = style.weight_total(weights)
            if style.scaled_first:
                weights = weights * (scaling / total)
            else:
                weights = (weights * (1 / total) if style.reciprocal else style.divide(weights, total)) * scaling
        else:
            weights = weights * scaling
    return ids.astype(np.int32), weights


def _variant(register: Any, name: str, style: Gate, flaw: str, **facts: Any) -> None:
    def moe_gate(logits: Array, bias: Array | None, **params: Any) -> tuple[Array, Array]:
        return gate(logits, bias, params, style)

    moe_gate.__doc__ = flaw
    register("moe_gate", name=name, **facts)(moe_gate)


PLAIN = Gate()
for _order, _total in ORDERS.items():
    _variant(control, f"order_{_order}", Gate(total=_total, weight_total=_total), "Both sums in an order of its own.")
_variant(control, "exp_by_exp2", Gate(exponential=exp_by_exp2), "The exponential goes through exp2.")
_variant(control, "online", Gate(online=True), "The softmax has a running maximum.")
_variant(control, "chosen_only", Gate(chosen_only=True), "A renormalised softmax is one over the chosen logits.")
_variant(control, "reciprocal", Gate(reciprocal=True, total=pairwise), "Products with reciprocals, no divisions.")
_variant(
    control,
    "as_promised",
    Gate(exponential=exp_promised, divide=quotient),
    "The exponential and quotients are off by anything up to two ulps.",
)
_variant(control, "scaled_first", Gate(scaled_first=True), "The factor is divided by the sum, then multiplied.")

MUTANTS: dict[str, tuple[Gate, str]] = {
    "biased_weights": (Gate(biased_weights=True), "The weights come from the biased scores."),
    "bias_twice": (Gate(bias_twice=True), "The bias is added twice (AITER #4247)."),
    "bias_in_logits": (Gate(bias_in_logits=True), "The bias is added before the score is taken (AITER #4247)."),
    "group_by_max": (Gate(group_score="max"), "A group is as good as its best member, always."),
    "zero_masked": (Gate(masked="zero"), "Other groups take part with a score of 0, always."),
    "never_masked": (Gate(masked="excluded"), "Other groups cannot be chosen, even where they should with 0."),
    "groups_wrap": (Gate(groups_wrap=True), "A group is every n-th expert."),
    "not_renormalised": (Gate(renormalise=False), "The weights are never divided by their sum."),
    "always_renormalised": (Gate(renormalise=True), "The weights are always divided by their sum."),
    "not_scaled": (Gate(scaling=1.0), "The factor is left out."),
    "last_hidden": (Gate(hidden_last=True), "The last expert is never chosen."),
    "one_too_far": (Gate(worst_last=True), "The last of the chosen is the next one."),
    "weights_sorted": (Gate(weights_sorted=True), "The weights come in falling order, whatever the ids."),
    "bfloat16_scores": (Gate(scores_to="bfloat16"), "Scores are rounded to bfloat16."),
    "highest_of_equal": (Gate(highest_first="always"), "Of equal scores the higher index goes first."),
    "half_exponential": (
        Gate(exponential=lambda x: round_to(np.exp(x), "float16").astype(x.dtype)),
        "The exponential is rounded to float16.",
    ),
}
for _name, (_style, _flaw) in MUTANTS.items():
    _variant(mutant, _name, _style, _flaw)
_variant(
    mutant,
    "highest_of_equal_sigmoids",
    Gate(highest_first="sigmoid"),
    "Of equal sigmoids the one with the higher index goes first.",
    relation="first_of_equal_experts",
)


@mutant("moe_gate", dtypes=("float32",), relation="entries_in_any_place")
def order_by_token(logits: Array, bias: Array | None, **params: Any) -> tuple[Array, Array]:
    """Tokens in odd places are summed in another order."""
    ids, weights = gate(logits, bias, params, PLAIN)
    other_ids, other = gate(logits, bias, params, replace(PLAIN, total=pairwise, weight_total=ORDERS["backwards"]))
    ids[1::2], weights[1::2] = other_ids[1::2], other[1::2]
    return ids, weights


# Sorting into blocks. Each is called with the flat ids.

Blocks = tuple[Array, Array, Array]


def _laid_out(order: Array, flat: Array, experts: int, block_size: int) -> Blocks:
    """Blocks from slots that are sorted already; those elsewhere have gone."""
    counts = np.bincount(flat[order], minlength=experts)
    padded = -(-counts // block_size) * block_size
    starts = np.concatenate([[0], np.cumsum(padded)])
    capacity = flat.size + experts * (block_size - 1)
    slots = np.full(capacity, flat.size, np.int32)
    within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots[np.repeat(starts[:-1], counts) + within] = order
    blocks = np.full(-(-capacity // block_size), -1, np.int32)
    owners = np.repeat(np.arange(experts), padded // block_size)
    blocks[: len(owners)] = owners
    return slots, blocks, np.array([starts[-1]], np.int32)


def stable_sort(flat: Array, experts: int, block_size: int) -> Blocks:
    """A stable sort of the ids."""
    order = np.argsort(flat, kind="stable")
    return _laid_out(order[flat[order] >= 0], flat, experts, block_size)


def combined_keys(flat: Array, experts: int, block_size: int) -> Blocks:
    """A sort of expert and slot packed into one key."""
    keys = np.sort(flat.astype(np.int64) << 32 | np.arange(flat.size))
    keys = keys[keys >= 0]
    return _laid_out(keys & 0xFFFFFFFF, flat, experts, block_size)


def counting(flat: Array, experts: int, block_size: int) -> Blocks:
    """A counting sort: each slot takes the next place of its expert."""
    place = np.zeros(experts, np.int64)
    buckets: list[list[int]] = [[] for _ in range(experts)]
    for slot, expert in enumerate(flat):
        if expert >= 0:
            buckets[expert].append(slot)
            place[expert] += 1
    order = np.array([slot for bucket in buckets for slot in bucket], np.int64)
    return _laid_out(order, flat, experts, block_size)


def one_hot_ranks(flat: Array, experts: int, block_size: int) -> Blocks:
    """A slot's rank is a running count of a one-hot matrix."""
    hot = flat[:, np.newaxis] == np.arange(experts)
    rank = np.cumsum(hot, axis=0) - 1
    counts = hot.sum(axis=0)
    starts = np.cumsum(counts) - counts
    order = np.zeros(int(counts.sum()), np.int64)
    slots, owners = np.nonzero(hot)
    order[starts[owners] + rank[slots, owners]] = slots
    return _laid_out(order, flat, experts, block_size)


def in_chunks(flat: Array, experts: int, block_size: int) -> Blocks:
    """Each thread counts a chunk of the slots; a scan over the chunks gives the places."""
    width = max(1, -(-flat.size // 8))
    chunks = [np.arange(at, min(at + width, flat.size)) for at in range(0, flat.size, width)]
    order = [chunk[flat[chunk] == expert] for expert in range(experts) for chunk in chunks]
    return _laid_out(np.concatenate([*order, np.zeros(0, np.int64)]), flat, experts, block_size)


def by_expert(flat: Array, experts: int, block_size: int) -> Blocks:
    """One pass over the slots per expert."""
    order = [np.flatnonzero(flat == expert) for expert in range(experts)]
    return _laid_out(np.concatenate([*order, np.zeros(0, np.int64)]).astype(np.int64), flat, experts, block_size)


def _aligned(register: Any, blocks: Callable[[Array, int, int], Blocks], name: str = "", flaw: str = "") -> None:
    def moe_align(topk_ids: Array, *, experts: int, block_size: int) -> Blocks:
        return blocks(np.ascontiguousarray(topk_ids).reshape(-1), experts, block_size)

    moe_align.__doc__ = flaw or blocks.__doc__
    register("moe_align_block_size", name=name or blocks.__name__)(moe_align)


for _blocks in (stable_sort, combined_keys, counting, one_hot_ranks, in_chunks, by_expert):
    _aligned(control, _blocks)


def reversed_slots(flat: Array, experts: int, block_size: int) -> Blocks:
    """An expert's slots come last first."""
    order = np.argsort(-np.arange(flat.size) + flat.astype(np.int64) * (flat.size + 1), kind="stable")
    return _laid_out(order[flat[order] >= 0], flat, experts, block_size)


def elsewhere_counted(flat: Array, experts: int, block_size: int) -> Blocks:
    """Slots of other ranks count as the first expert's."""
    return stable_sort(np.maximum(flat, 0), experts, block_size)


def padding_is_zero(flat: Array, experts: int, block_size: int) -> Blocks:
    """Padding is slot 0."""
    slots, blocks, total = stable_sort(flat, experts, block_size)
    return np.where(slots == flat.size, 0, slots).astype(np.int32), blocks, total


def empty_experts_padded(flat: Array, experts: int, block_size: int) -> Blocks:
    """An expert without slots gets a block of padding."""
    counts = np.bincount(flat[flat >= 0], minlength=experts)
    slots, blocks, total = stable_sort(flat, experts, block_size)
    owners = np.repeat(np.arange(experts), np.maximum(-(-counts // block_size), 1))[: len(blocks)]
    blocks[: len(owners)] = owners
    return slots, blocks, (total + (counts == 0).sum() * block_size).astype(np.int32)


def one_block_more(flat: Array, experts: int, block_size: int) -> Blocks:
    """An expert whose last block is full gets another."""
    counts = np.bincount(flat[flat >= 0], minlength=experts)
    slots, blocks, total = stable_sort(flat, experts, block_size)
    return slots, blocks, (total + ((counts > 0) & (counts % block_size == 0)).sum() * block_size).astype(np.int32)


def total_not_padded(flat: Array, experts: int, block_size: int) -> Blocks:
    """The total counts slots, without padding."""
    slots, blocks, _ = stable_sort(flat, experts, block_size)
    return slots, blocks, np.array([(flat >= 0).sum()], np.int32)


def eight_bit_slots(flat: Array, experts: int, block_size: int) -> Blocks:
    """Slots are kept in 8 bits while they are sorted."""
    slots, blocks, total = stable_sort(flat, experts, block_size)
    return np.where(slots < flat.size, slots & 0xFF, slots).astype(np.int32), blocks, total


def owners_by_row(flat: Array, experts: int, block_size: int) -> Blocks:
    """The blocks' experts are those of the first rows, not of the first row of each block."""
    slots, blocks, total = stable_sort(flat, experts, block_size)
    padded = np.append(flat, -1)
    return slots, padded[np.resize(slots, len(blocks))].astype(np.int32), total


for _blocks in (
    reversed_slots, elsewhere_counted, padding_is_zero, empty_experts_padded, one_block_more, total_not_padded,
    eight_bit_slots, owners_by_row,
):  # fmt: skip
    _aligned(mutant, _blocks)

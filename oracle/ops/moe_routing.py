"""Routing of a mixture of experts: gating, and sorting of what was routed into blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, InputError, Integers, Output, Range
from oracle.vocabulary import chosen, hull, pivot, rescaled, sigmoid, softplus


def _groups_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    experts, groups, kept, top_k = sizes["experts"], params["groups"], params["top_groups"], params["top_k"]
    if experts == 0 or experts % groups:
        return f"experts = {experts} must be a positive multiple of groups = {groups}"
    if kept > groups:
        return f"top_groups = {kept} must be at most groups = {groups}"
    if top_k > kept * (experts // groups):
        return f"top_k = {top_k} exceeds the {kept * (experts // groups)} experts of the {kept} best groups"
    if groups > 1 and params["group_score"] == "top_two" and experts // groups < 2:
        return (
            f"group_score='top_two' needs groups of two or more experts; {experts} experts in {groups} groups have one"
        )
    return None


def _scores(logits: Any, scoring: str) -> Any:
    """The score of each expert for each token."""
    if scoring == "sigmoid":
        return sigmoid(logits)
    if scoring == "sqrt_softplus":
        return np.sqrt(softplus(logits))
    largest = pivot(np.max(logits, axis=-1, keepdims=True))
    weight = rescaled(np.exp(logits - largest))
    share = weight / np.sum(weight, axis=-1, keepdims=True)
    return hull(share, 0.0, 1.0, terms=logits.shape[-1])


def _in_best_groups(scores: Any, groups: int, top_groups: int, group_score: str) -> Any:
    """Whether each expert belongs to one of the groups with the highest scores; of equal groups the first."""
    tokens, experts = scores.shape
    members = scores.reshape(tokens, groups, experts // groups)
    if group_score == "top_two":
        first, second = np.triu_indices(experts // groups, 1)
        members = members[..., first] + members[..., second]
    best = np.max(members, axis=-1)
    mine, other = best[:, :, np.newaxis], best[:, np.newaxis, :]
    earlier = np.arange(groups) < np.arange(groups)[:, np.newaxis]
    ahead = (other > mine) | ((other == mine) & earlier)
    rank = np.sum(np.where(ahead, 1.0 + 0.0 * other, 0.0), axis=-1)
    return np.repeat(rank, experts // groups, axis=-1) < top_groups


@operator(family="moe", check=_groups_fit)
def moe_gate(
    logits: Annotated[Array, Floats("tokens experts")],
    bias: Annotated[Array, Floats("experts", dtype="float32")] | None = None,
    *,
    top_k: Annotated[int, Range(1)] = 2,
    scoring: Literal["softmax", "sigmoid", "sqrt_softplus"] = "softmax",
    groups: Annotated[int, Range(1)] = 1,
    top_groups: Annotated[int, Range(1)] = 1,
    group_score: Literal["max", "top_two"] = "max",
    masked: Literal["excluded", "zero"] = "excluded",
    renormalise: bool = True,
    scaling: Annotated[float, Range(0.0, open=True)] = 1.0,
) -> Annotated[Array, Output("ids", dtype="int32")]:
    """Choice of experts: ``ids = top_k(score(logits) + bias)``, ``weights = score[ids] / Σ score[ids] · scaling``.

    Parameters
    ----------
    logits : array (tokens, experts)
        Output of the router; float16, bfloat16, float32 or float64, no NaN. -inf hides an expert from a softmax.
    bias : float32 array (experts,), optional
        Correction that takes part in the choice, but not in the weights.
    top_k : int
        Experts per token.
    scoring : "softmax", "sigmoid" or "sqrt_softplus"
        Score of an expert: its share of the softmax over all experts, 1 / (1 + exp(-x)), or √log(1 + exp(x)).
    groups, top_groups : int
        Experts stand in ``groups`` groups of neighbours; only those of the ``top_groups`` best ones may be chosen.
    group_score : "max" or "top_two"
        A group is as good as its best member (grouped_topk), or as the sum of its two best (DeepSeek-V3).
    masked : "excluded" or "zero"
        Members of other groups cannot be chosen (vLLM), or take part with a score of 0, to which a negative biased
        score loses (AITER and DeepSeek's own code: ``masked_fill(..., 0.0)``).
    renormalise : bool
        Whether a token's weights are divided by their sum, before they are scaled.
    scaling : float
        Factor of all weights (``routed_scaling_factor``), above 0.

    Returns
    -------
    ids : int32 array (tokens, top_k)
        Chosen experts, best first; of two with equal scores the one with the lower index first.
    weights : array (tokens, top_k)
        Their weights, float32 (float64 for float64 logits): those of the ids that were returned.

    Notes
    -----
    Rounding points: the score, the biased score and the weight, in the compute type. Experts whose scores are
    closer than an honest implementation can tell may be chosen in either's place. If every chosen score underflows,
    their sum is 0 and the renormalised weights are undefined (FlashInfer adds 1e-20 there, AITER does not).

    Raises
    ------
    InputError
        Groups that do not divide the experts, or more experts wanted than there are to choose from.

    Source: Shazeer et al., "Outrageously Large Neural Networks" (2017); DeepSeek-AI, "DeepSeek-V3 Technical Report"
    (2024), equations 13 to 16, for the bias, the groups and the sigmoid.

    Examples
    --------
    >>> moe_gate(np.log(np.array([[1.0, 5.0, 2.0, 2.0]])), top_k=2)
    (array([[1, 2]]), array([[0.71428571, 0.28571429]]))
    """
    scores = _scores(logits, scoring)
    if bias is not None:
        scores = scores + bias
    if groups > 1:
        in_best = _in_best_groups(scores, groups, top_groups, group_score)
        rest = 0.0 if masked == "zero" else np.min(scores, axis=-1, keepdims=True) - 1.0
        scores = np.where(in_best, scores, rest)
    ids: Array = chosen(scores, top_k)
    return ids


@moe_gate.stage
def _weights(
    logits: Array, ids: Array, *, scoring: str, renormalise: bool, scaling: float
) -> Annotated[Array, Output("weights", like="logits", statistic=True)]:
    """Scores of the chosen experts, without the bias."""
    taken = np.take_along_axis(_scores(logits, scoring), ids, axis=-1)
    if renormalise:
        taken = taken / np.sum(taken, axis=-1, keepdims=True)
    weights: Array = taken * scaling
    return weights


@operator(family="moe", dtypes=("int32",))
def moe_align_block_size(
    topk_ids: Annotated[Array, Integers("tokens k", low=-1, below=1 << 16)],
    *,
    experts: Annotated[int, Range(1)] = 8,
    block_size: Annotated[int, Range(1)] = 16,
) -> tuple[
    Annotated[Array, Output("sorted_ids", dtype="int32")],
    Annotated[Array, Output("expert_ids", dtype="int32")],
    Annotated[Array, Output("padded_total", dtype="int32")],
]:
    """Slots sorted by expert, each expert padded to whole blocks: ``sorted_ids = pad(argsort(topk_ids))``.

    Parameters
    ----------
    topk_ids : int32 or int64 array (tokens, k)
        Expert of each slot; -1 for a slot that is not computed here. Slot s is element s of the flattened array.
    experts : int
        How many experts there are; every id is below it.
    block_size : int
        Rows of a block, all of one expert.

    Returns
    -------
    sorted_ids : int32 array (capacity,)
        Slots in the order in which they are computed: by expert, then by slot. Padding, and everything after the
        last block, is tokens · k. capacity = tokens · k + experts · (block_size - 1).
    expert_ids : int32 array (⌈capacity / block_size⌉,)
        Expert of each block; -1 after the last one.
    padded_total : int32 array (1,)
        Rows of all blocks together.

    Notes
    -----
    Rounding points: none, integers only. vLLM's kernel for large inputs leaves the order of an expert's slots to
    atomic operations; here it is the slots' own.

    Raises
    ------
    InputError
        An id outside -1 … experts - 1.

    Source: vLLM, ``moe_align_block_size``; Gale et al., "MegaBlocks" (2022), for the padding.

    Examples
    --------
    >>> moe_align_block_size(np.array([[1, 0], [1, -1]]), experts=3, block_size=2)
    (array([1, 4, 0, 2, 4, 4, 4]), array([ 0,  1, -1, -1]), array([4]))
    """
    flat = topk_ids.reshape(-1)
    if (flat >= experts).any():
        at = int(np.argmax(flat >= experts))
        raise InputError(f"moe_align_block_size: topk_ids holds {flat[at]} in slot {at}; it must be below {experts}")
    capacity = flat.size + experts * (block_size - 1)
    sorted_ids = np.full(capacity, flat.size)
    expert_ids = np.full(-(-capacity // block_size), -1)
    total = 0
    for expert in range(experts):
        (slots,) = np.nonzero(flat == expert)
        sorted_ids[total : total + len(slots)] = slots
        blocks = -(-len(slots) // block_size)
        expert_ids[total // block_size :][:blocks] = expert
        total += blocks * block_size
    return sorted_ids, expert_ids, np.array([total])

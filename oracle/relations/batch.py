"""Relations of everything that works entry by entry: tokens, sequences, rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation
from oracle.signature import Array

SAMPLERS = ("sample_top_k", "sample_top_p", "sample_min_p", "sample_top_k_top_p", "sample_by_row")
EXPERTS = (
    "fused_experts", "fused_experts_a8w8", "fused_experts_a8w8_block_scaled", "fused_experts_mxfp4",
    "fused_experts_w4a16_mxfp4", "fused_experts_w4a16", "fused_experts_with_shared",
)  # fmt: skip
PENALTIES = ("prompt_counts", "output_counts", "repetition", "frequency", "presence")
ENTRIES: dict[str, tuple[str, ...]] = {
    "logits": ("moe_gate", "temperature_softmax", "apply_penalties"),
    "temperature": ("temperature_softmax",),
    "probs": SAMPLERS,
    "uniform": (*SAMPLERS, "speculative_chain"),
    **dict.fromkeys(("draft_probs", "draft_ids", "target_probs"), ("speculative_chain",)),
    **dict.fromkeys(("top_k", "top_p", "min_p"), ("sample_by_row",)),
    **dict.fromkeys(PENALTIES, ("apply_penalties",)),
    "hidden": EXPERTS,
    "hidden_scale": EXPERTS[1:4],
    "topk_ids": (*EXPERTS, "moe_sum"),
    "topk_weights": (*EXPERTS, "moe_sum"),
    "shared": ("fused_experts",),
    "x": ("moe_sum", "causal_conv1d"),
    "state": ("causal_conv1d",),
    "fresh": ("causal_conv1d",),
}
"""Inputs whose first axis holds the entries, with the operators of which that is so."""


def computed(out: Array, topk_ids: Array | None) -> Array:
    """A result without what experts elsewhere left open: slots (tokens, k, …) whose id is -1."""
    if topk_ids is None or out.ndim < 3 or out.shape[:2] != topk_ids.shape:
        return out
    known = np.where((topk_ids >= 0)[..., np.newaxis], out, np.zeros((), out.dtype))
    return np.asarray(known)


OPERATORS = tuple(sorted({operator for operators in ENTRIES.values() for operator in operators}))


@relation(*OPERATORS)
def entries_in_any_place(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """An entry's result is the same bits when each entry takes the next one's place."""
    moved = {name: array for name, array in inputs.items() if name in ENTRIES and array is not None}
    if len(next(iter(moved.values()))) < 2:
        return None
    straight = run({**inputs, **{name: np.array(array, order="C") for name, array in moved.items()}}, params)
    turned = run({**inputs, **{name: np.roll(array, 1, axis=0) for name, array in moved.items()}}, params)
    ids = inputs.get("topk_ids")
    for one, other in zip(turned, straight, strict=True):
        back = np.roll(one, -1, axis=0)
        broken = difference(computed(back, ids), computed(other, ids), "entries in each other's places")
        if broken:
            return broken
    return None

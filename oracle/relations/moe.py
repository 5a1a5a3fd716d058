"""Relations of the mixture of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.batch import computed
from oracle.relations.relation import Run, difference, relation


@relation("moe_gate")
def first_of_equal_experts(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Where all experts are equal, the first ones are chosen, in order."""
    logits = inputs["logits"]
    if not logits.size or not np.isfinite(logits.astype(np.float64)).all():
        return None
    equal = np.broadcast_to(logits[:, :1], logits.shape).copy()
    bias = None if inputs.get("bias") is None else np.full_like(inputs["bias"], 0.25)
    ids, _ = run({**inputs, "logits": equal, "bias": bias}, params)
    want = np.broadcast_to(np.arange(params["top_k"], dtype=ids.dtype), ids.shape)
    return difference(ids, want, "ids of equal experts")


CODED = (
    "fused_experts_a8w8", "fused_experts_a8w8_block_scaled", "fused_experts_mxfp4", "fused_experts_w4a16_mxfp4",
    "fused_experts_w4a16",
)  # fmt: skip
SECOND = ("w_down", "shared_down", "shared", "down_bias")


def _negative(array: Any) -> Any:
    return (-array.astype(np.float64)).astype(array.dtype)


@relation("fused_experts", "fused_experts_with_shared", *CODED)
def negation_of_second_weights(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """With the second weights and what is added to their product negated, the result is the negative one."""
    given = {name: np.array(inputs[name], order="C") for name in SECOND if inputs.get(name) is not None}
    if given["w_down"].dtype == np.uint8:  # packed codes; their scales take the sign
        given = {"w_down_scale": np.array(inputs["w_down_scale"], order="C")}
    elif given["w_down"].dtype == np.int8:  # -128 has no negative
        given["w_down"] = np.maximum(given["w_down"], -127)
    *before, straight = run({**inputs, **given}, params)
    *same, turned = run({**inputs, **{name: _negative(array) for name, array in given.items()}}, params)
    for one, other in zip(same, before, strict=True):
        ids = inputs["topk_ids"]
        broken = difference(computed(one, ids), computed(other, ids), "the intermediate, with second weights negated")
        if broken:
            return broken
    return difference(-turned, straight, "with the second weights negated, and the result negated")

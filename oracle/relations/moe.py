"""Relations of the mixture of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

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

"""Relations of what is done to logits.

Softmax has none under a shift of all logits: a kernel that folds log2 e into its logits (``exp2_fma``) honestly gives
other bits then. Nor has a sampler under another order of the tokens: its uniform number then lies in another part.
Biases and masks are decided bit for bit by their definitions already.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import format_of
from oracle.relations.relation import Run, difference, relation


@relation("apply_penalties")
def tokens_in_any_order(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A token's logit is the same bits when each token takes the next one's place."""
    by_token = {name: np.array(inputs[name]) for name in ("logits", "prompt_counts", "output_counts")}
    (straight,) = run({**inputs, **by_token}, params)
    (turned,) = run({**inputs, **{name: np.roll(one, 1, axis=1) for name, one in by_token.items()}}, params)
    return difference(np.roll(turned, -1, axis=1), straight, "tokens in each other's places")


@relation("temperature_softmax")
def logits_and_temperature_double(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """Logits twice as large at twice the temperature have the same probabilities, within the range of numbers."""
    logits = inputs["logits"]
    sizes = np.abs(logits.astype(np.float64))
    number_format = format_of(logits.dtype)
    seen = np.isfinite(sizes) & (sizes > 0)
    if not ((sizes[seen] > number_format.min_normal) & (sizes[seen] < number_format.max / 4)).all():
        return None
    (straight,) = run(inputs, params)
    two = logits.dtype.type(2)
    doubled = {"logits": (logits * two).astype(logits.dtype), "temperature": inputs["temperature"] * np.float32(2)}
    (heated,) = run({**inputs, **doubled}, params)
    return difference(heated, straight, "logits and temperature twice as large")

"""Relations of what is done to logits.

Softmax has none under a shift of all logits: a kernel that folds log2 e into its logits (``exp2_fma``) honestly gives
other bits then. Nor has a sampler under another order of the tokens: its uniform number then lies in another part.
Biases and masks are decided bit for bit by their definitions already.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation


@relation("apply_penalties")
def tokens_in_any_order(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A token's logit is the same bits when each token takes the next one's place."""
    by_token = {name: np.array(inputs[name]) for name in ("logits", "prompt_counts", "output_counts")}
    (straight,) = run({**inputs, **by_token}, params)
    (turned,) = run({**inputs, **{name: np.roll(one, 1, axis=1) for name, one in by_token.items()}}, params)
    return difference(np.roll(turned, -1, axis=1), straight, "tokens in each other's places")

"""Relations of the paged caches.

Those that copy (writing, gathering, moving blocks) have none: wherever a token or a block goes, the definition judges
it bit for bit, so that what breaks a relation is wrong on one of its two runs. Nor has writing with given scales:
its codes are decided, but for quotients so close to a step that no draw meets them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation

SCALES = ("k_scales", "v_scales")
HELD = {
    "reshape_and_cache_per_token": (*SCALES, "key_cache", "value_cache"),
    "reshape_and_cache_per_block": (*SCALES, "key_cache", "value_cache"),
    "concat_and_cache_mla_per_tile": ("scale_cache", "rope_cache", "code_cache"),
}
"""What an operator holds before and after, in the order of its results."""


def _held(inputs: dict[str, Any]) -> tuple[str, ...]:
    return next(names for names in HELD.values() if names[-1] in inputs)


@relation("reshape_and_cache_per_token", "concat_and_cache_mla_per_tile")
def tokens_in_any_slot(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A token has the same codes and scales when its slot, and all that was there before, lies one further on."""
    slots, held = inputs["slots"], _held(inputs)
    cells = int(np.prod(inputs[held[-1]].shape[:2]))
    if cells < 2:
        return None

    def moved(name: str, array: Any, step: int) -> Any:
        if name in SCALES:  # (heads, cells)
            return np.roll(array, step, axis=1)
        flat = array.reshape(cells, *array.shape[2:])
        return np.roll(flat, step, axis=0).reshape(array.shape)

    after = {name: moved(name, inputs[name], 1) for name in held}
    further = np.where(slots < 0, slots, (slots + 1) % cells).astype(slots.dtype)
    straight = run(inputs, params)
    turned = run({**inputs, **after, "slots": further}, params)
    for name, one, other in zip(held, turned, straight, strict=True):
        broken = difference(moved(name, one, -1), other, f"{name} with slots one further on")
        if broken:
            return broken
    return None


@relation("reshape_and_cache_per_block")
def blocks_in_any_place(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A block has the same codes and scales when it, and all others with what they held, lies one further on."""
    slots, held = inputs["slots"], _held(inputs)
    blocks, size = inputs["key_cache"].shape[:2]
    if blocks < 2:
        return None

    def moved(name: str, array: Any, step: int) -> Any:
        return np.roll(array, step, axis=1 if name in SCALES else 0)  # (heads, blocks) or (blocks, …)

    further = np.where(slots < 0, slots, (slots + size) % (blocks * size)).astype(slots.dtype)
    straight = run(inputs, params)
    turned = run({**inputs, **{name: moved(name, inputs[name], 1) for name in held}, "slots": further}, params)
    for name, one, other in zip(held, turned, straight, strict=True):
        broken = difference(moved(name, one, -1), other, f"{name} with blocks one further on")
        if broken:
            return broken
    return None

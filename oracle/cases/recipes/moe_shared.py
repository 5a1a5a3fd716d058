"""Cases of routed experts beside shared ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.cases.recipes.moe import FUSED_EXPERTS, GELU, IN_BF16, IN_F16, INPUT, OAI, expert_dims
from oracle.cases.recipes.recipe import Recipe, Structure, pick

SCALED = {"routed_scaling": 2.5}
FOR_F16 = {"shared_scaling": 0.4, "parts": "rounded"}
UNGATED = ("shared_gate",)


def _with_shared(
    dims: tuple[int, int, int, int, int], inner: int, name: str, layout: str = "contiguous", **rest: Any
) -> Structure:
    sizes = {**expert_dims(*dims), "two_shared": 2 * inner, "shared_inner": inner}
    return Structure(sizes, name, layout, **rest)


def _random_shared(rng: np.random.Generator) -> Structure:
    drawn = FUSED_EXPERTS.random(rng)
    inner, factors = int(pick(rng, (1, 5, 16, 17))), pick(rng, ({}, SCALED, FOR_F16))
    dims = {**drawn.dims, "two_shared": 2 * inner, "shared_inner": inner}
    params = {**drawn.params, **factors}
    return Structure(dims, params=params, absent=UNGATED if rng.random() < 0.5 else ())


WITH_SHARED = Recipe(
    classes=FUSED_EXPERTS.classes,
    curated=(
        _with_shared((7, 33, 17, 4, 3), 16, "normal", params=SCALED),
        _with_shared((6, 32, 16, 6, 3), 9, "nan_unused", "padded", params=SCALED | FOR_F16),
        _with_shared((7, 31, 15, 5, 2), 17, "nan_elsewhere", params=GELU, absent=UNGATED),
        _with_shared((7, 16, 33, 3, 2), 8, "normal", "strided", params=INPUT | SCALED),
        _with_shared((7, 24, 16, 3, 2), 16, "saturated", params=OAI, absent=UNGATED),
        _with_shared((6, 17, 16, 4, 2), 16, "normal", "transposed", params=IN_BF16 | {"parts": "rounded"}),
        _with_shared((6, 17, 16, 4, 2), 7, "normal", "misaligned", params=IN_F16 | GELU | FOR_F16, absent=UNGATED),
        _with_shared((5, 16, 8, 3, 1), 4, "selecting", absent=UNGATED),
        _with_shared((9, 7, 5, 2, 1), 3, "one_expert", "padded", params=SCALED),
        _with_shared((6, 8, 8, 4, 3), 8, "some_elsewhere", params=SCALED),
        _with_shared((5, 15, 7, 4, 4), 5, "negative_weights", "strided", absent=UNGATED),
        _with_shared((4, 65, 9, 2, 2), 9, "uniform", "transposed", params=OAI),
        _with_shared((4, 47, 9, 3, 2), 16, "full_significand", params=SCALED, absent=UNGATED),
        _with_shared((5, 31, 8, 3, 2), 4, "one_hot", params=FOR_F16),
        _with_shared((5, 16, 9, 3, 2), 9, "sparse_integers", absent=UNGATED),
        _with_shared((4, 32, 8, 2, 2), 8, "low_entropy", "misaligned"),
        _with_shared((4, 47, 8, 2, 1), 8, "rising", params=SCALED),
        _with_shared((4, 47, 8, 2, 2), 8, "falling", params=INPUT | IN_BF16),
        _with_shared((3, 16, 8, 2, 2), 8, "offset", "padded", absent=UNGATED),
        _with_shared((3, 16, 8, 2, 2), 8, "subnormals", absent=UNGATED),
        _with_shared((3, 33, 8, 2, 2), 8, "cancelling", params=SCALED),
        _with_shared((5, 17, 8, 3, 2), 8, "heavy_tail", params=GELU),
        _with_shared((3, 8, 8, 2, 2), 8, "zeros"),
        _with_shared((5, 16, 8, 3, 2), 8, "not_a_number", params=OAI),
        _with_shared((5, 16, 8, 3, 2), 8, "infinities", absent=UNGATED),
        _with_shared((9, 16, 8, 3, 2), 8, "mixed", "transposed"),
        _with_shared((1, 1, 1, 1, 1), 1, "normal", absent=UNGATED),
        _with_shared((0, 8, 4, 2, 2), 4, "normal"),
        _with_shared((3, 5, 0, 2, 1), 2, "normal", absent=UNGATED),
        _with_shared((2, 5, 3, 8, 0), 0, "normal"),
    ),
    random=_random_shared,
)

RECIPES = {"fused_experts_with_shared": WITH_SHARED}

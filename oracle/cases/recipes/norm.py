"""Cases of the normalisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, full_significand, normal
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip


VECTORS = ("weight", "bias", "q_weight", "k_weight")  # inputs that hold one number per column


def _drawn(
    rng: np.random.Generator, shapes: Mapping[str, Shape], number_format: Format, rows: Callable[[Shape], Array]
) -> dict[str, Array]:
    """Every input: rows by a function, gains and biases normal."""
    return {
        name: normal(rng, shape, number_format) if name in VECTORS else rows(shape) for name, shape in shapes.items()
    }


def _class(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        return _drawn(rng, shapes, number_format, lambda shape: draw_rows(name, rng, shape, number_format, CLASSES))

    return draw


def _near_eps(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Mean squares about as large as eps: where eps goes, and whether it goes in at all, decides the result."""
    size = np.sqrt(params["eps"])
    return _drawn(rng, shapes, number_format, lambda shape: size * normal(rng, shape, number_format))


def _constant(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Rows of one value each: no variance at all, and what is left of it decides the result."""
    return _drawn(
        rng,
        shapes,
        number_format,
        lambda shape: full_significand(rng, (*shape[:-1], 1), number_format) + np.zeros(shape),
    )


def _dims(rows: int, cols: int) -> dict[str, int]:
    return {"rows": rows, "cols": cols}


def _random_rmsnorm(rng: np.random.Generator) -> Structure:
    dims = _dims(int(pick(rng, SIZES[:11])), int(pick(rng, SIZES)))
    eps = pick(rng, (1e-6, 1e-5, 1e-3, 1.0))
    return Structure(dims, params={} if eps == 1e-6 else {"eps": eps})


CLASS_DRAWS: dict[str, Draw] = {
    **{name: _class(name) for name in (*CLASSES, "mixed")},
    "near_eps": _near_eps,
    "constant": _constant,
}

RMSNORM = Recipe(
    classes=CLASS_DRAWS,
    curated=(
        Structure(_dims(7, 129), "normal"),
        Structure(_dims(5, 65), "near_eps", "padded"),
        Structure(_dims(6, 64), "near_eps", params={"eps": 1e-3}),
        Structure(_dims(3, 257), "uniform", "misaligned"),
        Structure(_dims(9, 33), "one_hot", "strided"),
        Structure(_dims(8, 47), "sparse_integers", "transposed"),
        Structure(_dims(4, 63), "low_entropy"),
        Structure(_dims(6, 48), "constant", "padded"),
        Structure(_dims(5, 97), "rising", "padded"),
        Structure(_dims(5, 97), "falling"),
        Structure(_dims(3, 31), "all_below", "misaligned"),
        Structure(_dims(4, 128), "offset", "transposed"),
        Structure(_dims(4, 17), "subnormals"),
        Structure(_dims(6, 127), "heavy_tail", "strided"),
        Structure(_dims(13, 32), "mixed"),
        Structure(_dims(3, 16), "zeros"),
        Structure(_dims(2, 1021), "full_significand"),
        Structure(_dims(5, 1), "normal"),
        Structure(_dims(1, 1), "full_significand"),
        Structure(_dims(0, 5)),
        Structure(_dims(33, 13), "normal", "transposed", {"eps": 1.0}),
        Structure(_dims(7, 33), "not_a_number"),
        Structure(_dims(4, 65), "infinities", "padded"),
        Structure(_dims(2, 2053), "normal"),
        Structure(_dims(261, 5), "normal"),
    ),
    random=_random_rmsnorm,
)


def _options(rng: np.random.Generator, options: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    drawn = {name: pick(rng, values) for name, values in options.items()}
    return {name: value for name, value in drawn.items() if value is not None}


def _rows_recipe(variations: tuple[dict[str, Any], ...], optional: bool = False) -> Recipe:
    """Cases of an operator on rows; ``variations`` are the parameters that it is to be seen with, in turn."""

    def turn(number: int) -> dict[str, Any]:
        return variations[number % len(variations)]

    bare, unbiased = (("weight", "bias"), ("bias",)) if optional else ((), ())

    def random(rng: np.random.Generator) -> Structure:
        params = {**pick(rng, variations), **_options(rng, {"eps": (None, 1e-5, 1e-3, 1.0)})}
        absent = pick(rng, ((), (), unbiased, bare))
        return Structure(_dims(int(pick(rng, SIZES[:11])), int(pick(rng, SIZES))), params=params, absent=absent)

    return Recipe(
        classes=CLASS_DRAWS,
        curated=(
            Structure(_dims(6, 128), "normal"),
            Structure(_dims(4, 48), "uniform", "padded", turn(1), unbiased),
            Structure(_dims(6, 64), "near_eps", params=turn(2)),
            Structure(_dims(4, 127), "offset", "misaligned", absent=bare),
            Structure(_dims(4, 33), "constant", params=turn(1)),
            Structure(_dims(5, 65), "near_eps", "padded", {**turn(3), "eps": 1e-3}),
            Structure(_dims(9, 31), "one_hot", "strided", turn(1)),
            Structure(_dims(8, 47), "sparse_integers", "transposed", absent=unbiased),
            Structure(_dims(4, 63), "low_entropy", params=turn(2), absent=bare),
            Structure(_dims(5, 97), "rising", "padded", turn(3)),
            Structure(_dims(5, 97), "falling", params=turn(4)),
            Structure(_dims(3, 31), "all_below", "misaligned"),
            Structure(_dims(4, 129), "offset", "transposed", turn(1)),
            Structure(_dims(4, 17), "subnormals", absent=bare),
            Structure(_dims(6, 127), "heavy_tail", "strided", turn(2)),
            Structure(_dims(13, 32), "mixed", params=turn(3), absent=unbiased),
            Structure(_dims(3, 16), "zeros", params=turn(1)),
            Structure(_dims(3, 257), "full_significand", params=turn(4)),
            Structure(_dims(5, 1), "normal", params=turn(1)),
            Structure(_dims(1, 1), "full_significand", absent=bare),
            Structure(_dims(0, 5), params=turn(2)),
            Structure(_dims(7, 33), "not_a_number"),
            Structure(_dims(4, 65), "infinities", "padded", turn(1)),
            Structure(_dims(6, 96), "normal", "transposed", {**turn(4), "eps": 1.0}),
            Structure(_dims(2, 1021), "normal", params=turn(2)),
            Structure(_dims(131, 5), "normal", params=turn(3)),
        ),
        random=random,
    )


def _images(batch: int, channels: int, positions: int) -> dict[str, int]:
    return {"batch": batch, "channels": channels, "positions": positions}


def _random_groupnorm(rng: np.random.Generator) -> Structure:
    groups = int(pick(rng, (1, 2, 3, 4)))
    dims = _images(int(pick(rng, (1, 2, 3))), groups * int(pick(rng, (1, 2, 4, 5))), int(pick(rng, SIZES[:14])))
    params = {"groups": groups, **_options(rng, {"eps": (None, 1e-3, 1.0)})}
    return Structure(dims, params=params, absent=pick(rng, ((), (), ("bias",), ("weight", "bias"))))


def _groups(number: int, **params: Any) -> dict[str, Any]:
    return {"groups": number, **params}


GROUPNORM = Recipe(
    classes=CLASS_DRAWS,
    curated=(
        Structure(_images(2, 8, 32), "normal", params=_groups(2)),
        Structure(_images(2, 6, 16), "uniform", "padded", _groups(3), ("bias",)),
        Structure(_images(3, 4, 17), "near_eps", params=_groups(4)),
        Structure(_images(2, 6, 31), "offset", "misaligned", _groups(2), ("weight", "bias")),
        Structure(_images(2, 4, 13), "constant"),
        Structure(_images(2, 6, 9), "one_hot", "strided", _groups(3)),
        Structure(_images(1, 4, 33), "sparse_integers", "transposed", _groups(2)),
        Structure(_images(2, 4, 16), "low_entropy", params=_groups(4)),
        Structure(_images(2, 3, 47), "rising", "padded"),
        Structure(_images(2, 3, 47), "falling", params=_groups(3)),
        Structure(_images(1, 2, 31), "all_below", "misaligned", _groups(2)),
        Structure(_images(1, 4, 65), "offset", params=_groups(2)),
        Structure(_images(2, 8, 127), "offset", params=_groups(4)),
        Structure(_images(2, 4, 7), "subnormals", absent=("weight", "bias")),
        Structure(_images(2, 4, 63), "heavy_tail", "strided", _groups(2)),
        Structure(_images(3, 6, 15), "mixed", params=_groups(2, eps=1e-3), absent=("bias",)),
        Structure(_images(1, 4, 5), "zeros", params=_groups(2)),
        Structure(_images(2, 5, 127), "full_significand", params=_groups(5)),
        Structure(_images(2, 3, 1), "normal", params=_groups(3)),
        Structure(_images(1, 1, 1), "full_significand"),
        Structure(_images(0, 4, 3), params=_groups(2)),
        Structure(_images(3, 4, 9), "not_a_number", params=_groups(2)),
        Structure(_images(3, 4, 9), "infinities", "padded", _groups(4)),
        Structure(_images(1, 32, 33), "normal", "transposed", _groups(8, eps=1.0)),
        Structure(_images(2, 2, 513), "normal", params=_groups(2)),
        Structure(_images(17, 6, 3), "normal", params=_groups(3)),
    ),
    random=_random_groupnorm,
)


def _heads(tokens: int, heads: int, kv_heads: int, head_dim: int) -> dict[str, int]:
    return {"tokens": tokens, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}


QK_PARAMS: dict[str, tuple[Any, ...]] = {
    "eps": (None, 1e-5, 1e-3),
    "gain": (None, "one_plus_weight"),
    "rounding": (None, "twice"),
}
PLUS_ONE, TWICE = {"gain": "one_plus_weight"}, {"rounding": "twice"}


def _random_qk_norm(rng: np.random.Generator) -> Structure:
    dims = _heads(*(int(pick(rng, sizes)) for sizes in ((1, 2, 5, 9), (1, 3, 8), (1, 2), SIZES)))
    return Structure(dims, params=_options(rng, QK_PARAMS))


QK_NORM = Recipe(
    classes=CLASS_DRAWS,
    curated=(
        Structure(_heads(6, 4, 2, 64), "normal"),
        Structure(_heads(4, 2, 1, 16), "uniform", "padded", PLUS_ONE),
        Structure(_heads(4, 3, 3, 32), "near_eps", params=TWICE),
        Structure(_heads(5, 2, 1, 127), "offset", "misaligned"),
        Structure(_heads(3, 2, 2, 33), "constant", params=PLUS_ONE),
        Structure(_heads(5, 3, 1, 65), "near_eps", "strided", {"eps": 1e-3}),
        Structure(_heads(4, 2, 1, 31), "one_hot", "strided"),
        Structure(_heads(4, 2, 2, 47), "sparse_integers", "transposed", TWICE),
        Structure(_heads(3, 2, 1, 63), "low_entropy"),
        Structure(_heads(3, 2, 1, 97), "rising", "padded", PLUS_ONE),
        Structure(_heads(3, 2, 1, 97), "falling"),
        Structure(_heads(3, 1, 1, 15), "all_below", "misaligned"),
        Structure(_heads(3, 2, 1, 17), "subnormals", params=TWICE),
        Structure(_heads(4, 2, 1, 129), "heavy_tail", "strided"),
        Structure(_heads(5, 2, 2, 32), "mixed", params=PLUS_ONE),
        Structure(_heads(2, 2, 1, 16), "zeros"),
        Structure(_heads(2, 8, 1, 128), "full_significand", params={**TWICE, **PLUS_ONE}),
        Structure(_heads(3, 2, 1, 1), "normal"),
        Structure(_heads(1, 1, 1, 1), "full_significand"),
        Structure(_heads(0, 2, 1, 8)),
        Structure(_heads(2, 0, 1, 8), "normal"),
        Structure(_heads(4, 3, 2, 33), "not_a_number"),
        Structure(_heads(4, 3, 2, 33), "infinities", "padded"),
        Structure(_heads(61, 1, 1, 5), "normal", "transposed"),
    ),
    random=_random_qk_norm,
)

FUSED: tuple[dict[str, Any], ...] = (
    {},
    {"normalised": "unrounded"},
    {"gain": "one_plus_weight"},
    {"rounding": "twice"},
    {"normalised": "unrounded", "rounding": "twice"},
)  # fmt: skip

RECIPES = {
    "rmsnorm": RMSNORM,
    "gemma_rmsnorm": _rows_recipe(({},)),
    "t5_rmsnorm": _rows_recipe(({},)),
    "layernorm": _rows_recipe(({},), optional=True),
    "fused_add_rmsnorm": _rows_recipe(FUSED),
    "fused_add_layernorm": _rows_recipe(FUSED[:2], optional=True),
    "groupnorm": GROUPNORM,
    "qk_norm": QK_NORM,
}

"""Cases of the collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, normal
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "cancelling", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip
COPIED = tuple(name for name in CLASSES if name not in ("cancelling", "low_entropy"))


def _along_ranks(name: str) -> Draw:
    """Each element's values on all ranks are a row of the class."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        ranks, *rest = shapes["x"]
        rows = draw_rows(name, rng, (*rest, ranks), number_format, CLASSES)
        inputs = {"x": np.moveaxis(rows, -1, 0)}
        for other in ("residual", "weight"):
            if other in shapes:
                inputs[other] = normal(rng, shapes[other], number_format)
        return inputs

    return draw


def _absorbed(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """A large number and its negative among small ones: each order of the ranks gives a sum of its own."""
    inputs = _along_ranks("normal")(rng, shapes, params, number_format)
    x = inputs["x"]
    if len(x) > 2:
        large = 2.0 ** (number_format.precision - 2)
        first = rng.integers(0, len(x), x.shape[1:])
        second = (first + 1 + rng.integers(0, len(x) - 1, x.shape[1:])) % len(x)
        np.put_along_axis(x, first[np.newaxis], large, axis=0)
        np.put_along_axis(x, second[np.newaxis], -large, axis=0)
    return inputs


def _dims(ranks: int, size: int) -> dict[str, int]:
    return {"ranks": ranks, "size": size}


RANK, RING = {"order": "rank"}, {"order": "ring"}
BF16, F16 = {"hop": "bfloat16"}, {"hop": "float16"}
PROMISES: tuple[dict[str, str], ...] = ({}, RANK, RING, RANK | BF16, RING | BF16, RING | F16)
LAYOUT_TURN = ("contiguous", "padded", "strided", "transposed", "misaligned")


def _reductions(multiple: bool) -> Recipe:
    sizes = ((8, 33), (4, 65), (8, 129), (3, 17), (2, 31), (7, 47), (8, 16), (5, 63), (4, 127))

    def size_of(ranks: int, size: int) -> int:
        return ranks * -(-size // ranks) if multiple else size

    def random(rng: np.random.Generator) -> Structure:
        ranks = int(pick(rng, (1, 2, 3, 4, 7, 8)))
        return Structure(_dims(ranks, size_of(ranks, int(pick(rng, SIZES)))), params=pick(rng, PROMISES))

    listed = ("normal", "normal", "absorbed", "absorbed", "absorbed", "absorbed", *CLASSES[1:], "mixed")
    curated = []
    for at, name in enumerate(listed):
        ranks, size = sizes[at % len(sizes)]
        promise = PROMISES[(at - 1 if at else 0) % len(PROMISES)]
        curated.append(Structure(_dims(ranks, size_of(ranks, size)), name, LAYOUT_TURN[at % 5], promise))
    curated += [
        Structure(_dims(8, size_of(8, 41)), "absorbed", params=RING | BF16),
        Structure(_dims(1, 1), "normal"),
        Structure(_dims(2, size_of(2, 3)), "normal", params=RING),
        Structure(_dims(3, 0), params=RANK),
        Structure(_dims(4, size_of(4, 1021)), "normal"),
    ]
    classes = {**{name: _along_ranks(name) for name in (*CLASSES, "mixed")}, "absorbed": _absorbed}
    return Recipe(classes, tuple(curated), random)


# Copies.


def _rows(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        inputs = {"x": draw_rows(name, rng, shapes["x"], number_format, COPIED)}
        if "counts" in shapes:
            inputs["counts"] = rng.integers(0, shapes["x"][2] + 1, shapes["counts"])
        return inputs

    return draw


def _numbered(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Each element is its own number, as far as the dtype counts: any exchange shows."""
    inputs = _rows("normal")(rng, shapes, params, number_format)
    size = int(np.prod(shapes["x"]))
    inputs["x"] = np.arange(1.0, size + 1).reshape(shapes["x"]) % 2.0**number_format.precision
    return inputs


def _poisoned(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """NaN in every row that is not sent."""
    inputs = _rows("normal")(rng, shapes, params, number_format)
    if "counts" in shapes:
        unsent = np.arange(shapes["x"][2]) >= inputs["counts"][:, :, np.newaxis]
        inputs["x"] = np.where(unsent[..., np.newaxis], np.nan, inputs["x"])
    return inputs


def _parts(ranks: int, rows: int, size: int) -> dict[str, int]:
    return {"ranks": ranks, "rows": rows, "size": size}


def _random_gather(rng: np.random.Generator) -> Structure:
    return Structure(_parts(int(pick(rng, (1, 2, 3, 4, 8))), int(pick(rng, (1, 3, 5))), int(pick(rng, SIZES))))


ALL_GATHER = Recipe(
    {**{name: _rows(name) for name in (*COPIED, "mixed")}, "numbered": _numbered},
    curated=(
        Structure(_parts(8, 3, 33), "normal"),
        Structure(_parts(4, 5, 65), "numbered", "padded"),
        Structure(_parts(3, 2, 17), "numbered", "transposed"),
        *(
            Structure(_parts(2 + at % 7, 1 + at % 3, (31, 16, 129, 47, 64)[at % 5]), name, LAYOUT_TURN[at % 5])
            for at, name in enumerate((*COPIED[1:], "mixed"))
        ),
        Structure(_parts(1, 1, 1), "normal"),
        Structure(_parts(3, 2, 2), "normal"),
        Structure(_parts(4, 2, 0)),
        Structure(_parts(4, 0, 3)),
        Structure(_parts(2, 1, 1021), "numbered"),
        Structure(_parts(2, 33, 7), "numbered"),
    ),
    random=_random_gather,
)


def _exchange(ranks: int, capacity: int, width: int) -> dict[str, int]:
    return {"ranks": ranks, "peers": ranks, "capacity": capacity, "width": width}


def _random_exchange(rng: np.random.Generator) -> Structure:
    sizes = (1, 3, 8, 17)
    return Structure(_exchange(int(pick(rng, (1, 2, 3, 4, 8))), int(pick(rng, sizes)), int(pick(rng, (*sizes, 33)))))


ALL_TO_ALL = Recipe(
    {**{name: _rows(name) for name in (*COPIED, "mixed")}, "numbered": _numbered, "nan_unsent": _poisoned},
    curated=(
        Structure(_exchange(4, 5, 17), "normal"),
        Structure(_exchange(3, 7, 16), "nan_unsent", "padded"),
        Structure(_exchange(4, 3, 8), "numbered", "transposed"),
        *(
            Structure(_exchange(2 + at % 4, 1 + at % 5, (15, 16, 33)[at % 3]), name, LAYOUT_TURN[at % 5])
            for at, name in enumerate((*COPIED[1:], "mixed"))
        ),
        Structure(_exchange(1, 1, 1), "normal"),
        Structure(_exchange(2, 0, 4)),
        Structure(_exchange(3, 2, 0)),
        Structure(_exchange(8, 4, 31), "nan_unsent"),
    ),
    random=_random_exchange,
)


def _fused(ranks: int, rows: int, cols: int) -> dict[str, int]:
    return {"ranks": ranks, "rows": rows, "cols": cols}


SUM, EPS = {"normalised": "sum"}, {"eps": 1e-3}


def _near_eps(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Mean squares about as large as eps."""
    inputs = _along_ranks("normal")(rng, shapes, params, number_format)
    size = np.sqrt(params["eps"])
    return {**inputs, "x": size * inputs["x"], "residual": size * inputs["residual"]}


def _random_fused(rng: np.random.Generator) -> Structure:
    dims = _fused(int(pick(rng, (1, 2, 4, 8))), int(pick(rng, (1, 3, 8))), int(pick(rng, (1, 7, 16, 33, 65))))
    return Structure(dims, params=pick(rng, ({}, SUM, EPS, SUM | EPS)))


ALL_REDUCE_RMSNORM = Recipe(
    {**{name: _along_ranks(name) for name in (*CLASSES, "mixed")}, "near_eps": _near_eps},
    curated=(
        Structure(_fused(8, 7, 65), "normal"),
        Structure(_fused(4, 5, 33), "normal", "padded", SUM),
        Structure(_fused(4, 5, 33), "near_eps", "strided", EPS),
        Structure(_fused(2, 4, 17), "near_eps", params=SUM),
        *(
            Structure(
                _fused((8, 2, 3, 4)[at % 4], 3 + at % 3, (31, 16, 64, 47, 129)[at % 5]), name, LAYOUT_TURN[at % 5],
                (SUM, {})[at % 2],
            )
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_fused(1, 1, 1), "full_significand"),
        Structure(_fused(3, 2, 3), "normal", params=SUM),
        Structure(_fused(2, 0, 5)),
        Structure(_fused(2, 2, 1021), "normal"),
        Structure(_fused(4, 129, 5), "normal", params=SUM),
    ),
    random=_random_fused,
)  # fmt: skip

RECIPES = {
    "all_reduce": _reductions(False),
    "reduce_scatter": _reductions(True),
    "all_gather": ALL_GATHER,
    "all_to_all": ALL_TO_ALL,
    "all_reduce_rmsnorm": ALL_REDUCE_RMSNORM,
}

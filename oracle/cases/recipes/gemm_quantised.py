"""Cases of matrix products of 8-bit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import (
    Shape,
    cancelling,
    full_significand,
    heavy_tail,
    hot_mask,
    low_entropy,
    normal,
    not_a_number,
    sparse_integers,
    subnormals,
)
from oracle.formats import Format
from oracle.signature import Array

# What values of order 1 are multiplied by, so that codes of integers use their range; and how many powers of two lie
# between the ends of a rising row.
GAIN = {"int8": 64.0}
SPANS = {"int8": 5, "float8_e4m3fn": 7, "float8_e4m3fnuz": 7, "float8_e5m2": 14, "float8_e5m2fnuz": 14}


def codes(name: str, rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Rows (last axis) of codes of one class, as float64 values that the caller rounds to the format."""
    gain = GAIN.get(number_format.name, 4.0)
    if name == "uniform":
        return rng.random(shape) * 2 * gain
    if name == "full_significand":
        return full_significand(rng, shape, number_format) * (64.0 if number_format.is_integer else 1.0)
    if name == "hot":
        return hot_mask(rng, shape)
    if name == "sparse_integers":
        return sparse_integers(rng, shape, number_format)
    if name in ("rising", "falling"):
        exponents = np.linspace(-SPANS[number_format.name], 0, max(shape[-1], 1))[: shape[-1]]
        values = normal(rng, shape, number_format) * 2.0**exponents * gain
        return values if name == "rising" else values[..., ::-1]
    if name == "offset":
        return gain * (1.0 + normal(rng, shape, number_format) / 8.0)
    if name == "subnormals":
        return rng.integers(-1, 2, shape) if number_format.is_integer else subnormals(rng, shape, number_format)
    if name == "zeros":
        return np.zeros(shape)
    if name == "not_a_number" and not number_format.is_integer:
        return not_a_number(rng, shape, number_format)
    drawn = {"low_entropy": low_entropy, "heavy_tail": heavy_tail, "cancelling": cancelling}.get(name, normal)
    return drawn(rng, shape, number_format) * gain / (2.0 if number_format.is_integer else 1.0)


# Classes of the codes of a and of b; "normal" on both sides where a class is about scales.
PAIRS = {
    **{
        name: (name, name)
        for name in ("normal", "uniform", "sparse_integers", "low_entropy", "heavy_tail", "full_significand")
    },
    "select_right": ("hot", "full_significand"),
    "select_left": ("full_significand", "hot"),
    "rising": ("rising", "normal"),
    "falling": ("falling", "normal"),
    "cancelling": ("cancelling", "uniform"),
    "subnormals": ("subnormals", "normal"),
    "offset": ("offset", "normal"),
    "zeros": ("zeros", "normal"),
    "not_a_number": ("not_a_number", "not_a_number"),
}
SCALES = ("steep_scales", "tiny_scales", "zero_scales", "powers_of_two")
CLASSES = (*PAIRS, *SCALES)
EXACT = ("select_right", "select_left", "sparse_integers")


def scales(name: str, rng: np.random.Generator, shape: Shape, spoil: bool = False) -> Array:
    """Scales with full significands; powers of two where products are to be exact, half of them in e8m0."""
    values: Array = rng.uniform(0.5, 1.5, shape) / 16.0
    if name == "steep_scales":
        values = values * 2.0 ** rng.integers(-12, 13, shape)
    if name == "tiny_scales":
        values = values * 1e-12
    if name == "zero_scales":
        values = np.where(rng.random(shape) < 0.5, 0.0, values)
    if name == "not_a_number" and spoil:
        values = np.where(rng.random(shape) < 0.2, np.nan, values)
    if name in EXACT or name == "powers_of_two":
        values = 2.0 ** rng.integers(-6, 3, shape)
    return values


def in_e8m0(name: str, rng: np.random.Generator, values: Array) -> Array:
    """Powers of two as e8m0 in half of the draws; other scales as they are."""
    if (name in EXACT or name == "powers_of_two") and rng.random() < 0.5:
        return values.astype(ml_dtypes.float8_e8m0fnu)
    return values


def _draw(name: str, block_scaled: bool) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        left, right = PAIRS.get(name, ("normal", "normal"))
        inputs = {
            "a": codes(left, rng, shapes["a"], number_format),
            "b": codes(right, rng, shapes["b"], number_format),
            "a_scale": scales(name, rng, shapes["a_scale"], spoil=number_format.is_integer),
            "b_scale": scales(name, rng, shapes["b_scale"]),
        }
        if block_scaled:
            for side in ("a_scale", "b_scale"):
                inputs[side] = in_e8m0(name, rng, inputs[side])
        if "bias" in shapes:
            largest = float(np.max(np.abs(np.nan_to_num(inputs["a_scale"].astype(np.float64))), initial=0.0))
            inputs["bias"] = (
                np.zeros(shapes["bias"]) if name in EXACT else rng.standard_normal(shapes["bias"]) * largest
            )
        return inputs

    return draw


WITHOUT = ("bias",)
WIDE, HALF = {"out_dtype": "float32"}, {"out_dtype": "float16"}


def _dims(m: int, n: int, k: int) -> dict[str, int]:
    return {"m": m, "n": n, "k": k}


def _blocks(m: int, n: int, k: int, block: int = 128) -> dict[str, int]:
    return {"m": m, "n": n, "k": k, "k_blocks": -(-k // block), "n_blocks": -(-n // block)}


def _random_dims(rng: np.random.Generator) -> tuple[int, int, int]:
    return int(pick(rng, SIZES[:14])), int(pick(rng, SIZES[:16])), int(pick(rng, SIZES))


def _random_plain(rng: np.random.Generator) -> Structure:
    params = pick(rng, ({}, WIDE, HALF))
    return Structure(_dims(*_random_dims(rng)), params=params, absent=WITHOUT if rng.random() < 0.5 else ())


def _random_blocks(rng: np.random.Generator) -> Structure:
    block = pick(rng, (32, 32, 64, 128))
    params = {"block": block, **pick(rng, ({}, WIDE, HALF))}
    dims = _blocks(*_random_dims(rng), block)
    return Structure(dims, params=params, absent=WITHOUT if rng.random() < 0.5 else ())


A8W8 = Recipe(
    classes={name: _draw(name, False) for name in CLASSES},
    curated=(
        Structure(_dims(17, 15, 65), "normal", params=WIDE, absent=WITHOUT),
        Structure(_dims(15, 17, 47), "normal", "padded", WIDE),
        Structure(_dims(16, 16, 33), "steep_scales", "transposed", WIDE),
        Structure(_dims(15, 13, 63), "select_right", "misaligned", WIDE, WITHOUT),
        Structure(_dims(13, 15, 65), "select_left", "padded", WIDE, WITHOUT),
        Structure(_dims(9, 17, 127), "sparse_integers", "contiguous", WIDE),
        Structure(_dims(13, 7, 129), "sparse_integers", "transposed", absent=WITHOUT),
        Structure(_dims(16, 16, 16), "low_entropy", params=WIDE),
        Structure(_dims(7, 9, 33), "full_significand", "strided"),
        Structure(_dims(5, 7, 97), "rising", absent=WITHOUT),
        Structure(_dims(7, 5, 97), "falling", "strided", HALF),
        Structure(_dims(8, 9, 64), "cancelling", params=WIDE, absent=WITHOUT),
        Structure(_dims(9, 8, 31), "heavy_tail", "misaligned"),
        Structure(_dims(16, 3, 17), "subnormals", "padded", WIDE, WITHOUT),
        Structure(_dims(3, 16, 33), "offset", params=HALF),
        Structure(_dims(17, 9, 31), "uniform", "transposed"),
        Structure(_dims(5, 6, 40), "tiny_scales", params=WIDE),
        Structure(_dims(9, 6, 31), "zero_scales"),
        Structure(_dims(9, 6, 31), "powers_of_two", params=WIDE),
        Structure(_dims(3, 4, 16), "zeros"),
        Structure(_dims(12, 9, 33), "not_a_number", params=WIDE),
        Structure(_dims(1, 1, 1), "normal", absent=WITHOUT),
        Structure(_dims(1, 33, 13), "normal", params=HALF),
        Structure(_dims(4, 5, 0)),
        Structure(_dims(0, 5, 3)),
        Structure(_dims(5, 0, 3), absent=WITHOUT),
        Structure(_dims(2, 2, 1021), "uniform", params=WIDE, absent=WITHOUT),
    ),
    random=_random_plain,
)

B32, B64 = {"block": 32}, {"block": 64}
BLOCK_SCALED = Recipe(
    classes={name: _draw(name, True) for name in CLASSES},
    curated=(
        Structure(_blocks(9, 65, 65, 32), "normal", params=B32 | WIDE, absent=WITHOUT),
        Structure(_blocks(15, 33, 97, 32), "normal", "padded", B32 | WIDE),
        Structure(_blocks(7, 47, 63, 32), "steep_scales", "transposed", B32 | WIDE),
        Structure(_blocks(3, 129, 257), "normal", "strided"),
        Structure(_blocks(15, 40, 63, 32), "select_right", "misaligned", B32 | WIDE, WITHOUT),
        Structure(_blocks(13, 33, 65, 32), "select_left", "padded", B32, WITHOUT),
        Structure(_blocks(9, 17, 129), "sparse_integers", params=WIDE),
        Structure(_blocks(13, 65, 129, 64), "sparse_integers", "transposed", B64, WITHOUT),
        Structure(_blocks(16, 16, 64, 32), "low_entropy", params=B32 | WIDE),
        Structure(_blocks(7, 33, 33, 32), "full_significand", "strided", B32),
        Structure(_blocks(5, 7, 97, 32), "rising", params=B32, absent=WITHOUT),
        Structure(_blocks(7, 5, 97, 32), "falling", "strided", B32 | HALF),
        Structure(_blocks(8, 9, 128), "cancelling", params=WIDE, absent=WITHOUT),
        Structure(_blocks(9, 40, 47, 32), "heavy_tail", "misaligned", B32),
        Structure(_blocks(16, 3, 33, 32), "subnormals", "padded", B32 | WIDE, WITHOUT),
        Structure(_blocks(3, 65, 127, 64), "offset", params=B64 | HALF),
        Structure(_blocks(17, 9, 96, 32), "uniform", "transposed", B32),
        Structure(_blocks(5, 36, 40, 32), "tiny_scales", params=B32 | WIDE),
        Structure(_blocks(9, 36, 63, 32), "zero_scales", params=B32),
        Structure(_blocks(9, 36, 63, 32), "powers_of_two", params=B32 | WIDE),
        Structure(_blocks(3, 4, 16, 32), "zeros", params=B32),
        Structure(_blocks(12, 33, 65, 32), "not_a_number", params=B32 | WIDE),
        Structure(_blocks(1, 1, 1), "normal", absent=WITHOUT),
        Structure(_blocks(1, 129, 13), "normal", params=HALF),
        Structure(_blocks(4, 5, 0)),
        Structure(_blocks(0, 5, 3)),
        Structure(_blocks(5, 0, 3), absent=WITHOUT),
        Structure(_blocks(2, 2, 1021), "uniform", params=WIDE, absent=WITHOUT),
    ),
    random=_random_blocks,
)

RECIPES = {"matmul_a8w8": A8W8, "matmul_a8w8_block_scaled": BLOCK_SCALED}

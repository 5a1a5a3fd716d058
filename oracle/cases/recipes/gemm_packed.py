"""Cases of matrix products of packed 4-bit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.gemm import EXACT as SELECTIONS
from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import (
    ROWS,
    Shape,
    cancelling,
    full_significand,
    heavy_tail,
    hot_mask,
    low_entropy,
    sparse_integers,
)
from oracle.formats import Format, encode, format_of
from oracle.ops.scale_tiles import TILES, unshuffled_scale
from oracle.ops.shuffles import unshuffled_weight
from oracle.signature import Array

E2M1 = format_of("float4_e2m1fn")
EXACT = (*SELECTIONS, "sparse_integers")
WITHOUT = ("bias",)
WIDE, HALF = {"out_dtype": "float32"}, {"out_dtype": "float16"}
AITER, CUBLAS = {"scale_layout": "aiter"}, {"scale_layout": "cublas"}


def packed(codes: Array) -> Array:
    """Two codes per byte along the last axis, the first in the low four bits."""
    bytes_: Array = codes[..., 0::2] | codes[..., 1::2] << 4
    return bytes_.astype(np.uint8)


def e2m1(name: str, rng: np.random.Generator, shape: Shape) -> Array:
    """Rows (last axis) of values that the caller rounds to e2m1."""
    signs = rng.choice([-1.0, 1.0], shape)
    ramp = 2.0 ** np.linspace(-1.5, 2.5, max(shape[-1], 1))[: shape[-1]]
    table: dict[str, Callable[[], Array]] = {
        "normal": lambda: rng.standard_normal(shape) * 2.0,
        "all_codes": lambda: signs * rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], shape),
        "full_significand": lambda: full_significand(rng, shape, E2M1) * 2.0 ** rng.integers(0, 3, shape),
        "rising": lambda: signs * ramp,
        "falling": lambda: signs * ramp[::-1],
        "uniform": lambda: rng.random(shape) * 6.0,
        "hot": lambda: hot_mask(rng, shape),
        "sparse_integers": lambda: sparse_integers(rng, shape, E2M1),
        "low_entropy": lambda: low_entropy(rng, shape, E2M1) * 6.0,
        "heavy_tail": lambda: heavy_tail(rng, shape, E2M1),
        "cancelling": lambda: cancelling(rng, shape, E2M1) * 4.0,
        "offset": lambda: 4.0 + rng.standard_normal(shape) / 2.0,
        "subnormals": lambda: rng.choice([-0.5, 0.0, 0.5], shape),
        "zeros": lambda: np.zeros(shape),
    }
    return table[name]()


# Classes of the codes of a and of b; all codes on both sides where a class is about scales.
PAIRS = {
    **{
        name: (name, name)
        for name in (
            "normal",
            "uniform",
            "sparse_integers",
            "low_entropy",
            "heavy_tail",
            "full_significand",
            "all_codes",
        )
    },
    "select_right": ("hot", "full_significand"),
    "select_left": ("full_significand", "hot"),
    "rising": ("rising", "normal"),
    "falling": ("falling", "normal"),
    "cancelling": ("cancelling", "uniform"),
    "subnormals": ("subnormals", "normal"),
    "offset": ("offset", "normal"),
    "zeros": ("zeros", "normal"),
}
FLOAT4_CLASSES = (*PAIRS, "steep_scales", "tiny_scales", "not_a_number")


def ordered(plain: Array, order: Callable[[Array], Array]) -> Array:
    """The array of the same shape that a permutation takes to ``plain``."""
    source = order(np.arange(plain.size).reshape(plain.shape)).reshape(-1)
    shuffled = np.empty_like(plain)
    shuffled.reshape(-1)[source] = plain.reshape(-1)
    return shuffled


def laid_out(values: Array, shape: Shape, layout: str, filler: float) -> Array:
    """Scales in their layout and padding: of a library that leaves padding as it was, NaN."""
    if layout == "rows":
        return values
    padded = np.full(shape, np.nan if layout == "aiter" else filler)
    padded[: values.shape[0], : values.shape[1]] = values
    return ordered(padded, lambda index: unshuffled_scale(index, layout))


def padded_dims(m: int, n: int, blocks: int, layout: str) -> dict[str, int]:
    """Sizes of the scales' dimensions."""
    if layout == "rows":
        return {"k_blocks": blocks}
    high, wide = TILES[layout]
    rows = {f"{dim}_padded": -(-size // high) * high for dim, size in (("m", m), ("n", n))}
    return {**rows, "k_blocks_padded": -(-blocks // wide) * wide}


def _scales(name: str, rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Scales of blocks: powers of two in e8m0, and full significands in e4m3 where products need not be exact."""
    spread = 6 if name == "steep_scales" and number_format.mantissa_bits else 40 if name == "steep_scales" else 3
    values: Array = 2.0 ** rng.integers(-spread, spread + 1, shape)
    if number_format.mantissa_bits and name not in EXACT:
        values = values * rng.integers(8, 15, shape) / 8.0
    if name == "tiny_scales":
        values = values * 2.0 ** (-6 if number_format.mantissa_bits else -58)
    if name == "not_a_number":
        values = np.where(rng.random(shape) < 0.2, np.nan, values)
    return values


def _float4_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        left, right = PAIRS.get(name, ("all_codes", "all_codes"))
        inputs = {}
        for side, kind in (("a", left), ("b", right)):
            rows, half = shapes[side]
            inputs[side] = packed(encode(e2m1(kind, rng, (rows, 2 * half)), E2M1))
            if side == "b" and params.get("b_layout") == "aiter":
                inputs[side] = ordered(inputs[side], lambda index: unshuffled_weight(index, 16, 16))
            block, shape = 16 if number_format.mantissa_bits else 32, shapes[f"{side}_scale"]
            values = _scales(name, rng, (rows, -(-2 * half // block)), number_format)
            filler = 0.0 if number_format.mantissa_bits else 2.0**-127
            inputs[f"{side}_scale"] = laid_out(values, shape, params["scale_layout"], filler)
            if f"{side}_tensor_scale" in shapes:
                whole = 0.25 if name in EXACT else rng.uniform(0.1, 1.0) * (1e-12 if name == "tiny_scales" else 1.0)
                inputs[f"{side}_tensor_scale"] = np.full(1, whole)
        if "bias" in shapes:
            inputs["bias"] = np.zeros(shapes["bias"]) if name in EXACT else rng.standard_normal(shapes["bias"])
            if name == "tiny_scales":
                inputs["bias"] = inputs["bias"] * 1e-25
        return inputs

    return draw


def _float4_recipe(block: int, one: bool) -> Recipe:
    def dims(m: int, n: int, half_k: int, layout: str = "rows") -> dict[str, int]:
        sizes = {"m": m, "n": n, "half_k": half_k, **padded_dims(m, n, -(-2 * half_k // block), layout)}
        return {**sizes, "one": 1} if one else sizes

    def random(rng: np.random.Generator) -> Structure:
        m, n, half_k = int(pick(rng, SIZES[:14])), int(pick(rng, SIZES[:14])), int(pick(rng, SIZES))
        params = {**pick(rng, ({}, WIDE, HALF)), "scale_layout": pick(rng, ("rows", "aiter", "cublas"))}
        shape = dims(m, n, half_k, params["scale_layout"])
        return Structure(shape, params=params, absent=WITHOUT if rng.random() < 0.5 else ())

    tiled = WIDE if one else WIDE | {"b_layout": "aiter"}  # weights of NVFP4 come in rows

    return Recipe(
        classes={name: _float4_draw(name) for name in FLOAT4_CLASSES},
        curated=(
            Structure(dims(17, 15, 33), "normal", params=WIDE, absent=WITHOUT),
            Structure(dims(15, 17, 47), "all_codes", "padded", WIDE),
            Structure(dims(16, 16, 31), "steep_scales", "transposed", WIDE),
            Structure(dims(33, 35, 47, "aiter"), "all_codes", "padded", WIDE | AITER),
            Structure(dims(35, 33, 49, "cublas"), "all_codes", "strided", WIDE | CUBLAS),
            Structure(dims(9, 32, 64, "aiter"), "normal", "misaligned", tiled | AITER, WITHOUT),
            Structure(dims(9, 16, 32), "all_codes", params=tiled),
            Structure(dims(15, 13, 40), "select_right", "misaligned", WIDE, WITHOUT),
            Structure(dims(13, 15, 33), "select_left", "padded", absent=WITHOUT),
            Structure(dims(9, 17, 63), "sparse_integers", params=WIDE),
            Structure(dims(13, 7, 65), "sparse_integers", "transposed", absent=WITHOUT),
            Structure(dims(16, 16, 16), "low_entropy", params=WIDE),
            Structure(dims(7, 9, 24), "full_significand", "strided"),
            Structure(dims(5, 7, 49), "rising", absent=WITHOUT),
            Structure(dims(7, 5, 49), "falling", "strided", HALF),
            Structure(dims(8, 9, 32), "cancelling", params=WIDE, absent=WITHOUT),
            Structure(dims(9, 8, 17), "heavy_tail", "misaligned"),
            Structure(dims(16, 3, 9), "subnormals", "padded", WIDE, WITHOUT),
            Structure(dims(3, 16, 17), "offset", params=HALF),
            Structure(dims(17, 9, 15), "uniform", "transposed"),
            Structure(dims(5, 6, 20), "tiny_scales", params=WIDE),
            Structure(dims(3, 4, 8), "zeros"),
            Structure(dims(12, 9, 33), "not_a_number", params=WIDE),
            Structure(dims(1, 1, 1), "normal", absent=WITHOUT),
            Structure(dims(1, 33, 13), "all_codes", params=HALF),
            Structure(dims(33, 3, 13), "all_codes", "misaligned"),
            Structure(dims(4, 5, 0)),
            Structure(dims(0, 5, 3)),
            Structure(dims(5, 0, 3), absent=WITHOUT),
            Structure(dims(2, 2, 509), "uniform", params=WIDE, absent=WITHOUT),
        ),
        random=random,
        unread=("a_scale", "b_scale"),
    )


ACTIVATIONS = (
    "normal", "uniform", "full_significand", "sparse_integers", "low_entropy", "rising", "falling", "cancelling",
    "offset", "subnormals", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip
W4A16_CLASSES = (*ACTIVATIONS, "select_right", "select_left", "steep_scales", "zero_points")


def _w4a16_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        m, k = shapes["a"]
        n = shapes["b"][0]
        codes = rng.integers(0, 16, (n, k + k % 2))
        a: Array = ROWS[name if name in ACTIVATIONS else "normal"](rng, (m, k), number_format)
        zero = rng.integers(0, 16, shapes["scale"])
        if name == "select_right":
            a = hot_mask(rng, (m, k))
        if name == "select_left":
            a = full_significand(rng, (m, k), number_format)
            codes = np.where(hot_mask(rng, codes.shape) != 0, 9, 8)
            zero = np.full(shapes["scale"], 8)
        if name == "zero_points":  # codes near their zero point, so that a wrong one changes much
            zero = rng.choice([0, 15], shapes["scale"])
        scale: Array = rng.uniform(0.5, 1.5, shapes["scale"]) / 16.0
        if name == "steep_scales":
            scale = scale * 2.0 ** rng.integers(-5, 6, shapes["scale"])
        if name in EXACT and name != "select_right":
            scale = 2.0 ** rng.integers(-4, 2, shapes["scale"])
        inputs = {"a": a, "b": packed(codes), "scale": scale}
        if "zero" in shapes:
            inputs["zero"] = np.maximum(zero - params["zero_offset"], 0)
        if "bias" in shapes:
            inputs["bias"] = np.zeros(shapes["bias"]) if name in EXACT else rng.standard_normal(shapes["bias"])
        return inputs

    return draw


def _w4a16_dims(m: int, n: int, k: int, group: int = 128) -> dict[str, int]:
    return {"m": m, "n": n, "k": k, "half_k": k // 2, "groups": -(-k // group)}


G32, G64, ROUNDED = {"group": 32}, {"group": 64}, {"weights": "float16"}
NO_ZERO, NEITHER = ("zero",), ("zero", "bias")


def _random_w4a16(rng: np.random.Generator) -> Structure:
    group = pick(rng, (32, 32, 64, 128))
    params = {"group": group, **pick(rng, ({}, ROUNDED, {"weights": "bfloat16"}, {"first_nibble": "high"}))}
    if rng.random() < 0.3:
        params["zero_offset"] = 1
    m, n, k = int(pick(rng, SIZES[:14])), int(pick(rng, SIZES[:14])), 2 * int(pick(rng, SIZES))
    return Structure(_w4a16_dims(m, n, k, group), params=params, absent=pick(rng, ((), WITHOUT, NO_ZERO, NEITHER)))


W4A16 = Recipe(
    classes={name: _w4a16_draw(name) for name in W4A16_CLASSES},
    curated=(
        Structure(_w4a16_dims(17, 15, 66, 32), "normal", params=G32, absent=WITHOUT),
        Structure(_w4a16_dims(15, 17, 94, 32), "normal", "padded", G32),
        Structure(_w4a16_dims(16, 16, 62, 32), "steep_scales", "transposed", G32, NEITHER),
        Structure(_w4a16_dims(5, 9, 258), "normal", "strided"),
        Structure(_w4a16_dims(15, 13, 64, 32), "select_right", "misaligned", G32, WITHOUT),
        Structure(_w4a16_dims(13, 15, 66, 32), "select_left", "padded", G32, WITHOUT),
        Structure(_w4a16_dims(9, 17, 126, 64), "sparse_integers", params=G64),
        Structure(_w4a16_dims(13, 7, 130, 64), "sparse_integers", "transposed", G64, NEITHER),
        Structure(_w4a16_dims(9, 8, 66, 32), "normal", params=G32 | ROUNDED),
        Structure(_w4a16_dims(8, 9, 66, 32), "normal", "padded", G32 | {"weights": "bfloat16"}, NO_ZERO),
        Structure(_w4a16_dims(9, 9, 34, 32), "normal", params=G32 | {"first_nibble": "high"}),
        Structure(_w4a16_dims(9, 9, 34, 32), "zero_points", "strided", G32 | {"zero_offset": 1}),
        Structure(_w4a16_dims(7, 9, 66, 32), "zero_points", params=G32, absent=WITHOUT),
        Structure(_w4a16_dims(16, 16, 32, 32), "low_entropy", params=G32),
        Structure(_w4a16_dims(7, 9, 34, 32), "full_significand", "strided", G32),
        Structure(_w4a16_dims(5, 7, 98, 32), "rising", params=G32, absent=WITHOUT),
        Structure(_w4a16_dims(7, 5, 98, 32), "falling", "strided", G32),
        Structure(_w4a16_dims(8, 9, 128), "cancelling", absent=NEITHER),
        Structure(_w4a16_dims(9, 8, 30, 32), "heavy_tail", "misaligned", G32),
        Structure(_w4a16_dims(16, 3, 18, 32), "subnormals", "padded", G32, WITHOUT),
        Structure(_w4a16_dims(3, 16, 34, 32), "offset", params=G32),
        Structure(_w4a16_dims(17, 9, 32, 32), "uniform", "transposed", G32),
        Structure(_w4a16_dims(3, 4, 16, 32), "zeros", params=G32),
        Structure(_w4a16_dims(12, 9, 34, 32), "not_a_number", params=G32),
        Structure(_w4a16_dims(12, 9, 34, 32), "infinities", "padded", G32),
        Structure(_w4a16_dims(1, 1, 2), "normal", absent=NEITHER),
        Structure(_w4a16_dims(4, 5, 0)),
        Structure(_w4a16_dims(0, 5, 4)),
        Structure(_w4a16_dims(5, 0, 4), absent=WITHOUT),
        Structure(_w4a16_dims(2, 2, 1018), "uniform", absent=WITHOUT),
    ),
    random=_random_w4a16,
)

RECIPES = {
    "matmul_a4w4_mxfp4": _float4_recipe(32, False),
    "matmul_a4w4_nvfp4": _float4_recipe(16, True),
    "matmul_w4a16": W4A16,
}

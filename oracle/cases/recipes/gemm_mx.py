"""Cases of products of microscaling formats, and of codes in tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.gemm_packed import AITER, CUBLAS, E2M1, EXACT, PAIRS, e2m1, laid_out, ordered, padded_dims
from oracle.cases.recipes.gemm_quantised import PAIRS as CODE_PAIRS
from oracle.cases.recipes.gemm_quantised import codes
from oracle.cases.recipes.gemm_quantised import scales as code_scales
from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape
from oracle.formats import Format, cast, decode, format_of
from oracle.ops.gemm_mx import ELEMENTS, tile_of
from oracle.ops.shuffles import unshuffled_weight
from oracle.signature import Array

CLASSES = (*PAIRS, "steep_scales", "tiny_scales", "not_a_number")


def elements(name: str, rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Rows of values of one class that the caller rounds to a microscaling format."""
    if number_format.bits == 8 and name != "all_codes":
        return codes(name, rng, shape, number_format)
    if name == "all_codes":
        every = decode(np.arange(2**number_format.bits), number_format)
        drawn: Array = rng.choice(every[np.isfinite(every)], shape)
        return drawn
    return e2m1(name, rng, shape) * number_format.max / E2M1.max


def _scales(name: str, rng: np.random.Generator, shape: Shape) -> Array:
    """Powers of two."""
    spread = {"steep_scales": 40}.get(name, 3)
    values: Array = 2.0 ** rng.integers(-spread, spread + 1, shape)
    if name == "tiny_scales":
        values = values * 2.0**-58
    if name == "not_a_number":
        values = np.where(rng.random(values.shape) < 0.2, np.nan, values)
    return values


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        left, right = PAIRS.get(name, ("all_codes", "all_codes"))
        # half of the cases have e2m1 weights: a8w4, a6w4
        other = format_of(pick(rng, (*ELEMENTS, *["float4_e2m1fn"] * 4)))
        (m, k), (n, _) = shapes["a"], shapes["b"]
        b = cast(elements(right, rng, (n, k), other), other, saturate=True)
        if params["b_layout"] == "aiter":
            b = ordered(b, lambda index: unshuffled_weight(index, *tile_of(other.name)))
        inputs = {"a": elements(left, rng, (m, k), number_format), "b": b}
        for side, rows in (("a", m), ("b", n)):
            values, shape = _scales(name, rng, (rows, -(-k // 32))), shapes[f"{side}_scale"]
            inputs[f"{side}_scale"] = laid_out(values, shape, params["scale_layout"], 2.0**-127)
        if "bias" in shapes:
            inputs["bias"] = np.zeros(n) if name in EXACT else rng.standard_normal(n)
            if name == "tiny_scales":
                inputs["bias"] = inputs["bias"] * 1e-25
        return inputs

    return draw


WITHOUT = ("bias",)
WIDE, HALF = {"out_dtype": "float32"}, {"out_dtype": "float16"}
TILED = {"b_layout": "aiter"}


def _mx(
    m: int, n: int, k: int, name: str, layout: str = "contiguous", params: Mapping[str, Any] | None = None,
    absent: tuple[str, ...] = (),
) -> Structure:  # fmt: skip
    params = params or {}
    dims = {"m": m, "n": n, "k": k, **padded_dims(m, n, -(-k // 32), params.get("scale_layout", "rows"))}
    return Structure(dims, name, layout, params, absent)


def _random_mx(rng: np.random.Generator) -> Structure:
    m, n, k = int(pick(rng, SIZES[:14])), int(pick(rng, SIZES[:14])), int(pick(rng, SIZES))
    params = {**pick(rng, ({}, AITER, CUBLAS)), **pick(rng, ({}, WIDE, HALF))}
    return _mx(m, n, k, "normal", params=params, absent=WITHOUT if rng.random() < 0.5 else ())


MX = Recipe(
    classes={name: _draw(name) for name in CLASSES},
    curated=(
        _mx(17, 15, 65, "normal", params=WIDE, absent=WITHOUT),
        _mx(15, 17, 94, "all_codes", "padded", WIDE | CUBLAS),
        _mx(33, 16, 63, "all_codes", "misaligned", WIDE | AITER, WITHOUT),
        _mx(9, 32, 64, "all_codes", "transposed", WIDE | TILED),
        _mx(9, 16, 128, "normal", "strided", WIDE | TILED | AITER),
        _mx(16, 16, 62, "steep_scales", "transposed", WIDE),
        _mx(35, 40, 97, "all_codes", params=WIDE | AITER),
        _mx(35, 40, 97, "all_codes", "padded", CUBLAS),
        _mx(15, 13, 80, "select_right", "misaligned", WIDE, WITHOUT),
        _mx(13, 15, 66, "select_left", "padded", absent=WITHOUT),
        _mx(9, 17, 126, "sparse_integers", params=WIDE | CUBLAS),
        _mx(16, 16, 33, "low_entropy", params=WIDE),
        _mx(7, 9, 48, "full_significand", "strided"),
        _mx(5, 7, 98, "rising", params=AITER, absent=WITHOUT),
        _mx(7, 5, 98, "falling", "strided", HALF),
        _mx(8, 9, 64, "cancelling", params=WIDE, absent=WITHOUT),
        _mx(9, 8, 34, "heavy_tail", "misaligned"),
        _mx(16, 3, 18, "subnormals", "padded", WIDE, WITHOUT),
        _mx(3, 16, 34, "offset", params=HALF),
        _mx(17, 9, 30, "uniform", "transposed"),
        _mx(5, 6, 40, "tiny_scales", params=WIDE),
        _mx(3, 4, 16, "zeros"),
        _mx(12, 9, 66, "not_a_number", params=WIDE | CUBLAS),
        _mx(1, 1, 1, "normal", absent=WITHOUT),
        _mx(4, 5, 0, "normal"),
        _mx(0, 5, 6, "normal", params=AITER),
        _mx(5, 0, 6, "normal", absent=WITHOUT),
        _mx(2, 2, 1021, "uniform", params=WIDE, absent=WITHOUT),
    ),
    random=_random_mx,
    unread=("a_scale", "b_scale"),
)

SHUFFLED_CLASSES = (*CODE_PAIRS, "steep_scales", "tiny_scales", "zero_scales")


def _shuffled_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        left, right = CODE_PAIRS.get(name, ("normal", "normal"))
        b = codes(right, rng, shapes["b"], number_format)
        return {
            "a": codes(left, rng, shapes["a"], number_format),
            "b": ordered(b, lambda index: unshuffled_weight(index, 16, 16)),
            "a_scale": code_scales(name, rng, shapes["a_scale"], spoil=number_format.is_integer),
            "b_scale": code_scales(name, rng, shapes["b_scale"]),
        }

    return draw


BLOCKS = {"scales": "block"}


def _shuffled(
    m: int, n: int, k: int, name: str, layout: str = "contiguous", params: Mapping[str, Any] | None = None
) -> Structure:
    dims, params = {"m": m, "n": n, "k": k}, params or {}
    if params.get("scales") == "block":
        dims |= {"k_blocks": -(-k // 128), "n_blocks": -(-n // 128)}
    return Structure(dims, name, layout, params)


def _random_shuffled(rng: np.random.Generator) -> Structure:
    params = {**pick(rng, ({}, BLOCKS)), **pick(rng, ({}, WIDE, HALF))}
    m, n, k = int(pick(rng, SIZES[:12])), 16 * int(rng.integers(0, 4)), 32 * int(rng.integers(0, 5))
    return _shuffled(m, n, k, "normal", params=params)


PRESHUFFLED = Recipe(
    classes={name: _shuffled_draw(name) for name in SHUFFLED_CLASSES},
    curated=(
        _shuffled(17, 32, 64, "normal", params=WIDE),
        _shuffled(9, 16, 96, "normal", "padded", WIDE | BLOCKS),
        _shuffled(3, 144, 160, "normal", "transposed", WIDE | BLOCKS),
        _shuffled(7, 16, 64, "steep_scales", "strided", WIDE),
        _shuffled(9, 16, 160, "steep_scales", "misaligned", WIDE | BLOCKS),
        _shuffled(15, 32, 32, "select_right", "misaligned", WIDE),
        _shuffled(13, 16, 64, "select_left", "padded", BLOCKS),
        _shuffled(9, 16, 128, "sparse_integers", params=WIDE),
        _shuffled(16, 16, 32, "low_entropy", params=WIDE),
        _shuffled(7, 16, 32, "full_significand", "strided", HALF),
        _shuffled(5, 16, 96, "rising"),
        _shuffled(7, 16, 96, "falling", params=BLOCKS),
        _shuffled(8, 16, 64, "cancelling", params=WIDE),
        _shuffled(9, 16, 32, "heavy_tail"),
        _shuffled(16, 16, 32, "subnormals", params=WIDE),
        _shuffled(3, 16, 32, "offset", params=HALF),
        _shuffled(17, 16, 32, "uniform", "transposed"),
        _shuffled(5, 16, 32, "tiny_scales", params=WIDE),
        _shuffled(5, 16, 32, "zero_scales"),
        _shuffled(3, 16, 32, "zeros"),
        _shuffled(6, 16, 32, "not_a_number", params=WIDE),
        _shuffled(1, 0, 0, "normal"),
        _shuffled(4, 16, 0, "normal"),
        _shuffled(0, 16, 32, "normal", params=BLOCKS),
        _shuffled(2, 16, 1024, "uniform", params=WIDE),
    ),
    random=_random_shuffled,
)

RECIPES = {"matmul_mx": MX, "matmul_a8w8_preshuffled": PRESHUFFLED}

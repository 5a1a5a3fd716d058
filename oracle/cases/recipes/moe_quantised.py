"""Cases of fused experts on codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.gemm_packed import E2M1, e2m1, packed
from oracle.cases.recipes.gemm_quantised import GAIN, codes
from oracle.cases.recipes.moe import IDS
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, hot_mask, normal
from oracle.formats import Format
from oracle.signature import Array

HIDDEN = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "cancelling", "offset", "subnormals", "heavy_tail", "zeros",
)  # fmt: skip
ROUTES = {
    "one_expert": "one_expert", "some_elsewhere": "some_elsewhere", "nan_unused": "every_other",
    "nan_elsewhere": "some_elsewhere",
}  # fmt: skip
CLASSES = (*HIDDEN, *ROUTES, "negative_weights", "selecting", "saturated", "steep_scales", "tiny")


def _elements(name: str, rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Rows of one class, that the caller rounds to the format."""
    if number_format.name in ("float16", "bfloat16", "float32"):
        return draw_rows(name, rng, shape, number_format)
    known = "hot" if name == "one_hot" else name
    return e2m1(known, rng, shape) if number_format is E2M1 else codes(known, rng, shape, number_format)


def _unit(number_format: Format) -> float:
    """By what elements of a class must be multiplied to be of order 1; a power of two."""
    if number_format.name in ("float16", "bfloat16", "float32"):
        return 1.0
    return 0.5 if number_format is E2M1 else 2.0 / GAIN.get(number_format.name, 8.0)


def _scales(name: str, rng: np.random.Generator, shape: Shape, base: float, powers: bool) -> Array:
    """Scales around a base, which becomes a power of two; all powers of two where products are to be exact."""
    spread = 6 if name == "steep_scales" else 1
    base = float(2.0 ** np.round(np.log2(base)))
    exact = powers or name in ("one_hot", "sparse_integers", "selecting")
    values: Array = base * 2.0 ** rng.integers(-spread, spread + 1, shape)
    return values if exact else values * rng.uniform(0.5, 1.0, shape)


def _draw(name: str, weights: Format | None) -> Draw:
    """``weights`` is their format, where it is not hidden's."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        experts, _, width = shapes["w_gate_up"]
        inner = shapes["w_down"][-1]
        weight_format = weights or number_format
        drawn = {"hidden": _elements(name if name in HIDDEN else "normal", rng, shapes["hidden"], number_format)}
        if "hidden_scale" in shapes:
            size = {"saturated": 16.0, "tiny": 2.0**-30}.get(name, 1.0)
            drawn["hidden_scale"] = _scales(
                name, rng, shapes["hidden_scale"], size * _unit(number_format), weights is not None
            )
        elif name in ("saturated", "tiny"):
            drawn["hidden"] = drawn["hidden"] * (16.0 if name == "saturated" else 2.0**-20)
        for label, terms in (("w_gate_up", width), ("w_down", inner)):
            shape, scale = shapes[label], f"{label}_scale"
            drawn[label] = _elements("normal", rng, shape, weight_format)
            base = _unit(weight_format) / np.sqrt(max(terms, 1))
            if name == "selecting":
                drawn[label], base = hot_mask(rng, shape), 1.0
            drawn[scale] = _scales(name, rng, shapes[scale], base, weights is not None)
        chosen = IDS[ROUTES.get(name, "spread")](rng, shapes["topk_ids"], experts)
        signed = name == "negative_weights"
        factor = normal(rng, shapes["topk_weights"], number_format) if signed else rng.random(shapes["topk_weights"])
        if name == "selecting":
            factor = np.full(factor.shape, 0.5)
        for label in ("gate_up_bias", "down_bias"):
            if label in shapes:
                drawn[label] = normal(rng, shapes[label], number_format) * (0.0 if name == "selecting" else 1.0)
        if name.startswith("nan_"):
            unused = ~np.isin(np.arange(experts), chosen)
            for label in drawn:
                if label != "hidden_scale" and label.endswith(("_scale", "_bias")):
                    drawn[label][unused] = np.nan
            factor = np.where(chosen < 0, np.nan, factor)
        return {**drawn, "topk_ids": chosen, "topk_weights": factor}

    return draw


def _draw_int4(name: str) -> Draw:
    """As `_draw` for hidden, ids and weights; codes of 4 bits with zero points."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        plain = {label: shape for label, shape in shapes.items() if not label.endswith("_zero")}
        drawn = _draw(name, E2M1)(rng, plain, params, number_format)
        for label, zero in (("w_gate_up", "gate_up_zero"), ("w_down", "down_zero")):
            shape = *shapes[label][:-1], 2 * shapes[label][-1]
            codes_, scale = rng.integers(0, 16, shape), f"{label}_scale"
            if name == "selecting":
                codes_ = np.where(hot_mask(rng, shape) != 0, 9, 8)
            drawn[label] = packed(codes_)
            if not name.startswith(("nan_", "selecting", "one_hot", "sparse")):
                drawn[scale] = drawn[scale] * rng.uniform(0.5, 1.0, drawn[scale].shape)
            if zero in shapes:
                drawn[zero] = np.full(shapes[zero], 8) if name == "selecting" else rng.integers(4, 12, shapes[zero])
        return drawn

    return draw


Sizes = Callable[[int, int, int, int, int, Mapping[str, Any]], dict[str, int]]


def _plain(tokens: int, width: int, inner: int, experts: int, k: int, params: Mapping[str, Any]) -> dict[str, int]:
    return {"tokens": tokens, "width": width, "two_inner": 2 * inner, "inner": inner, "experts": experts, "k": k}


def _tiled(tokens: int, width: int, inner: int, experts: int, k: int, params: Mapping[str, Any]) -> dict[str, int]:
    dims, block = _plain(tokens, width, inner, experts, k, params), params.get("block", 128)
    return {**dims, **{f"{dim}_blocks": -(-dims[dim] // block) for dim in ("width", "two_inner", "inner")}}


def _by_32(tokens: int, width: int, inner: int, experts: int, k: int, params: Mapping[str, Any]) -> dict[str, int]:
    dims = _plain(tokens, width, inner, experts, k, params)
    return {**dims, **{f"{dim}_blocks": -(-dims[dim] // 32) for dim in ("width", "inner")}}


def _packed(tokens: int, width: int, inner: int, experts: int, k: int, params: Mapping[str, Any]) -> dict[str, int]:
    width, inner, group = width + width % 2, inner + inner % 2, params.get("group", 128)
    return {
        "tokens": tokens, "width": width, "two_inner": 2 * inner, "half_width": width // 2, "half_inner": inner // 2,
        "width_groups": -(-width // group), "inner_groups": -(-inner // group), "experts": experts, "k": k,
    }  # fmt: skip


BIASES, ZEROS = ("gate_up_bias", "down_bias"), ("gate_up_zero", "down_zero")


def _recipe(
    sizes: Sizes,
    variations: tuple[dict[str, Any], ...],
    weights: Format | None = None,
    optional: tuple[str, ...] = BIASES,
    draw: Callable[[str], Draw] | None = None,
) -> Recipe:
    """The cases of one operator; ``variations`` are the parameters that it is to be seen with, in turn."""

    def case(dims: tuple[int, int, int, int, int], name: str, number: int, layout: str = "contiguous") -> Structure:
        params = variations[number % len(variations)]
        absent = () if weights is None or number % 2 else optional
        return Structure(sizes(*dims, params), name, layout, params, absent)

    def random(rng: np.random.Generator) -> Structure:
        dims = (
            int(pick(rng, (1, 3, 5))), int(pick(rng, (1, 7, 33, 48))), int(pick(rng, (1, 5, 33))),
            int(pick(rng, (1, 2, 4))), int(pick(rng, (1, 2, 3))),
        )  # fmt: skip
        return case(dims, "normal", int(rng.integers(0, len(variations))))

    return Recipe(
        classes={name: draw(name) if draw else _draw(name, weights) for name in CLASSES},
        curated=(
            case((6, 65, 33, 4, 3), "normal", 0),
            case((5, 33, 40, 4, 3), "nan_unused", 2, "padded"),
            case((6, 48, 33, 3, 3), "normal", 1, "strided"),
            case((5, 31, 17, 5, 2), "nan_elsewhere", 3),
            case((4, 24, 16, 3, 2), "saturated", 4),
            case((6, 33, 37, 4, 2), "normal", 5, "transposed"),
            case((4, 16, 8, 3, 1), "selecting", 0),
            case((5, 16, 33, 3, 2), "selecting", 2, "misaligned"),
            case((9, 7, 5, 2, 1), "one_expert", 3, "padded"),
            case((6, 8, 8, 4, 3), "some_elsewhere", 1),
            case((4, 40, 33, 3, 2), "steep_scales", 0),
            case((4, 15, 7, 4, 3), "negative_weights", 2, "strided"),
            case((3, 33, 9, 2, 2), "uniform", 3),
            case((3, 31, 9, 3, 2), "full_significand", 4),
            case((4, 31, 8, 3, 2), "one_hot", 5),
            case((4, 16, 9, 3, 2), "sparse_integers", 0),
            case((3, 32, 8, 2, 2), "low_entropy", 1, "misaligned"),
            case((3, 47, 8, 2, 1), "rising", 2),
            case((3, 47, 8, 2, 2), "falling", 3),
            case((3, 33, 8, 2, 2), "cancelling", 4),
            case((3, 16, 8, 2, 2), "offset", 5, "padded"),
            case((3, 16, 8, 2, 2), "subnormals", 0),
            case((3, 17, 8, 3, 2), "heavy_tail", 1),
            case((3, 17, 40, 3, 2), "tiny", 0),
            case((3, 17, 40, 3, 2), "tiny", 4),
            case((3, 8, 8, 2, 2), "zeros", 2),
            case((6, 33, 33, 2, 2), "normal", 6),
            case((1, 1, 1, 1, 1), "normal", 0),
            case((2, 2, 0, 1, 1), "normal", 0),
            case((0, 8, 4, 2, 2), "normal", 1),
            case((2, 5, 3, 3, 0), "normal", 3),
        ),
        random=random,
    )


WIDE, IN_BF16 = {"out_dtype": "float32"}, {"intermediate": "bfloat16"}
BOTH_BF16 = {"halves": "bfloat16", "intermediate": "bfloat16"}
IN_F16 = {"halves": "float16", "intermediate": "float16"}
GELU, SILU, OAI = ({"activation": name} for name in ("gelu", "silu", "swiglu_oai"))
INPUT = {"weighted": "input"}
LEAST: dict[str, Any] = {"least": 2.0**-10, "of_zero": "least"}
EIGHT_BITS: tuple[dict[str, Any], ...] = (
    WIDE, WIDE | INPUT, WIDE | GELU | IN_BF16, OAI | BOTH_BF16, WIDE | LEAST, BOTH_BF16,
    IN_F16 | {"out_dtype": "float16"},
)  # fmt: skip
BLOCKS = (32, 32, 64, 32, 32, 128, 32)

RECIPES = {
    "fused_experts_a8w8": _recipe(_plain, EIGHT_BITS),
    "fused_experts_a8w8_block_scaled": _recipe(
        _tiled, tuple({**one, "block": size} for one, size in zip(EIGHT_BITS, BLOCKS, strict=True))
    ),
    "fused_experts_mxfp4": _recipe(
        _by_32,
        (WIDE | SILU, WIDE | INPUT, WIDE | GELU | IN_BF16 | {"mode": "even"}, BOTH_BF16 | {"mode": "floor"},
         WIDE | SILU | {"mode": "ceil"}, OAI | BOTH_BF16, IN_F16 | {"out_dtype": "float16"}),
        E2M1,
    ),
    "fused_experts_w4a16": _recipe(
        _packed,
        ({"group": 32}, INPUT | {"group": 32}, GELU | IN_BF16 | {"group": 64}, BOTH_BF16 | {"group": 32},
         {"group": 32, "weights": "bfloat16"}, OAI, IN_F16 | {"weights": "float16"}),
        E2M1, ZEROS, _draw_int4,
    ),
    "fused_experts_w4a16_mxfp4": _recipe(
        _by_32, (SILU, INPUT, GELU | IN_BF16, BOTH_BF16, SILU, OAI, IN_F16), E2M1
    ),
}  # fmt: skip

"""Relations of quantisation to 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import format_of
from oracle.relations.relation import Run, difference, relation


@relation("quantise")
def rows_share_nothing(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Rows that change places take their codes along, and their scales where a block lies in one row."""
    x, block = inputs["x"], params["block"]
    if len(x) < 2 or block == "128x128":
        return None
    scale, codes = run(inputs, params)
    moved_scale, moved_codes = run({**inputs, "x": np.roll(x, 1, axis=0)}, params)
    if block not in ("tensor", "channel"):
        moved_scale = np.roll(moved_scale, -1, axis=0)
    return difference(moved_scale, scale, "scale of rows in each other's places") or difference(
        np.roll(moved_codes, -1, axis=0), codes, "codes of rows in each other's places"
    )


@relation("quantise")
def signs_turn_codes(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Where every element changes its sign, so does every code, and the scales stay."""
    scale, codes = run(inputs, params)
    turned_scale, turned_codes = run({**inputs, "x": -inputs["x"]}, params)
    return difference(turned_scale, scale, "scale of -x") or difference(-turned_codes, codes, "codes of -x")


LEAST_SCALE = 2.0**-20
AFTER = (
    "rmsnorm_dynamic_quant", "fused_add_rmsnorm_dynamic_quant", "silu_and_mul_dynamic_quant",
    "gelu_and_mul_dynamic_quant", "relu2_and_mul_dynamic_quant",
)  # fmt: skip


def _with_last_factor(inputs: dict[str, Any], params: dict[str, Any], factor: float) -> dict[str, Any] | None:
    """The inputs with what is multiplied last times a factor: the gain, or the values that gates meet."""
    if "weight" in inputs:
        if params["gain"] != "weight":
            return None
        return {**inputs, "weight": inputs["weight"] * inputs["weight"].dtype.type(factor)}
    width = inputs["x"].shape[-1]
    column = np.arange(width)
    values = column >= width // 2 if params["pairing"] == "halves" else column % 2 == 1
    changed = {}
    for name in ("x", "bias"):
        if inputs.get(name) is not None:
            changed[name] = np.where(values, inputs[name] * inputs[name].dtype.type(factor), inputs[name])
    return {**inputs, **changed}


@relation(*AFTER)
def turned_results_turn_codes(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """Where the gain, or every value that a gate meets, changes its sign, so does every code, and the scales stay."""
    turned = _with_last_factor(inputs, params, -1.0)
    if turned is None:
        return None
    *_, scale, codes = run(inputs, params)
    *_, turned_scale, turned_codes = run(turned, params)
    return difference(turned_scale, scale, "scale of the negative") or difference(
        -turned_codes, codes, "codes of the negative"
    )


@relation(*AFTER)
def doubled_results_double_scales(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """Where the gain, or every value that a gate meets, doubles, so do the scales, and the codes stay."""
    doubled = _with_last_factor(inputs, params, 2.0)
    if doubled is None or params["least"] or params.get("limit") or params["of_zero"] == "least":
        return None
    *_, scale, codes = run(inputs, params)
    *_, larger_scale, larger_codes = run(doubled, params)
    inside = (scale > LEAST_SCALE) & (scale != 1.0)  # a block of zeros keeps its 1; no result is subnormal
    if not inside.all() or not np.isfinite(larger_scale).all():
        return None
    return difference(larger_scale, scale * np.float32(2), "scale of the double") or difference(
        larger_codes, codes, "codes of the double"
    )


@relation("quantise")
def powers_of_two_only_scale(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Elements that are 16 times as large have the same codes, with scales that are 16 times as large."""
    x = inputs["x"]
    size = np.abs(x.astype(np.float64))
    low, high = 2.0**-90, format_of(x.dtype).max / 2.0**6  # neither a quotient nor a scale is subnormal
    if params["least"] or not ((size > low) & (size < high)).all():
        return None
    scale, codes = run(inputs, params)
    larger_scale, larger_codes = run({**inputs, "x": (x * x.dtype.type(16)).astype(x.dtype)}, params)
    return difference(larger_scale, scale * np.float32(16), "scale of 16 x") or difference(
        larger_codes, codes, "codes of 16 x"
    )

"""Cases of quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format, format_of, round_to, spacing
from oracle.ops.quant_blocks import block_shape, scale_shape
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip
EIGHT_BITS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int8")
BLOCKS = ("tensor", "token", "channel", "1x16", "1x32", "1x64", "1x128", "128x128")


def midpoints(rng: np.random.Generator, shape: Shape, target: Format) -> Array:
    """Numbers halfway between two neighbouring values of a format, of any magnitude that it has."""
    low = 0.5 * target.min_subnormal if not target.is_integer else 0.5
    below = np.abs(round_to(target.max * 2.0 ** -rng.uniform(0.0, 6.0, shape), target, "toward_zero"))
    below = np.where(below >= target.max, 0.0, below)
    middle = below + 0.5 * spacing(below, target)
    return np.maximum(middle, low) * np.where(rng.random(shape) < 0.5, -1.0, 1.0)


def _with_largest(x: Array, params: Mapping[str, Any], scale: float) -> Array:
    """One element of each block is the largest code times a power of two, so that the scale is that power."""
    high, wide = block_shape(params["block"], *x.shape)
    largest = params.get("largest") or format_of(params["to"]).max
    x[::high, ::wide] = largest * scale
    return x


def _ties(near: bool) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        scale = 2.0**-3
        x = midpoints(rng, shapes["x"], format_of(params["to"])) * scale
        if near:
            step = spacing(x, number_format)
            x = x + step * rng.integers(-1, 2, shapes["x"])
        return _completed(rng, shapes, params, _with_largest(x, params, scale), scale)

    return draw


def _completed(
    rng: np.random.Generator,
    shapes: Mapping[str, Shape],
    params: Mapping[str, Any],
    x: Array,
    scale: float | None = None,
) -> dict[str, Array]:
    """The inputs besides x: scales that fit it (or a given one), and factors of the columns."""
    drawn = {"x": x}
    if "scale" in shapes:
        if scale is None:
            size = np.abs(x[np.isfinite(x)])
            typical = float(np.median(size[size > 0])) if (size > 0).any() else 1.0
            drawn["scale"] = 8 * typical / format_of(params["to"]).max * rng.uniform(0.5, 1.5, shapes["scale"])
        else:
            drawn["scale"] = np.full(shapes["scale"], scale)
    if "smooth" in shapes:
        drawn["smooth"] = 2.0 ** rng.uniform(-2.0, 2.0, shapes["smooth"])
    return drawn


def _rows(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        return _completed(rng, shapes, params, draw_rows(name, rng, shapes["x"], number_format, CLASSES))

    return draw


def _zero_blocks(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Every other block along the rows and the columns all zero, the very first among them."""
    x = rng.standard_normal(shapes["x"])
    high, wide = block_shape(params["block"], *x.shape)
    rows, cols = np.indices(x.shape)
    x[(rows // high + cols // wide) % 2 == 0] = 0.0
    return _completed(rng, shapes, params, x)


def _tiny(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Normal numbers far below 1, so that a lower limit of the scales decides."""
    exponent = -12 if number_format.name == "float16" else -44
    x = rng.standard_normal(shapes["x"]) * 2.0**exponent
    return _completed(rng, shapes, params, x)


def _outliers(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Magnitudes that differ from block to block by powers of two, and one element in 128 a thousand times larger."""
    x = rng.standard_normal(shapes["x"])
    high, wide = block_shape(params["block"], *x.shape)
    factors = 2.0 ** rng.integers(-4, 5, scale_shape(params["block"], *x.shape))
    rows, cols = np.indices(x.shape)
    if factors.size:
        x = x * factors[rows // high, cols // wide]
    return _completed(rng, shapes, params, np.where(rng.random(x.shape) < 1 / 128, 1000.0 * x, x))


def _last_is_largest(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """The largest magnitude of each row is its last element, and negative."""
    x = rng.uniform(-1.0, 1.0, shapes["x"])
    x[:, -1:] = -3.0 - rng.random(x[:, -1:].shape)
    return _completed(rng, shapes, params, x)


OWN: dict[str, Draw] = {
    "ties": _ties(near=False),
    "near_ties": _ties(near=True),
    "zero_blocks": _zero_blocks,
    "tiny": _tiny,
    "outliers": _outliers,
    "last_is_largest": _last_is_largest,
}
WITHOUT = ("smooth",)


def _dims(rows: int, cols: int) -> dict[str, int]:
    return {"rows": rows, "cols": cols}


def _params(to: str, block: str, **more: Any) -> dict[str, Any]:
    return {"to": to, "block": block, **more}


E4M3, E5M2, E4M3Z, E5M2Z, INT8 = EIGHT_BITS


def _dynamic(
    rows: int,
    cols: int,
    value_class: str,
    params: Mapping[str, Any],
    layout: str = "contiguous",
    absent: tuple[str, ...] = WITHOUT,
) -> Structure:
    return Structure(_dims(rows, cols), value_class, layout, params, absent)


def _random_quantise(rng: np.random.Generator) -> Structure:
    to = pick(rng, EIGHT_BITS)
    params = _params(to, pick(rng, BLOCKS))
    if rng.random() < 0.3:
        params["of_zero"] = "least"
    if rng.random() < 0.3:
        params["least"] = 1e-12
    if rng.random() < 0.2:
        params["nans"] = "ignore"
    if to == INT8 and rng.random() < 0.5:
        params["rounding"] = "toward_zero"
    rows, cols = int(pick(rng, SIZES[:12])), int(pick(rng, (*SIZES, 256, 257)))
    return Structure(_dims(rows, cols), params=params, absent=() if rng.random() < 0.2 else WITHOUT)


TRUNCATED = {"rounding": "toward_zero"}
QUANTISE = Recipe(
    classes={**{name: _rows(name) for name in (*CLASSES, "mixed")}, **OWN},
    curated=(
        _dynamic(7, 129, "normal", _params(E4M3, "token")),
        _dynamic(5, 257, "outliers", _params(E4M3, "1x128"), "padded"),
        _dynamic(130, 131, "outliers", _params(E4M3, "128x128")),
        _dynamic(6, 130, "ties", _params(E4M3, "1x64")),
        _dynamic(6, 96, "ties", _params(INT8, "token"), "strided"),
        _dynamic(6, 96, "near_ties", _params(INT8, "token", rounding="toward_zero")),
        _dynamic(5, 65, "near_ties", _params(E5M2, "token"), "transposed"),
        _dynamic(17, 33, "ties", _params(E4M3Z, "channel"), "misaligned"),
        _dynamic(9, 33, "near_ties", _params(E5M2Z, "tensor"), "strided"),
        _dynamic(8, 47, "zero_blocks", _params(E4M3, "1x16")),
        _dynamic(8, 47, "zero_blocks", _params(INT8, "token", of_zero="least", least=1e-12)),
        _dynamic(5, 40, "zero_blocks", _params(E4M3, "token", of_zero="least")),
        _dynamic(4, 63, "zeros", _params(E4M3, "tensor", of_zero="least")),
        _dynamic(4, 63, "zeros", _params(INT8, "1x32")),
        _dynamic(6, 66, "tiny", _params(E4M3, "token", least=1e-8)),
        _dynamic(6, 66, "tiny", _params(E4M3Z, "1x32", largest=224.0), "padded"),
        _dynamic(7, 64, "last_is_largest", _params(INT8, "token")),
        _dynamic(7, 97, "last_is_largest", _params(E4M3, "1x32", largest=256.0)),
        _dynamic(7, 33, "not_a_number", _params(E4M3, "token")),
        _dynamic(7, 33, "not_a_number", _params(E4M3, "token", nans="ignore"), "padded"),
        _dynamic(7, 33, "not_a_number", _params(INT8, "1x16", nans="ignore")),
        _dynamic(4, 65, "infinities", _params(E5M2, "1x32"), "transposed"),
        _dynamic(4, 65, "infinities", _params(INT8, "channel")),
        _dynamic(6, 127, "heavy_tail", _params(E4M3, "token"), absent=()),
        _dynamic(5, 31, "normal", _params(INT8, "token"), "misaligned", absent=()),
        _dynamic(5, 97, "rising", _params(E4M3, "1x32")),
        _dynamic(4, 17, "subnormals", _params(E4M3, "channel")),
        _dynamic(13, 32, "mixed", _params(E5M2, "1x16")),
        _dynamic(3, 1021, "full_significand", _params(INT8, "1x128")),
        _dynamic(33, 13, "normal", _params(E4M3Z, "128x128"), "transposed"),
        _dynamic(5, 31, "one_hot", _params(E4M3, "token"), "strided"),
        _dynamic(5, 33, "sparse_integers", _params(INT8, "token")),
        _dynamic(4, 35, "low_entropy", _params(E4M3, "1x16")),
        _dynamic(4, 31, "falling", _params(E5M2, "1x16"), "padded"),
        _dynamic(3, 17, "all_below", _params(INT8, "tensor")),
        _dynamic(3, 63, "offset", _params(INT8, "token")),
        _dynamic(1, 1, "full_significand", _params(E4M3, "tensor")),
        _dynamic(0, 5, "normal", _params(E4M3, "token")),
        _dynamic(3, 0, "normal", _params(INT8, "1x128")),
        _dynamic(261, 5, "uniform", _params(INT8, "tensor")),
    ),
    random=_random_quantise,
)


def _static(rows: int, cols: int, value_class: str, params: Mapping[str, Any], layout: str = "contiguous") -> Structure:
    down, across = scale_shape(params["block"], rows, cols)
    dims = {"rows": rows, "cols": cols, "scale_rows": down, "scale_cols": across}
    return Structure(dims, value_class, layout, params)


def _random_static(rng: np.random.Generator) -> Structure:
    to = pick(rng, EIGHT_BITS)
    more = TRUNCATED if to == INT8 and rng.random() < 0.5 else {}
    rows, cols = int(pick(rng, SIZES[:12])), int(pick(rng, SIZES))
    return _static(rows, cols, "normal", _params(to, pick(rng, BLOCKS), **more))


QUANTISE_STATIC = Recipe(
    classes={**{name: _rows(name) for name in (*CLASSES, "mixed")}, **OWN},
    curated=(
        _static(7, 129, "normal", _params(E4M3, "tensor")),
        _static(5, 257, "outliers", _params(E4M3, "1x128"), "padded"),
        _static(130, 131, "outliers", _params(E4M3, "128x128")),
        _static(6, 130, "ties", _params(E4M3, "tensor")),
        _static(6, 96, "ties", _params(INT8, "token"), "strided"),
        _static(6, 96, "near_ties", _params(INT8, "tensor", **TRUNCATED)),
        _static(5, 65, "near_ties", _params(E5M2, "tensor"), "transposed"),
        _static(17, 33, "ties", _params(E4M3Z, "channel"), "misaligned"),
        _static(9, 33, "near_ties", _params(E5M2Z, "tensor"), "strided"),
        _static(8, 47, "zero_blocks", _params(E4M3, "1x16")),
        _static(4, 63, "zeros", _params(INT8, "1x32")),
        _static(6, 66, "tiny", _params(E4M3, "token")),
        _static(7, 64, "last_is_largest", _params(INT8, "channel")),
        _static(7, 33, "not_a_number", _params(E4M3, "tensor")),
        _static(7, 33, "not_a_number", _params(INT8, "1x16"), "padded"),
        _static(4, 65, "infinities", _params(E5M2, "1x32"), "transposed"),
        _static(4, 65, "infinities", _params(INT8, "tensor")),
        _static(6, 127, "heavy_tail", _params(E4M3, "tensor")),
        _static(6, 127, "heavy_tail", _params(INT8, "tensor"), "misaligned"),
        _static(6, 127, "heavy_tail", _params(E5M2, "token")),
        _static(5, 97, "rising", _params(E4M3Z, "1x32")),
        _static(13, 32, "mixed", _params(E5M2, "1x16")),
        _static(3, 1021, "full_significand", _params(INT8, "1x128")),
        _static(5, 31, "one_hot", _params(E4M3, "token"), "strided"),
        _static(5, 65, "sparse_integers", _params(INT8, "1x64")),
        _static(4, 35, "low_entropy", _params(E4M3, "1x16")),
        _static(4, 31, "falling", _params(E5M2, "1x16"), "padded"),
        _static(3, 17, "all_below", _params(INT8, "tensor")),
        _static(3, 63, "offset", _params(INT8, "token")),
        _static(4, 17, "subnormals", _params(E4M3, "tensor")),
        _static(1, 1, "full_significand", _params(E4M3, "tensor")),
        _static(0, 5, "normal", _params(E4M3, "token")),
        _static(3, 0, "normal", _params(INT8, "1x128")),
        _static(261, 5, "uniform", _params(INT8, "tensor", **TRUNCATED)),
    ),
    random=_random_static,
)

RECIPES = {"quantise": QUANTISE, "quantise_static": QUANTISE_STATIC}

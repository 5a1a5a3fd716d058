"""Cases of microscaling formats, of NVFP4, of int4 groups, and of dequantisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.quant import CLASSES, midpoints
from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format, cast, decode, format_of, round_to, spacing
from oracle.ops.quant_blocks import block_shape, scale_shape
from oracle.signature import Array

FINITE = tuple(name for name in CLASSES if name not in ("not_a_number", "infinities"))
ELEMENTS = (
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
)  # fmt: skip
MODES = ("floor", "ceil", "even", "up")


def _block(params: Mapping[str, Any]) -> str:
    return str(params.get("block") or params.get("group") or "1x16")


def _element(params: Mapping[str, Any]) -> Format:
    return format_of(params.get("to") or ("float4_e2m1fn" if "reciprocal" in params else "int4"))


def _rows(name: str, classes: tuple[str, ...]) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        return {"x": draw_rows(name, rng, shapes["x"], number_format, classes)}

    return draw


def _ties(near: bool) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        """Halfway between two elements, under a scale that is a power of two; near ones a step off."""
        element = _element(params)
        x = midpoints(rng, shapes["x"], element)
        x = np.where(np.abs(x) > element.max, element.max, x)
        high, wide = block_shape(_block(params), *x.shape)
        x[::high, ::wide] = {"int4": 7.0}.get(element.name, element.max)
        if "group" in params and "largest" not in params:  # a range of 15, and 7 as zero point
            x[::high, ::wide], x[::high, 1::wide] = -7.0, 8.0
        if "reciprocal" in params:
            x[:1, :1] = 2688.0  # the tensor's scale is a power of two then, and those of blocks with 6 are 1
        if near:
            x = x + spacing(x, number_format) * rng.integers(-1, 2, x.shape)
        return {"x": x * 2.0**-3}

    return draw


def _edges(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Each block's largest magnitude is where a way of making scales steps, or a step of the dtype off."""
    element = _element(params)
    x = rng.uniform(-0.5, 0.5, shapes["x"])
    high, wide = block_shape(_block(params), *x.shape)
    corner = x[::high, ::wide]
    steps = np.array([1.0, 2.0 - 2.0 ** -(element.mantissa_bits + 1), element.max / element.max_binade])
    tops = steps[rng.integers(0, 3, corner.shape)] * 2.0 ** rng.integers(0, 4, corner.shape)
    x[::high, ::wide] = tops + spacing(tops, number_format) * rng.integers(-1, 2, corner.shape)
    return {"x": x}


def _zero_blocks(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Every other block all zero, the very first among them."""
    x = rng.standard_normal(shapes["x"])
    high, wide = block_shape(_block(params), *x.shape)
    rows, cols = np.indices(x.shape)
    x[(rows // high + cols // wide) % 2 == 0] = 0.0
    return {"x": x}


def _tiny(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Normal numbers far below 1."""
    return {"x": rng.standard_normal(shapes["x"]) * 2.0 ** (-20 if number_format.name == "float16" else -110)}


def _outliers(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Magnitudes that differ from block to block by powers of two, and few elements a thousand times larger."""
    x = rng.standard_normal(shapes["x"])
    high, wide = block_shape(_block(params), *x.shape)
    factors = 2.0 ** rng.integers(-4, 5, scale_shape(_block(params), *x.shape))
    rows, cols = np.indices(x.shape)
    x = x * factors[rows // high, cols // wide] if factors.size else x
    return {"x": np.where(rng.random(x.shape) < 1 / 128, 1000.0 * x, x)}


def _last_is_largest(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """The largest magnitude of each row is its last element, and negative."""
    x = rng.uniform(-1.0, 1.0, shapes["x"])
    x[:, -1:] = -3.0 - rng.random(x[:, -1:].shape)
    return {"x": x}


def _one_sided(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Groups that lie on one side of 0, near to it or far off: zero points at both ends."""
    x = rng.random(shapes["x"]) + pick(rng, (0.0, 1.0)) * (np.indices(shapes["x"])[0] % 3)
    return {"x": x * np.where(np.indices(shapes["x"])[0] % 2 == 0, 1.0, -1.0)}


OWN: dict[str, Draw] = {
    "ties": _ties(near=False),
    "near_ties": _ties(near=True),
    "edges": _edges,
    "zero_blocks": _zero_blocks,
    "tiny": _tiny,
    "outliers": _outliers,
    "last_is_largest": _last_is_largest,
}


def _classes(names: tuple[str, ...], own: Mapping[str, Draw] = OWN) -> dict[str, Draw]:
    return {**{name: _rows(name, names) for name in (*names, "mixed")}, **own}


def _case(
    rows: int, cols: int, value_class: str, params: Mapping[str, Any] | None = None, layout: str = "contiguous"
) -> Structure:
    return Structure({"rows": rows, "cols": cols}, value_class, layout, params or {})


FP4, E2M3, E3M2, E4M3, E5M2, E4M3Z = ELEMENTS


def _mx(to: str, mode: str, block: str = "1x32") -> dict[str, str]:
    return {"to": to, "mode": mode, "block": block}


def _random_mx(rng: np.random.Generator) -> Structure:
    params = _mx(pick(rng, ELEMENTS), pick(rng, MODES), pick(rng, ("1x32", "32x1", "32x32")))
    return _case(int(pick(rng, SIZES[:14])), int(pick(rng, SIZES)), "normal", params)


REST = tuple(
    _case(rows, cols, name, None, layout)
    for rows, cols, name, layout in (
        (6, 127, "heavy_tail", "strided"),
        (5, 97, "rising", "padded"),
        (4, 63, "falling", "contiguous"),
        (4, 31, "low_entropy", "transposed"),
        (3, 33, "all_below", "contiguous"),
        (3, 65, "offset", "misaligned"),
        (5, 47, "sparse_integers", "contiguous"),
        (5, 64, "one_hot", "contiguous"),
        (4, 17, "subnormals", "contiguous"),
        (7, 64, "last_is_largest", "contiguous"),
        (5, 33, "uniform", "strided"),
        (13, 32, "mixed", "contiguous"),
        (3, 16, "zeros", "contiguous"),
        (1, 1, "full_significand", "contiguous"),
        (0, 5, "normal", "contiguous"),
        (3, 0, "normal", "contiguous"),
        (1, 1031, "full_significand", "contiguous"),
    )
)
QUANTISE_MX = Recipe(
    classes=_classes(CLASSES),
    curated=(
        _case(7, 129, "normal", _mx(FP4, "up")),
        _case(9, 130, "edges", _mx(FP4, "even"), "padded"),
        _case(9, 130, "edges", _mx(E4M3, "up")),
        _case(9, 130, "edges", _mx(FP4, "ceil")),
        _case(9, 130, "edges", _mx(E5M2, "floor"), "strided"),
        _case(33, 70, "edges", _mx(E2M3, "even", "32x1")),
        _case(6, 96, "ties", _mx(FP4, "up")),
        _case(6, 96, "ties", _mx(E4M3, "floor"), "transposed"),
        _case(6, 96, "near_ties", _mx(E3M2, "ceil")),
        _case(40, 33, "near_ties", _mx(E2M3, "up", "32x32"), "misaligned"),
        _case(8, 95, "zero_blocks", _mx(FP4, "even")),
        _case(70, 65, "outliers", _mx(FP4, "up", "32x32")),
        _case(35, 20, "outliers", _mx(E4M3Z, "floor", "32x1"), "padded"),
        _case(6, 66, "tiny", _mx(E4M3, "up")),
        _case(7, 65, "not_a_number", _mx(FP4, "up")),
        _case(7, 65, "not_a_number", _mx(E4M3, "floor"), "strided"),
        _case(4, 65, "infinities", _mx(FP4, "ceil")),
        _case(4, 65, "infinities", _mx(E5M2, "up"), "transposed"),
        *REST,
    ),
    random=_random_mx,
)


def _random_nvfp4(rng: np.random.Generator) -> Structure:
    params = {"reciprocal": True} if rng.random() < 0.5 else {}
    return _case(int(pick(rng, SIZES[:14])), int(pick(rng, SIZES)), "normal", params)


INVERSE = {"reciprocal": True}
QUANTISE_NVFP4 = Recipe(
    classes=_classes(FINITE),
    curated=(
        _case(7, 129, "normal"),
        _case(7, 129, "normal", INVERSE, "padded"),
        _case(6, 96, "ties"),
        _case(6, 96, "near_ties", INVERSE),
        _case(9, 130, "edges", None, "misaligned"),
        _case(8, 47, "zero_blocks", INVERSE),
        _case(70, 65, "outliers"),
        _case(6, 66, "tiny"),
        *REST,
    ),
    random=_random_nvfp4,
)


def _random_int4(rng: np.random.Generator) -> Structure:
    params = {"group": pick(rng, ("1x32", "1x64", "1x128"))}
    return _case(int(pick(rng, SIZES[:14])), int(pick(rng, SIZES)), "normal", params)


GROUPED = (
    _case(7, 129, "normal"),
    _case(7, 129, "normal", {"group": "1x64"}, "padded"),
    _case(5, 257, "outliers", {"group": "1x128"}),
    _case(6, 96, "ties"),
    _case(6, 96, "near_ties", None, "misaligned"),
    _case(9, 130, "edges", {"least": 1e-9}),
    _case(8, 95, "zero_blocks"),
    _case(6, 66, "tiny"),
    *REST,
)
QUANTISE_INT4 = Recipe(
    classes=_classes(FINITE),
    curated=(_case(6, 97, "ties", {"largest": 8}), *GROUPED),
    random=_random_int4,
)
QUANTISE_UINT4 = Recipe(
    classes=_classes(FINITE, {**OWN, "one_sided": _one_sided}),
    curated=(_case(9, 97, "one_sided"), *GROUPED),
    random=_random_int4,
)


# Dequantisation: all codes, at random, or the codes of numbers of a class.

DEQUANTISE_CLASSES = ("normal", "uniform", "one_hot", "low_entropy", "heavy_tail", "zeros")


def _every_code(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Codes at random, NaN and infinity left out."""
    values = decode(rng.integers(0, 2**number_format.bits, shapes["codes"]), number_format)
    return _with_scales(rng, shapes, np.where(np.isfinite(values), values, 1.0))


def _special_codes(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Every third row with a NaN, or with the largest number where there is none."""
    values = decode(rng.integers(0, 2**number_format.bits, shapes["codes"]), number_format)
    values = np.where(np.isfinite(values), values, 1.0)
    values[::3, :1] = np.nan if number_format.has_nan else number_format.max
    return _with_scales(rng, shapes, values)


def _of_rows(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        rows = draw_rows(name, rng, shapes["codes"], format_of("float32")) * number_format.max / 4
        return _with_scales(rng, shapes, round_to(rows, number_format, saturate=True))

    return draw


def _scale_kind(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn = _every_code(rng, shapes, params, number_format)
        drawn["scale"] = cast(drawn["scale"], name)
        if name == "float8_e8m0fnu" and drawn["scale"].size:
            drawn["scale"][-1, -1] = 2.0**-127
        return drawn

    return draw


def _nan_scales(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Some scales in float8_e8m0fnu are NaN, others 128, whose byte is next to no special one."""
    drawn = _every_code(rng, shapes, params, number_format)
    scale = np.where(rng.random(shapes["scale"]) < 0.5, np.nan, 128.0)
    drawn["scale"] = cast(scale, "float8_e8m0fnu")
    return drawn


def _with_scales(rng: np.random.Generator, shapes: Mapping[str, Shape], codes: Array) -> dict[str, Array]:
    drawn = {"codes": codes, "scale": 2.0 ** rng.uniform(-6.0, 2.0, shapes["scale"])}
    if "zero" in shapes:
        drawn["zero"] = cast(rng.integers(0, 16, shapes["zero"]), "uint4" if rng.random() < 0.5 else "int8")
    if "tensor_scale" in shapes:
        drawn["tensor_scale"] = rng.uniform(0.5, 2.0, shapes["tensor_scale"])
    return drawn


def _back(
    rows: int,
    cols: int,
    value_class: str,
    block: str = "token",
    to: str = "bfloat16",
    layout: str = "contiguous",
    absent: tuple[str, ...] = ("zero", "tensor_scale"),
) -> Structure:
    down, across = scale_shape(block, rows, cols)
    dims = {"rows": rows, "cols": cols, "scale_rows": down, "scale_cols": across, "one": 1, "single": 1}
    return Structure(dims, value_class, layout, {"block": block, "to": to}, absent)


def _random_back(rng: np.random.Generator) -> Structure:
    block = pick(rng, ("tensor", "token", "channel", "1x16", "1x32", "1x128"))
    absent = pick(rng, (("zero", "tensor_scale"), ("zero",), ("tensor_scale",), ()))
    rows, cols = int(pick(rng, SIZES[:12])), int(pick(rng, SIZES))
    return _back(rows, cols, "normal", block, pick(rng, ("bfloat16", "float16", "float32")), "contiguous", absent)


DEQUANTISE = Recipe(
    classes={
        "every_code": _every_code,
        **{name: _of_rows(name) for name in DEQUANTISE_CLASSES},
        "not_a_number": _special_codes,
        "scale_e8m0": _scale_kind("float8_e8m0fnu"),
        "scale_bfloat16": _scale_kind("bfloat16"),
        "scale_e4m3": _scale_kind("float8_e4m3fn"),
        "nan_scales": _nan_scales,
    },
    curated=(
        _back(7, 129, "every_code", "1x32", "float32"),
        _back(9, 65, "every_code", "token", "bfloat16", "padded"),
        _back(5, 130, "every_code", "1x64", "float16", "strided", ("tensor_scale",)),
        _back(6, 96, "every_code", "1x16", "bfloat16", "contiguous", ("zero",)),
        _back(6, 97, "every_code", "channel", "float32", "transposed", ()),
        _back(131, 130, "every_code", "128x128", "float32"),
        _back(5, 257, "normal", "1x128"),
        _back(4, 33, "uniform", "tensor", "float32"),
        _back(5, 31, "one_hot", "1x16"),
        _back(5, 63, "low_entropy", "1x32", "float16"),
        _back(3, 47, "heavy_tail"),
        _back(3, 15, "zeros", "channel"),
        _back(6, 33, "not_a_number", "token", "float32", "misaligned"),
        _back(7, 95, "scale_e8m0", "1x32", "float32"),
        _back(7, 95, "scale_bfloat16", "1x32", "float32", "padded", ("tensor_scale",)),
        _back(7, 47, "scale_e4m3", "1x16", "bfloat16", "contiguous", ("zero",)),
        _back(7, 95, "nan_scales", "1x32"),
        _back(1, 1, "every_code", "tensor", "float32"),
        _back(0, 5, "every_code"),
        _back(3, 0, "every_code", "1x32"),
        _back(261, 5, "every_code", "token", "float32"),
    ),
    random=_random_back,
)

RECIPES = {
    "quantise_mx": QUANTISE_MX,
    "quantise_nvfp4": QUANTISE_NVFP4,
    "quantise_int4": QUANTISE_INT4,
    "quantise_uint4": QUANTISE_UINT4,
    "dequantise": DEQUANTISE,
}

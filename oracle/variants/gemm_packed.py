"""Variants of matrix products of packed 4-bit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from oracle.formats import cast, round_to
from oracle.signature import Array
from oracle.variants.gemm_mx import BY_32, PLAIN, SCALES, Order, taken
from oracle.variants.gemm_scaled import FLAWED, FRAGILE, STYLES, Scales, Style, scaled_product
from oracle.variants.variant import control, mutant

F = np.float32
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F)
Unpack = Callable[[Array], Array]


def _low_first(packed: Array) -> Array:
    out = np.empty((packed.shape[0], 2 * packed.shape[1]), np.uint8)
    out[:, 0::2], out[:, 1::2] = packed & 15, packed >> 4
    return out


def _high_first(packed: Array) -> Array:
    out = np.empty((packed.shape[0], 2 * packed.shape[1]), np.uint8)
    out[:, 0::2], out[:, 1::2] = packed >> 4, packed & 15
    return out


def _halves(packed: Array) -> Array:
    """The low halves of all bytes first, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _plain(scale: Array, rows: int, layout: str, layouts: Mapping[str, str]) -> Array:
    """Scales in rows, in float32; ``layouts`` says what a layout is mistaken for."""
    return taken(scale, SCALES[layouts.get(layout, layout)])[:rows].astype(F)


def _mxfp4(
    style: Style,
    doc: str,
    unpack: Unpack = _low_first,
    table: Array = E2M1,
    unpack_b: Unpack | None = None,
    layouts: Mapping[str, str] = MappingProxyType({}),
    order: Order = BY_32,
) -> Callable[..., Array]:
    def matmul_a4w4_mxfp4(
        a: Array, b: Array, a_scale: Array, b_scale: Array, bias: Array | None,
        *, scale_layout: str, b_layout: str, out_dtype: str,
    ) -> Array:  # fmt: skip
        if b_layout == "aiter":
            b = taken(b, order)
        x, y = table[unpack(a)], table[(unpack_b or unpack)(b)].T
        scales = [_plain(s, len(of), scale_layout, layouts) for s, of in ((a_scale, a), (b_scale, b))]
        return scaled_product(style, x, y, scales[0], scales[1], 32, bias, out_dtype)

    matmul_a4w4_mxfp4.__doc__ = doc
    return matmul_a4w4_mxfp4


def _nvfp4(
    style: Style,
    doc: str,
    unpack: Unpack = _low_first,
    table: Array = E2M1,
    unpack_b: Unpack | None = None,
    tensor: Callable[[Array, Array], tuple[Any, Any]] = lambda a, b: (a, b),
    alpha_last: bool = False,
    layouts: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., Array]:
    def matmul_a4w4_nvfp4(
        a: Array,
        b: Array,
        a_scale: Array,
        b_scale: Array,
        a_tensor_scale: Array,
        b_tensor_scale: Array,
        bias: Array | None,
        *,
        scale_layout: str,
        out_dtype: str,
    ) -> Array:
        x, y = table[unpack(a)], table[(unpack_b or unpack)(b)].T
        left, right = tensor(a_tensor_scale, b_tensor_scale)
        first, second = (_plain(s, len(of), scale_layout, layouts) for s, of in ((a_scale, a), (b_scale, b)))
        if alpha_last:
            total = scaled_product(style, x, y, first, second, 16, None, "float32") * (left * right)
            return cast((total if bias is None else total + bias).astype(np.float64), out_dtype)
        return scaled_product(style, x, y, first * F(left), second * F(right), 16, bias, out_dtype)

    matmul_a4w4_nvfp4.__doc__ = doc
    return matmul_a4w4_nvfp4


def _halved(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    return a_scale / F(2), b_scale


def _next_block(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    return np.roll(a_scale, 1, axis=1), b_scale


def _wider_blocks(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    """Each second scale is that of the block before."""
    pick = np.arange(a_scale.shape[1]) // 2 * 2
    return a_scale[:, pick], b_scale[:, pick]


FLUSHED = np.where(np.abs(E2M1) == 0.5, F(0), E2M1)
OUT_OF_REACH = ("dequantised_in_bfloat16", "scales_in_bfloat16", "scales_in_float16")
SHARED_FLAWS: dict[str, Scales] = {"scale_of_the_next_block": _next_block, "blocks_twice_as_wide": _wider_blocks}
SHARED_DOCS = {
    "scale_of_the_next_block": "Activations have the scale of the block before theirs.",
    "blocks_twice_as_wide": "Scales are taken for blocks of twice the size.",
}

for _operator, _made in (("matmul_a4w4_mxfp4", _mxfp4), ("matmul_a4w4_nvfp4", _nvfp4)):
    for _name, (_style, _doc) in STYLES.items():
        control(_operator, name=_name)(_made(_style, _doc))
    for _name, (_style, _doc) in FLAWED.items():
        if _name not in OUT_OF_REACH and not (_operator == "matmul_a4w4_mxfp4" and _name == "scale_inverted"):
            mutant(_operator, name=_name)(_made(_style, _doc))
    for _name, (_style, _doc, _relation) in FRAGILE.items():
        mutant(_operator, name=_name, relation=_relation)(_made(_style, _doc))
    for _name, _scales in SHARED_FLAWS.items():
        mutant(_operator, name=_name)(_made(Style(scales=_scales), SHARED_DOCS[_name]))
    control(_operator, name="high_nibbles_first")(
        _made(
            Style(place="sums"), "Pairs of elements change places on both sides, which is another order.", _high_first
        )
    )
    mutant(_operator, name="weight_nibbles_swapped")(
        _made(Style(), "The weights' two codes of a byte are exchanged.", unpack_b=_high_first)
    )
    mutant(_operator, name="halves_of_bytes")(_made(Style(), "All low halves come before all high ones.", _halves))
    mutant(_operator, name="subnormal_code_flushed")(
        _made(Style(), "The code of 0.5 is read as 0.", _low_first, FLUSHED)
    )

    mutant(_operator, name="tiles_as_rows")(
        _made(Style(), "Scales in cuBLAS's tiles are read as rows.", layouts={"cublas": "rows"})
    )
    mutant(_operator, name="aiter_tiles_as_rows")(
        _made(Style(), "Scales in AITER's tiles are read as rows.", layouts={"aiter": "rows"})
    )

mutant("matmul_a4w4_mxfp4", name="weights_as_rows")(_mxfp4(Style(), "Weights in tiles are read as rows.", order=PLAIN))
mutant("matmul_a4w4_mxfp4", name="bias_of_e8m0_off_by_one")(
    _mxfp4(Style(scales=_halved), "Activation scales are half of what they are: an exponent's bias of 128.")
)
control("matmul_a4w4_nvfp4", name="alpha_last")(
    _nvfp4(Style(place="sums"), "The product of the tensors' scales is multiplied to the result.", alpha_last=True)
)
for _name, _tensor, _doc in (
    ("tensor_scale_left_out", lambda a, b: (a, F(1)), "The weights' tensor scale is left out."),
    ("tensor_scale_inverted", lambda a, b: (F(1) / a, b), "The activations are divided by their tensor scale."),
    ("tensor_scale_twice", lambda a, b: (a * a, b), "The activations' tensor scale is applied twice."),
    (
        "tensor_scale_in_bfloat16",
        lambda a, b: (round_to(a, "bfloat16").astype(F), b),
        "The activations' tensor scale is rounded to bfloat16.",
    ),
):
    mutant("matmul_a4w4_nvfp4", name=_name)(_nvfp4(Style(), _doc, tensor=_tensor))


def _w4a16(style: Style, doc: str, **faults: Any) -> Callable[..., Array]:
    """The weight-only product; `faults` overrides parameters, or says what else is wrong."""

    def matmul_w4a16(
        a: Array,
        b: Array,
        scale: Array,
        zero: Array | None,
        bias: Array | None,
        *,
        group: int,
        weights: str,
        first_nibble: str,
        zero_offset: int,
    ) -> Array:
        weights = faults.get("weights", weights)
        first_nibble = {"swapped": {"low": "high", "high": "low"}[first_nibble]}.get(
            faults.get("nibble", ""), first_nibble
        )
        zero_offset = faults.get("zero_offset", zero_offset)
        codes = (_low_first if first_nibble == "low" else _high_first)(b).astype(F)
        k = codes.shape[1]
        at = np.arange(k) // (group // faults.get("divisor", 1)) % max(scale.shape[1], 1)
        own = scale.astype(F) if not faults.get("scale_rolled") else np.roll(scale.astype(F), 1, axis=1)
        point: Any = F(faults.get("symmetric", 8)) if zero is None else zero.astype(F)[:, at] + F(zero_offset)
        if faults.get("zero_ignored"):
            point = F(8)
        x = a.astype(F)
        ones = np.ones((len(a), scale.shape[1]), F)
        add = None if bias is None else bias.astype(F)
        if faults.get("zero_after_scale"):
            whole = codes * own[:, at] - point
            return scaled_product(style, x, whole.T, ones, np.ones_like(own), group, add, a.dtype.name)
        whole = codes - point
        if weights == "exact" and faults.get("divisor", 1) == 1:
            return scaled_product(style, x, whole.T, ones, own, group, add, a.dtype.name)
        product = whole * own[:, at]
        rounded = product if weights == "exact" else round_to(product, weights).astype(F)
        return scaled_product(
            replace(style, place="codes"), x, rounded.T, ones, np.ones_like(own), group, add, a.dtype.name
        )

    matmul_w4a16.__doc__ = doc
    return matmul_w4a16


for _name, (_style, _doc) in STYLES.items():
    if _name != "mixed":
        control("matmul_w4a16", name=_name)(_w4a16(_style, _doc))
for _name in ("last_k_missed", "tail_missed", "stale_row", "narrow_accumulator", "narrow_partials", "nan_skipped"):
    mutant("matmul_w4a16", name=_name)(_w4a16(*FLAWED[_name]))
for _name in ("bias_left_out",):
    mutant("matmul_w4a16", name=_name)(_w4a16(*FLAWED[_name]))
mutant("matmul_w4a16", name="truncating_store", dtypes=("float16", "bfloat16"))(_w4a16(*FLAWED["truncating_store"]))
for _name, (_style, _doc, _relation) in FRAGILE.items():
    mutant("matmul_w4a16", name=_name, relation=_relation, dtypes=("float32",))(_w4a16(_style, _doc))
_made_w4a16 = partial(_w4a16, Style())
for _name, _faults, _doc in (
    ("nibbles_swapped", {"nibble": "swapped"}, "The two weights of a byte are exchanged."),
    ("zero_offset_ignored", {"zero_offset": 0}, "What a checkpoint left out of its zero points is not added back."),
    ("zero_offset_always", {"zero_offset": 1}, "1 is added to every zero point, as GPTQ's first format wants it."),
    ("zero_ignored", {"zero_ignored": True}, "Every group has 8 as its zero point."),
    ("symmetric_zero_of_7", {"symmetric": 7}, "Without zero points, 7 stands for 0."),
    ("zero_after_scale", {"zero_after_scale": True}, "The zero point is subtracted after the scale."),
    ("groups_half_as_wide", {"divisor": 2}, "Scales and zero points change every half group."),
    ("scale_of_the_next_group", {"scale_rolled": True}, "Weights have the scale of the group before theirs."),
    ("always_rounded", {"weights": "bfloat16"}, "Dequantised weights are rounded to bfloat16, asked or not."),
    ("never_rounded", {"weights": "exact"}, "Dequantised weights are never rounded."),
):
    mutant("matmul_w4a16", name=_name)(_made_w4a16(_doc, **_faults))

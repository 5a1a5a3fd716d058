"""Variants of dequantisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import cast, decode, encode, format_of, round_to
from oracle.ops.quant_blocks import block_shape, over_blocks
from oracle.signature import Array
from oracle.variants.arithmetic import F
from oracle.variants.variant import control, mutant

Product = Callable[[Array, Array, "Array | None"], Array]


def _in_order(codes: Array, scale: Array, whole: Array | None) -> Array:
    product = codes * scale
    return product if whole is None else product * whole


def _scales_first(codes: Array, scale: Array, whole: Array | None) -> Array:
    return codes * (scale if whole is None else scale * whole)


def _tensor_first(codes: Array, scale: Array, whole: Array | None) -> Array:
    return (codes if whole is None else codes * whole) * scale


def _numbers(codes: Array) -> Array:
    return codes.astype(F)


def _through_a_table(codes: Array) -> Array:
    """Codes through a table of the values of their bit patterns."""
    target = format_of(codes.dtype)
    return decode(encode(codes.astype(np.float64), target), target).astype(F)


def _e8m0(scale: Array) -> Array:
    """A scale in float8_e8m0fnu through the bits of float32: its byte is the exponent, 0 and 255 stand alone."""
    if scale.dtype.name != "float8_e8m0fnu":
        return scale.astype(F)
    byte = scale.view(np.uint8).astype(np.int32)
    bits = np.where(byte == 0, 0x00400000, np.where(byte == 255, 0x7F800001, byte << 23)).astype(np.int32)
    return bits.view(F)


def _wide(scale: Array) -> Array:
    return scale.astype(F)


def _variant(
    kind: Callable[..., Any],
    name: str,
    flaw: str,
    product: Product = _in_order,
    numbers: Callable[[Array], Array] = _numbers,
    scales: Callable[[Array], Array] = _wide,
    zeros: Callable[[Array, Array], Array] = lambda codes, zero: codes - zero,
    spread: Callable[[Array, str, int, int], Array] = over_blocks,
    store: Callable[[Array, str], Array] = lambda out, to: cast(out.astype(np.float64), to),
) -> None:
    def dequantise(
        codes: Array, scale: Array, zero: Array | None, tensor_scale: Array | None, *, block: str, to: str
    ) -> Array:
        number = numbers(codes)
        if zero is not None:
            number = zeros(number, spread(zero.astype(F), block, *codes.shape))
        return store(product(number, spread(scales(scale), block, *codes.shape), tensor_scale), to)

    dequantise.__doc__ = flaw
    kind("dequantise", name=name)(dequantise)


def _repeated(scale: Array, block: str, rows: int, cols: int) -> Array:
    high, wide = block_shape(block, rows, cols)
    return np.repeat(np.repeat(scale, high, axis=0), wide, axis=1)[:rows, :cols]


def _tile_by_tile(scale: Array, block: str, rows: int, cols: int) -> Array:
    high, wide = block_shape(block, rows, cols)
    out = np.zeros((rows, cols), scale.dtype)
    for i, j in np.ndindex(scale.shape):
        out[i * high : (i + 1) * high, j * wide : (j + 1) * wide] = scale[i, j]
    return out


_variant(control, "in_order", "Codes times scale, times the tensor's scale.")
_variant(control, "scales_first", "The scales are multiplied first.", product=_scales_first)
_variant(control, "tensor_first", "The tensor's scale comes first.", product=_tensor_first)
_variant(control, "table_of_values", "Codes are looked up in a table.", numbers=_through_a_table, spread=_repeated)
_variant(control, "bits_of_scales", "Bytes of scales become the exponents of float32.", scales=_e8m0)
_variant(control, "tile_by_tile", "One block after another.", spread=_tile_by_tile)
_variant(
    control,
    "zeros_by_distribution",
    "The zero point is subtracted as a whole matrix in float64.",
    zeros=lambda codes, zero: (codes.astype(np.float64) - zero).astype(F),
)


def _neighbour(scale: Array, block: str, rows: int, cols: int) -> Array:
    spread: Array = over_blocks(np.roll(scale, 1, axis=1 if scale.shape[1] > 1 else 0), block, rows, cols)
    return spread


def _transposed(scale: Array, block: str, rows: int, cols: int) -> Array:
    """Scales are read as if they lay column by column."""
    spread: Array = over_blocks(scale.reshape(scale.shape[::-1]).T, block, rows, cols)
    return spread


def _half_blocks(scale: Array, block: str, rows: int, cols: int) -> Array:
    _, wide = block_shape(block, rows, cols)
    columns = np.minimum(2 * np.arange(cols) // max(wide, 1), max(scale.shape[1] - 1, 0))
    return (
        over_blocks(scale, block, rows, cols)
        if block in ("tensor", "token")
        else scale[np.arange(rows) // block_shape(block, rows, cols)[0]][:, columns]
    )


def _compared_with_128(scale: Array) -> Array:
    """NaN is looked for by the value 128."""
    wide = scale.astype(F)
    if scale.dtype.name != "float8_e8m0fnu":
        return wide
    return np.where(wide == 128, F(np.nan), np.where(np.isnan(wide), F(np.inf), wide))


def _zero_byte_is_zero(scale: Array) -> Array:
    wide = scale.astype(F)
    return np.where(wide == F(2.0**-127), F(0), wide)


_variant(mutant, "divided", "Codes are divided by their scale.", product=lambda c, s, t: _in_order(c, F(1) / s, t))
_variant(mutant, "neighbouring_scale", "Each block has the scale of its neighbour.", spread=_neighbour)
_variant(mutant, "scales_transposed", "Scales are read column by column.", spread=_transposed)
_variant(mutant, "half_blocks", "Blocks are taken to be half as wide.", spread=_half_blocks)
_variant(mutant, "zero_added", "The zero point is added.", zeros=lambda codes, zero: codes + zero)
_variant(mutant, "zero_left_out", "The zero point is left out.", zeros=lambda codes, zero: codes)
_variant(
    mutant, "tensor_scale_left_out", "The tensor's scale is left out.", product=lambda c, s, t: _in_order(c, s, None)
)
_variant(
    mutant,
    "tensor_scale_divides",
    "The tensor's scale divides.",
    product=lambda c, s, t: c * s if t is None else c * s / t,
)
_variant(mutant, "nan_by_value", "The scale 128 is taken for NaN, and NaN for infinity.", scales=_compared_with_128)
_variant(mutant, "zero_byte_is_zero", "The smallest scale counts as 0.", scales=_zero_byte_is_zero)
_variant(
    mutant,
    "scale_in_bfloat16",
    "Scales are rounded to bfloat16.",
    scales=lambda scale: round_to(scale.astype(np.float64), "bfloat16").astype(F),
)
_variant(
    mutant,
    "rounded_twice",
    "The product is rounded to bfloat16 before anything else.",
    store=lambda out, to: cast(round_to(out, "bfloat16"), to),
)
_variant(
    mutant,
    "truncated",
    "The result is rounded towards zero.",
    store=lambda out, to: cast(out.astype(np.float64), to, "toward_zero" if to != "float32" else "nearest_even"),
)

"""Variants of matrix products of 8-bit codes."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from oracle.signature import Array
from oracle.variants.gemm_scaled import FLAWED, FRAGILE, STYLES, Style, scaled_product
from oracle.variants.variant import control, mutant

F = np.float32
Codes = Callable[[Array], Array]


def _values(codes: Array) -> Array:
    return codes.astype(F)


def a8w8(style: Style, doc: str, values: Codes = _values) -> Callable[..., Array]:
    def matmul_a8w8(a: Array, b: Array, a_scale: Array, b_scale: Array, bias: Array | None, *, out_dtype: str) -> Array:
        per_row = a_scale[:, np.newaxis], b_scale[:, np.newaxis]
        return scaled_product(style, values(a), values(b).T, *per_row, max(a.shape[1], 1), bias, out_dtype)

    matmul_a8w8.__doc__ = doc
    return matmul_a8w8


Widen = Callable[[Array, int, int], Array]


def _every_row(b_scale: Array, block: int, rows: int) -> Array:
    """A row of scales for each output channel."""
    return np.repeat(b_scale, block, axis=0)[:rows]


def block_scaled(style: Style, doc: str, values: Codes = _values, widen: Widen = _every_row) -> Callable[..., Array]:
    def matmul_a8w8_block_scaled(
        a: Array, b: Array, a_scale: Array, b_scale: Array, bias: Array | None, *, block: int, out_dtype: str
    ) -> Array:
        scales = a_scale.astype(F), widen(b_scale.astype(F), block, len(b))
        return scaled_product(style, values(a), values(b).T, *scales, block, bias, out_dtype)

    matmul_a8w8_block_scaled.__doc__ = doc
    return matmul_a8w8_block_scaled


def _as_unsigned(codes: Array) -> Array:
    return codes.view(np.uint8).astype(F)


OTHER_FAMILY = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fnuz,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2,
}


def _as_other_family(codes: Array) -> Array:
    other: Array = codes.view(OTHER_FAMILY[codes.dtype.name])
    return other.astype(F)


for _operator, _made in (("matmul_a8w8", a8w8), ("matmul_a8w8_block_scaled", block_scaled)):
    for _name, (_style, _doc) in STYLES.items():
        control(_operator, name=_name)(_made(_style, _doc))
    for _name, (_style, _doc) in FLAWED.items():
        mutant(_operator, name=_name)(_made(_style, _doc))
    for _name, (_style, _doc, _relation) in FRAGILE.items():
        mutant(_operator, name=_name, relation=_relation)(_made(_style, _doc))
    mutant(_operator, name="other_family", dtypes=tuple(OTHER_FAMILY))(
        _made(Style(), "Codes are read in the other float8 family, at half or twice their value.", _as_other_family)
    )
    mutant(_operator, name="unsigned", dtypes=("int8",))(
        _made(Style(), "Codes are read as unsigned numbers.", _as_unsigned)
    )


@control("matmul_a8w8", dtypes=("int8",))
def int32_accumulator(
    a: Array, b: Array, a_scale: Array, b_scale: Array, bias: Array | None, *, out_dtype: str
) -> Array:
    """The sum is an integer, which meets the scales as float32."""
    whole = (a.astype(np.int32) @ b.T.astype(np.int32)).astype(F)
    one = Style(lambda x, y: whole, "pairs")
    per_row = a_scale[:, np.newaxis], b_scale[:, np.newaxis]
    if not a.shape[1]:
        return a8w8(Style(), "")(a, b, a_scale, b_scale, bias, out_dtype=out_dtype)
    return scaled_product(one, a.astype(F), b.T.astype(F), *per_row, a.shape[1], bias, out_dtype)


def _last_block_dropped(b_scale: Array, block: int, rows: int) -> Array:
    """Scales of whole blocks only; the rest has the last whole block's."""
    whole = max(rows // block, 1)
    return np.repeat(b_scale[np.minimum(np.arange(len(b_scale)), whole - 1)], block, axis=0)[:rows]


def _transposed(b_scale: Array, block: int, rows: int) -> Array:
    return _every_row(b_scale.reshape(b_scale.shape[::-1]).T, block, rows)


def _half_blocks(b_scale: Array, block: int, rows: int) -> Array:
    return b_scale[np.minimum(np.arange(rows) // (block // 2), len(b_scale) - 1)] if len(b_scale) else b_scale


def _neighbours(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    return np.roll(a_scale, 1, axis=1), b_scale


for _name, _widen, _doc in (
    (
        "tail_of_n_shares_scale",
        _last_block_dropped,
        "Columns beyond the last whole block have the scale before theirs.",
    ),
    ("scales_transposed", _transposed, "The weights' scales are read as if they lay (k_blocks, n_blocks)."),
    ("half_blocks_of_n", _half_blocks, "The weights' scales change every half block of columns."),
):
    mutant("matmul_a8w8_block_scaled", name=_name)(block_scaled(Style(), _doc, widen=_widen))
mutant("matmul_a8w8_block_scaled", name="scale_of_the_next_block")(
    block_scaled(Style(scales=_neighbours), "Activations have the scale of the block before theirs.")
)

"""Variants of products of microscaling formats, and of codes in tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.signature import Array
from oracle.variants.gemm_scaled import FLAWED, FRAGILE, STYLES, Style, scaled_product
from oracle.variants.variant import control, mutant

F = np.float32
Order = Callable[[int, int], Array]


# Where each element of a plain matrix lies in a shuffled one, by its row and column.


def aiter_scales(m: int, g: int) -> Array:
    """Tiles of 32 × 8."""
    row, group = np.indices((m, g))
    within = ((group % 4 * 16 + row % 16) * 2 + group % 8 // 4) * 2 + row % 32 // 16
    return np.asarray((row // 32 * (g // 8) + group // 8) * 256 + within)


def cublas_scales(m: int, g: int) -> Array:
    """Tiles of 128 × 4."""
    row, group = np.indices((m, g))
    return np.asarray((row // 128 * (g // 4) + group // 4) * 512 + row % 32 * 16 + row % 128 // 32 * 4 + group % 4)


def tiles(wide: int, vector: int) -> Order:
    """Tiles of 16 × wide."""

    def place(n: int, k: int) -> Array:
        row, column = np.indices((n, k))
        within = column % wide // vector * 16 * vector + row % 16 * vector + column % vector
        return np.asarray((row // 16 * (k // wide) + column // wide) * 16 * wide + within)

    return place


def plain(m: int, g: int) -> Array:
    return np.arange(m * g).reshape(m, g)


PLAIN: Order = plain
SCALES: dict[str, Order] = {"rows": plain, "aiter": aiter_scales, "cublas": cublas_scales}


def taken(shuffled: Array, order: Order) -> Array:
    """The plain matrix."""
    return np.ascontiguousarray(shuffled).reshape(-1)[order(*shuffled.shape)]


@dataclass(frozen=True)
class Reading:
    """How operands are read; the defaults are right.

    Attributes
    ----------
    scales : mapping
        The layout that scales are read in, by the one they have.
    b : function, optional
        The order that b is read in.
    block : int
        How many elements share a scale; 64 for twice as many.
    halved : bool
        Whether an exponent's bias is off by one.
    """

    scales: tuple[tuple[str, str], ...] = ()
    b: Order | None = None
    block: int = 32
    halved: bool = False


USUAL = Reading()
BY_32 = tiles(32, 16)


def _mx(style: Style, doc: str, reading: Reading = USUAL) -> Callable[..., Array]:
    def matmul_mx(
        a: Array, b: Array, a_scale: Array, b_scale: Array, bias: Array | None,
        *, scale_layout: str, b_layout: str, out_dtype: str,
    ) -> Array:  # fmt: skip
        order = SCALES[dict(reading.scales).get(scale_layout, scale_layout)]
        each = 2 if b.dtype.name == "float4_e2m1fn" else 1
        if b_layout == "aiter":
            b = taken(b, reading.b or tiles(32 * each, 16 * each))
        left, right = taken(a_scale, order)[: len(a)].astype(F), taken(b_scale, order)[: len(b)].astype(F)
        if reading.halved:
            left = left / F(2)
        if reading.block != 32:
            pick = np.arange(left.shape[1]) // 2 * 2
            left, right = left[:, pick], right[:, pick]
        return scaled_product(style, a.astype(F), b.astype(F).T, left, right, 32, bias, out_dtype)

    matmul_mx.__doc__ = doc
    return matmul_mx


def _shuffled(style: Style, doc: str, order: Order = BY_32) -> Callable[..., Array]:
    def matmul_a8w8_preshuffled(
        a: Array, b: Array, a_scale: Array, b_scale: Array, *, scales: str, out_dtype: str
    ) -> Array:
        b = taken(b, order)
        if scales == "channel":
            factors, block = (a_scale[:, np.newaxis], b_scale[:, np.newaxis]), max(a.shape[1], 1)
        else:
            factors, block = (a_scale, np.repeat(b_scale, 128, axis=0)[: len(b)]), 128
        return scaled_product(style, a.astype(F), b.astype(F).T, *factors, block, None, out_dtype)

    matmul_a8w8_preshuffled.__doc__ = doc
    return matmul_a8w8_preshuffled


EXACT_HERE = ("dequantised_in_bfloat16", "scales_in_bfloat16", "scales_in_float16", "scale_inverted")
BIAS = ("bias_before_scales", "bias_left_out")
for _name, (_style, _doc) in STYLES.items():
    control("matmul_mx", name=_name)(_mx(_style, _doc))
    control("matmul_a8w8_preshuffled", name=_name)(_shuffled(_style, _doc))
for _name, (_style, _doc) in FLAWED.items():
    if _name not in EXACT_HERE:
        mutant("matmul_mx", name=_name)(_mx(_style, _doc))
    if _name not in (*BIAS, "tail_missed"):  # k is a multiple of 32
        _dtypes = ("float8_e4m3fn", "float8_e4m3fnuz") if _name == "nan_skipped" else ()
        mutant("matmul_a8w8_preshuffled", name=_name, dtypes=_dtypes)(_shuffled(_style, _doc))
for _name, (_style, _doc, _relation) in FRAGILE.items():
    mutant("matmul_mx", name=_name, relation=_relation)(_mx(_style, _doc))
    mutant("matmul_a8w8_preshuffled", name=_name, relation=_relation)(_shuffled(_style, _doc))

for _name, _doc, _reading in (
    ("scales_not_shuffled", "Scales of cuBLAS's layout are read as rows.", Reading((("cublas", "rows"),))),
    ("aiter_scales_as_rows", "Scales of AITER's layout are read as rows.", Reading((("aiter", "rows"),))),
    ("b_not_shuffled", "Weights in tiles are read as rows.", Reading(b=PLAIN)),
    ("vectors_half_as_long", "Tiles of weights are read by vectors half as long.", Reading(b=tiles(32, 8))),
    ("blocks_twice_as_wide", "Scales are taken for blocks of twice the size.", Reading(block=64)),
    ("bias_of_e8m0_off_by_one", "Activation scales are half of what they are.", Reading(halved=True)),
):
    mutant("matmul_mx", name=_name)(_mx(Style(), _doc, _reading))
mutant("matmul_a8w8_preshuffled", name="b_not_shuffled")(_shuffled(Style(), "Weights are read as rows.", PLAIN))
mutant("matmul_a8w8_preshuffled", name="tiles_of_64")(
    _shuffled(Style(), "Weights are read in tiles of 16 × 64.", lambda n, k: tiles(64, 16)(n, k) % max(n * k, 1))
)
mutant("matmul_a8w8_preshuffled", name="vectors_half_as_long")(
    _shuffled(Style(), "Tiles are read by vectors half as long.", tiles(32, 8))
)

"""Matrix products of microscaling formats in any pair, their scales and weights in rows or in tiles; shuffled fp8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.scale_tiles import ScaleLayout, factors, scale_dims, scales_fit
from oracle.ops.shuffles import unshuffled_weight
from oracle.signature import Array, DtypeOf, Floats, Output
from oracle.vocabulary import accumulate, scaled_matmul

ELEMENTS = ("float8_e5m2", "float8_e4m3fn", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
BLOCK = 32


def tile_of(dtype: str) -> tuple[int, int]:
    """``inner`` and ``vector`` of AITER's tiles of 16 × 32 bytes, two e2m1 codes in a byte."""
    each = 2 if dtype == "float4_e2m1fn" else 1
    return 16 * each, 16 * each


def _fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    problem = scales_fit(sizes, params["scale_layout"], sizes["k"], BLOCK)
    if problem:
        return problem
    if params["b_layout"] == "aiter" and (sizes["n"] % 16 or sizes["k"] % 64):
        return f"b of {sizes['n']}×{sizes['k']} has no whole tiles of 16×64; pad it"
    return None


@operator(family="gemm", check=_fits, dtypes=ELEMENTS)
def matmul_mx(
    a: Annotated[Array, Floats("m k")],
    b: Annotated[Array, Floats("n k", dtype=ELEMENTS)],
    a_scale: Annotated[Array, Floats(scale_dims("m"), dtype="float8_e8m0fnu", chosen_by="scale_layout")],
    b_scale: Annotated[Array, Floats(scale_dims("n"), dtype="float8_e8m0fnu", chosen_by="scale_layout")],
    bias: Annotated[Array, Floats("n", dtype="float32")] | None = None,
    *,
    scale_layout: ScaleLayout = "rows",
    b_layout: Literal["rows", "aiter"] = "rows",
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
    b_dtype: Annotated[str, DtypeOf("b")],
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """Product of microscaling matrices: ``out[i, j] = Σ_k a[i, k]·b[j, k] · a_scale[i, k/32]·b_scale[j, k/32]``.

    MXFP8 × MXFP8, MXFP8 × MXFP4 (a8w4), MXFP6 and every other pair; two packed MXFP4 matrices are
    `matmul_a4w4_mxfp4`.

    Parameters
    ----------
    a : array (m, k)
        Elements of activations, one each: float8_e4m3fn, float8_e5m2, float6_e2m3fn, float6_e3m2fn or float4_e2m1fn.
        Packing of 4 and 6 bits into bytes is not part of this operator.
    b : array (n, k)
        Elements of weights, a row per output channel; any of these formats.
    a_scale, b_scale : float8_e8m0fnu arrays
        A power of two for each 32 elements along k; code 0xFF is a NaN, which its whole block becomes; code 0 is
        2**-127, not 0. (m, k_blocks) and (n, k_blocks) in ``rows``; else as ``scale_layout`` says.
    bias : float32 array (n,), optional
        Added to every row.
    scale_layout : "rows", "aiter" or "cublas"
        Order of the scales. ``aiter``: as `shuffle_scale` makes it, rows filled up to a multiple of 256 and blocks to
        one of 8 with anything, NaN too (``gemm_a4w4``). ``cublas``: tiles of 128 × 4, rows i, i + 32, i + 64 and i + 96
        of a tile side by side (cuBLAS, CUTLASS, FlashInfer), filled up with code 0.
    b_layout : "rows" or "aiter"
        Order of b's elements: as they are, or as `shuffle_weight` makes it with (16, 16) tiles of bytes, in which e2m1
        codes lie two by two; n a multiple of 16 and k of 64.
    out_dtype : "bfloat16", "float16" or "float32"
        The output's dtype.

    Returns
    -------
    out : array (m, n)
        ``out_dtype``.

    Notes
    -----
    Rounding points: the additions, in the compute type, in any order; the result once to ``out_dtype``. Products and
    scales are exact within the range of normal numbers.

    Raises
    ------
    InputError
        The scales' shape is not that of their layout, b has no whole tiles, or shapes and dtypes that disagree.

    Source: OCP Microscaling Formats (MX) Specification 1.0, section 6.2; AITER, ``gemm_a4w4`` and ``gemm_a8w4_mxfp8``;
    cuBLAS 12.9, section "1D block scaling factors layout"; PTX ISA 8.7, ``mma`` with ``.kind::mxf8f6f4``.

    Examples
    --------
    >>> import ml_dtypes
    >>> a = np.array([[448.0, 0.5]]).astype(ml_dtypes.float8_e4m3fn)
    >>> b = np.array([[0.5, 6.0]]).astype(ml_dtypes.float4_e2m1fn)
    >>> two, half = (np.array([[power]]).astype(ml_dtypes.float8_e8m0fnu) for power in (2.0, 0.5))
    >>> matmul_mx(a, b, two, half)
    array([[227.]])
    """
    k = a.shape[1]
    if b_layout == "aiter":
        b = unshuffled_weight(b, *tile_of(b_dtype))
    a_factor = factors(a_scale, scale_layout, len(a), k, BLOCK)
    b_factor = factors(b_scale, scale_layout, len(b), k, BLOCK)
    product = scaled_matmul(a, (a_factor,), b.T, (b_factor.T,))
    out: Array = product if bias is None else accumulate(product, bias)
    return out


CODES = ("float8_e4m3fn", "float8_e4m3fnuz", "int8")
A_SCALES = {"channel": "m", "block": "m k_blocks"}
B_SCALES = {"channel": "n", "block": "n_blocks k_blocks"}


def _tiles_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    n, k = sizes["n"], sizes["k"]
    if n % 16 or k % 32:
        return f"b of {n}×{k} has no whole tiles of 16×32; pad it"
    for dim in ("n", "k") if params["scales"] == "block" else ():
        needed = -(-sizes[dim] // 128)
        if sizes[f"{dim}_blocks"] != needed:
            return f"{dim} = {sizes[dim]} has {needed} blocks of 128, but the scales have {sizes[f'{dim}_blocks']}"
    return None


@operator(family="gemm", check=_tiles_fit, dtypes=CODES)
def matmul_a8w8_preshuffled(
    a: Annotated[Array, Floats("m k")],
    b: Annotated[Array, Floats("n k")],
    a_scale: Annotated[Array, Floats(A_SCALES, dtype="float32", chosen_by="scales")],
    b_scale: Annotated[Array, Floats(B_SCALES, dtype="float32", chosen_by="scales")],
    *,
    scales: Literal["channel", "block"] = "channel",
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """Product of 8-bit codes, b in tiles of 16 × 32: ``out[i, j] = Σ_k a[i, k]·B[j, k] · a_scale·b_scale``.

    B is what `shuffle_weight` with vectors of 16 made b of.

    Parameters
    ----------
    a : array (m, k)
        Codes of activations: float8_e4m3fn, float8_e4m3fnuz or int8.
    b : array (n, k)
        Codes of weights, shuffled; a's dtype; n a multiple of 16, k of 32.
    a_scale : float32 array (m,) or (m, k_blocks)
        A scale per token, or for each 1 × 128 of a. AITER's kernels for blocks take it in column-major order, which is
        its strides.
    b_scale : float32 array (n,) or (n_blocks, k_blocks)
        A scale per output channel, or for each 128 × 128 of B; these are not shuffled.
    scales : "channel" or "block"
        Granularity: as in `matmul_a8w8`, or as in `matmul_a8w8_block_scaled`.
    out_dtype : "bfloat16", "float16" or "float32"
        The output's dtype.

    Returns
    -------
    out : array (m, n)
        ``out_dtype``.

    Notes
    -----
    Rounding points: as in `matmul_a8w8` and `matmul_a8w8_block_scaled`.

    Raises
    ------
    InputError
        b has no whole tiles, scales that do not cover it, or shapes and dtypes that disagree.

    Source: AITER, ``gemm_a8w8_bpreshuffle`` and ``gemm_a8w8_blockscale_bpreshuffle``, ``shuffle_weight``.

    Examples
    --------
    >>> a, b = np.zeros((1, 32), np.int8), np.zeros((16, 32), np.int8)
    >>> a[0, 16], b[8, 16] = 2, 5  # byte 272: the first of row 1 in the second half of the tile, k = 16
    >>> one, half = np.ones(1, np.float32), np.full(16, 0.5, np.float32)
    >>> matmul_a8w8_preshuffled(a, b, one, half)[0, :3]
    array([0., 5., 0.])
    """
    plain = unshuffled_weight(b, 16, 16)
    if scales == "channel":
        return _scaled(a, a_scale[:, np.newaxis], plain, b_scale[:, np.newaxis])
    k = a.shape[1]
    a_factor = np.repeat(a_scale, 128, axis=1)[:, :k]
    b_factor = np.repeat(np.repeat(b_scale, 128, axis=0), 128, axis=1)[: len(b), :k]
    return _scaled(a, a_factor, plain, b_factor)


def _scaled(a: Any, a_factor: Any, b: Any, b_factor: Any) -> Array:
    out: Array = scaled_matmul(a, (a_factor,), b.T, (b_factor.T,))
    return out

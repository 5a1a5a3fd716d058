"""Matrix products of packed 4-bit codes: MXFP4, NVFP4, and 4-bit weights under 16-bit activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.formats import decode
from oracle.operator import operator
from oracle.ops.scale_tiles import ScaleLayout, factors, scale_dims, scales_fit
from oracle.ops.shuffles import unshuffled_weight
from oracle.signature import Array, Floats, Integers, Output
from oracle.vocabulary import accumulate, round_to_format, scaled_matmul

SYMMETRIC_ZERO = 8
"""The code that stands for 0 where no zero points are given."""


def unpacked(packed: Array, high_first: bool = False) -> Array:
    """Two codes of 4 bits for each byte, along the last axis."""
    low, high = packed & 15, packed >> 4
    pair = (high, low) if high_first else (low, high)
    return np.stack(pair, axis=-1).reshape(*packed.shape[:-1], 2 * packed.shape[-1])


def _blocks_fit(block: int) -> Callable[[Mapping[str, int], Mapping[str, Any]], str | None]:
    def check(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
        if sizes.get("one", 1) != 1:
            return f"a tensor has one scale, not {sizes['one']}"
        n, half_k = sizes["n"], sizes["half_k"]
        if params.get("b_layout") == "aiter" and (n % 16 or half_k % 32):
            return f"b of {n}×{half_k} bytes has no whole tiles of 16×32; pad it"
        return scales_fit(sizes, params["scale_layout"], 2 * half_k, block)

    return check


@operator(family="gemm", check=_blocks_fit(32), dtypes=("float8_e8m0fnu",))
def matmul_a4w4_mxfp4(
    a: Annotated[Array, Integers("m half_k", below=256, dtype="uint8")],
    b: Annotated[Array, Integers("n half_k", below=256, dtype="uint8")],
    a_scale: Annotated[Array, Floats(scale_dims("m"), chosen_by="scale_layout")],
    b_scale: Annotated[Array, Floats(scale_dims("n"), chosen_by="scale_layout")],
    bias: Annotated[Array, Floats("n", dtype="float32")] | None = None,
    *,
    scale_layout: ScaleLayout = "rows",
    b_layout: Literal["rows", "aiter"] = "rows",
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """Product of MXFP4 matrices: ``out[i, j] = Σ_k e2m1(a[i, k])·e2m1(b[j, k]) · a_scale[i, k/32]·b_scale[j, k/32]``.

    Parameters
    ----------
    a : uint8 array (m, half_k)
        Two float4_e2m1fn codes per byte along k, the element with the even index in the low four bits.
    b : uint8 array (n, half_k)
        Likewise, a row per output channel.
    a_scale, b_scale : float8_e8m0fnu arrays
        A power of two for each block of 32 elements along k; the last block may be a part of one. Code 0xFF is a NaN,
        which its whole block becomes; code 0 is 2**-127, not 0. (m, k_blocks) and (n, k_blocks) in ``rows``.
    bias : float32 array (n,), optional
        Added to every row.
    scale_layout : "rows", "aiter" or "cublas"
        Order and padding of the scales, as in `matmul_mx`: ``aiter`` for ``gemm_a4w4``.
    b_layout : "rows" or "aiter"
        Order of b's bytes: as they are, or as `shuffle_weight` makes it with (16, 16) tiles; n a multiple of 16 and
        half_k of 32.
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
        The scales' shape is not that of k's blocks in their layout, b has no whole tiles, or shapes and dtypes that
        disagree.

    Source: OCP Microscaling Formats (MX) Specification 1.0, sections 5.3.3 and 6.2; AITER, ``gemm_a4w4``.

    Examples
    --------
    >>> scale = np.array([[2.0]]).astype("float8_e8m0fnu")
    >>> matmul_a4w4_mxfp4(np.array([[0x42]], np.uint8), np.array([[0x72]], np.uint8), scale, scale)
    array([[52.]])
    """
    if b_layout == "aiter":
        b = unshuffled_weight(b, 16, 16)
    left, right = _per_element(a_scale, scale_layout, 32, a), _per_element(b_scale, scale_layout, 32, b)
    return _product(a, (left,), b, (right,), bias)


@operator(family="gemm", check=_blocks_fit(16), dtypes=("float8_e4m3fn",))
def matmul_a4w4_nvfp4(
    a: Annotated[Array, Integers("m half_k", below=256, dtype="uint8")],
    b: Annotated[Array, Integers("n half_k", below=256, dtype="uint8")],
    a_scale: Annotated[Array, Floats(scale_dims("m"), chosen_by="scale_layout")],
    b_scale: Annotated[Array, Floats(scale_dims("n"), chosen_by="scale_layout")],
    a_tensor_scale: Annotated[Array, Floats("one", dtype="float32")],
    b_tensor_scale: Annotated[Array, Floats("one", dtype="float32")],
    bias: Annotated[Array, Floats("n", dtype="float32")] | None = None,
    *,
    scale_layout: ScaleLayout = "rows",
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """Product of NVFP4 matrices: ``out[i, j] = g·Σ_k e2m1(a[i, k])·e2m1(b[j, k]) · a_scale[i, k/16]·b_scale[j, k/16]``.

    Parameters
    ----------
    a : uint8 array (m, half_k)
        Two float4_e2m1fn codes per byte along k, the element with the even index in the low four bits.
    b : uint8 array (n, half_k)
        Likewise, a row per output channel.
    a_scale, b_scale : float8_e4m3fn arrays
        A scale of at least 0 for each block of 16 elements along k; hardware ignores its sign bit. (m, k_blocks) and
        (n, k_blocks) in ``rows``.
    a_tensor_scale, b_tensor_scale : float32 arrays (1,)
        What all of a and all of b is multiplied by; g is their product. Libraries that divide by global scales when
        they quantise (FlashInfer, vLLM) hand over 1 / (that product) as alpha.
    bias : float32 array (n,), optional
        Added to every row, after all scales.
    scale_layout : "rows", "aiter" or "cublas"
        Order and padding of the scales, as in `matmul_mx`: ``cublas`` in cuBLAS, CUTLASS, FlashInfer and vLLM.
    out_dtype : "bfloat16", "float16" or "float32"
        The output's dtype.

    Returns
    -------
    out : array (m, n)
        ``out_dtype``.

    Notes
    -----
    Rounding points: the additions and the products with scales, in the compute type; the result once to
    ``out_dtype``. Every scale may be multiplied to codes, to sums of blocks or to other scales first; g to the whole.

    Raises
    ------
    InputError
        The scales' shape is not that of k's blocks in their layout, or shapes and dtypes that disagree.

    Source: NVIDIA, "Introducing NVFP4 for Efficient and Accurate Low-Precision Inference" (2025); PTX ISA 8.7,
    ``mma`` with ``.kind::mxf4nvf4``.

    Examples
    --------
    >>> scale, tensor = np.array([[1.5]]).astype("float8_e4m3fn"), np.array([2.0], np.float32)
    >>> matmul_a4w4_nvfp4(np.array([[0x42]], np.uint8), np.array([[0x72]], np.uint8), scale, scale, tensor, tensor)
    array([[117.]])
    """
    left = _per_element(a_scale, scale_layout, 16, a), a_tensor_scale
    right = _per_element(b_scale, scale_layout, 16, b), b_tensor_scale[:, np.newaxis]
    return _product(a, left, b, right, bias)


def _per_element(scale: Array, layout: str, block: int, packed: Array) -> Array:
    """A scale for each unpacked element."""
    rows, half_k = packed.shape
    each: Array = factors(scale, layout, rows, 2 * half_k, block)
    return each


def _product(a: Array, left: tuple[Any, ...], b: Array, right: tuple[Any, ...], bias: Array | None) -> Array:
    """The product of packed e2m1 codes with scales for each of their elements."""
    a_values, b_values = (decode(unpacked(packed), "float4_e2m1fn") for packed in (a, b))
    product = scaled_matmul(a_values, left, b_values.T, tuple(scale.T for scale in right))
    out: Array = product if bias is None else accumulate(product, bias)
    return out


def _groups_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    k, groups, size = sizes["k"], sizes["groups"], params["group"]
    if k != 2 * sizes["half_k"]:
        return f"k = {k} needs half_k = k / 2 bytes of codes for each channel, not {sizes['half_k']}"
    needed = -(-k // size)
    return None if groups == needed else f"k = {k} has {needed} groups of {size}, but the scales have {groups}"


@operator(family="gemm", check=_groups_fit, dtypes=("float16", "bfloat16", "float32"))
def matmul_w4a16(
    a: Annotated[Array, Floats("m k")],
    b: Annotated[Array, Integers("n half_k", below=256, dtype="uint8")],
    scale: Annotated[Array, Floats("n groups")],
    zero: Annotated[Array, Integers("n groups", below=16, dtype="uint8")] | None = None,
    bias: Annotated[Array, Floats("n")] | None = None,
    *,
    group: Literal[128, 64, 32] = 128,
    weights: Literal["exact", "float16", "bfloat16"] = "exact",
    first_nibble: Literal["low", "high"] = "low",
    zero_offset: Literal[0, 1] = 0,
) -> Annotated[Array, Output("out", like="a")]:
    """Activations times 4-bit weights: ``out[i, j] = Σ_k a[i, k] · (b[j, k] - zero[j, k/G])·scale[j, k/G] + bias[j]``.

    Parameters
    ----------
    a : array (m, k)
        Activations: float16, bfloat16 or float32.
    b : uint8 array (n, half_k)
        Weights of 0 … 15, two per byte along k, a row per output channel.
    scale : array (n, groups)
        A scale for each group of G weights along k; a's dtype. The last group may be a part of one.
    zero : uint8 array (n, groups), optional
        The weight that stands for 0 in each group, 0 … 15; without it that is 8 in all of them.
    bias : array (n,), optional
        Added to every row; a's dtype.
    group : 128, 64 or 32
        G.
    weights : "exact", "float16" or "bfloat16"
        Whether a dequantised weight is rounded to a 16-bit dtype before it meets a. AWQ's, GPTQ's and Marlin's kernels
        do so, to a's dtype, because tensor cores take it; kernels that multiply sums of groups by scales do not.
    first_nibble : "low" or "high"
        Which four bits of a byte hold the weight with the even index. AWQ's and GPTQ's words of 32 bits, taken apart,
        are of the first kind but for AWQ's permutation of channels.
    zero_offset : 0 or 1
        What is added to ``zero``: GPTQ's first checkpoint format stores it less 1.

    Returns
    -------
    out : array (m, n)
        a's dtype.

    Notes
    -----
    Rounding points: ``weights`` says whether a weight is rounded; products with scales and additions, in the compute
    type; the result once to a's dtype. The difference b - zero is exact: a kernel that sums a·b and a·zero apart
    and subtracts loses what cancels, and is not this operator.

    Raises
    ------
    InputError
        The groups do not cover k, k is odd, or shapes and dtypes that disagree.

    Source: Frantar et al., "GPTQ" (2022), section 3; Lin et al., "AWQ" (2023), equation 1.

    Examples
    --------
    >>> a, b = np.array([[1.0, 10.0]], np.float32), np.array([[0x7B]], np.uint8)
    >>> matmul_w4a16(a, b, np.array([[0.5]], np.float32), np.array([[9]], np.uint8))
    array([[-9.]])
    """
    codes = unpacked(b, first_nibble == "high").astype(np.float64)
    point = SYMMETRIC_ZERO if zero is None else np.repeat(zero, group, axis=1)[:, : codes.shape[1]] + float(zero_offset)
    factor = np.repeat(scale, group, axis=1)[:, : codes.shape[1]]
    whole = codes - point
    if weights == "exact":
        product = scaled_matmul(a, (), whole.T, (factor.T,))
    else:
        product = a @ round_to_format(whole * factor, weights).T
    out: Array = product if bias is None else accumulate(product, bias)
    return out

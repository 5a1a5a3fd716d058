"""Matrix products of 8-bit codes: a scale per token and channel, or per block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import accumulate, scaled_matmul

CODES = ("int8", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@operator(family="gemm", dtypes=CODES)
def matmul_a8w8(
    a: Annotated[Array, Floats("m k")],
    b: Annotated[Array, Floats("n k")],
    a_scale: Annotated[Array, Floats("m", dtype="float32")],
    b_scale: Annotated[Array, Floats("n", dtype="float32")],
    bias: Annotated[Array, Floats("n", dtype="float32")] | None = None,
    *,
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """Product of 8-bit codes, a scale per row: ``out[i, j] = Σ_k a[i, k]·b[j, k] · a_scale[i]·b_scale[j] + bias[j]``.

    Parameters
    ----------
    a : array (m, k)
        Codes of activations, a row per token: int8, float8_e4m3fn or float8_e5m2 (OCP), float8_e4m3fnuz or
        float8_e5m2fnuz (the other family, of CDNA 3).
    b : array (n, k)
        Codes of weights, a row per output channel; a's dtype.
    a_scale : float32 array (m,)
        What a row's codes are multiplied by to dequantise them. One scale for a whole tensor is a repeated one.
    b_scale : float32 array (n,)
        Likewise for each output channel.
    bias : float32 array (n,), optional
        Added to every row, after the scales.
    out_dtype : "bfloat16", "float16" or "float32"
        The output's dtype.

    Returns
    -------
    out : array (m, n)
        ``out_dtype``. With k = 0 the product is 0, and ``out`` the bias.

    Notes
    -----
    Rounding points: the additions (exact in int32), the products with the scales and the bias, in the compute type;
    the result once to ``out_dtype``. The scales may be multiplied to the codes before they meet, to the sum, or to
    each other first; codes that were dequantised are not rounded to a 16-bit dtype.

    Raises
    ------
    InputError
        Ranks, sizes or dtypes disagree.

    Source: Dettmers et al., "LLM.int8()" (2022), equation 3; OCP 8-bit Floating Point Specification 1.0.

    Examples
    --------
    >>> a, b = np.array([[3, -2]], np.int8), np.array([[10, 20]], np.int8)
    >>> matmul_a8w8(a, b, np.array([0.5], np.float32), np.array([2.0], np.float32), np.array([1.0], np.float32))
    array([[-9.]])
    """
    product = scaled_matmul(a, (a_scale[:, np.newaxis],), b.T, (b_scale,))
    out: Array = product if bias is None else accumulate(product, bias)
    return out


def _blocks_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    block = params["block"]
    for dim in ("k", "n"):
        blocks, needed = sizes[f"{dim}_blocks"], -(-sizes[dim] // block)
        if blocks != needed:
            return f"{dim} = {sizes[dim]} has {needed} blocks of {block}, but the scales have {dim}_blocks = {blocks}"
    return None


@operator(family="gemm", check=_blocks_fit, dtypes=CODES)
def matmul_a8w8_block_scaled(
    a: Annotated[Array, Floats("m k")],
    b: Annotated[Array, Floats("n k")],
    a_scale: Annotated[Array, Floats("m k_blocks", dtype=("float32", "float8_e8m0fnu"))],
    b_scale: Annotated[Array, Floats("n_blocks k_blocks", dtype=("float32", "float8_e8m0fnu"))],
    bias: Annotated[Array, Floats("n", dtype="float32")] | None = None,
    *,
    block: Literal[128, 64, 32] = 128,
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """Product of 8-bit codes in blocks: ``out[i, j] = Σ_k a[i, k]·b[j, k] · a_scale[i, k/B]·b_scale[j/B, k/B]``.

    Parameters
    ----------
    a : array (m, k)
        Codes of activations: int8 or one of the four float8 dtypes.
    b : array (n, k)
        Codes of weights, a row per output channel; a's dtype.
    a_scale : array (m, k_blocks)
        A scale for each 1 × B of a; float32, or float8_e8m0fnu, whose values are powers of two.
    b_scale : array (n_blocks, k_blocks)
        A scale for each B × B of b; either dtype. The last block of k and of n may be a part of one.
    bias : float32 array (n,), optional
        Added to every row, after the scales.
    block : 128, 64 or 32
        B. Models and libraries have 128 throughout.
    out_dtype : "bfloat16", "float16" or "float32"
        The output's dtype.

    Returns
    -------
    out : array (m, n)
        ``out_dtype``.

    Notes
    -----
    Rounding points: as in ``matmul_a8w8``, where a block's sum may be multiplied by its scales before it is added.
    Some libraries hand over a_scale in column-major order (DeepGEMM, AITER's shuffled kernels): that is its strides,
    not another operator.

    Raises
    ------
    InputError
        The scales' blocks do not cover k and n, or shapes and dtypes that disagree.

    Source: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.3.2; DeepGEMM, ``fp8_gemm_nt``.

    Examples
    --------
    >>> a, b = np.ones((1, 33), np.int8), np.full((1, 33), 2, np.int8)
    >>> scales = np.array([[1.0, 10.0]], np.float32), np.array([[0.5, 3.0]], np.float32)
    >>> matmul_a8w8_block_scaled(a, b, *scales, block=32)
    array([[92.]])
    """
    columns, k = b.shape
    a_factor = np.repeat(a_scale, block, axis=1)[:, :k]
    b_factor = np.repeat(np.repeat(b_scale, block, axis=0), block, axis=1)[:columns, :k]
    product = scaled_matmul(a, (a_factor,), b.T, (b_factor.T,))
    out: Array = product if bias is None else accumulate(product, bias)
    return out

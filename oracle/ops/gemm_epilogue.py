"""A matrix product with BLAS's alpha and beta, and a bias and an activation in its epilogue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import accumulate, chain, either, erf, scaled_matmul, sigmoid


def _factors_are_numbers(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    for name in ("alpha", "beta"):
        if not math.isfinite(params[name]):
            return f"{name}={params[name]} must be finite"
    return None if params["alpha"] else "alpha=0 leaves no product; BLAS then reads neither factor, which is no product"


@operator(family="gemm", check=_factors_are_numbers)
def gemm_epilogue(
    a: Annotated[Array, Floats("m k", transposed_by="transpose_a")],
    b: Annotated[Array, Floats("k n", transposed_by="transpose_b")],
    c: Annotated[Array, Floats("m n")] | None = None,
    bias: Annotated[Array, Floats("n")] | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: Literal["none", "relu", "gelu", "gelu_tanh", "silu"] = "none",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Annotated[Array, Output("out", like="a")]:
    """GEMM with its epilogue: ``out = activation(alpha · a b + beta · c + bias)``.

    Parameters
    ----------
    a : array (m, k), or (k, m) with ``transpose_a``
        Left factor; float16, bfloat16, float32 or float64.
    b : array (k, n), or (n, k) with ``transpose_b``
        Right factor; a's dtype.
    c : array (m, n), optional
        What is added to the product; a's dtype. With beta = 0 it is not read, and may hold NaN.
    bias : array (n,), optional
        Added to every row, unscaled; a's dtype.
    alpha, beta : float
        Factors of the product, other than 0, and of c.
    activation : str
        ``relu``: max(x, 0), which passes NaN on; ``gelu``: x Φ(x) by the error function; ``gelu_tanh``: its
        approximation by tanh (PyTorch's ``approximate="tanh"``; what cuBLASLt and hipBLASLt call GELU);
        ``silu``: x · sigmoid(x).
    transpose_a, transpose_b : bool
        Whether the factor arrives transposed.

    Returns
    -------
    out : array (m, n)
        a's dtype.

    Notes
    -----
    Rounding points: the sum, the products with alpha and beta, the additions in any order, and the activation, in the
    compute type; the result once to a's dtype. The activation sees numbers that were not rounded to a's dtype.

    Raises
    ------
    InputError
        alpha is 0, alpha or beta not finite, or shapes and dtypes that disagree.

    Source: BLAS, ``xGEMM``; cuBLAS, ``cublasLtMatmul`` with ``CUBLASLT_EPILOGUE_GELU_BIAS`` and its kin.

    Examples
    --------
    >>> a, b, c = np.array([[1.0, 2.0]]), np.array([[3.0, -3.0], [4.0, -4.0]]), np.array([[10.0, 10.0]])
    >>> gemm_epilogue(a, b, c, alpha=2.0, beta=0.5, activation="relu")
    array([[27.,  0.]])
    """
    left = a.T if transpose_a else a
    right = b.T if transpose_b else b
    total: Any = scaled_matmul(left, (), right, (alpha,))
    if c is not None and beta:
        total = accumulate(total, c * beta)
    if bias is not None:
        total = accumulate(total, bias)
    out: Array = _activated(total, activation)
    return out


def _activated(x: Any, activation: str) -> Any:
    if activation == "relu":
        return np.maximum(x, 0.0)
    if activation == "silu":
        return x * sigmoid(x)
    if activation == "gelu":
        return chain(x, 0.5, 1.0 + erf(x * math.sqrt(0.5)))
    if activation == "gelu_tanh":
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
        return chain(x, 0.5, either(1.0 + np.tanh(inner), 2.0 * sigmoid(2.0 * inner)))
    return x

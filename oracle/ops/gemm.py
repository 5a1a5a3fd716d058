"""Matrix multiplication."""

from __future__ import annotations

from typing import Annotated

from oracle.operator import operator
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import accumulate


@operator(family="gemm")
def matmul(
    a: Annotated[Array, Floats("m k", transposed_by="transpose_a")],
    b: Annotated[Array, Floats("k n", transposed_by="transpose_b")],
    bias: Annotated[Array, Floats("n")] | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Annotated[Array, Output("out", like="a")]:
    """Matrix product with an optional bias: ``out[i, j] = Σ_k a[i, k] · b[k, j] + bias[j]``.

    Parameters
    ----------
    a : array (m, k), or (k, m) with ``transpose_a``
        Left factor; float16, bfloat16, float32 or float64.
    b : array (k, n), or (n, k) with ``transpose_b``
        Right factor; a's dtype.
    bias : array (n,), optional
        Added to every row; a's dtype.
    transpose_a, transpose_b : bool
        Whether the factor arrives transposed.

    Returns
    -------
    out : array (m, n)
        a's dtype. With k = 0 the product is 0, and ``out`` the bias.

    Notes
    -----
    Rounding points: the products (exact where the compute type holds them, or fused into the addition) and each
    addition, in the compute type, in any order; the result, bias included, once to a's dtype.

    Raises
    ------
    InputError
        Ranks, inner dimensions or dtypes disagree.

    Source: BLAS, ``xGEMM`` with alpha = 1 and a broadcast bias in the place of beta · C.

    Examples
    --------
    >>> matmul(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([0.5]))
    array([[11.5]])
    """
    left = a.T if transpose_a else a
    right = b.T if transpose_b else b
    product = left @ right
    return product if bias is None else accumulate(product, bias)

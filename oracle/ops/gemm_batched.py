"""Many matrix products at once: batched, and grouped over rows of one matrix."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, InputError, Integers, Output
from oracle.vocabulary import accumulate


@operator(family="gemm")
def batched_matmul(
    a: Annotated[Array, Floats("batch m k")],
    b: Annotated[Array, Floats("batch k n")],
    bias: Annotated[Array, Floats("batch n")] | None = None,
) -> Annotated[Array, Output("out", like="a")]:
    """Matrix products of a batch: ``out[s, i, j] = Σ_k a[s, i, k] · b[s, k, j] + bias[s, j]``.

    Parameters
    ----------
    a : array (batch, m, k)
        Left factors; float16, bfloat16, float32 or float64.
    b : array (batch, k, n)
        Right factors; a's dtype. Libraries that keep weights as (batch, n, k) pass a transposed view.
    bias : array (batch, n), optional
        Added to every row of its own product; a's dtype.

    Returns
    -------
    out : array (batch, m, n)
        a's dtype. With k = 0 the product is 0.

    Notes
    -----
    Rounding points: as in ``matmul``. A batch of size 1 is no broadcast: each product has factors of its own.

    Raises
    ------
    InputError
        Ranks, sizes or dtypes disagree.

    Source: BLAS extensions, ``xGEMM_BATCH_STRIDED`` with alpha = 1; PyTorch, ``baddbmm`` with a broadcast bias.

    Examples
    --------
    >>> batched_matmul(np.array([[[1.0, 2.0]], [[1.0, 0.0]]]), np.array([[[3.0], [4.0]], [[5.0], [6.0]]]))
    array([[[11.]],
    <BLANKLINE>
           [[ 5.]]])
    """
    product = a @ b
    return product if bias is None else accumulate(product, bias[:, np.newaxis, :])


@operator(family="gemm")
def grouped_matmul(
    a: Annotated[Array, Floats("rows k")],
    b: Annotated[Array, Floats("groups k n")],
    ends: Annotated[Array, Integers("groups")],
    bias: Annotated[Array, Floats("groups n")] | None = None,
) -> Annotated[Array, Output("out", like="a")]:
    """Rows of one matrix times a matrix per group: ``out[i] = a[i] · b[g] + bias[g]``, ``ends[g-1] <= i < ends[g]``.

    Parameters
    ----------
    a : array (rows, k)
        Rows sorted by group, as tokens are by expert; float16, bfloat16, float32 or float64.
    b : array (groups, k, n)
        A matrix per group; a's dtype.
    ends : int32 or int64 array (groups,)
        One past the last row of each group, never falling; a group whose end is the one before it is empty.
    bias : array (groups, n), optional
        Added to every row of its group; a's dtype.

    Returns
    -------
    out : array (rows, n)
        a's dtype. Rows from the last end on belong to no group: they are 0, whatever a holds there.

    Notes
    -----
    Rounding points: as in ``matmul``. Libraries say the same in other words: cumulative ends (PyTorch's grouped_mm),
    sizes of groups (megablocks, ragged_dot), or a group per row with -1 for none (DeepGEMM). Rows of no group are
    undefined in some of them; here they are 0.

    Raises
    ------
    InputError
        ends fall or exceed the number of rows, or shapes and dtypes that disagree.

    Source: Gale et al., "MegaBlocks" (2023), section 3; PyTorch, ``grouped_mm``.

    Examples
    --------
    >>> a, b = np.array([[1.0], [2.0], [3.0]]), np.array([[[10.0]], [[20.0]], [[30.0]]])
    >>> grouped_matmul(a, b, np.array([1, 1, 2]))
    array([[10.],
           [60.],
           [ 0.]])
    """
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    if np.any(ends < starts) or np.any(ends > len(a)):
        raise InputError(f"grouped_matmul: ends = {ends.tolist()} must never fall, and not exceed rows = {len(a)}")
    parts = []
    for group, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        product = a[start:end] @ b[group]
        parts.append(product if bias is None else accumulate(product, bias[group]))
    owned = int(ends[-1]) if len(ends) else 0
    parts.append(np.zeros_like(a, shape=(len(a) - owned, b.shape[-1])))
    return np.concatenate(parts, axis=0)

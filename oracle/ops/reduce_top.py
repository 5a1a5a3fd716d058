"""The largest: of rows, where it is, and the k largest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import chosen, exact_value


def _has_columns(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return None if sizes["cols"] else "cols = 0, and no elements have no largest; give at least one column"


@operator(family="reduce", check=_has_columns)
def max(x: Annotated[Array, Floats("... cols")]) -> Annotated[Array, Output("out", like="x")]:
    """Largest element over the last axis: ``out = max x``.

    Parameters
    ----------
    x : array (..., cols)
        float16, bfloat16, float32 or float64; at least one column.

    Returns
    -------
    out : array (...)
        x's dtype. NaN where a row holds one (the array API, PyTorch; fmaxf in C++ drops it).

    Notes
    -----
    Rounding points: none; everything is exact. Of zeros of both signs either may be returned.

    Raises
    ------
    InputError
        No columns.

    Source: the array API standard, ``max``, over the last axis.

    Examples
    --------
    >>> max(np.array([[1.0, 3.0], [-2.0, -np.inf]]))
    array([ 3., -2.])
    """
    out: Array = np.max(x, axis=-1)
    return out


@operator(family="reduce", check=_has_columns)
def argmax(
    x: Annotated[Array, Floats("... cols")], *, ties: Literal["lowest", "highest"] = "lowest"
) -> Annotated[Array, Output("index", dtype="int32")]:
    """Where the largest element of the last axis is: ``index = argmax x``.

    Parameters
    ----------
    x : array (..., cols)
        float16, bfloat16, float32 or float64; at least one column.
    ties : str
        Which of equal largest numbers is meant: the one with the ``lowest`` index (NumPy, JAX, ONNX), or with the
        ``highest`` (``select_last_index`` of ONNX). For either of them, as in PyTorch, take ``topk`` with k = 1.

    Returns
    -------
    index : int32 array (...)
        A column. A NaN counts as larger than every number (NumPy, PyTorch).

    Notes
    -----
    Rounding points: none; everything is exact. Zeros of both signs are equal; subnormal numbers are none of them, also
    where arithmetic flushes.

    Raises
    ------
    InputError
        No columns.

    Source: the array API standard, ``argmax``; the operator ArgMax of ONNX for ties.

    Examples
    --------
    >>> row = np.array([3.0, 1.0, 3.0])
    >>> int(argmax(row)), int(argmax(row, ties="highest"))
    (0, 2)
    """
    values = exact_value(x, unflushed=True)
    first: Array = np.asarray(np.argmax(values if ties == "lowest" else values[..., ::-1], axis=-1))
    return first if ties == "lowest" else x.shape[-1] - 1 - first


def _enough_columns(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    k, cols = params["k"], sizes["cols"]
    return None if k <= cols else f"k = {k} must be at most cols = {cols}"


@operator(family="reduce", check=_enough_columns)
def topk(
    x: Annotated[Array, Floats("rows cols")],
    *,
    k: Annotated[int, Range(1)] = 1,
    ordered: bool = True,
    ties: Literal["lowest", "any"] = "lowest",
) -> Annotated[Array, Output("indices", dtype="int32")]:
    """The k largest of each row: ``indices`` of them, and ``values = x[indices]``.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16, float32 or float64; no NaN.
    k : int
        How many; at least 1, at most cols.
    ordered : bool
        Whether they come from the largest to the smallest, or in any order.
    ties : str
        Which of equal numbers go first, where not all fit: ``lowest``, those with the lowest index (JAX, AITER's
        ``stable``), or ``any`` (PyTorch, CUB, FlashInfer).

    Returns
    -------
    indices : int32 array (rows, k)
        Columns, each at most once per row.
    values : array (rows, k)
        The elements there; x's dtype; judged from the indices that were returned.

    Notes
    -----
    Rounding points: none; everything is exact. Zeros of both signs are equal. A kernel that keeps everything at least
    as large as the k-th number keeps too many where there are ties.

    Raises
    ------
    InputError
        k below 1 or above cols.

    Source: the operator TopK of ONNX; ``jax.lax.top_k`` for ties.

    Examples
    --------
    >>> topk(np.array([[3.0, 1.0, 3.0, 2.0]]), k=3)
    (array([[0, 2, 3]]), array([[3., 3., 2.]]))
    """
    indices: Array = chosen(x, k, ordered=ordered, lowest_first=ties == "lowest")
    return indices


@topk.stage
def chosen_values(x: Array, indices: Array) -> Annotated[Array, Output("values", like="x")]:
    """The elements at the indices that were returned; those that lie outside a row count as the nearest column."""
    values: Array = np.take_along_axis(x, np.clip(indices, 0, x.shape[1] - 1), axis=-1)
    return values

"""Collectives, with the ranks as an axis of their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, InputError, Integers, Output, Range
from oracle.vocabulary import chain, round_to_format, rsqrt

DTYPES = ("float16", "bfloat16", "float32")


def _order_and_hop(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if not sizes["ranks"]:
        return "ranks = 0; give at least one rank"
    if params["order"] == "any" and params["hop"] != "float32":
        return f"hop={params['hop']!r} needs a promised order: order='rank' or order='ring'"
    return None


def _chunks_divide(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["ranks"] and sizes["size"] % sizes["ranks"]:
        return f"size = {sizes['size']} must be a multiple of ranks = {sizes['ranks']}"
    return _order_and_hop(sizes, params)


def _total(x: Any, order: str, hop: str) -> Any:
    """The sum over ranks (axis 0) of each element, in the promised order."""
    ranks, size = x.shape
    if order == "any":
        return np.sum(x, axis=0)
    column = np.arange(size)
    owner = column * 0 if order == "rank" else 1 + column // max(-(-size // ranks), 1)
    total = x[owner % ranks, column]
    for step in range(1, ranks):
        total = round_to_format(total + x[(owner + step) % ranks, column], hop)
    return total


@operator(family="collective", check=_order_and_hop, dtypes=DTYPES)
def all_reduce(
    x: Annotated[Array, Floats("ranks size")],
    *,
    order: Literal["any", "rank", "ring"] = "any",
    hop: Literal["float32", "bfloat16", "float16"] = "float32",
) -> Annotated[Array, Output("out", like="x")]:
    """Sum over all ranks, on every rank: ``out[r] = Σ_s x[s]``.

    Parameters
    ----------
    x : array (ranks, size)
        What each rank holds; float16, bfloat16 or float32.
    order : "any", "rank" or "ring"
        In which order the ranks are added: any (one-shot and two-shot kernels that add up in float32); 0, 1, 2, …
        (a promise that makes the result one number); or along a ring, where chunk c of ⌈size / ranks⌉ elements starts
        at rank c + 1 and ends at rank c (NCCL's ring).
    hop : "float32", "bfloat16" or "float16"
        What a partial sum is rounded to after each addition of a promised order: the accumulator, or the dtype in
        which it travels to the next rank.

    Returns
    -------
    out : array (ranks, size)
        x's dtype; the same bits on all ranks.

    Notes
    -----
    Rounding points: each addition in the compute type, in any order; or after each addition to ``hop``, in the
    promised one. The result once to x's dtype.

    Raises
    ------
    InputError
        No rank, or a narrow ``hop`` without a promised order.

    Source: MPI 4.0, section 6.9, ``MPI_Allreduce``; Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms"
    (2009), for the ring; AITER and vLLM, ``custom_all_reduce``, for one shot and two shots.

    Examples
    --------
    >>> all_reduce(np.array([[1.0, 2.0], [10.0, 20.0]], np.float32))
    array([[11., 22.],
           [11., 22.]])
    """
    out: Array = np.repeat(_total(x, order, hop)[np.newaxis], len(x), axis=0)
    return out


@operator(family="collective", check=_chunks_divide, dtypes=DTYPES)
def reduce_scatter(
    x: Annotated[Array, Floats("ranks size")],
    *,
    order: Literal["any", "rank", "ring"] = "any",
    hop: Literal["float32", "bfloat16", "float16"] = "float32",
) -> Annotated[Array, Output("out", like="x")]:
    """Sum over all ranks, of which each keeps its chunk: ``out[r] = Σ_s x[s, r · chunk : (r + 1) · chunk]``.

    Parameters
    ----------
    x : array (ranks, size)
        What each rank holds; size is a multiple of ranks; float16, bfloat16 or float32.
    order : "any", "rank" or "ring"
        As of `all_reduce`.
    hop : "float32", "bfloat16" or "float16"
        As of `all_reduce`.

    Returns
    -------
    out : array (ranks, size / ranks)
        x's dtype.

    Notes
    -----
    Rounding points: as of `all_reduce`.

    Raises
    ------
    InputError
        No rank, a size that the ranks do not divide, or a narrow ``hop`` without a promised order.

    Source: MPI 4.0, section 6.10, ``MPI_Reduce_scatter_block``.

    Examples
    --------
    >>> reduce_scatter(np.array([[1.0, 2.0], [10.0, 20.0]], np.float32))
    array([[11.],
           [22.]])
    """
    ranks, size = x.shape
    out: Array = _total(x, order, hop).reshape(ranks, size // ranks)
    return out


def _has_ranks(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if "peers" in sizes and sizes["peers"] != sizes["ranks"]:
        return f"x has {sizes['peers']} blocks per rank; ranks = {sizes['ranks']} need as many"
    return None if sizes["ranks"] else "ranks = 0; give at least one rank"


@operator(family="collective", check=_has_ranks)
def all_gather(x: Annotated[Array, Floats("ranks rows size")]) -> Annotated[Array, Output("out", like="x")]:
    """What all ranks hold, side by side on every rank: ``out[r, i] = [x[0, i], x[1, i], …]``.

    Parameters
    ----------
    x : array (ranks, rows, size)
        What each rank holds; float16, bfloat16, float32 or float64.

    Returns
    -------
    out : array (ranks, rows, ranks · size)
        Copies, bit for bit; x's dtype.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        No rank.

    Source: MPI 4.0, section 6.7, ``MPI_Allgather``.

    Examples
    --------
    >>> all_gather(np.array([[[1.0], [2.0]], [[3.0], [4.0]]]))[0]
    array([[1., 3.],
           [2., 4.]])
    """
    ranks, rows, size = x.shape
    side_by_side = np.swapaxes(x, 0, 1).reshape(1, rows, ranks * size)
    out: Array = np.repeat(side_by_side, ranks, axis=0)
    return out


@operator(family="collective", check=_has_ranks)
def all_to_all(
    x: Annotated[Array, Floats("ranks peers capacity width")],
    counts: Annotated[Array, Integers("ranks peers")],
) -> Annotated[Array, Output("out", like="x")]:
    """Tokens to the ranks of their experts: ``out[r, s, i] = x[s, r, i]`` for ``i < counts[s, r]``, else 0.

    Parameters
    ----------
    x : array (ranks, peers, capacity, width)
        x[s, r] holds the tokens that rank s sends to rank r, as many peers as ranks; float16, bfloat16, float32 or
        float64.
    counts : int32 or int64 array (ranks, peers)
        How many tokens are sent; at most capacity. Rows after them are not read.

    Returns
    -------
    out : array (ranks, peers, capacity, width)
        out[r, s] holds what rank r received from rank s, bit for bit, and zeros after it; x's dtype.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        More tokens than the capacity, or not as many peers as ranks.

    Source: MPI 4.0, section 6.8, ``MPI_Alltoallv``; Lepikhin et al., "GShard" (2020), for the capacity.

    Examples
    --------
    >>> x = np.array([[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]])
    >>> all_to_all(x, np.array([[1, 1], [1, 0]])).reshape(2, 2)
    array([[1., 3.],
           [2., 0.]])
    """
    capacity = x.shape[2]
    if (counts > capacity).any():
        raise InputError(f"all_to_all: counts holds {counts.max()}, and capacity is {capacity}")
    sent = np.arange(capacity) < counts[:, :, np.newaxis]
    out: Array = np.swapaxes(np.where(sent[..., np.newaxis], x, 0.0), 0, 1)
    return out


def _has_columns(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if not sizes["cols"]:
        return "cols = 0, and the mean of no elements is undefined; give at least one column"
    return None if sizes["ranks"] else "ranks = 0; give at least one rank"


def _with_residual(x: Any, residual: Any) -> Any:
    """The sum over the ranks and the residual, as one sum."""
    return np.sum(np.concatenate([x, residual[np.newaxis]], axis=0), axis=0)


@operator(family="collective", check=_has_columns, dtypes=DTYPES)
def all_reduce_rmsnorm(
    x: Annotated[Array, Floats("ranks rows cols")],
    residual: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Annotated[float, Range(0.0, open=True)] = 1e-6,
    normalised: Literal["stored", "sum"] = "stored",
) -> Annotated[Array, Output("residual_out", like="x")]:
    """All-reduce, residual and norm in one: ``residual_out = Σ_r x[r] + residual``, ``out = rmsnorm(residual_out)``.

    Parameters
    ----------
    x : array (ranks, rows, cols)
        Partial results of each rank; float16, bfloat16 or float32.
    residual : array (rows, cols)
        Added to the sum; x's dtype.
    weight : array (cols,)
        Gain of the norm; x's dtype.
    eps : float
        Added to the mean square, under the root; above 0.
    normalised : "stored" or "sum"
        What the norm is taken of: the residual as it is stored (vLLM's and AITER's unfused reference), or the sum
        before it is rounded (kernels that keep it in registers).

    Returns
    -------
    residual_out : array (rows, cols)
        x's dtype.
    out : array (rows, cols)
        x's dtype.

    Notes
    -----
    Rounding points: the additions in the compute type, in any order, then once to x's dtype; the norm as of
    `rmsnorm`.

    Raises
    ------
    InputError
        No rank, no columns, eps not above 0, or shapes and dtypes that disagree.

    Source: AITER, ``fused_allreduce_rmsnorm``; FlashInfer, ``trtllm_allreduce_fusion``.

    Examples
    --------
    >>> x = np.array([[[1.0, 1.0]], [[1.0, 2.0]]], np.float32)
    >>> all_reduce_rmsnorm(x, np.ones((1, 2), np.float32), np.array([1.0, 10.0], np.float32), eps=12.5)
    (array([[3., 4.]]), array([[0.6, 8. ]]))
    """
    residual_out: Array = _with_residual(x, residual)
    return residual_out


@all_reduce_rmsnorm.stage
def _normalised(
    x: Array, residual: Array, weight: Array, residual_out: Array, *, eps: float, normalised: str
) -> Annotated[Array, Output("out", like="x")]:
    """The norm of the residual that was returned, or of the sum."""
    base = residual_out if normalised == "stored" else _with_residual(x, residual)
    out: Array = chain(base, rsqrt(np.mean(base * base, axis=-1, keepdims=True) + eps), weight)
    return out

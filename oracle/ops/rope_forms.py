"""Rotary position embedding in other forms: queries and keys together, several positions a token, and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, InputError, Integers, Output, Range

Pairing = Literal["neox", "gptj"]


def turned(x: Any, cosine: Any, sine: Any, pairing: str) -> Any:
    """x (tokens, heads, head_dim) with its first 2 · half elements turned by angles (tokens, half)."""
    half = cosine.shape[-1]
    cosine, sine = cosine[:, np.newaxis, :], sine[:, np.newaxis, :]
    if pairing == "neox":
        first, second = x[..., :half], x[..., half : 2 * half]
    else:
        first, second = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    new = first * cosine - second * sine, second * cosine + first * sine
    if pairing == "neox":
        front = np.concatenate(new, axis=-1)
    else:
        front = np.stack(new, axis=-1).reshape(*x.shape[:-1], 2 * half)
    return np.concatenate([front, x[..., 2 * half :]], axis=-1)


def _pairs_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    half, head_dim = sizes["half"], sizes["head_dim"]
    if 2 * half <= head_dim:
        return None
    return f"cos and sin have {half} columns, which rotate {2 * half} elements, but head_dim is {head_dim}"


@operator(family="rope", check=_pairs_fit)
def rope_qk(
    q: Annotated[Array, Floats("tokens heads head_dim")],
    k: Annotated[Array, Floats("tokens kv_heads head_dim")],
    positions: Annotated[Array, Integers("tokens", below="max_position")],
    cos: Annotated[Array, Floats("max_position half")],
    sin: Annotated[Array, Floats("max_position half")],
    offsets: Annotated[Array, Integers("tokens")] | None = None,
    *,
    pairing: Pairing = "neox",
    plain_first: bool = False,
) -> tuple[Annotated[Array, Output("q_out", like="q")], Annotated[Array, Output("k_out", like="k")]]:
    """`rope` of queries and keys at once: ``(a, b) → (a·cos - b·sin, b·cos + a·sin)`` at positions + offsets.

    Parameters
    ----------
    q, k : array (tokens, heads, head_dim) and (tokens, kv_heads, head_dim)
        float16, bfloat16, float32 or float64.
    positions : int32 or int64 array (tokens,)
        Row of the tables for each token.
    cos, sin : array (max_position, half)
        Tables; q's dtype. 2 · half <= head_dim.
    offsets : int32 or int64 array (tokens,), optional
        Added to the positions.
    pairing : "neox" or "gptj"
        Pair j is (j, j + half) for neox and (2j, 2j + 1) for gptj.
    plain_first : bool
        Whether the elements that are not turned come first in a head (AITER's nope_first), not last.

    Returns
    -------
    q_out, k_out : array
        As q and k. Elements that are not turned are their own, bit for bit.

    Notes
    -----
    Rounding points: the two products (one may be fused into the sum) and the sum, in the compute type; the
    result once to q's dtype.

    Raises
    ------
    InputError
        A position with its offset outside the tables, tables wider than the head, or shapes and dtypes that disagree.

    Source: AITER, ``rope_cached_positions_offsets_2c_fwd``; vLLM, ``rotary_embedding``.

    Examples
    --------
    >>> table = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    >>> q = np.array([[[9.0, 1.0, 2.0]]])
    >>> rope_qk(q, q, np.array([0]), *table, np.array([1]), plain_first=True)[0]
    array([[[ 9., -2.,  1.]]])
    """
    rows = positions if offsets is None else positions + offsets
    if rows.size and rows.max() >= len(cos):
        raise InputError(f"rope_qk: position + offset = {rows.max()} must be below max_position = {len(cos)}")
    cosine, sine, plain = cos[rows], sin[rows], q.shape[-1] - 2 * cos.shape[-1]

    def both(x: Any) -> Any:
        if not plain_first:
            return turned(x, cosine, sine, pairing)
        return np.concatenate([x[..., :plain], turned(x[..., plain:], cosine, sine, pairing)], axis=-1)

    return both(q), both(k)


def _sections_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    parts = params["temporal"], params["height"], params["width"]
    if sum(parts) != sizes["half"]:
        return f"temporal + height + width = {' + '.join(map(str, parts))} must make up half = {sizes['half']}"
    if params["interleaved"] and (3 * params["height"] > sizes["half"] + 1 or 3 * params["width"] > sizes["half"]):
        return (
            f"interleaved: height = {parts[1]} and width = {parts[2]} need each third of half = {sizes['half']} columns"
        )
    if sizes["three"] != 3:
        return f"positions has {sizes['three']} rows; give temporal, height and width"
    return _pairs_fit(sizes, params)


def sections(half: int, temporal: int, height: int, width: int, interleaved: bool) -> Array:
    """Which of the three positions each column of the tables takes."""
    if not interleaved:
        return np.repeat(np.arange(3), [temporal, height, width])
    kind = np.zeros(half, np.int64)
    kind[1 : 3 * height : 3] = 1
    kind[2 : 3 * width : 3] = 2
    return kind


@operator(family="rope", check=_sections_fit)
def mrope(
    x: Annotated[Array, Floats("tokens heads head_dim")],
    positions: Annotated[Array, Integers("three tokens", below="max_position")],
    cos: Annotated[Array, Floats("max_position half")],
    sin: Annotated[Array, Floats("max_position half")],
    *,
    temporal: Annotated[int, Range(0)] = 0,
    height: Annotated[int, Range(0)] = 0,
    width: Annotated[int, Range(0)] = 0,
    interleaved: bool = False,
    pairing: Pairing = "neox",
) -> Annotated[Array, Output("out", like="x")]:
    """`rope` with three positions a token: column j turns by the angle of ``positions[section(j)]``.

    Parameters
    ----------
    x : array (tokens, heads, head_dim)
        Queries or keys; float16, bfloat16, float32 or float64.
    positions : int32 or int64 array (3, tokens)
        Temporal, height and width position of each token.
    cos, sin : array (max_position, half)
        Tables; x's dtype. 2 · half <= head_dim.
    temporal, height, width : int
        How many columns of the tables take each position; they make up half.
    interleaved : bool
        Whether height has columns 1, 4, 7, … and width 2, 5, 8, …, as in Qwen3-VL, and not one section after
        another, as in Qwen2-VL.
    pairing : "neox" or "gptj"
        Pair j is (j, j + half) for neox and (2j, 2j + 1) for gptj.

    Returns
    -------
    out : array (tokens, heads, head_dim)
        x's dtype. Elements from 2 · half on are x's own, bit for bit.

    Notes
    -----
    Rounding points: those of `rope`.

    Raises
    ------
    InputError
        Sections that do not make up half, a position outside the tables, or shapes and dtypes that disagree.

    Source: Wang et al., "Qwen2-VL" (2024), section 2.1; vLLM, ``MRotaryEmbedding``.

    Examples
    --------
    >>> table = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    >>> mrope(x, np.array([[0], [1], [0]]), *table, temporal=1, height=1)
    array([[[ 1., -4.,  3.,  2.]]])
    """
    kind = sections(cos.shape[-1], temporal, height, width, interleaved)
    rows, columns = positions[kind].T, np.arange(cos.shape[-1])
    out: Array = turned(x, cos[rows, columns], sin[rows, columns], pairing)
    return out


def _quarters_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    quarter, head_dim = sizes["quarter"], sizes["head_dim"]
    if 4 * quarter == head_dim:
        return None
    return f"tables of {quarter} columns turn {4 * quarter} elements, but head_dim is {head_dim}"


@operator(family="rope", check=_quarters_fit)
def rope_2d(
    x: Annotated[Array, Floats("tokens heads head_dim")],
    rows: Annotated[Array, Integers("tokens", below="height")],
    columns: Annotated[Array, Integers("tokens", below="width")],
    cos_rows: Annotated[Array, Floats("height quarter")],
    sin_rows: Annotated[Array, Floats("height quarter")],
    cos_columns: Annotated[Array, Floats("width quarter")],
    sin_columns: Annotated[Array, Floats("width quarter")],
    *,
    pairing: Pairing = "neox",
) -> Annotated[Array, Output("out", like="x")]:
    """`rope` of images: the first half of each head turns by the row's angles, the second by the column's.

    Parameters
    ----------
    x : array (tokens, heads, head_dim)
        Patches; float16, bfloat16, float32 or float64; head_dim is a multiple of 4.
    rows, columns : int32 or int64 array (tokens,)
        Where each patch lies.
    cos_rows, sin_rows : array (height, quarter)
        Tables for rows; x's dtype; 4 · quarter = head_dim.
    cos_columns, sin_columns : array (width, quarter)
        Tables for columns.
    pairing : "neox" or "gptj"
        How elements of each half are paired, as for `rope`.

    Returns
    -------
    out : array (tokens, heads, head_dim)
        x's dtype.

    Notes
    -----
    Rounding points: those of `rope`.

    Raises
    ------
    InputError
        A row or column outside its tables, tables of another width, or shapes and dtypes that disagree.

    Source: AITER, ``rope_2d_fwd``.

    Examples
    --------
    >>> still, quarter = (np.array([[1.0]]), np.array([[0.0]])), (np.array([[0.0]]), np.array([[1.0]]))
    >>> rope_2d(np.array([[[1.0, 2.0, 3.0, 4.0]]]), np.array([0]), np.array([0]), *still, *quarter)
    array([[[ 1.,  2., -4.,  3.]]])
    """
    half = x.shape[-1] // 2
    first = turned(x[..., :half], cos_rows[rows], sin_rows[rows], pairing)
    second = turned(x[..., half:], cos_columns[columns], sin_columns[columns], pairing)
    return np.concatenate([first, second], axis=-1)


@operator(family="rope", check=_pairs_fit)
def rope_backward(
    grad: Annotated[Array, Floats("tokens heads head_dim")],
    positions: Annotated[Array, Integers("tokens", below="max_position")],
    cos: Annotated[Array, Floats("max_position half")],
    sin: Annotated[Array, Floats("max_position half")],
    *,
    pairing: Pairing = "neox",
) -> Annotated[Array, Output("grad_x", like="grad")]:
    """Gradient of `rope`: the turn back, ``(a, b) → (a·cos + b·sin, b·cos - a·sin)``.

    Parameters
    ----------
    grad : array (tokens, heads, head_dim)
        Gradient of rope's result; float16, bfloat16, float32 or float64.
    positions : int32 or int64 array (tokens,)
        Row of the tables for each token.
    cos, sin : array (max_position, half)
        Tables; grad's dtype. 2 · half <= head_dim.
    pairing : "neox" or "gptj"
        Pair j is (j, j + half) for neox and (2j, 2j + 1) for gptj.

    Returns
    -------
    grad_x : array (tokens, heads, head_dim)
        grad's dtype. Elements from 2 · half on are grad's own, bit for bit.

    Notes
    -----
    Rounding points: those of `rope`.

    Raises
    ------
    InputError
        A position outside the tables, tables wider than the head, or shapes and dtypes that disagree.

    Source: the transpose of RoFormer's rotation; AITER, ``rope_cached_bwd``.

    Examples
    --------
    >>> quarter_turn = np.array([[0.0]]), np.array([[1.0]])
    >>> rope_backward(np.array([[[-2.0, 1.0, 9.0]]]), np.array([0]), *quarter_turn)
    array([[[1., 2., 9.]]])
    """
    grad_x: Array = turned(grad, cos[positions], -sin[positions], pairing)
    return grad_x

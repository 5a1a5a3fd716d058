"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Integers, Output


def _pairs_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    half, head_dim = sizes["half"], sizes["head_dim"]
    if 2 * half <= head_dim:
        return None
    return f"cos and sin have {half} columns, which rotate {2 * half} elements, but head_dim is {head_dim}"


@operator(family="rope", check=_pairs_fit)
def rope(
    x: Annotated[Array, Floats("tokens heads head_dim")],
    positions: Annotated[Array, Integers("tokens", below="max_position")],
    cos: Annotated[Array, Floats("max_position half")],
    sin: Annotated[Array, Floats("max_position half")],
    *,
    pairing: Literal["neox", "gptj"] = "neox",
) -> Annotated[Array, Output("out", like="x")]:
    """Rotate pairs of elements by an angle per position: ``(a, b) → (a·cos - b·sin, b·cos + a·sin)``.

    Parameters
    ----------
    x : array (tokens, heads, head_dim)
        Queries or keys; float16, bfloat16, float32 or float64.
    positions : int32 or int64 array (tokens,)
        Row of the tables for each token; 0 <= position < max_position, in any order, repeats allowed.
    cos, sin : array (max_position, half)
        Tables of the angles' cosines and sines; x's dtype. 2 · half <= head_dim.
    pairing : "neox" or "gptj"
        Pair j is (j, j + half) for neox and (2j, 2j + 1) for gptj.

    Returns
    -------
    out : array (tokens, heads, head_dim)
        x's dtype. Elements from 2 · half on are x's own, bit for bit.

    Notes
    -----
    Rounding points: the two products (one may be fused into the sum) and the sum, in the compute type; the
    result once to x's dtype. The tables are inputs, so no angle is computed here.

    Raises
    ------
    InputError
        A position outside the tables, tables wider than the head, or shapes and dtypes that disagree.

    Source: Su et al., "RoFormer" (2021), equation 34; the pairings of GPT-NeoX and of GPT-J.

    Examples
    --------
    >>> quarter_turn = np.array([[0.0]]), np.array([[1.0]])
    >>> rope(np.array([[[1.0, 2.0, 9.0]]]), np.array([0]), *quarter_turn)
    array([[[-2.,  1.,  9.]]])
    """
    half = cos.shape[-1]
    cosine = cos[positions][:, np.newaxis, :]
    sine = sin[positions][:, np.newaxis, :]
    if pairing == "neox":
        first, second = x[..., :half], x[..., half : 2 * half]
    else:
        first, second = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    turned_first = first * cosine - second * sine
    turned_second = second * cosine + first * sine
    if pairing == "neox":
        turned = np.concatenate([turned_first, turned_second], axis=-1)
    else:
        turned = np.stack([turned_first, turned_second], axis=-1).reshape(*x.shape[:-1], 2 * half)
    return np.concatenate([turned, x[..., 2 * half :]], axis=-1)

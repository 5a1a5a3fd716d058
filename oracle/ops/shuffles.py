"""Orders in which matrix units want weights and scales: permutations, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.scale_tiles import TILES, ScaleTiles, tile_axes
from oracle.signature import Array, DtypeOf, Floats, Output, Range
from oracle.vocabulary import stepped

WEIGHTS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "int8")
SCALES = ("float8_e8m0fnu", "float8_e4m3fn")


def _tiles_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    n, k, wide, vector = sizes["n"], sizes["k"], 2 * params["inner"], params["vector"]
    if wide % vector:
        return f"vector = {vector} must divide 2 · inner = {wide}"
    if n % 16 or k % wide:
        return f"a matrix of {n}×{k} has no whole tiles of 16×{wide}; pad it"
    return None


@operator(family="quant", check=_tiles_fit, dtypes=WEIGHTS)
def shuffle_weight(
    weight: Annotated[Array, Floats("n k")],
    *,
    inner: Literal[16, 32] = 16,
    vector: Annotated[int, Range(1)] = 16,
) -> Annotated[Array, Output("shuffled", like="weight")]:
    """Weights in tiles of 16 × wide: axes (n/16, 16, k/wide, wide/vector, vector) in the order ``0, 2, 3, 1, 4``.

    Parameters
    ----------
    weight : array (n, k)
        float16, bfloat16, an 8-bit float or int8; n a multiple of 16, k of wide = 2 · inner.
    inner : 16 or 32
        AITER's layouts (16, 16) and (16, 32).
    vector : int
        Elements that stay together: those of 16 bytes (8 of 16 bits, 16 of 8 bits).

    Returns
    -------
    shuffled : array (n, k)
        The same elements in the order of the new axes, in the old shape.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        The matrix does not consist of whole tiles, or a vector does not fit into one.

    Source: AITER, ``aiter/ops/shuffle.py``, ``shuffle_weight``.

    Examples
    --------
    >>> weight = np.arange(512, dtype=np.float16).reshape(16, 32)
    >>> shuffle_weight(weight)[0]
    array([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12.,
           13., 14., 15., 32., 33., 34., 35., 36., 37., 38., 39., 40., 41.,
           42., 43., 44., 45., 46., 47.])
    """
    n, k = weight.shape
    wide = 2 * inner
    tiles = weight.reshape(n // 16, 16, k // wide, wide // vector, vector)
    shuffled: Array = np.transpose(tiles, (0, 2, 3, 1, 4)).reshape(n, k)
    return shuffled


def unshuffled_weight(shuffled: Any, inner: int, vector: int) -> Any:
    """What `shuffle_weight` made it of."""
    n, k = shuffled.shape
    wide = 2 * inner
    tiles = shuffled.reshape(n // 16, k // wide, wide // vector, 16, vector)
    return np.transpose(tiles, (0, 3, 1, 2, 4)).reshape(n, k)


@operator(family="quant", dtypes=SCALES)
def shuffle_scale(
    scale: Annotated[Array, Floats("rows groups")],
    *,
    layout: ScaleTiles = "aiter",
    padding: Literal["one", "zero", "any"] = "any",
    dtype: Annotated[str, DtypeOf("scale")],
) -> Annotated[Array, Output("shuffled", like="scale")]:
    """Scales padded to whole tiles: axes ``(m/32, 2, 16, g/8, 2, 4)`` of (m, g) in the order 0, 3, 5, 2, 4, 1.

    Parameters
    ----------
    scale : array (rows, groups)
        float8_e8m0fnu or float8_e4m3fn.
    layout : "aiter" or "cublas"
        ``aiter``: as above, rows filled up to a multiple of 256 and groups to one of 8. ``cublas``: axes
        (m/128, 4, 32, g/4, 4) in the order 0, 3, 2, 1, 4, filled up to 128 × 4 (cuBLAS, CUTLASS, FlashInfer, torchao).
    padding : "one", "zero" or "any"
        What stands where there is no scale: 1 (byte 127 of float8_e8m0fnu), byte 0 (2**-127 in float8_e8m0fnu;
        torchao, Transformer Engine), or anything (AITER, which leaves memory as it was).

    Returns
    -------
    shuffled : array (m, g)
        rows and groups filled up; the elements in the order of the new axes.

    Notes
    -----
    Rounding points: none.

    Source: AITER, ``aiter/utility/fp4_utils.py``, ``e8m0_shuffle``; cuBLAS 12.9, section "1D block scaling factors
    layout"; torchao, ``to_blocked``.

    Examples
    --------
    >>> import ml_dtypes
    >>> scale = np.exp2(np.arange(8.0))[np.newaxis].astype(ml_dtypes.float8_e8m0fnu)
    >>> shuffle_scale(scale, padding="one").reshape(-1)[[0, 2, 64, 66]]
    array([ 1., 16.,  2., 32.])
    >>> shuffle_scale(scale, layout="cublas", padding="one").reshape(-1)[[0, 1, 512, 513]]
    array([ 1.,  2., 16., 32.])
    """
    rows, groups = scale.shape
    high, wide = TILES[layout]
    m, g = -(-rows // high) * high, -(-groups // wide) * wide
    shape, order = tile_axes(layout, m, g)

    def ordered(padded: Any) -> Any:
        return np.transpose(padded.reshape(shape), order).reshape(m, g)

    edges = (0, m - rows), (0, g - groups)
    filler = 1.0 if padding != "zero" else 2.0**-127 if dtype == "float8_e8m0fnu" else 0.0
    shuffled: Array = ordered(np.pad(scale, edges, constant_values=filler))
    if padding == "any":
        absent = ordered(np.pad(np.zeros(scale.shape, bool), edges, constant_values=True))
        shuffled = stepped(shuffled, lambda end: end, absent)
    return shuffled

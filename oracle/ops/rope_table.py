"""Tables of angles for rotary position embedding."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Integers, Output, Range
from oracle.vocabulary import chain


@operator(family="rope", dtypes=("float32", "float64"))
def rope_table(
    frequencies: Annotated[Array, Floats("half")],
    positions: Annotated[Array, Integers("count", below=1 << 24)],
    *,
    factor: Annotated[float, Range(0.0, open=True)] = 1.0,
    magnitude: Annotated[float, Range(0.0, open=True)] = 1.0,
) -> tuple[Annotated[Array, Output("cos", like="frequencies")], Annotated[Array, Output("sin", like="frequencies")]]:
    """Cosines and sines of angles: ``cos = magnitude · cos(frequency · position / factor)``, and sin alike.

    Parameters
    ----------
    frequencies : array (half,)
        Angle per position of each pair, base^(-j / half); float32 or float64. Those of NTK-aware scaling (another
        base) and of YaRN (frequencies mixed by a ramp) come in here.
    positions : int32 or int64 array (count,)
        Below 2^24, so that float32 holds them.
    factor : float
        Linear scaling (position interpolation): positions are divided by it.
    magnitude : float
        Factor of both tables: YaRN's 0.1 · ln(scale) + 1.

    Returns
    -------
    cos, sin : array (count, half)
        frequencies' dtype.

    Notes
    -----
    Rounding points: the products that make the angle, in any order, in the compute type, so that an angle of a
    thousand turns is off by some 4e-4 for each of them in float32; the functions; the product with magnitude. A table
    from exact angles lies within that.

    Raises
    ------
    InputError
        A position from 2^24 on, factor or magnitude not above 0, or dtypes that are not known.

    Source: Su et al., "RoFormer" (2021), section 3.2.2; Chen et al. (2023) for linear scaling; Peng et al., "YaRN"
    (2023), section 3.4.

    Examples
    --------
    >>> cos, sin = rope_table(np.array([np.pi]), np.array([0, 1]), factor=2.0, magnitude=3.0)
    >>> sin[:, 0]
    array([0., 3.])
    """
    angle = chain(frequencies, positions[:, np.newaxis].astype(np.float64), 1.0 / factor)
    return np.cos(angle) * magnitude, np.sin(angle) * magnitude

"""What operators share that quantise their result: a scale for each block of a row, worked out, and the codes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from oracle.formats import format_of
from oracle.ops.quant_blocks import in_blocks, over_blocks
from oracle.signature import Array, Range
from oracle.vocabulary import coded

To: TypeAlias = Literal["float8_e4m3fn", "float8_e4m3fnuz", "int8"]
RowBlock: TypeAlias = Literal["token", "1x32", "1x64", "1x128"]
OfZero: TypeAlias = Literal["one", "least"]
Quantised: TypeAlias = Literal["unrounded", "rounded"]
Least: TypeAlias = Annotated[float, Range(0.0)]


def dynamic_scale(y: Any, to: str, block: str, least: float, of_zero: str) -> Array:
    """max(max|y| / largest code, least) of each block; 1 for a block of zeros if ``of_zero`` is ``one``."""
    amax = np.max(in_blocks(np.abs(y), block), axis=(1, 3), initial=0.0)
    scale = np.maximum(amax / format_of(to).max, least)
    result: Array = np.where(amax == 0.0, 1.0, scale) if of_zero == "one" else scale
    return result


def dynamic_codes(y: Any, scale: Any, to: str, block: str) -> Array:
    """y over the scale of its block, saturated."""
    target, ratio = format_of(to), y / over_blocks(scale, block, *y.shape)
    result: Array = coded(ratio, to) if target.is_integer else np.clip(ratio, -target.max, target.max)
    return result

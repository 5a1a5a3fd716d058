"""Back from codes and scales to numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from oracle.operator import operator
from oracle.ops.quant_blocks import Block, over_blocks, scales_fit
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import chain

CODES = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int8",
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "int4", "uint4",
)  # fmt: skip
SCALES = ("float32", "bfloat16", "float8_e8m0fnu", "float8_e4m3fn")


def _fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes.get("one", 1) != 1 or sizes.get("single", 1) != 1:
        return f"tensor_scale has shape ({sizes['one']}, {sizes['single']}); expected (1, 1)"
    return scales_fit(dict(sizes), params["block"])


@operator(family="quant", check=_fits, dtypes=CODES)
def dequantise(
    codes: Annotated[Array, Floats("rows cols")],
    scale: Annotated[Array, Floats("scale_rows scale_cols", dtype=SCALES)],
    zero: Annotated[Array, Floats("scale_rows scale_cols", dtype=("int8", "uint4"))] | None = None,
    tensor_scale: Annotated[Array, Floats("one single", dtype="float32")] | None = None,
    *,
    block: Block = "token",
    to: Literal["bfloat16", "float16", "float32"] = "bfloat16",
) -> Annotated[Array, Output("out", chosen_by="to")]:
    """Codes back to numbers: ``out = (codes - zero) · scale``, and times ``tensor_scale`` where there is one.

    Parameters
    ----------
    codes : array (rows, cols)
        One of the 8-bit floats, float6, float4, int8, int4 or uint4, one element each.
    scale : array (block rows, block columns)
        float32, bfloat16, float8_e8m0fnu (a NaN makes its block NaN) or float8_e4m3fn.
    zero : int8 or uint4 array (block rows, block columns), optional
        Zero point of each block: the code that stands for 0.
    tensor_scale : float32 array (1, 1), optional
        One more factor, for two-level formats such as NVFP4.
    block : "tensor", "token", "channel", "1x16", "1x32", "1x64", "1x128" or "128x128"
        What shares a scale, as for `quantise`.
    to : "bfloat16", "float16" or "float32"
        The result's dtype.

    Returns
    -------
    out : array (rows, cols)
        ``to``.

    Notes
    -----
    Rounding points: the difference is exact; the products in float32, in any order; the result once to ``to``.

    Raises
    ------
    InputError
        The scales' shape is not that of the blocks, tensor_scale is not (1, 1), or dtypes that are not known.

    Source: OCP Microscaling Formats Specification 1.0 (2023), section 6.1; AITER, ``fp4_utils.py``; AWQ for zero
    points.

    Examples
    --------
    >>> import ml_dtypes
    >>> codes, zero = np.array([[3, 15]], ml_dtypes.uint4), np.array([[8]], ml_dtypes.uint4)
    >>> dequantise(codes, np.array([[0.5]], np.float32), zero)
    array([[-2.5,  3.5]])
    """
    if zero is not None:
        codes = codes - over_blocks(zero, block, *codes.shape)
    spread = over_blocks(scale, block, *codes.shape)
    out: Array = codes * spread if tensor_scale is None else chain(codes, spread, tensor_scale)
    return out

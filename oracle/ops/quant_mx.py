"""Quantisation with scales that are short numbers themselves: the microscaling formats, and NVFP4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from oracle.formats import Format, format_of, round_to
from oracle.operator import operator
from oracle.ops.quant_blocks import in_blocks, over_blocks
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import coded, stepped

SHORT_FLOATS = ("float16", "bfloat16", "float32")
ELEMENTS = Literal["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"]
MX_BLOCKS = Literal["1x32", "32x1", "32x32"]
Mode: TypeAlias = Literal["floor", "ceil", "even", "up"]
E8M0 = "float8_e8m0fnu"


def _power(rounding: Literal["up", "down"], divisor: float = 1.0) -> Callable[[Array], Array]:
    """Magnitudes over a power of two as powers of two; NaN for NaN and infinity, the smallest power for 0."""

    def step(amax: Array) -> Array:
        finite = np.where(np.isinf(amax), np.nan, amax) / divisor
        return round_to(finite, E8M0, rounding, saturate=True)

    return step


def _carried(element: Format) -> Callable[[Array], Array]:
    """As `_power` down, of magnitudes rounded first to the significant bits of an element, ties away from zero."""

    def step(amax: Array) -> Array:
        significand, _ = np.frexp(np.where(np.isfinite(amax), amax, 0.0))
        carry = significand >= 1.0 - 2.0 ** -(element.mantissa_bits + 2)
        return _power("down", element.max_binade)(np.where(carry, 2.0 * amax, amax))

    return step


def mx_scale(amax: Any, to: str, mode: str, free: Any = None) -> Any:
    """The power of two that `quantise_mx` makes of a block's largest magnitude; anything where ``free``."""
    element = format_of(to)
    steps = {
        "floor": _power("down", element.max_binade),
        "ceil": _power("up", element.max_binade),
        "even": _carried(element),
        "up": _power("up"),
    }
    return stepped(amax / element.max if mode == "up" else amax, steps[mode], free)


@operator(family="quant", dtypes=SHORT_FLOATS)
def quantise_mx(
    x: Annotated[Array, Floats("rows cols")],
    *,
    to: ELEMENTS = "float4_e2m1fn",
    block: MX_BLOCKS = "1x32",
    mode: Mode = "floor",
) -> Annotated[Array, Output("scale", dtype="float8_e8m0fnu")]:
    """Quantise to a microscaling format: ``scale = 2**(⌊log2 max|x|⌋ - e)`` of each block, ``codes = Q(x / scale)``.

    e is the exponent of the largest element: 2 for e2m1 and e2m3, 4 for e3m2, 8 for e4m3fn, 7 for e4m3fnuz, 15 for
    e5m2.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16 or float32.
    to : dtype by name
        The elements': float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e4m3fn, float8_e5m2 or float8_e4m3fnuz.
    block : "1x32", "32x1" or "32x32"
        What shares a scale; blocks at the ends may be smaller.
    mode : "floor", "ceil", "even" or "up"
        How the scale becomes a power of two. ``floor``: as above (the OCP specification, AITER RoundDown); elements
        may saturate. ``ceil``: the logarithm is rounded up (torchao CEIL, AITER Ceil). ``even``: max|x| is first
        rounded to the elements' significant bits, halves away from zero (torchao EVEN, AITER Even). ``up``: the
        smallest power of two that is at least max|x| / largest, so that nothing saturates (torchao RCEIL, AITER
        RoundUp, NVIDIA's MXFP8).

    Returns
    -------
    scale : float8_e8m0fnu array (block rows, block columns)
        2**-127 for a block of zeros, NaN for one that holds a NaN or an infinity.
    codes : array (rows, cols)
        ``to``, one element each; beyond its range the largest. Nothing is said of those under a scale that is NaN.

    Notes
    -----
    Rounding points: only in mode ``up`` the quotient by the largest element, by division or its reciprocal, in
    float32; the codes once, to nearest, ties to even. The codes are judged from the scale that was returned.

    Source: OCP Microscaling Formats Specification 1.0 (2023), section 6.3; torchao, ``ScaleCalculationMode``; AITER,
    ``MxScaleRoundMode``.

    Examples
    --------
    >>> quantise_mx(np.array([[5.0, -0.8, 0.1]], np.float32))
    (array([[1.]]), array([[ 4., -1.,  0.]]))
    >>> quantise_mx(np.array([[7.0, -0.8]], np.float32), mode="up")
    (array([[2.]]), array([[ 4. , -0.5]]))
    """
    scale: Array = mx_scale(np.max(in_blocks(np.abs(x), block), axis=(1, 3), initial=0.0), to, mode)
    return scale


@quantise_mx.stage
def mx_codes(
    x: Array, scale: Array, *, to: ELEMENTS, block: MX_BLOCKS
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The elements, from the scale that was returned."""
    spread = over_blocks(scale, block, *x.shape)
    codes: Array = coded(x / spread, to, free=np.isnan(spread))
    return codes


@operator(family="quant", dtypes=SHORT_FLOATS)
def quantise_nvfp4(
    x: Annotated[Array, Floats("rows cols")],
    *,
    reciprocal: bool = False,
) -> Annotated[Array, Output("tensor_scale", dtype="float32")]:
    """Quantise to NVFP4: ``t = max|x| / 2688``; ``scale = Q8(max|x| of 16 / (6 t))``; ``codes = Q4(x / (scale · t))``.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16 or float32; finite numbers.
    reciprocal : bool
        Whether the tensor's scale is returned as 2688 / max|x|, as vLLM and FlashInfer have it, in place of its
        reciprocal, as NVIDIA's Transformer Engine has it.

    Returns
    -------
    tensor_scale : float32 array (1, 1)
        t, or 1 / t; 1 for a matrix of zeros.
    scale : float8_e4m3fn array (rows, ⌈cols / 16⌉)
        One for 16 elements of a row; saturated.
    codes : float4_e2m1fn array (rows, cols)
        One element each; 0 where the scale is 0. Nothing is said of those under a NaN.

    Notes
    -----
    Rounding points: t; the quotients and products that make a block's scale and an element's ratio, in float32; the
    scale and the codes once, to nearest, ties to even. Each is judged from those that were returned before it.
    2688 = 448 · 6, the largest float8_e4m3fn times the largest float4_e2m1fn.

    Source: NVIDIA, "Pretraining Large Language Models with NVFP4" (2025), appendix C; FlashInfer, ``fp4_quantize``.

    Examples
    --------
    >>> quantise_nvfp4(np.array([[2688.0, 0.0, -448.0]], np.float32))
    (array([[1.]]), array([[448.]]), array([[ 6.,  0., -1.]]))
    """
    amax = np.max(np.abs(x), initial=0.0).reshape(1, 1)
    some = amax != 0.0
    safe = np.where(some, amax, 1.0)
    result: Array = np.where(some, 2688.0 / safe if reciprocal else safe / 2688.0, 1.0)
    return result


@quantise_nvfp4.stage
def nvfp4_scales(
    x: Array, tensor_scale: Array, *, reciprocal: bool
) -> Annotated[Array, Output("scale", dtype="float8_e4m3fn")]:
    """The blocks' scales, from the tensor's that was returned."""
    amax = np.max(in_blocks(np.abs(x), "1x16"), axis=(1, 3), initial=0.0) / 6.0
    scale: Array = coded(amax * tensor_scale if reciprocal else amax / tensor_scale, "float8_e4m3fn")
    return scale


@quantise_nvfp4.stage
def nvfp4_codes(
    x: Array, tensor_scale: Array, scale: Array, *, reciprocal: bool
) -> Annotated[Array, Output("codes", dtype="float4_e2m1fn")]:
    """The elements, from both scales that were returned."""
    spread = over_blocks(scale, "1x16", *x.shape)
    empty = spread == 0.0
    whole = np.where(empty, 1.0, spread)
    whole = whole / tensor_scale if reciprocal else whole * tensor_scale
    ratio = np.where(empty, 0.0, x / whole)
    codes: Array = coded(ratio, "float4_e2m1fn", free=np.isnan(spread) | np.isnan(tensor_scale) | np.isnan(x))
    return codes

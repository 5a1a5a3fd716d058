"""Variants of quantisation to 8 bits: one pipeline of float32 steps, each of which a variant may do its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.formats import Rounding, cast, format_of, round_to
from oracle.ops.quant_blocks import block_shape, in_blocks, over_blocks, scale_shape
from oracle.signature import Array
from oracle.variants.arithmetic import F, quotient
from oracle.variants.variant import control, mutant


def coded(ratio: Array, to: str, rounding: Rounding) -> Array:
    """float32 ratios stored in a format, saturated; NaN is 0 where there is none."""
    target = format_of(to)
    ratio = np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf) if not target.has_nan else ratio
    return cast(ratio.astype(np.float64), target, rounding, saturate=True)


def maxima(size: Array, block: str) -> Array:
    """The largest magnitude of each block: (block rows, block columns)."""
    largest: Array = np.max(in_blocks(size, block), axis=(1, 3), initial=0.0)
    return largest.astype(F)


def divided(x: Array, scale: Array) -> Array:
    """x / scale, correctly rounded."""
    return x / scale


def multiplied(x: Array, scale: Array) -> Array:
    """x times the reciprocal of the scale."""
    return x * (F(1) / scale)


@dataclass(frozen=True)
class Steps:
    """How a variant quantises.

    Attributes
    ----------
    prepare : function
        x in float32, of x and the optional factors.
    size : function
        What the maximum is taken of.
    amax : function
        Maxima of blocks: of sizes and a block's name.
    scale : function
        Of a maximum and the number that it becomes.
    finish : function
        The scale, of the maximum, the raw scale and the parameters.
    used : function
        The scale that the codes are computed with, of the returned one.
    ratio, store : function
        The quotient; the codes, of quotient, format and rounding.
    """

    prepare: Callable[[Array, Array | None], Array] = lambda x, smooth: (
        x.astype(F) if smooth is None else x.astype(F) * smooth
    )
    size: Callable[[Array], Array] = np.abs
    amax: Callable[[Array, str], Array] = maxima
    scale: Callable[[Array, float], Array] = lambda amax, top: amax / F(top)
    finish: Callable[[Array, Array, dict[str, Any]], Array] = lambda amax, scale, params: np.where(
        (amax == 0) & (params["of_zero"] == "one"), F(1), np.maximum(scale, F(params["least"]))
    )
    used: Callable[[Array], Array] = lambda scale: scale
    ratio: Callable[[Array, Array], Array] = divided
    store: Callable[[Array, str, Rounding], Array] = coded

    def codes(self, x: Array, scale: Array, to: str, block: str, rounding: str) -> Array:
        """The codes of x in float32."""
        spread = over_blocks(self.used(scale), block, *x.shape)
        return self.store(self.ratio(x, spread), to, "toward_zero" if rounding == "toward_zero" else "nearest_even")

    def run(self, x: Array, smooth: Array | None, params: dict[str, Any]) -> tuple[Array, Array]:
        """Scale and codes."""
        wide_x = self.prepare(x, smooth)
        size = self.size(wide_x)
        if params["nans"] == "ignore":
            size = np.where(np.isnan(size), F(0), size)
        amax = self.amax(size, params["block"])
        top = params["largest"] or format_of(params["to"]).max
        scale = self.finish(amax, self.scale(amax, top), params).astype(F)
        return scale, self.codes(wide_x, scale, params["to"], params["block"], params["rounding"])


HONEST = Steps()


def _dynamic(register: Callable[..., Any], name: str, flaw: str, steps: Steps, **facts: Any) -> None:
    def quantise(x: Array, smooth: Array | None, **params: Any) -> tuple[Array, Array]:
        return steps.run(x, smooth, params)

    quantise.__doc__ = flaw
    register("quantise", name=name, **facts)(quantise)


def _static(register: Callable[..., Any], name: str, flaw: str, steps: Steps, **facts: Any) -> None:
    def quantise_static(x: Array, scale: Array, *, to: str, block: str, rounding: str) -> Array:
        return steps.codes(x.astype(F), scale, to, block, rounding)

    quantise_static.__doc__ = flaw
    register("quantise_static", name=name, **facts)(quantise_static)


# Honest ways.


def _block_by_block(size: Array, block: str) -> Array:
    high, wide = block_shape(block, *size.shape)
    out = np.zeros(scale_shape(block, *size.shape), F)
    for i, j in np.ndindex(out.shape):
        out[i, j] = np.max(size[i * high : (i + 1) * high, j * wide : (j + 1) * wide], initial=0.0)
    return out


def _columns_then_rows(size: Array, block: str) -> Array:
    blocks = in_blocks(size, block)
    return np.asarray(blocks.max(axis=1, initial=0.0).max(axis=-1, initial=0.0), F)


def _by_bits(size: Array, block: str) -> Array:
    """Magnitudes are compared as integers: their order is that of their bits, and NaN is above all."""
    bits = in_blocks(np.ascontiguousarray(size, F).view(np.int32), block, fill=0)
    largest: Array = np.max(bits, axis=(1, 3), initial=0).astype(np.int32).view(F)
    return largest


def _by_reciprocal(amax: Array, top: float) -> Array:
    return amax * F(1 / top)


def _two_ulps_off(amax: Array, top: float) -> Array:
    return quotient(amax, F(top))


def _an_ulp_off(x: Array, scale: Array) -> Array:
    ratio = x / scale
    moved = np.nextafter(ratio, F(0))
    inexact = ratio.astype(np.float64) * scale != x
    return np.where(inexact & np.isfinite(ratio), moved, ratio)


def _row_by_row(x: Array, scale: Array) -> Array:
    out = np.empty_like(x)
    for row in range(len(x)):
        out[row] = multiplied(x[row], scale[row])
    return out


CONTROLS: tuple[tuple[str, str, Steps], ...] = (
    ("divisions", "Both quotients are correctly rounded.", HONEST),
    ("reciprocal_of_the_scale", "x is multiplied by the reciprocal of the scale.", replace(HONEST, ratio=multiplied)),
    ("reciprocals", "Both quotients are products with reciprocals.", Steps(scale=_by_reciprocal, ratio=multiplied)),
    ("division_an_ulp_off", "The quotient is off by up to an ulp.", replace(HONEST, ratio=_an_ulp_off)),
    ("maximum_of_bits", "The maximum is that of the bit patterns.", replace(HONEST, amax=_by_bits)),
    ("columns_then_rows", "The maximum is taken in two steps.", Steps(amax=_columns_then_rows, scale=_by_reciprocal)),
    ("block_by_block", "The maximum of one block after another.", replace(HONEST, amax=_block_by_block)),
    ("as_promised", "Quotients are off by anything up to two ulps.", Steps(scale=_two_ulps_off, ratio=quotient)),
)
for _name, _flaw, _steps in CONTROLS:
    _dynamic(control, _name, _flaw, _steps)

STATIC_CONTROLS: tuple[tuple[str, str, Steps], ...] = (
    *CONTROLS[:2],
    CONTROLS[3],
    (
        "in_double_precision",
        "The quotient is taken in float64 and rounded to float32.",
        replace(HONEST, ratio=lambda x, scale: (x.astype(np.float64) / scale).astype(F)),
    ),
    (
        "clipped_first",
        "The quotient is clipped before it is stored.",
        replace(
            HONEST,
            store=lambda ratio, to, rounding: coded(
                np.clip(ratio, format_of(to).lowest, format_of(to).max), to, rounding
            ),
        ),
    ),
    ("row_by_row", "One row after another.", replace(HONEST, ratio=_row_by_row)),
)
for _name, _flaw, _steps in STATIC_CONTROLS:
    _static(control, _name, _flaw, _steps)


# Wrong ways.


def _next_block(scale: Array) -> Array:
    return np.roll(scale, 1, axis=1) if scale.shape[1] > 1 else np.roll(scale, 1, axis=0)


def _without_last_column(size: Array, block: str) -> Array:
    return maxima(np.where(np.arange(size.shape[1]) == size.shape[1] - 1, F(0), size), block)


def _first_row_only(size: Array, block: str) -> Array:
    high, _ = block_shape(block, *size.shape)
    return maxima(np.where(np.arange(size.shape[0])[:, np.newaxis] % high == 0, size, F(0)), block)


def _of_everything(size: Array, block: str) -> Array:
    return np.full(scale_shape(block, *size.shape), np.max(size, initial=0.0), F)


def _of_the_other_kind(amax: Array, top: float) -> Array:
    return amax / F({448.0: 240.0, 240.0: 448.0, 127.0: 128.0}.get(top, top / 2))


def _ties_away(ratio: Array, to: str, rounding: Rounding) -> Array:
    return coded(ratio, to, "nearest_away" if rounding == "nearest_even" else rounding)


def _other_rounding(ratio: Array, to: str, rounding: Rounding) -> Array:
    return coded(ratio, to, "toward_zero" if rounding == "nearest_even" else "nearest_even")


def _rounded_twice(ratio: Array, to: str, rounding: Rounding) -> Array:
    return coded(round_to(ratio, "float16" if to == "int8" else "bfloat16").astype(F), to, rounding)


def _wrapped(ratio: Array, to: str, rounding: Rounding) -> Array:
    """Beyond the range an integer wraps around, and a float is NaN (or an infinity)."""
    target = format_of(to)
    if target.is_integer:
        safe = np.nan_to_num(ratio, nan=0.0, posinf=2.0**31, neginf=-(2.0**31))
        return round_to(np.clip(safe, -(2.0**31), 2.0**31 - 1), "int32", rounding).astype(np.int64).astype(np.int8)
    return cast(ratio.astype(np.float64), target, rounding, saturate=False)


def _to_power_of_two(amax: Array, top: float) -> Array:
    with np.errstate(all="ignore"):
        power: Array = np.exp2(np.ceil(np.log2(amax / F(top)))).astype(F)
    return power


def _short_scale(scale: Array) -> Array:
    return round_to(scale, "bfloat16").astype(F)


STORED_WRONG: tuple[tuple[str, str, Steps], ...] = (
    ("next_block", "The codes are computed with the scale of a neighbouring block.", Steps(used=_next_block)),
    ("multiplied_by_scale", "x is multiplied by the scale.", Steps(ratio=lambda x, scale: x * scale)),
    ("ties_away", "Ties go away from zero.", Steps(store=_ties_away)),
    ("other_rounding", "Codes are truncated, and rounded where they must be truncated.", Steps(store=_other_rounding)),
    ("rounded_twice", "The quotient is rounded to 16 bits before it becomes a code.", Steps(store=_rounded_twice)),
    ("scale_in_bfloat16", "The codes are computed with the scale rounded to bfloat16.", Steps(used=_short_scale)),
    (
        "no_negatives",
        "Negative numbers lose their sign.",
        Steps(store=lambda ratio, to, rounding: coded(np.abs(ratio), to, rounding)),
    ),
)
MUTANTS: tuple[tuple[str, str, Steps], ...] = (
    *STORED_WRONG,
    ("no_magnitude", "The maximum is taken of x, not of |x|.", Steps(size=lambda x: np.maximum(x, F(0)))),
    ("last_column_missed", "The last column does not count in the maximum.", Steps(amax=_without_last_column)),
    ("one_scale", "All blocks have the scale of the whole matrix.", Steps(amax=_of_everything)),
    ("first_row_only", "Only the first row of a block counts in the maximum.", Steps(amax=_first_row_only)),
    ("other_largest", "The largest code is that of another format.", Steps(scale=_of_the_other_kind)),
    ("power_of_two", "The scale is rounded up to a power of two.", Steps(scale=_to_power_of_two)),
    (
        "scale_not_limited",
        "Neither a lower limit nor a scale for blocks of zeros.",
        Steps(finish=lambda amax, scale, params: scale),
    ),
    (
        "always_limited",
        "Every scale is at least 1e-12, that of a block of zeros too.",
        Steps(finish=lambda amax, scale, params: np.maximum(scale, F(1e-12))),
    ),
    (
        "factors_left_out",
        "The factors of the columns are not applied.",
        Steps(prepare=lambda x, smooth: x.astype(F)),
    ),
    (
        "nan_ignored",
        "A NaN does not count in the maximum.",
        Steps(size=lambda x: np.abs(np.where(np.isnan(x), F(0), x))),
    ),
)
for _name, _flaw, _steps in MUTANTS:
    _dynamic(mutant, _name, _flaw, _steps)
for _name, _flaw, _steps in (*STORED_WRONG, ("wrapped", "Beyond the range codes wrap around.", Steps(store=_wrapped))):
    _static(mutant, _name, _flaw, _steps)


@mutant("quantise", relation="rows_share_nothing")
def form_by_row(x: Array, smooth: Array | None, **params: Any) -> tuple[Array, Array]:
    """Blocks of odd rows are scaled by a reciprocal, those of even rows by a division."""
    scale, codes = HONEST.run(x, smooth, params)
    if params["block"] in ("tensor", "channel"):
        return scale, codes
    other = replace(HONEST, scale=_by_reciprocal).run(x, smooth, params)
    high, _ = block_shape(params["block"], *x.shape)
    odd = np.arange(len(scale))[:, np.newaxis] % 2 == 1
    odd_rows = np.arange(len(x))[:, np.newaxis] // high % 2 == 1
    return np.where(odd, other[0], scale), np.where(odd_rows, other[1], codes)


@mutant("quantise", relation="signs_turn_codes")
def form_by_sign(x: Array, smooth: Array | None, **params: Any) -> tuple[Array, Array]:
    """A matrix whose first element is negative is scaled by a reciprocal."""
    negative = bool(x.size) and x.reshape(-1)[0] < 0
    return (replace(HONEST, scale=_by_reciprocal) if negative else HONEST).run(x, smooth, params)


@mutant("quantise", relation="powers_of_two_only_scale")
def form_by_size(x: Array, smooth: Array | None, **params: Any) -> tuple[Array, Array]:
    """A matrix that holds a number beyond 8 is scaled by a reciprocal."""
    big = bool((np.abs(x[np.isfinite(x)]) > 8).any())
    return (replace(HONEST, scale=_by_reciprocal) if big else HONEST).run(x, smooth, params)

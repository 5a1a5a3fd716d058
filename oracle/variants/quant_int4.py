"""Variants of quantisation to 4-bit integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.formats import Rounding, cast, round_to
from oracle.ops.quant_blocks import block_shape, in_blocks, over_blocks, scale_shape
from oracle.signature import Array
from oracle.variants.arithmetic import F, quotient
from oracle.variants.quant import coded, divided, maxima, multiplied
from oracle.variants.variant import control, mutant


@dataclass(frozen=True)
class Signed:
    """How a variant quantises to int4: see `oracle.variants.quant`."""

    size: Callable[[Array], Array] = np.abs
    amax: Callable[[Array, str], Array] = maxima
    scale: Callable[[Array, float, float], Array] = lambda amax, least, top: np.maximum(amax, F(least)) / F(top)
    used: Callable[[Array], Array] = lambda scale: scale
    ratio: Callable[[Array, Array], Array] = divided
    store: Callable[[Array, str, Rounding], Array] = coded

    def run(self, x: Array, *, group: str, largest: int, least: float) -> tuple[Array, Array]:
        """Scale and codes."""
        wide = x.astype(F)
        scale = self.scale(self.amax(self.size(wide), group), least, largest).astype(F)
        ratio = self.ratio(wide, over_blocks(self.used(scale), group, *x.shape))
        return scale, self.store(ratio, "int4", "nearest_even")


def _register(kind: Callable[..., Any], name: str, flaw: str, steps: Signed) -> None:
    def quantise_int4(x: Array, **params: Any) -> tuple[Array, Array]:
        return steps.run(x, **params)

    quantise_int4.__doc__ = flaw
    kind("quantise_int4", name=name)(quantise_int4)


def _reciprocal_scale(amax: Array, least: float, top: float) -> Array:
    return np.maximum(amax, F(least)) * F(1 / top)


def _two_ulps_off(amax: Array, least: float, top: float) -> Array:
    return quotient(np.maximum(amax, F(least)), F(top))


def _limited_after(amax: Array, least: float, top: float) -> Array:
    return np.maximum(amax / F(top), F(least) / F(top))


def _group_by_group(size: Array, group: str) -> Array:
    _, wide = block_shape(group, *size.shape)
    out = np.zeros(scale_shape(group, *size.shape), F)
    for j in range(out.shape[1]):
        out[:, j] = size[:, j * wide : (j + 1) * wide].max(axis=1, initial=0.0)
    return out


def _packed_and_back(ratio: Array, to: str, rounding: Rounding) -> Array:
    """Codes through the low four bits of bytes, as packed storage has them."""
    low = np.clip(np.rint(ratio), -8, 7).astype(np.int8) & 15
    return cast(np.where(low > 7, low.astype(np.float64) - 16, low), to)


HONEST = Signed()
for _name, _flaw, _steps in (
    ("divisions", "Both quotients are correctly rounded.", HONEST),
    ("reciprocal_of_the_scale", "x is multiplied by the reciprocal of the scale.", Signed(ratio=multiplied)),
    ("reciprocals", "Both quotients are products.", Signed(scale=_reciprocal_scale, ratio=multiplied)),
    ("limited_after", "The lower limit is applied after the division.", Signed(scale=_limited_after)),
    ("group_by_group", "One group after another.", Signed(amax=_group_by_group)),
    ("packed_and_back", "Codes go through packed storage.", Signed(store=_packed_and_back, ratio=multiplied)),
    ("as_promised", "Quotients are off by anything up to two ulps.", Signed(scale=_two_ulps_off, ratio=quotient)),
):
    _register(control, _name, _flaw, _steps)


def _next_group(scale: Array) -> Array:
    return np.roll(scale, 1, axis=1) if scale.shape[1] > 1 else np.roll(scale, 1, axis=0)


def _without_last_column(size: Array, group: str) -> Array:
    return maxima(np.where(np.arange(size.shape[1]) == size.shape[1] - 1, F(0), size), group)


def _as_unsigned(ratio: Array, to: str, rounding: Rounding) -> Array:
    return coded(np.maximum(ratio, F(0)), to, rounding)


def _wrapped(ratio: Array, to: str, rounding: Rounding) -> Array:
    code = np.rint(ratio).astype(np.int64) & 15
    return cast(np.where(code > 7, code - 16.0, code), to)


for _name, _flaw, _steps in (
    ("next_group", "Codes are computed with the scale of a neighbouring group.", Signed(used=_next_group)),
    ("no_magnitude", "The maximum is taken of x, not of |x|.", Signed(size=lambda x: np.maximum(x, F(0)))),
    ("last_column_missed", "The last column does not count.", Signed(amax=_without_last_column)),
    (
        "over_fifteen",
        "The largest becomes 7.5.",
        Signed(scale=lambda amax, least, top: np.maximum(amax, F(least)) / F(7.5)),
    ),
    (
        "always_seven",
        "The largest becomes 7, whatever is asked for, or 8 where 7 is.",
        Signed(scale=lambda amax, least, top: np.maximum(amax, F(least)) / F(15 - top)),
    ),
    ("not_limited", "Scales have no lower limit.", Signed(scale=lambda amax, least, top: amax / F(top))),
    ("ties_away", "Ties go away from zero.", Signed(store=lambda r, to, rounding: coded(r, to, "nearest_away"))),
    ("truncated", "Codes are truncated.", Signed(store=lambda r, to, rounding: coded(r, to, "toward_zero"))),
    ("as_unsigned", "Negative codes are lost.", Signed(store=_as_unsigned)),
    (
        "scale_in_bfloat16",
        "Codes are computed with the scale rounded to bfloat16.",
        Signed(used=lambda scale: round_to(scale, "bfloat16").astype(F)),
    ),
):
    _register(mutant, _name, _flaw, _steps)


@mutant("quantise_int4", name="wrapped")
def _wraps(x: Array, **params: Any) -> tuple[Array, Array]:
    """8 wraps around to -8."""
    return Signed(store=_wrapped).run(x, **params)


# With zero points.


@dataclass(frozen=True)
class Unsigned:
    """How a variant quantises with zero points.

    Attributes
    ----------
    ends : function
        The least and the largest element of each group.
    scale : function
        Of both, and the least range.
    zero : function
        Of the least element and the scale, as float32 before it is stored.
    ratio : function
        Of x and its scale.
    code : function
        Of ratio and zero point, in float32, before it is limited.
    """

    ends: Callable[[Array, str], tuple[Array, Array]] = lambda x, group: (
        -_greatest(-x, group),
        _greatest(x, group),
    )
    scale: Callable[[Array, Array, float], Array] = lambda low, high, least: np.maximum(high - low, F(least)) / F(15)
    zero: Callable[[Array, Array], Array] = lambda low, scale: np.rint(-low / scale)
    ratio: Callable[[Array, Array], Array] = divided
    code: Callable[[Array, Array], Array] = lambda ratio, zero: np.rint(ratio) + zero

    def run(self, x: Array, *, group: str, least: float) -> tuple[Array, Array, Array]:
        """Scale, zero points and codes."""
        wide = x.astype(F)
        low, high = self.ends(wide, group)
        scale = self.scale(low, high, least).astype(F)
        zero = cast(np.clip(self.zero(low, scale), 0, 15).astype(np.float64), "uint4")
        ratio = self.ratio(wide, over_blocks(scale, group, *x.shape))
        code = self.code(ratio, over_blocks(zero.astype(F), group, *x.shape))
        return scale, zero, cast(np.clip(code, 0, 15).astype(np.float64), "uint4")


def _greatest(x: Array, group: str) -> Array:
    there = in_blocks(np.ones(x.shape, F), group) > 0
    return np.asarray(np.max(np.where(there, in_blocks(x, group), -np.inf), axis=(1, 3), initial=-np.inf), F)


def _register_uint4(kind: Callable[..., Any], name: str, flaw: str, steps: Unsigned) -> None:
    def quantise_uint4(x: Array, **params: Any) -> tuple[Array, Array, Array]:
        return steps.run(x, **params)

    quantise_uint4.__doc__ = flaw
    kind("quantise_uint4", name=name)(quantise_uint4)


def _ends_group_by_group(x: Array, group: str) -> tuple[Array, Array]:
    _, wide = block_shape(group, *x.shape)
    low, high = (np.zeros(scale_shape(group, *x.shape), F) for _ in range(2))
    for j in range(low.shape[1]):
        part = x[:, j * wide : (j + 1) * wide]
        low[:, j], high[:, j] = part.min(axis=1), part.max(axis=1)
    return low, high


def _scale_by_reciprocal(low: Array, high: Array, least: float) -> Array:
    scale: Array = np.maximum(high - low, F(least)) * F(1 / 15)
    return scale


UNSIGNED = Unsigned()
for _label, _reason, _two in (
    ("divisions", "Quotients are correctly rounded.", UNSIGNED),
    ("reciprocal_of_the_scale", "x is multiplied by the reciprocal of the scale.", Unsigned(ratio=multiplied)),
    ("scale_by_reciprocal", "The range is multiplied by 1/15.", Unsigned(scale=_scale_by_reciprocal)),
    (
        "zero_by_reciprocal",
        "The zero point is a product with the reciprocal.",
        Unsigned(zero=lambda low, scale: np.rint(-low * (F(1) / scale)), ratio=multiplied),
    ),
    ("group_by_group", "One group after another.", Unsigned(ends=_ends_group_by_group)),
    (
        "as_promised",
        "Quotients are off by anything up to two ulps.",
        Unsigned(
            scale=lambda low, high, least: quotient(np.maximum(high - low, F(least)), F(15)),
            zero=lambda low, scale: np.rint(quotient(-low, scale)),
            ratio=quotient,
        ),
    ),
    (
        "limited_before",
        "The rounded quotient is limited before the zero point is added.",
        Unsigned(code=lambda ratio, zero: np.clip(np.rint(ratio), -zero, 15 - zero) + zero),
    ),
):
    _register_uint4(control, _label, _reason, _two)

for _label, _reason, _two in (
    (
        "rounded_with_zero",
        "The sum with the zero point is rounded, which decides ties otherwise.",
        Unsigned(code=lambda ratio, zero: np.rint(ratio + zero)),
    ),
    ("zero_truncated", "The zero point is truncated.", Unsigned(zero=lambda low, scale: np.trunc(-low / scale))),
    ("codes_truncated", "Codes are truncated.", Unsigned(code=lambda ratio, zero: np.trunc(ratio) + zero)),
    ("zero_left_out", "The zero point is not added.", Unsigned(code=lambda ratio, zero: np.rint(ratio))),
    ("zero_subtracted", "The zero point is subtracted.", Unsigned(code=lambda ratio, zero: np.rint(ratio) - zero)),
    (
        "over_sixteen",
        "The range is divided by 16.",
        Unsigned(scale=lambda low, high, least: np.maximum(high - low, F(least)) / F(16)),
    ),
    ("not_limited", "Scales have no lower limit.", Unsigned(scale=lambda low, high, least: (high - low) / F(15))),
    (
        "zero_in_range",
        "The range is stretched to hold 0.",
        Unsigned(
            ends=lambda x, group: (np.minimum(-_greatest(-x, group), F(0)), np.maximum(_greatest(x, group), F(0)))
        ),
    ),
    (
        "padding_counts",
        "The zeros that fill up the last group count.",
        Unsigned(
            ends=lambda x, group: (
                in_blocks(x, group).min(axis=(1, 3), initial=np.inf),
                in_blocks(x, group).max(axis=(1, 3), initial=-np.inf),
            )
        ),
    ),
    (
        "from_bfloat16",
        "Codes are computed with the scale rounded to bfloat16.",
        replace(UNSIGNED, ratio=lambda x, scale: x / round_to(scale, "bfloat16").astype(F)),
    ),
):
    _register_uint4(mutant, _label, _reason, _two)

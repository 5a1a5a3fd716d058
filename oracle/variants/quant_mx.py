"""Variants of the microscaling formats and of NVFP4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from oracle.formats import Rounding, cast, format_of
from oracle.ops.quant_blocks import block_shape, in_blocks, over_blocks, scale_shape
from oracle.signature import Array
from oracle.variants.arithmetic import F, quotient
from oracle.variants.quant import coded, divided, maxima, multiplied
from oracle.variants.variant import control, mutant

EXPONENTS = np.int32(0x7F800000)


def _bytes_of(power: Array) -> Array:
    """float32 powers of two (or NaN) as float8_e8m0fnu; below 2**-127 that."""
    return cast(np.where(power == 0, F(2.0**-127), power).astype(np.float64), "float8_e8m0fnu")


def powers(amax: Array, to: str, mode: str) -> Array:
    """Scales of a mode, by work on the bits of float32 numbers, as the libraries do it."""
    element = format_of(to)
    bits = np.ascontiguousarray(amax, F).view(np.int32).astype(np.int64)
    if mode == "up":
        bits = np.ascontiguousarray(amax / F(element.max), F).view(np.int32).astype(np.int64)
    rounded = {
        "floor": bits,
        "ceil": bits + 0x007FFFFF,
        "up": bits + 0x007FFFFF,
        "even": bits + (1 << (22 - element.mantissa_bits)),
    }[mode] & int(EXPONENTS)
    power = np.ascontiguousarray(rounded.astype(np.int32)).view(F).astype(np.float64)
    power = power if mode == "up" else power / element.max_binade
    return _bytes_of(np.where(np.isfinite(amax), power, np.nan))


def _by_logarithm(amax: Array, to: str, mode: str) -> Array:
    """Scales through exponents of numbers in float64."""
    element = format_of(to)
    number = amax.astype(np.float64) / (element.max if mode == "up" else 1.0)
    significand, exponent = np.frexp(np.where(np.isfinite(number), number, 1.0))
    more = {
        "floor": 0,
        "ceil": significand > 0.5,
        "up": significand > 0.5,
        "even": significand >= 1.0 - 2.0 ** -(element.mantissa_bits + 2),
    }[mode]
    power = np.ldexp(1.0, exponent - 1 + more) / (1.0 if mode == "up" else element.max_binade)
    power = np.where(number == 0.0, 0.0, power)
    return _bytes_of(np.where(np.isfinite(amax), power, np.nan))


def _product_with_reciprocal(amax: Array, to: str, mode: str) -> Array:
    if mode != "up":
        return powers(amax, to, mode)
    with np.errstate(all="ignore"):
        quotient = amax * F(1.0 / format_of(to).max)
        significand, exponent = np.frexp(np.where(np.isfinite(quotient), quotient, F(1)))
    power = np.ldexp(1.0, exponent - 1 + (significand > 0.5))
    return _bytes_of(np.where(np.isfinite(amax), np.where(quotient == 0, 0.0, power), np.nan))


def by_table(ratio: Array, to: str, rounding: Rounding) -> Array:
    """The code whose interval a ratio lies in, found by comparison with the midpoints."""
    target = format_of(to)
    kind = target.dtype
    codes = np.arange(2 ** (target.bits - 1)).astype(np.uint8).view(kind)
    values = codes.astype(np.float64)
    values = values[np.isfinite(values)]
    middle = (values[1:] + values[:-1]) / 2
    size = np.abs(np.nan_to_num(ratio.astype(np.float64), nan=0.0))
    below, above = np.searchsorted(middle, size, side="left"), np.searchsorted(middle, size, side="right")
    place = np.where(below % 2 == 0, below, above)  # at a midpoint the even code
    result = np.copysign(values[place], ratio)
    result = np.where(np.isnan(ratio) & target.has_nan, np.nan, result)
    return cast(result, target)


def by_conversion(ratio: Array, to: str, rounding: Rounding) -> Array:
    """Through the conversions of ml_dtypes, saturated by comparison first."""
    target = format_of(to)
    with np.errstate(all="ignore"):
        ratio = np.where(np.isnan(ratio) & (not target.has_nan), F(0), ratio)
        return np.clip(ratio, F(-target.max), F(target.max)).astype(target.dtype)


@dataclass(frozen=True)
class Steps:
    """How a variant quantises to a microscaling format: see `oracle.variants.quant`."""

    size: Callable[[Array], Array] = np.abs
    amax: Callable[[Array, str], Array] = maxima
    scale: Callable[[Array, str, str], Array] = powers
    used: Callable[[Array], Array] = lambda scale: scale
    ratio: Callable[[Array, Array], Array] = divided
    store: Callable[[Array, str, Rounding], Array] = coded

    def run(self, x: Array, *, to: str, block: str, mode: str) -> tuple[Array, Array]:
        """Scale and codes."""
        wide = x.astype(F)
        scale = self.scale(self.amax(self.size(wide), block), to, mode)
        spread = over_blocks(self.used(scale.astype(F)), block, *x.shape)
        return scale, self.store(self.ratio(wide, spread), to, "nearest_even")


HONEST = Steps()


def _register(kind: Callable[..., Any], name: str, flaw: str, steps: Steps) -> None:
    def quantise_mx(x: Array, *, to: str, block: str, mode: str) -> tuple[Array, Array]:
        return steps.run(x, to=to, block=block, mode=mode)

    quantise_mx.__doc__ = flaw
    kind("quantise_mx", name=name)(quantise_mx)


def _by_bits(size: Array, block: str) -> Array:
    bits = in_blocks(np.ascontiguousarray(size, F).view(np.int32), block, fill=0)
    largest: Array = np.max(bits, axis=(1, 3), initial=0).astype(np.int32).view(F)
    return largest


def _block_by_block(size: Array, block: str) -> Array:
    high, wide = block_shape(block, *size.shape)
    out = np.zeros(scale_shape(block, *size.shape), F)
    for i, j in np.ndindex(out.shape):
        out[i, j] = np.max(size[i * high : (i + 1) * high, j * wide : (j + 1) * wide], initial=0.0)
    return out


for _name, _flaw, _steps in (
    ("work_on_bits", "The scale comes from the bits of the maximum.", HONEST),
    ("exponents", "The scale comes from the exponent of the maximum.", Steps(scale=_by_logarithm)),
    ("times_reciprocal", "Mode up multiplies by 1 / largest.", Steps(scale=_product_with_reciprocal)),
    ("reciprocal_of_the_scale", "x is multiplied by the reciprocal of the scale.", Steps(ratio=multiplied)),
    ("table_of_midpoints", "Codes are found by comparison with midpoints.", Steps(store=by_table)),
    ("conversions", "Codes are made by ml_dtypes.", Steps(store=by_conversion, amax=_by_bits)),
    ("block_by_block", "One block after another.", Steps(amax=_block_by_block, scale=_by_logarithm)),
):
    _register(control, _name, _flaw, _steps)


def _in_mode(instead: str) -> Callable[[Array, str, str], Array]:
    def scale(amax: Array, to: str, mode: str) -> Array:
        return powers(amax, to, instead)

    return scale


def _one_byte_off(amax: Array, to: str, mode: str) -> Array:
    return _bytes_of(powers(amax, to, mode).astype(F) * F(2))


def _one_for_zeros(amax: Array, to: str, mode: str) -> Array:
    return np.where(amax == 0, ml_dtypes.float8_e8m0fnu(1.0), powers(amax, to, mode))


def _infinity_is_large(amax: Array, to: str, mode: str) -> Array:
    return powers(np.where(np.isinf(amax), F(format_of("float32").max), amax), to, mode)


def _next_block(scale: Array) -> Array:
    return np.roll(scale, 1, axis=1) if scale.shape[1] > 1 else np.roll(scale, 1, axis=0)


def _without_last_column(size: Array, block: str) -> Array:
    return maxima(np.where(np.arange(size.shape[1]) == size.shape[1] - 1, F(0), size), block)


def _along_rows(size: Array, block: str) -> Array:
    """Blocks are those of 32 elements of the flat array, rows running into each other."""
    if size.shape[1] % 32 == 0 or block != "1x32":
        return maxima(size, block)
    rows, groups = scale_shape(block, *size.shape)
    flat = np.concatenate([size.reshape(-1), np.zeros(rows * groups * 32 - size.size, F)])
    largest: Array = flat.reshape(rows, groups, 32).max(axis=-1)
    return largest


def _wrapped(ratio: Array, to: str, rounding: Rounding) -> Array:
    """Beyond the range the code wraps around to a small one."""
    target = format_of(to)
    return coded(np.where(np.abs(ratio) > F(target.max), ratio / F(target.max_binade), ratio), to, rounding)


for _name, _flaw, _steps in (
    ("always_floor", "The scale is rounded down in every mode.", Steps(scale=_in_mode("floor"))),
    ("always_ceil", "The scale is rounded up in every mode.", Steps(scale=_in_mode("ceil"))),
    ("always_even", "Every mode is even.", Steps(scale=_in_mode("even"))),
    ("always_up", "Every mode is up.", Steps(scale=_in_mode("up"))),
    ("bias_of_126", "The byte of the scale is off by one.", Steps(scale=_one_byte_off)),
    ("one_for_zeros", "The scale of a block of zeros is 1.", Steps(scale=_one_for_zeros)),
    ("infinity_is_large", "An infinity counts as the largest number.", Steps(scale=_infinity_is_large)),
    ("next_block", "Codes are computed with the scale of a neighbouring block.", Steps(used=_next_block)),
    ("no_magnitude", "The maximum is taken of x, not of |x|.", Steps(size=lambda x: np.maximum(x, F(0)))),
    ("last_column_missed", "The last column does not count in the maximum.", Steps(amax=_without_last_column)),
    ("rows_run_together", "Blocks run over the ends of rows.", Steps(amax=_along_rows)),
    (
        "ties_away",
        "Ties go away from zero.",
        Steps(store=lambda ratio, to, rounding: coded(ratio, to, "nearest_away")),
    ),
    ("truncated", "Codes are rounded towards zero.", Steps(store=lambda r, to, rounding: coded(r, to, "toward_zero"))),
    ("wrapped", "Beyond the range the code is a small one.", Steps(store=_wrapped)),
):
    _register(mutant, _name, _flaw, _steps)


# NVFP4


@dataclass(frozen=True)
class TwoLevels:
    """How a variant quantises to NVFP4.

    Attributes
    ----------
    tensor : function
        The tensor's scale: of its maximum and whether the reciprocal is wanted.
    block : function
        A block's scale before it is stored: of its maximum, the tensor's scale and whether that is a reciprocal.
    ratio : function
        Of x, the blocks' scales spread over it, the tensor's scale and whether that is a reciprocal.
    amax : function
        Maxima of blocks of 16.
    short, store : function
        The blocks' scales and the elements stored.
    """

    tensor: Callable[[Array, bool], Array] = lambda amax, inverse: F(2688) / amax if inverse else amax / F(2688)
    block: Callable[[Array, Array, bool], Array] = lambda amax, t, inverse: (
        amax / F(6) * t if inverse else amax / F(6) / t
    )
    ratio: Callable[[Array, Array, Array, bool], Array] = lambda x, s, t, inverse: x / (s / t if inverse else s * t)
    amax: Callable[[Array, str], Array] = maxima
    short: Callable[[Array, str, Rounding], Array] = coded
    store: Callable[[Array, str, Rounding], Array] = coded

    def run(self, x: Array, *, reciprocal: bool) -> tuple[Array, Array, Array]:
        """The tensor's scale, the blocks' scales, the codes."""
        wide = x.astype(F)
        largest = np.max(np.abs(wide), initial=0.0).reshape(1, 1).astype(F)
        t = self.tensor(largest, reciprocal).astype(F) if largest[0, 0] else np.ones((1, 1), F)
        scale = self.short(self.block(self.amax(np.abs(wide), "1x16"), t, reciprocal), "float8_e4m3fn", "nearest_even")
        spread = over_blocks(scale.astype(F), "1x16", *x.shape)
        ratio = np.where(spread == 0, F(0), self.ratio(wide, np.where(spread == 0, F(1), spread), t, reciprocal))
        return t, scale, self.store(ratio, "float4_e2m1fn", "nearest_even")


TWO = TwoLevels()


def _register_nvfp4(kind: Callable[..., Any], name: str, flaw: str, steps: TwoLevels) -> None:
    def quantise_nvfp4(x: Array, *, reciprocal: bool) -> tuple[Array, Array, Array]:
        return steps.run(x, reciprocal=reciprocal)

    quantise_nvfp4.__doc__ = flaw
    kind("quantise_nvfp4", name=name)(quantise_nvfp4)


def _one_product(x: Array, s: Array, t: Array, inverse: bool) -> Array:
    return x * (F(1) / (s * (F(1) / t) if inverse else s * t))


def _in_turn(x: Array, s: Array, t: Array, inverse: bool) -> Array:
    return x * (t / s) if inverse else x / t / s


def _block_reciprocal(amax: Array, t: Array, inverse: bool) -> Array:
    return (t if inverse else F(1) / t) * (amax * F(1 / 6))


def _tensor_reciprocal(amax: Array, inverse: bool) -> Array:
    return F(1) / (amax * F(1 / 2688)) if inverse else amax * F(1 / 2688)


def _promised_tensor(amax: Array, inverse: bool) -> Array:
    return quotient(np.asarray(F(2688)), amax) if inverse else quotient(amax, F(2688))


def _promised_block(amax: Array, t: Array, inverse: bool) -> Array:
    return quotient(amax, F(6)) * t if inverse else quotient(quotient(amax, F(6)), t)


def _tensor_in_two_steps(amax: Array, inverse: bool) -> Array:
    return F(448) * F(6) / amax if inverse else amax / F(448) / F(6)


for _label, _reason, _two in (
    ("divisions", "Quotients are correctly rounded.", TWO),
    ("one_product", "An element is multiplied by the reciprocal of its scale.", replace(TWO, ratio=_one_product)),
    ("one_scale_after_the_other", "The scales are applied in turn.", replace(TWO, ratio=_in_turn)),
    ("block_by_reciprocal", "A block's scale is a product of reciprocals.", replace(TWO, block=_block_reciprocal)),
    ("tensor_by_reciprocal", "The tensor's scale is made by a reciprocal.", replace(TWO, tensor=_tensor_reciprocal)),
    ("tensor_in_two_steps", "448 and 6 are divided by in turn.", replace(TWO, tensor=_tensor_in_two_steps)),
    ("table_of_midpoints", "Codes are found by comparison with midpoints.", replace(TWO, store=by_table)),
    ("block_by_block", "One block after another.", replace(TWO, amax=_block_by_block)),
    ("as_promised", "Quotients are off by anything up to two ulps.", TwoLevels(_promised_tensor, _promised_block)),
):
    _register_nvfp4(control, _label, _reason, _two)


def _other_tensor(amax: Array, inverse: bool) -> Array:
    return TWO.tensor(amax, not inverse)


for _label, _reason, _two in (
    ("other_convention", "The tensor's scale is the reciprocal of what is wanted.", replace(TWO, tensor=_other_tensor)),
    (
        "without_448",
        "The tensor's scale is max / 6.",
        replace(TWO, tensor=lambda amax, inverse: F(6) / amax if inverse else amax / F(6)),
    ),
    (
        "block_without_6",
        "A block's scale is not divided by 6.",
        replace(TWO, block=lambda amax, t, inverse: amax * t if inverse else amax / t),
    ),
    (
        "scale_rounded_up",
        "A block's scale is rounded up, so that nothing saturates.",
        replace(TWO, short=lambda ratio, to, rounding: coded(ratio, to, "up")),
    ),
    (
        "tensor_scale_left_out",
        "Elements are divided by their block's scale alone.",
        replace(TWO, ratio=lambda x, s, t, inverse: x / s),
    ),
    ("ties_away", "Ties go away from zero.", replace(TWO, store=lambda r, to, rounding: coded(r, to, "nearest_away"))),
    ("truncated", "Codes are truncated.", replace(TWO, store=lambda r, to, rounding: coded(r, to, "toward_zero"))),
    ("last_column_missed", "The last column does not count.", replace(TWO, amax=_without_last_column)),
    (
        "blocks_of_32",
        "32 elements share a scale.",
        replace(TWO, amax=lambda size, block: np.repeat(maxima(size, "1x32"), 2, axis=1)[:, : -(-size.shape[1] // 16)]),
    ),
    (
        "scale_before_rounding",
        "Elements are divided by the scale as it was before rounding.",
        replace(TWO, ratio=lambda x, s, t, inverse: _with_exact_scale(x, t, inverse)),
    ),
):
    _register_nvfp4(mutant, _label, _reason, _two)


def _with_exact_scale(x: Array, t: Array, inverse: bool) -> Array:
    scale = TWO.block(maxima(np.abs(x), "1x16"), t, inverse)
    scale = np.where(scale == 0, F(1), scale)
    return TWO.ratio(x, over_blocks(scale, "1x16", *x.shape), t, inverse)

"""Presets of tensor cores: sums that are cut off as hardware cuts them lie in the bound, and not in float32's."""

import ml_dtypes
import numpy as np
import pytest

from oracle.error import envelope, exact
from oracle.numerics import NUMERICS
from oracle.variants.tensor_core import fused_dots
from oracle.vocabulary import scaled_matmul
from refsim.engine.matrix_units import UNITS, multiply

HALVES = (np.float16, ml_dtypes.bfloat16)
EIGHTS = (ml_dtypes.float8_e4m3fn,)
PRESETS = {
    "tensor_core_sm70": HALVES[:1],
    "tensor_core_sm80": HALVES,
    "tensor_core_sm90": HALVES,
    "tensor_core_sm89_fp8": EIGHTS,
    "tensor_core_sm90_fp8": EIGHTS,
    "tensor_core_sm100_fp8": EIGHTS,
}


def drawn(rng, kind, k, dtype):
    """Two factors of one kind of difficulty."""
    a, b = rng.standard_normal((6, k)), rng.standard_normal((k, 7))
    if kind == "positive":
        a, b = np.abs(a), np.abs(b)
    if kind == "sparse":  # one product in every fourth place, so that every group holds few
        a = np.where(np.arange(k) % 4 == 3, a, 0.0)
    if kind == "steep":
        a = a * 2.0 ** -np.linspace(0, 6, k)
    if kind == "subnormal":
        a = rng.integers(-3, 4, (6, k)) * float(ml_dtypes.finfo(dtype).smallest_subnormal)
    return a.astype(dtype), b.astype(dtype)


def dtypes_of(preset):
    return PRESETS[preset]


@pytest.mark.parametrize("kind", ["normal", "positive", "sparse", "steep", "subnormal"])
@pytest.mark.parametrize("preset", PRESETS)
def test_sums_cut_off_lie_in_the_bound(preset, kind):
    rng = np.random.default_rng(5)
    numerics = NUMERICS[preset]
    for dtype in dtypes_of(preset):
        for k in (1, 3, 17, 64, 200):
            a, b = drawn(rng, kind, k, dtype)
            got = fused_dots(preset)(a.astype(np.float32), b.astype(np.float32)).astype(np.float64)
            product = envelope(exact(a, numerics) @ exact(b, numerics), "float64")
            assert (np.abs(got - product.value) <= product.bound).all(), (dtype, k)
            scale = np.float32(2.0) ** rng.integers(-30, 30, (6, 1)).astype(np.float32)
            scaled = scaled_matmul(exact(a, numerics), (exact(scale, numerics),), exact(b, numerics), ())
            scaled = envelope(scaled, "float64")
            assert (np.abs(got * scale - scaled.value) <= scaled.bound).all(), (dtype, k)


@pytest.mark.parametrize(
    ("preset", "unit", "dtype"),
    [
        ("tensor_core_sm70", "sm_70", np.float16),
        ("tensor_core_sm80", "sm_80", np.float16),
        ("tensor_core_sm90", "sm_90", np.float16),
        ("tensor_core_sm89_fp8", "sm_89", ml_dtypes.float8_e4m3fn),
    ],
)
def test_emulation_agrees_with_the_simulated_unit(preset, unit, dtype):
    rng = np.random.default_rng(6)
    for kind in ("normal", "steep", "subnormal"):
        a, b = drawn(rng, kind, 48, dtype)
        ours = fused_dots(preset)(a.astype(np.float32), b.astype(np.float32))
        start = np.zeros((6, 7, 1), np.float32)
        theirs = multiply(UNITS[unit], np.dtype(dtype).name, a[..., np.newaxis], b[..., np.newaxis], start, False)
        assert (ours == theirs[..., 0]).all()


def test_fp8_on_hopper_is_not_float32():
    rng = np.random.default_rng(7)
    a, b = drawn(rng, "positive", 2048, ml_dtypes.float8_e4m3fn)
    got = fused_dots("tensor_core_sm90_fp8")(a.astype(np.float32), b.astype(np.float32)).astype(np.float64)
    promised = envelope(exact(a, NUMERICS["float32"]) @ exact(b, NUMERICS["float32"]), "float64")
    assert (np.abs(got - promised.value) > 100 * promised.bound).mean() > 0.5


def test_small_integers_are_exact_up_to_what_the_unit_keeps():
    ones = exact(np.ones((1, 64)), NUMERICS["tensor_core_sm90_fp8"])
    small, large = (exact(np.full((64, 1), size), NUMERICS["tensor_core_sm90_fp8"]) for size in (100.0, 208.0))
    assert envelope(ones @ small, "float32").bound.item() == 0
    uneven = exact(np.full((64, 1), 209.0), NUMERICS["tensor_core_sm90_fp8"])
    assert envelope(ones @ uneven, "float32").bound.item() > 0
    assert envelope(ones @ large, "float32").bound.item() == 0  # multiples of 16

"""8-bit floats in Numba kernels against their definition: every code, halfway cases, saturation, directions."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda, float32, int32, uint64
from numba.cuda._internal import cuda_fp8 as fp8

import refsim

FORMATS = {"fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2, "fp8_e8m0": ml_dtypes.float8_e8m0fnu}
LARGEST = {"fp8_e4m3": 448.0, "fp8_e5m2": 57344.0, "fp8_e8m0": 2.0**127}


def values_of(name):
    """The finite values that are not negative, by code."""
    codes = np.arange(128 if name != "fp8_e8m0" else 255, dtype=np.uint8)
    values = codes.view(FORMATS[name]).astype(np.float64)
    return {int(c): float(v) for c, v in zip(codes, values, strict=True) if math.isfinite(v)}


def nearest(name, x):
    """The value nearest to x, ties to the even code, saturated."""
    size = min(abs(x), LARGEST[name])
    table = values_of(name)
    code = min(table, key=lambda c: (abs(Fraction(table[c]) - Fraction(size)), c % 2))
    return math.copysign(table[code], x)


def upwards(x):
    return min((v for v in values_of("fp8_e8m0").values() if v >= abs(x)), default=2.0**127)


POINTS = [0.0, -0.0, 1.0, 1.5, -2.7, 0.06, 17.0, 18.0, 19.0, 448.0, 463.0, 465.0, 1e4, 57344.0, 61439.0, 61441.0, 1e9,
          -1e9, 1e-3, 2.0**-9, 2.0**-10, 2.0**-17, 3e-8, 1.0625, 1.1875, 2.0**-16 * 1.5, 2.0**-126, 1e-38]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constructor_rounds_and_saturates(name, dtype):
    make = getattr(fp8, name)

    def through(x, out):
        i = cuda.grid(1)
        out[i] = float32(make(x[i]))

    x, out = np.array(POINTS, dtype), np.zeros(len(POINTS), np.float32)
    launch_clean(through, 1, x.size, x, out)
    expected = [upwards(v) if name == "fp8_e8m0" else nearest(name, v) for v in x.tolist()]
    assert out.tolist() == expected
    x[:3], out = [math.nan, math.inf, -math.inf], np.zeros(3, np.float32)
    launch_clean(through, 1, 3, x, out)
    assert math.isnan(out[0])
    assert np.abs(out[1:]).tolist() == [LARGEST[name]] * 2


@pytest.mark.parametrize("name", FORMATS)
def test_integers_come_and_go(name):
    make = getattr(fp8, name)

    def through(x, signed, unsigned):
        i = cuda.grid(1)
        signed[i, 0] = int32(make(x[i]))
        signed[i, 1] = np.int8(make(x[i]))
        unsigned[i] = uint64(make(x[i]))

    x = np.array([0, 1, -3, 16, 100, 300, 2**40 + 1, -(2**63)])
    signed, unsigned = np.zeros((8, 2), np.int64), np.zeros(8, np.uint64)
    launch_clean(through, 1, 8, x, signed, unsigned)
    values = [upwards(v) if name == "fp8_e8m0" else nearest(name, v) for v in x.tolist()]
    whole = [math.trunc(v) for v in values]
    assert signed[:, 0].tolist() == [min(max(v, -(2**31)), 2**31 - 1) for v in whole]
    assert signed[:, 1].tolist() == [min(max(v, -128), 127) for v in whole]
    assert unsigned.tolist() == [min(max(v, 0), 2**64 - 1) for v in whole]


@pytest.mark.parametrize("encoding", ["E4M3", "E5M2"])
@pytest.mark.parametrize("saturation", ["SATFINITE", "NOSAT"])
def test_codes(encoding, saturation):
    name = f"fp8_{encoding.lower()}"
    saturate, interpretation = fp8.saturation_t[saturation], fp8.fp8_interpretation_t[encoding]

    def encode(x, out, pairs):
        i = cuda.grid(1)
        out[i, 0] = fp8.cvt_float_to_fp8(x[i], saturate, interpretation)
        out[i, 1] = fp8.cvt_double_to_fp8(x[i], saturate, interpretation)
        pairs[i] = fp8.cvt_float2_to_fp8x2(cuda.float32x2(x[i], x[0]), saturate, interpretation)

    x = np.array([2.0, *POINTS, math.inf, math.nan], np.float32)
    out, pairs = np.zeros((x.size, 2), np.uint8), np.zeros(x.size, np.uint16)
    launch_clean(encode, 1, x.size, x, out, pairs)
    top = 464.0 if encoding == "E4M3" else 61440.0
    beyond = {"E4M3": 0x7F, "E5M2": 0x7C}[encoding]
    for value, row, pair in zip(x.tolist(), out.tolist(), pairs.tolist(), strict=True):
        if math.isnan(value):
            wanted = 0x7F
        elif saturation == "NOSAT" and (abs(value) > top or (abs(value) == top and encoding == "E5M2")):
            wanted = beyond | (0x80 if value < 0 else 0)
        else:
            exact = np.array(nearest(name, value)).astype(FORMATS[name])
            wanted = int(exact.view(np.uint8))
        assert row == [wanted, wanted], value
        assert pair == wanted | int(out[0, 0]) << 8


@pytest.mark.parametrize(("mode", "up"), [(1, False), (2, True)])
@pytest.mark.parametrize("saturate", [0, 1])
def test_codes_of_exponents(mode, up, saturate):
    def encode(x, out):
        i = cuda.grid(1)
        out[i] = fp8.cvt_float_to_e8m0(x[i], saturate, mode)

    small, large = 2.0**-127, 2.0**127
    x = np.array([1.0, 1.5, -2.0, 0.0, small, 1.1 * small, large, 1.5 * large, math.inf, math.nan], np.float32)
    out = np.zeros(x.size, np.uint8)
    launch_clean(encode, 1, x.size, x, out)
    end = 254 if saturate else 255
    over = (254 if saturate else 255) if up else 254
    assert out.tolist() == [127, 128 if up else 127, 128, 0, 0, 1 if up else 0, 254, over, end, 255]


def test_raw_structures_are_refused_by_name():
    def raw(x):
        x[0] = fp8.cvt_bfloat16raw_to_fp8(x[0], 0, 0)

    with pytest.raises(refsim.UnsupportedError, match="cvt_bfloat16raw_to_fp8"):
        refsim.launch(raw, 1, 1, np.zeros(1, np.float32))

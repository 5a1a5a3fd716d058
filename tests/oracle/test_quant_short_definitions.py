"""Microscaling formats, NVFP4, int4 and dequantisation against loops over scalars, and what they refuse."""

import math

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict

EXPONENT = {
    "float4_e2m1fn": 2, "float6_e2m3fn": 2, "float6_e3m2fn": 4, "float8_e4m3fn": 8, "float8_e5m2": 15,
    "float8_e4m3fnuz": 7,
}  # fmt: skip
SIGNIFICANT = {name: ml_dtypes.finfo(getattr(ml_dtypes, name)).nmant for name in EXPONENT}


def number(value, to):
    """A float32 as an element, saturated, by ml_dtypes' conversion."""
    kind = np.dtype(getattr(ml_dtypes, to))
    largest = float(ml_dtypes.finfo(kind).max)
    return float(np.float32(min(max(float(value), -largest), largest)).astype(kind))


def mx_scale(amax, to, mode):
    if not math.isfinite(amax):
        return math.nan
    if amax == 0:
        return 2.0**-127
    power = math.floor(math.log2(amax))
    power += (2.0 ** (power + 1) <= amax) - (2.0**power > amax)
    if mode == "floor":
        power -= EXPONENT[to]
    elif mode == "ceil":
        power += (amax > 2.0**power) - EXPONENT[to]
    elif mode == "even":
        steps = amax / 2.0**power * 2 ** SIGNIFICANT[to]
        power += (math.floor(steps + 0.5) == 2 ** (SIGNIFICANT[to] + 1)) - EXPONENT[to]
    else:
        largest = float(ml_dtypes.finfo(getattr(ml_dtypes, to)).max)
        power = math.ceil(math.log2(amax) - math.log2(largest)) - 2
        while largest * 2.0**power < amax:
            power += 1
    return 2.0 ** max(power, -127)


def mx(x, to="float4_e2m1fn", block="1x32", mode="floor"):
    high, wide = (int(size) for size in block.split("x"))
    x = x.astype(np.float64)
    scale = np.zeros((-(-x.shape[0] // high), -(-x.shape[1] // wide)))
    codes = np.zeros(x.shape)
    for i, j in np.ndindex(scale.shape):
        part = x[i * high : (i + 1) * high, j * wide : (j + 1) * wide]
        finite = np.isfinite(part).all()
        scale[i, j] = mx_scale(float(np.abs(part).max()) if finite else math.nan, to, mode)
        if finite:
            for place in np.ndindex(part.shape):
                codes[i * high + place[0], j * wide + place[1]] = number(part[place] / scale[i, j], to)
    kind = getattr(ml_dtypes, to)
    return scale.astype(ml_dtypes.float8_e8m0fnu), codes.astype(np.float32).astype(kind)


def nvfp4(x, reciprocal=False):
    x = x.astype(np.float32)
    amax = np.abs(x).max(initial=0)
    t = np.float32(1) if amax == 0 else np.float32(2688) / amax if reciprocal else amax / np.float32(2688)
    scale = np.zeros((x.shape[0], -(-x.shape[1] // 16)), np.float32)
    codes = np.zeros(x.shape, np.float32)
    for row, group in np.ndindex(scale.shape):
        part = x[row, group * 16 : group * 16 + 16]
        wanted = np.abs(part).max() / np.float32(6)
        scale[row, group] = number(wanted * t if reciprocal else wanted / t, "float8_e4m3fn")
        whole = scale[row, group] / t if reciprocal else scale[row, group] * t
        for at, value in enumerate(part):
            codes[row, group * 16 + at] = number(value / whole, "float4_e2m1fn") if scale[row, group] else 0
    return (
        np.full((1, 1), t, np.float32),
        scale.astype(ml_dtypes.float8_e4m3fn),
        codes.astype(ml_dtypes.float4_e2m1fn),
    )


def int4(x, group="1x32", largest=7, least=1e-6):
    wide = int(group[2:])
    x = x.astype(np.float32)
    scale = np.zeros((x.shape[0], -(-x.shape[1] // wide)), np.float32)
    codes = np.zeros(x.shape, np.int64)
    for row, at in np.ndindex(scale.shape):
        part = [np.float32(value) for value in x[row, at * wide : (at + 1) * wide]]
        scale[row, at] = max(max(abs(value) for value in part), np.float32(least)) / np.float32(largest)
        for column, value in enumerate(part):
            codes[row, at * wide + column] = min(max(round(float(value / scale[row, at])), -8), 7)
    return scale, codes.astype(ml_dtypes.int4)


def uint4(x, group="1x32", least=1e-5):
    wide = int(group[2:])
    x = x.astype(np.float32)
    shape = x.shape[0], -(-x.shape[1] // wide)
    scale, zero, codes = np.zeros(shape, np.float32), np.zeros(shape, np.int64), np.zeros(x.shape, np.int64)
    for row, at in np.ndindex(shape):
        part = [np.float32(value) for value in x[row, at * wide : (at + 1) * wide]]
        scale[row, at] = max(max(part) - min(part), np.float32(least)) / np.float32(15)
        zero[row, at] = min(max(round(float(-min(part) / scale[row, at])), 0), 15)
        for column, value in enumerate(part):
            code = round(float(value / scale[row, at])) + zero[row, at]
            codes[row, at * wide + column] = min(max(code, 0), 15)
    return scale, zero.astype(ml_dtypes.uint4), codes.astype(ml_dtypes.uint4)


def back(codes, scale, zero, tensor_scale, block="token", to="bfloat16"):
    rows, cols = codes.shape
    high, wide = {"tensor": (rows, cols), "token": (1, cols), "channel": (rows, 1)}.get(block) or map(
        int, block.split("x")
    )
    out = np.zeros(codes.shape, np.float32)
    for row, column in np.ndindex(out.shape):
        place = row // max(high, 1), column // max(wide, 1)
        code = float(codes[row, column]) - (0.0 if zero is None else float(zero[place]))
        out[row, column] = np.float32(code) * np.float32(scale[place])
        if tensor_scale is not None:
            out[row, column] *= tensor_scale[0, 0]
    return (out.astype(getattr(ml_dtypes, to, None) or to),)


LOOPS = {"quantise_mx": mx, "quantise_nvfp4": nvfp4, "quantise_int4": int4, "quantise_uint4": uint4, "dequantise": back}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_scalars_give_the_same(name):
    record = find_operator(name)
    checked = 0
    for dtype in record.dtypes[1:3]:
        for case in make_cases(name, dtype, 45, seed=11):
            inputs = case.inputs()
            if next(iter(inputs.values())).size > 1500:
                continue
            with np.errstate(all="ignore"):
                outputs = LOOPS[name](*inputs.values(), **case.params)
            names = [output.name for output in record.outputs]
            expected = record.expect(inputs, case.params, NUMERICS["float32"], dict(zip(names, outputs)))
            for part, got in zip(expected, outputs, strict=True):
                verdict = Judge(part).judge(got)
                assert verdict.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), (str(case), verdict.message)
            checked += 1
    assert checked > 50


def test_modes_of_scales_by_hand():
    def scales(largest):
        x = np.array([[largest]], np.float32)
        return [float(find_operator("quantise_mx")(x, mode=mode)[0][0, 0]) for mode in ("floor", "ceil", "even", "up")]

    assert scales(7.0) == [1.0, 2.0, 2.0, 2.0]
    assert scales(6.0) == [1.0, 2.0, 1.0, 1.0]


def test_a_block_with_nan_has_a_scale_of_nan_and_any_codes():
    x = np.full((1, 40), 1.5, np.float32)
    x[0, 3] = np.nan
    expected = find_operator("quantise_mx").expect({"x": x}, {}, NUMERICS["float32"])
    assert np.isnan(expected[0].value[0, 0])
    assert expected[0].value[0, 1] == 0.25
    got = np.zeros((1, 40), np.float32)
    got[0, 32:] = 6.0
    assert Judge(expected[1]).judge(got.astype(ml_dtypes.float4_e2m1fn)).verdict is Verdict.PASS
    got[0, 39] = 4.0
    judgement = Judge(expected[1]).judge(got.astype(ml_dtypes.float4_e2m1fn))
    assert judgement.verdict is Verdict.FAIL
    assert "codes[0, 39] = 4, which no honest implementation can choose; the definition has 6" in judgement.message


def test_refusals():
    codes = np.ones((2, 40), np.int8)
    with pytest.raises(InputError, match=r"tensor_scale has shape \(1, 2\); expected \(1, 1\)"):
        find_operator("dequantise")(codes, np.ones((2, 1), np.float32), None, np.ones((1, 2), np.float32))
    with pytest.raises(InputError, match="scale has shape"):
        find_operator("dequantise")(codes, np.ones((2, 1), np.float32), block="1x32")
    with pytest.raises(InputError, match="largest=9 must be one of 7, 8"):
        find_operator("quantise_int4")(np.ones((2, 3), np.float32), largest=9)

"""Quantisation against loops in float32 that store codes by ml_dtypes' own conversions, and what it refuses."""

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.error import exact
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from oracle.vocabulary import coded
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict

LARGEST = {"int8": 127.0}
SIZES = {
    "tensor": (None, None), "token": (1, None), "channel": (None, 1), "1x16": (1, 16), "1x32": (1, 32),
    "1x64": (1, 64), "1x128": (1, 128), "128x128": (128, 128),
}  # fmt: skip


def stored(ratio, to, rounding="nearest"):
    """One float32 as a code, by Python's round or by ml_dtypes' conversion."""
    if to == "int8":
        if np.isnan(ratio):
            return 0
        ratio = min(max(float(ratio), -200.0), 200.0)
        return min(max(int(ratio) if rounding == "toward_zero" else round(ratio), -128), 127)
    kind = np.dtype(getattr(ml_dtypes, to))
    largest = float(ml_dtypes.finfo(kind).max)
    if abs(ratio) > largest:
        ratio = np.float32(np.copysign(largest, ratio))
    return np.float32(ratio).astype(kind).astype(np.float32)


def tiles(block, rows, cols):
    """Each block's place among the scales, and its rows and columns."""
    high, wide = SIZES[block]
    high, wide = high or max(rows, 1), wide or max(cols, 1)
    if block == "tensor":
        yield (0, 0), slice(0, rows), slice(0, cols)
        return
    for i in range(-(-rows // high) if high != rows or rows else 1):
        for j in range(-(-cols // wide) if wide != cols or cols else 1):
            yield (i, j), slice(i * high, min((i + 1) * high, rows)), slice(j * wide, min((j + 1) * wide, cols))


def quantised(x, smooth, scale_shape, to, block="token", largest=None, least=0.0, of_zero="one", nans="propagate",
              rounding="nearest"):  # fmt: skip
    x = x.astype(np.float32) * (np.float32(1) if smooth is None else smooth)
    largest = largest or LARGEST.get(to) or float(ml_dtypes.finfo(getattr(ml_dtypes, to)).max)
    scale, codes = np.zeros(scale_shape, np.float32), np.zeros(x.shape, np.float32)
    for place, down, across in tiles(block, *x.shape):
        values = [float(v) for v in x[down, across].reshape(-1)]
        if nans == "ignore":
            values = [v for v in values if v == v]
        amax = np.float32(np.nan if any(v != v for v in values) else max((abs(v) for v in values), default=0.0))
        s = max(amax / np.float32(largest), np.float32(least)) if amax == amax else amax
        scale[place] = 1.0 if amax == 0 and of_zero == "one" else s
        for row in range(down.start, down.stop):
            for column in range(across.start, across.stop):
                codes[row, column] = stored(x[row, column] / scale[place], to, rounding)
    return scale, codes


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_quantise_is_what_loops_give(dtype):
    record = find_operator("quantise")
    for case in make_cases("quantise", dtype, 50, seed=3):
        inputs = case.inputs()
        if inputs["x"].size > 6000:
            continue
        scales = record.expect(inputs, case.params, NUMERICS["float32"])[0].value.shape
        with np.errstate(all="ignore"):
            scale, codes = quantised(inputs["x"], inputs["smooth"], scales, **case.params)
        expected = record.expect(inputs, case.params, NUMERICS["float32"], {"scale": scale})
        to = expected[1].format.dtype
        for part, got in zip(expected, (scale, codes.astype(to)), strict=True):
            verdict = Judge(part).judge(got)
            assert verdict.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), (str(case), verdict.message)


@pytest.mark.parametrize("to", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int8"])
def test_static_codes_of_every_half_precision_number(to):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    got = find_operator("quantise_static")(x, np.array([[0.25]], np.float32), to=to)
    got = np.clip(got, -448.0, 448.0) if to == "float8_e4m3fn" else got
    kept = got.astype(getattr(ml_dtypes, to, np.int8)).astype(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        expected = [stored(value, to) for value in x.reshape(-1).astype(np.float32) * np.float32(4)]
    np.testing.assert_array_equal(kept, np.array(expected, np.float32).reshape(256, 256))


def test_truncated_codes_near_an_integer_may_be_either():
    z = exact(np.array([3.0, 3.5]), NUMERICS["float32"]) / 1.1 * 1.1
    choice = coded(z, "int8", "toward_zero")
    assert (choice.lowest.tolist(), choice.highest.tolist()) == ([2, 3], [3, 3])


def test_refusals():
    x = np.ones((2, 40), np.float32)
    with pytest.raises(InputError, match="rounding='toward_zero' is for to='int8'"):
        find_operator("quantise")(x, rounding="toward_zero")
    with pytest.raises(InputError, match=r"scale has shape \(1, 1\), but block='1x32' of a 2×40 matrix needs \(2, 2\)"):
        find_operator("quantise_static")(x, np.ones((1, 1), np.float32), block="1x32")
    with pytest.raises(InputError, match=r"largest=0\.0 must be float or None > 0"):
        find_operator("quantise")(x, largest=0.0)

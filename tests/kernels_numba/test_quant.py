"""Quantisation per token against NumPy: every code of float8, ties, zeros, NaN, infinities."""

import ml_dtypes
import numpy as np
import pytest

from kernels_numba.quant import accept_tokens
from oracle.cases import Case

KINDS = ("float8_e4m3fn", "int8")


@pytest.mark.parametrize("value_class", ["normal", "ties", "zero_blocks", "not_a_number", "infinities", "tiny"])
@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows(judge, dtype, to, value_class):
    dims, params = {"rows": 5, "cols": 131}, {"to": to, "block": "token"}
    judge("quantise_token", Case("quantise", dtype, dims, params, value_class, absent=("smooth",)))


@pytest.mark.parametrize(
    "params",
    [{"least": 0.25}, {"largest": 100.0}, {"largest": 600.0}, {"of_zero": "least", "least": 0.5}, {"nans": "ignore"}],
)
@pytest.mark.parametrize("to", KINDS)
def test_parameters_and_smooth_factors(judge, to, params):
    case = Case("quantise", "float32", {"rows": 4, "cols": 20}, {"to": to, "block": "token", **params}, "mixed")
    judge("quantise_token", case)


@pytest.mark.parametrize(("rows", "cols"), [(0, 3), (3, 0), (1, 1)])
def test_empty_and_one(judge, rows, cols):
    case = Case("quantise", "float32", {"rows": rows, "cols": cols}, {"block": "token"}, absent=("smooth",))
    judge("quantise_token", case)


def test_every_float8_is_its_own_code_and_ties_go_to_even(run):
    codes = np.array([code for code in range(256) if code & 0x7F != 0x7F], np.uint8)
    values = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    positive = np.sort(values[values >= 0])
    between = np.concatenate([(positive[1:] + positive[:-1]) / 2, [448.0]]).astype(np.float32)
    for row in (values, between):
        scale, got = run("quantise_token", {"x": row[np.newaxis], "smooth": None})
        assert scale.tolist() == [[1.0]]
        np.testing.assert_array_equal(got[0], row.astype(ml_dtypes.float8_e4m3fn), strict=True)
        assert got.dtype == ml_dtypes.float8_e4m3fn


@pytest.mark.parametrize(
    ("params", "words"),
    [({"block": "tensor"}, "scale per token"), ({"to": "float8_e5m2"}, "writes float8_e4m3fn and int8"),
     ({"to": "int8", "rounding": "toward_zero"}, "rounds to nearest")],
)  # fmt: skip
def test_refuses(params, words):
    given = {"block": "token", "to": "int8", "rounding": "nearest", **params}
    assert words in accept_tokens({}, given)

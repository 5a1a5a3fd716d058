"""Shuffles against places worked out element by element, and what they refuse."""

import ml_dtypes
import numpy as np
import pytest

from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict


@pytest.mark.parametrize(("inner", "vector"), [(16, 8), (16, 16), (32, 16)])
def test_each_weight_goes_to_its_tile(inner, vector):
    n, k, wide = 48, 4 * inner, 2 * inner
    weight = np.random.default_rng(inner + vector).integers(-128, 128, (n, k)).astype(np.int8)
    shuffled = find_operator("shuffle_weight")(weight, inner=inner, vector=vector).reshape(-1)
    for row in range(n):
        for column in range(k):
            tile = (row // 16) * (k // wide) + column // wide
            within = (column % wide // vector) * 16 * vector + row % 16 * vector + column % vector
            assert shuffled[tile * 16 * wide + within] == weight[row, column]


def test_each_scale_goes_to_its_place_and_padding_is_free():
    rows, groups = 300, 11
    exponents = np.random.default_rng(0).integers(-20, 20, (rows, groups))
    scale = np.exp2(exponents.astype(np.float32)).astype(ml_dtypes.float8_e8m0fnu)
    expected = find_operator("shuffle_scale").expect({"scale": scale}, {}, NUMERICS["float32"])[0]
    assert expected.value.shape == (512, 16)
    got = np.full(512 * 16, np.nan)
    for row in range(rows):
        for group in range(groups):
            block = row // 32 * 2 + group // 8
            within = ((group % 4 * 16 + row % 16) * 2 + group % 8 // 4) * 2 + row % 32 // 16
            got[block * 256 + within] = scale[row, group]
    answer = got.reshape(512, 16).astype(ml_dtypes.float8_e8m0fnu)
    assert Judge(expected).judge(answer).verdict is Verdict.PASS
    answer[0, 0] *= 2
    assert Judge(expected).judge(answer).verdict is Verdict.FAIL
    filled = find_operator("shuffle_scale").expect({"scale": scale}, {"padding": "one"}, NUMERICS["float32"])[0]
    assert np.sum(filled.value == 1.0) >= 512 * 16 - rows * groups
    assert Judge(filled).judge(got.reshape(512, 16).astype(ml_dtypes.float8_e8m0fnu)).verdict is Verdict.FAIL


@pytest.mark.parametrize(("rows", "groups"), [(130, 5), (128, 4), (1, 1)])
def test_scales_for_cublas_go_to_tiles_of_512(rows, groups):
    exponents = np.random.default_rng(rows).integers(-20, 20, (rows, groups))
    scale = np.exp2(exponents.astype(np.float32)).astype(ml_dtypes.float8_e8m0fnu)
    shuffled = find_operator("shuffle_scale")(scale, layout="cublas", padding="zero")
    high, wide = -(-rows // 128), -(-groups // 4)
    assert shuffled.shape == (128 * high, 4 * wide)
    wanted = np.full(512 * high * wide, 2.0**-127)
    for row in range(rows):
        for group in range(groups):
            tile = row // 128 * wide + group // 4
            wanted[tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + group % 4] = scale[row, group]
    assert shuffled.reshape(-1).tolist() == wanted.tolist()


def test_refusals():
    with pytest.raises(InputError, match="a matrix of 20×32 has no whole tiles of 16×32; pad it"):
        find_operator("shuffle_weight")(np.zeros((20, 32), np.int8))
    with pytest.raises(InputError, match="vector = 5 must divide 2 · inner = 32"):
        find_operator("shuffle_weight")(np.zeros((16, 32), np.int8), vector=5)

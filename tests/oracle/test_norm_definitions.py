"""The normalisations against loops over Python floats, written from the formulas, and what they refuse."""

import math

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.error import envelope, exact
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from oracle.vocabulary import moments

FLOAT32, WELFORD = NUMERICS["float32"], NUMERICS["float32_welford"]


def by_rms(values, gains, eps, middle=float):
    """One row over its root mean square; ``middle`` rounds before the gain."""
    rms = math.sqrt(math.fsum(value * value for value in values) / len(values) + eps)
    return [middle(value / rms) * gain for value, gain in zip(values, gains, strict=True)]


def by_moments(values, gains, shifts, eps):
    """One row less its mean, over its standard deviation."""
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    scale = 1.0 / math.sqrt(variance + eps)
    return [(value - mean) * scale * gain + shift for value, gain, shift in zip(values, gains, shifts, strict=True)]


def floats(array):
    return [float(value) for value in array]


def optional(array, size, default):
    return [default] * size if array is None else floats(array)


def rows(x, function):
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        out[at] = function(floats(x[at]))
    return out


def single(value):
    return float(np.float32(value))


def gemma_rmsnorm(x, weight, eps):
    return rows(x, lambda row: by_rms(row, [1.0 + gain for gain in floats(weight)], eps))


def t5_rmsnorm(x, weight, eps):
    return rows(x, lambda row: by_rms(row, floats(weight), eps, single))


def layernorm(x, weight, bias, eps):
    size = x.shape[-1]
    return rows(x, lambda row: by_moments(row, optional(weight, size, 1.0), optional(bias, size, 0.0), eps))


def fused_add_rmsnorm(x, residual, weight, eps, gain, normalised, rounding):
    total = np.float64(x) + np.float64(residual)
    base = np.float64(np.float32(total)) if normalised == "rounded" else total
    gains = floats(weight) if gain == "weight" else [1.0 + value for value in floats(weight)]
    return total, rows(base, lambda row: by_rms(row, gains, eps, single if rounding == "twice" else float))


def fused_add_layernorm(x, residual, weight, bias, eps, normalised):
    total = np.float64(x) + np.float64(residual)
    return total, layernorm(np.float64(np.float32(total)) if normalised == "rounded" else total, weight, bias, eps)


def groupnorm(x, weight, bias, groups, eps):
    batch, channels, positions = x.shape
    size = channels // groups
    gains, shifts = optional(weight, channels, 1.0), optional(bias, channels, 0.0)
    out = np.zeros(x.shape)
    for image, group in np.ndindex(batch, groups):
        members = [(c, p) for c in range(group * size, (group + 1) * size) for p in range(positions)]
        values = [float(x[image, c, p]) for c, p in members]
        results = by_moments(values, [gains[c] for c, _ in members], [shifts[c] for c, _ in members], eps)
        for (c, p), value in zip(members, results, strict=True):
            out[image, c, p] = value
    return out


def qk_norm(q, k, q_weight, k_weight, eps, gain, rounding):
    middle = single if rounding == "twice" else float

    def one(x, weight):
        gains = floats(weight) if gain == "weight" else [1.0 + value for value in floats(weight)]
        return rows(x, lambda row: by_rms(row, gains, eps, middle))

    return one(q, q_weight), one(k, k_weight)


FORMULAS = (
    gemma_rmsnorm, t5_rmsnorm, layernorm, fused_add_rmsnorm, fused_add_layernorm, groupnorm, qk_norm,
)  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_equals_loops_over_scalars(formula):
    record = find_operator(formula.__name__)
    cases = [case for case in make_cases(record.name, "float32", 36, seed=5) if case.value_class != "infinities"]
    assert len(cases) >= 30
    for case in cases:
        params = record.signature.complete(case.params)
        values = record.value(case.inputs(), case.params)
        expected = formula(*case.inputs().values(), **params)
        expected = expected if isinstance(expected, tuple) else (expected,)
        rounded = 3e-7 if "twice" in params.values() or record.name == "t5_rmsnorm" else 1e-9
        for value, other in zip(values, expected, strict=True):
            np.testing.assert_allclose(value, other, rtol=rounded, atol=1e-10, err_msg=str(case))


def test_where_the_fused_sum_is_rounded():
    x, residual = np.array([[256.0, 1.0]], ml_dtypes.bfloat16), np.array([[1.0, 0.0]], ml_dtypes.bfloat16)
    weight = np.ones(2, ml_dtypes.bfloat16)
    total, out = find_operator("fused_add_rmsnorm")(x, residual, weight)
    assert total[0, 0] == 257.0
    rms = math.sqrt((256.0**2 + 1.0) / 2)  # 257 is no bfloat16; ties go to even
    assert out[0, 1] == pytest.approx(1.0 / rms, rel=1e-9)
    _, out = find_operator("fused_add_rmsnorm")(x, residual, weight, normalised="unrounded")
    assert out[0, 1] == pytest.approx(1.0 / math.sqrt((257.0**2 + 1.0) / 2), rel=1e-9)


def test_the_normalised_sum_is_judged_from_what_was_returned():
    x = np.ones((1, 4), np.float32)
    given = {"residual_out": np.array([[3.0, 3.0, 3.0, 0.0]], np.float32)}
    inputs = {"x": x, "residual": x, "weight": np.ones(4, np.float32)}
    expected = find_operator("fused_add_rmsnorm").expect(inputs, {}, FLOAT32, given)
    assert expected[0].value.tolist() == [[2.0] * 4]
    assert expected[1].value[0, 3] == 0
    unrounded = find_operator("fused_add_rmsnorm").expect(inputs, {"normalised": "unrounded"}, FLOAT32, given)
    assert unrounded[1].value[0, 3] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "shapes", "params", "words"),
    [
        ("gemma_rmsnorm", ((2, 0), (0,)), {}, "cols = 0"),
        ("t5_rmsnorm", ((2, 3), (3,)), {"eps": 0.0}, "eps=0.0"),
        ("layernorm", ((2, 3), (2,)), {}, "dimension cols is 2 in weight"),
        ("layernorm", ((2, 0),), {}, "cols = 0"),
        ("fused_add_rmsnorm", ((2, 3), (3, 3), (3,)), {}, "dimension rows is 3 in residual"),
        ("fused_add_rmsnorm", ((2, 3), (2, 3), (3,)), {"gain": "1+w"}, "'1\\+w'"),
        ("fused_add_layernorm", ((2, 3), (2, 3)), {"normalised": "no"}, "'no'"),
        ("groupnorm", ((1, 5, 2),), {"groups": 2}, "channels = 5 must be a multiple of groups = 2"),
        ("groupnorm", ((1, 4, 0),), {"groups": 2}, "no elements"),
        ("groupnorm", ((1, 4, 2),), {"groups": 0}, "groups=0"),
        ("qk_norm", ((2, 3, 4), (2, 1, 5), (4,), (4,)), {}, "dimension head_dim is 5 in k"),
        ("qk_norm", ((2, 3, 0), (2, 1, 0), (0,), (0,)), {}, "head_dim = 0"),
    ],
)
def test_refuses_what_is_outside_the_specification(name, shapes, params, words):
    with pytest.raises(InputError, match=words):
        find_operator(name)(*(np.ones(shape, np.float32) for shape in shapes), **params)


def far_mean(mean, columns=96):
    rng = np.random.default_rng(4)
    return (mean + rng.standard_normal((40, columns))).astype(np.float32)


@pytest.mark.parametrize("mean", [0.0, 100.0, 1e4])
def test_two_passes_in_float32_lie_within_the_moments(mean):
    x = far_mean(mean)
    parts = [envelope(part, "float32") for part in moments(exact(x, FLOAT32))]
    centre = x.sum(axis=-1, keepdims=True, dtype=np.float32) / np.float32(x.shape[-1])
    variance = np.mean((x - centre) ** 2, axis=-1, keepdims=True, dtype=np.float32)
    for part, got in zip(parts, (centre, variance), strict=True):
        assert (np.abs(got - part.value) <= part.bound + np.spacing(np.float32(np.abs(part.value)))).all()
    # the variance keeps its digits where the mean is far away: to first order it would be off by n·u·mean·std
    assert (parts[1].bound <= 2e-5 + (96 * 2.0**-24 * mean) ** 2 * 1.1).all()


def test_welford_is_a_freedom():
    x = far_mean(1e4)
    mean, squares = np.zeros((40, 1), np.float32), np.zeros((40, 1), np.float32)
    for column in range(x.shape[1]):
        step = x[:, column : column + 1] - mean
        mean = mean + step / np.float32(column + 1)
        squares = squares + step * (x[:, column : column + 1] - mean)
    got = squares / np.float32(x.shape[1])
    strict = envelope(moments(exact(x, FLOAT32))[1], "float32")
    free = envelope(moments(exact(x, WELFORD))[1], "float32")
    assert (np.abs(got - free.value) <= free.bound).all()
    assert (free.bound > strict.bound).all()
    integers = exact(np.array([[1.0, 2.0, 3.0, 6.0]], np.float32), WELFORD)
    assert envelope(moments(integers)[0], "float32").bound[0, 0] > 0
    assert envelope(moments(exact(integers.value, FLOAT32))[0], "float32").bound[0, 0] == 0
    assert "term by term (Welford)" in "\n".join(WELFORD.describe())


def test_moments_of_plain_arrays():
    mean, variance = moments(np.array([[1.0, 3.0], [2.0, 2.0]]))
    assert mean.tolist() == [[2.0], [2.0]]
    assert variance.tolist() == [[1.0], [0.0]]

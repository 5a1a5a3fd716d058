"""The judge: its interval, its tiers, and what it says of an answer that is not even an array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.formats import FORMATS, cast, round_to
from oracle.operator import Expected
from refsim.conformance import Judge, Verdict

FLOAT32 = FORMATS["float32"]


def expected(value, bound=0.0, sigma=0.0, name="float32"):
    value = np.asarray(value, np.float64)
    return Expected(
        "out", value, np.broadcast_to(np.float64(bound), value.shape), np.broadcast_to(np.float64(sigma), value.shape),
        FORMATS[name], "float32",
    )  # fmt: skip


def verdict(got, *arguments, dtype=np.float32, **keywords):
    return Judge(expected(*arguments, **keywords)).judge(np.asarray(got, dtype)).verdict


def test_without_a_bound_one_value_passes():
    third = np.float32(1 / 3)
    assert verdict([third], [1 / 3]) is Verdict.PASS
    assert verdict([np.nextafter(third, np.float32(1))], [1 / 3]) is Verdict.FAIL
    assert verdict([np.nextafter(third, np.float32(0))], [1 / 3]) is Verdict.FAIL


@given(
    value=st.floats(-1e5, 1e5),
    relative=st.floats(0.0, 1e-2),
    offset=st.floats(-2.0, 2.0),
    name=st.sampled_from(["float16", "bfloat16", "float32"]),
)
def test_accepts_what_lies_in_the_bound_and_refuses_the_rest(value, relative, offset, name):
    number_format = FORMATS[name]
    bound = relative * abs(value)
    answer = cast(np.array([value + offset * bound]), number_format)
    got = Judge(expected([value], bound, name=name)).judge(answer)
    if abs(offset) <= 1:
        assert got.verdict is Verdict.PASS
        assert got.margin <= 1.0
    low, high = round_to(np.array([value - bound, value + bound]), number_format)
    if not low <= float(answer[0]) <= high and abs(offset) > 1.001:
        assert got.verdict is Verdict.FAIL
        assert got.margin > 1.0


def test_a_tie_accepts_both_neighbours_only_with_a_bound():
    tie = 1.0 + 2.0**-24
    up = np.nextafter(np.float32(1), np.float32(2))
    assert verdict([1.0], [tie]) is Verdict.PASS
    assert verdict([up], [tie]) is Verdict.FAIL
    assert verdict([up], [tie], bound=2.0**-40) is Verdict.PASS


def test_nan_is_no_wildcard():
    assert verdict([np.nan], [np.nan]) is Verdict.PASS
    assert verdict([1.0], [np.nan]) is Verdict.FAIL
    assert verdict([np.nan], [1.0], bound=100.0) is Verdict.FAIL
    assert verdict([np.nan], [np.inf]) is Verdict.FAIL


def test_infinities_by_sign():
    assert verdict([np.inf, -np.inf], [np.inf, -np.inf]) is Verdict.PASS
    assert verdict([-np.inf], [np.inf]) is Verdict.FAIL
    assert verdict([3e38], [np.inf]) is Verdict.FAIL
    assert verdict([np.inf], [3e38]) is Verdict.FAIL


def test_overflow_of_the_output_is_right():
    assert verdict([np.inf], [1e6], dtype=np.float16, name="float16") is Verdict.PASS
    assert verdict([65504.0], [1e6], dtype=np.float16, name="float16") is Verdict.FAIL
    assert verdict([65504.0], [65519.0], dtype=np.float16, name="float16") is Verdict.PASS


def test_zero_of_either_sign():
    assert verdict([-0.0], [0.0]) is Verdict.PASS
    assert verdict([0.0], [2.0**-1074]) is Verdict.PASS


def test_infinite_bound_is_inconclusive_but_a_wrong_neighbour_still_fails():
    two = expected([1.0, 2.0])
    open_one = Expected(two.name, two.value, np.array([np.inf, 0.0]), two.sigma, FLOAT32, "float32")
    assert Judge(open_one).judge(np.array([7.0, 2.0], np.float32)).verdict is Verdict.INCONCLUSIVE
    assert Judge(open_one).judge(np.array([7.0, 3.0], np.float32)).verdict is Verdict.FAIL


def test_bound_wider_than_most_values_is_inconclusive():
    assert verdict([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], bound=2.0) is Verdict.INCONCLUSIVE
    assert verdict([1.0, 9.0, 9.0], [1.0, 9.0, 9.0], bound=2.0) is Verdict.PASS


def test_suspect_by_one_element_by_several_and_by_rms():
    ones = np.ones(1000)

    def judged(errors):
        values = ones + np.asarray(errors) * 1e-4
        return Judge(expected(ones, bound=1.0, sigma=1e-4)).judge(values.astype(np.float32))

    errors = np.zeros(1000)
    assert judged(errors).verdict is Verdict.PASS
    errors[3] = 8.5
    assert judged(errors).verdict is Verdict.SUSPECT
    assert judged(errors).element.index == (3,)
    errors[3] = 6.5
    assert judged(errors).verdict is Verdict.PASS
    errors[700] = -6.5
    assert judged(errors).verdict is Verdict.SUSPECT
    assert judged(np.full(1000, 2.4)).verdict is Verdict.PASS
    assert judged(np.full(1000, 2.6)).verdict is Verdict.SUSPECT
    assert "rms 2.6" in judged(np.full(1000, 2.6)).message


def test_an_honest_spread_is_not_suspect():
    rng = np.random.default_rng(0)
    values = 1.0 + 1e-4 * rng.standard_normal(100_000)
    assert verdict(values, np.ones(100_000), bound=1.0, sigma=1e-4) is Verdict.PASS


def test_failure_names_the_worst_element():
    judgement = Judge(expected([[1.0, 2.0], [3.0, 4.0]], bound=0.5)).judge(np.array([[1, 2], [9, 5]], np.float32))
    assert judgement.verdict is Verdict.FAIL
    assert judgement.element.index == (1, 0)
    assert judgement.element.low == pytest.approx(2.5)
    assert judgement.element.high == pytest.approx(3.5)
    assert judgement.element.got == 9.0
    assert (judgement.wrong, judgement.total) == (2, 4)
    assert judgement.message.startswith("out[1, 0] = 9.0, 2.5 … 3.5 is accepted (2 of 4 elements outside")


@pytest.mark.parametrize(
    ("got", "reason", "words"),
    [
        (None, "outputs", "None"),
        ([1.0, 2.0], "outputs", "list"),
        (1.0, "outputs", "float"),
        (np.ones(3, np.float32), "shape", "(3,) in place of (2,)"),
        (np.ones((2, 1), np.float32), "shape", "(2, 1)"),
        (np.ones(2), "dtype", "float64 in place of float32"),
        (np.ones(2, int), "dtype", "int64"),
    ],
)
def test_form_comes_first(got, reason, words):
    judgement = Judge(expected([1.0, 1.0])).judge(got)
    assert judgement.verdict is Verdict.FAIL
    assert judgement.reason == reason
    assert words in judgement.message


def test_scalars_and_empty_outputs():
    assert verdict(2.0, 2.0) is Verdict.PASS
    assert Judge(expected(2.0)).judge(np.float32(2)).verdict is Verdict.PASS
    assert verdict(np.zeros((0, 3)), np.zeros((0, 3))) is Verdict.PASS

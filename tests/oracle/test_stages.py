"""Operators with several stages, with outputs of integer dtypes, and with inputs that have dtypes of their own."""

from decimal import Decimal, localcontext
from typing import Annotated, Literal

import numpy as np
import pytest

from oracle.choices import Interval, Selection
from oracle.error import exact
from oracle.numerics import NUMERICS
from oracle.operator import OPERATORS, operator
from oracle.signature import Array, Floats, InputError, Integers, Output
from oracle.vocabulary import chosen, exact_value, located, round_to_format, softplus

FLOAT32 = NUMERICS["float32"]


@pytest.fixture
def quantise():
    """Per-row quantisation to int8 or an 8-bit float: the scale first, the codes from the scale that was returned."""

    @operator(family="test")
    def quantise_rows(
        x: Annotated[Array, Floats("rows cols")],
        *,
        to: Literal["int8", "float8_e4m3fn"] = "int8",
    ) -> Annotated[Array, Output("scale", dtype="float32")]:
        """Scale of each row: its largest magnitude over the largest code."""
        return np.max(np.abs(x), axis=-1, keepdims=True) / (127.0 if to == "int8" else 448.0)

    @quantise_rows.stage
    def codes(x: Array, scale: Array) -> Annotated[Array, Output("codes", chosen_by="to")]:
        return x / scale

    yield quantise_rows
    del OPERATORS["quantise_rows"]


def test_a_later_stage_starts_from_what_was_returned(quantise):
    x = np.array([[1.0, -3.0, 5.0]], np.float32)
    scale, codes = quantise(x)
    assert scale[0, 0] == 5 / 127
    assert codes.tolist() == [[25.0, -76.0, 127.0]]
    given = {"scale": np.full((1, 1), 2.0, np.float32)}
    expected = {part.name: part for part in quantise.expect({"x": x}, {}, FLOAT32, given)}
    assert expected["scale"].value[0, 0] == 5 / 127  # the scale itself is judged against the definition
    assert expected["codes"].value.tolist() == [[0.5, -1.5, 2.5]]
    assert expected["codes"].format.name == "int8"


def test_a_parameter_chooses_the_dtype(quantise):
    x = np.ones((1, 2), np.float16)
    expected = quantise.expect({"x": x}, {"to": "float8_e4m3fn"}, FLOAT32)
    assert [part.format.name for part in expected] == ["float32", "float8_e4m3fn"]


def test_a_stage_takes_only_what_is_there(quantise):
    with pytest.raises(TypeError, match="weights is neither an input nor an earlier output"):

        @quantise.stage
        def wrong(weights: Array) -> Annotated[Array, Output("more", dtype="float32")]:
            return weights


def test_inputs_with_dtypes_of_their_own():
    @operator(family="test", dtypes=("int8", "float8_e4m3fn"))
    def scaled_codes(
        codes: Annotated[Array, Floats("n")],
        scale: Annotated[Array, Floats("n", dtype="float32")],
        kind: Annotated[Array, Integers("n", below=3, low=-1, dtype="int32")],
    ) -> Annotated[Array, Output("out", dtype="bfloat16")]:
        """The codes times the scale."""
        return codes * scale

    try:
        codes, scale = np.array([3, -4], np.int8), np.array([0.5, 2], np.float32)
        assert scaled_codes(codes, scale, np.array([-1, 2], np.int32)).tolist() == [1.5, -8.0]
        with pytest.raises(InputError, match=r"kind\[1\] = 3 must be at least -1 and below 3"):
            scaled_codes(codes, scale, np.array([0, 3], np.int32))
        with pytest.raises(InputError, match="scale has dtype float64; expected one of float32"):
            scaled_codes(codes, scale.astype(np.float64), np.array([0, 0], np.int32))
        with pytest.raises(InputError, match="codes has dtype float32; expected one of int8, float8_e4m3fn"):
            scaled_codes(scale, scale, np.array([0, 0], np.int32))
    finally:
        del OPERATORS["scaled_codes"]


def test_selection_of_exact_scores_is_decided():
    scores = np.array([[3.0, 1.0, 3.0, 2.0]])
    assert chosen(scores, 3).ids.tolist() == [[0, 2, 3]]
    choice = chosen(exact(scores, FLOAT32), 3)
    assert isinstance(choice, Selection)
    assert not choice.wrong(np.array([[0, 2, 3]])).any()
    for got in ([[2, 0, 3]], [[0, 2, 1]], [[0, 0, 3]], [[0, 2, 4]], [[0, -1, 3]], [[3, 0, 2]]):
        assert choice.wrong(np.array(got)).any(), got
    either = chosen(exact(scores, FLOAT32), 1, lowest_first=False)
    assert not either.wrong(np.array([[2]])).any()
    assert either.wrong(np.array([[3]])).any()


def test_selection_of_uncertain_scores_leaves_near_ties_open():
    terms = np.array([[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [5.0, 0.0, 0.0]]], np.float32)
    scores = np.sum(exact(terms, FLOAT32), axis=-1)
    choice = chosen(scores, 2)
    assert not choice.wrong(np.array([[2, 0]])).any()
    assert not choice.wrong(np.array([[2, 1]])).any()
    assert choice.wrong(np.array([[0, 1]])).any()


def test_location_in_an_uncertain_distribution():
    cdf = np.cumsum(exact(np.full((1, 10), 0.1, np.float32), FLOAT32), axis=-1)
    edge = exact(np.array([cdf.value[0, 4]]), FLOAT32)
    choice = located(cdf, edge)
    assert isinstance(choice, Interval)
    assert not choice.wrong(np.array([4])).any()
    assert not choice.wrong(np.array([5])).any()
    assert choice.wrong(np.array([6])).any()
    inside = located(cdf, exact(np.array([0.25]), FLOAT32))
    assert (inside.lowest, inside.highest) == (2, 2)


def test_what_weighs_nothing_is_never_located():
    share = np.array([[0.0, 0.5, 0.5, 0.0]])
    for lift in (lambda x: x, lambda x: exact(x, FLOAT32)):
        cdf = np.cumsum(lift(share), axis=-1)
        for uniform, token in ((0.0, 1), (0.25, 1), (0.5, 2), (0.999, 2), (1.5, 2)):
            choice = located(cdf, np.array([uniform]), weight=lift(share))
            assert choice.ids.tolist() == [token]
            assert [bool(choice.wrong(np.array([other]))[0]) for other in range(-1, 5)] == [
                other != token for other in range(-1, 5)
            ]


def test_a_choice_that_cannot_be_right_is_not_passed_on():
    @operator(family="test")
    def picked(x: Annotated[Array, Floats("rows cols")]) -> Annotated[Array, Output("ids", dtype="int32")]:
        """Index of each row's largest number."""
        return chosen(x, 1)

    @picked.stage
    def largest(x: Array, ids: Array) -> Annotated[Array, Output("largest", like="x")]:
        return np.take_along_axis(x, ids, axis=-1)

    try:
        x = np.array([[1.0, 3.0], [2.0, 2.0]], np.float32)
        expected = picked.expect({"x": x}, {}, FLOAT32, {"ids": np.array([[7], [0]], np.int32)})
        assert expected[1].value.tolist() == [[3.0], [2.0]]
    finally:
        del OPERATORS["picked"]


def test_an_addition_rounded_at_once_is_one_value():
    x = np.float32([[1.0, 1e8], [0.1, 0.2], [3.0, 2.0**-30]])
    total = round_to_format(exact(x[:, 0], FLOAT32) + exact(x[:, 1], FLOAT32), "float32")
    assert total.bound is None
    assert total.value.tolist() == (x[:, 0] + x[:, 1]).astype(np.float64).tolist()


def test_softplus_against_decimals():
    with localcontext() as context:
        context.prec = 400
        x = np.array([-700.0, -50.0, -1.5, 0.0, 0.7, 19.0, 21.0, 700.0])
        want = [float((1 + Decimal(float(number)).exp()).ln()) for number in x]
    np.testing.assert_allclose(softplus(x), want, rtol=4e-15)
    ours = softplus(exact(x.astype(np.float32), FLOAT32))
    with np.errstate(over="ignore"):
        single = np.where(x > 20, x, np.log1p(np.exp(x.astype(np.float32)))).astype(np.float32)
    assert (np.abs(single - ours.value) <= ours.bound).all()


def test_exact_value_refuses_what_carries_errors():
    x = exact(np.array([1.0, 2.0]), FLOAT32)
    assert exact_value(np.max(x)) == 2
    with pytest.raises(ValueError, match="carries errors"):
        exact_value(x / 3.0)


def test_a_parameter_chooses_an_inputs_dimensions():
    cells = Floats({"rows_first": "rows cols", "cols_first": "cols rows"}, chosen_by="layout")

    @operator(family="test")
    def row_sums(
        x: Annotated[Array, cells],
        bias: Annotated[Array, Floats("rows")],
        *,
        layout: Literal["rows_first", "cols_first"] = "rows_first",
    ) -> Annotated[Array, Output("out", like="x")]:
        """Sum of each row."""
        return np.sum(x, axis=1 if layout == "rows_first" else 0) + bias

    try:
        x, bias = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.zeros(2)
        assert row_sums(x, bias).tolist() == row_sums(x.T, bias, layout="cols_first").tolist() == [6, 15]
        with pytest.raises(InputError, match=r"dimension rows is 3 in x of shape \(2, 3\)|rows is 2 in bias"):
            row_sums(x, bias, layout="cols_first")
        shape = row_sums.signature.shape_of("x", {"rows": 2, "cols": 3}, {"layout": "cols_first"})
        assert shape == (3, 2)
    finally:
        del OPERATORS["row_sums"]
    with pytest.raises(TypeError, match="say chosen_by= with several choices of dimensions"):
        Floats({"rows_first": "rows cols"})

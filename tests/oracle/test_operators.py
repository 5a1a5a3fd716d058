"""Each operator against a second, independent definition, and what it refuses."""

import doctest

import numpy as np
import pytest
import scalar_definitions

import oracle.ops  # noqa: F401  registers every operator
from oracle.cases import curated_count, make_cases
from oracle.numerics import NUMERICS
from oracle.operator import OPERATORS, InputError, UnknownOperatorError, find_operator, operator

NAMES = ("attention", "matmul", "rmsnorm", "rope", "softmax", "sum")
ALL = sorted(OPERATORS)


def small_cases(name, dtype):
    """The cases of a run whose loops in pure Python stay short."""
    return [case for case in make_cases(name, dtype, 40, seed=7) if np.prod(list(case.dims.values())) < 3e6]


@pytest.mark.parametrize("name", NAMES)
def test_equals_loops_over_scalars(name):
    cases = small_cases(name, "float32")
    assert len(cases) >= 25
    record = OPERATORS[name]
    for case in cases:
        inputs = case.inputs()
        values = record.value(inputs, case.params)
        expected = getattr(scalar_definitions, name)(*inputs.values(), **case.params)
        for value, other in zip(values, expected if isinstance(expected, tuple) else (expected,), strict=True):
            # A float64 sum in another order: 1e-13 of the largest term, which cancellation leaves standing.
            scale = max([1e-30] + [_largest(array) for array in inputs.values() if _is_number(array)])
            np.testing.assert_allclose(value, other, rtol=1e-12, atol=1e-13 * scale * scale, err_msg=str(case))


def _largest(array):
    """The largest magnitude among the finite elements."""
    return float(np.abs(array, where=np.isfinite(array), out=np.zeros_like(array)).max())


def _is_number(array):
    return array is not None and array.dtype.kind not in "iu" and array.size > 0


@pytest.mark.parametrize("name", ALL)
def test_example_in_documentation(name):
    record = OPERATORS[name]
    example = doctest.DocTestParser().get_doctest(record.doc, {"np": np, name: record}, name, None, None)
    assert len(example.examples) >= 1
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", ALL)
def test_documentation_names_everything(name):
    record = OPERATORS[name]
    for part in ("Parameters", "Returns", "Rounding points", "Source:", "Examples"):
        assert part in record.doc
    for argument in (*record.inputs, *record.params, *(output.name for output in record.outputs)):
        assert argument in record.doc


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in ALL for dtype in OPERATORS[name].dtypes])
def test_value_of_the_error_analysis_is_the_plain_value(name, dtype):
    numerics = NUMERICS["float64" if dtype == "float64" else "float32"]
    record = OPERATORS[name]
    for case in make_cases(name, dtype, 40, seed=3):
        inputs = case.inputs()
        expected = record.expect(inputs, case.params, numerics)
        for plain, item, output in zip(record.value(inputs, case.params), expected, record.outputs, strict=True):
            value = np.asarray(item.value)
            if output.dtype or output.chosen_by:
                value = value if value.dtype.kind in "iu" else record._whole(value, output, inputs, case.params)
            assert plain.tobytes() == value.tobytes(), str(case)
            assert item.bound.shape == item.sigma.shape == plain.shape
            assert not np.any(item.bound < 0)
            assert item.name == output.name
            if output.statistic:
                assert item.format.name == ("float64" if dtype == "float64" else "float32")
            elif output.like in record.inputs and not output.chosen_by and not record.inputs[output.like].dtypes:
                assert item.format.name == dtype


X = np.ones((2, 3), np.float32)
Q = np.ones((1, 4, 2, 8), np.float32)
K = np.ones((1, 2, 5, 8), np.float32)


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("sum", (X,), {"axis": 2}, "axis=2"),
        ("sum", (X,), {"axis": 1.5}, "axis=1.5"),
        ("sum", (X,), {"axes": 1}, "'axes'"),
        ("sum", (X.astype(int),), {}, "int64"),
        ("sum", ([1.0],), {}, "list"),
        ("sum", (), {}, "input x is missing"),
        ("sum", (X, X), {}, "not 2"),
        ("softmax", (np.ones((), np.float32),), {}, "shape ()"),
        ("matmul", (X, X), {}, "dimension k is 2 in b of shape (2, 3) but 3 in a"),
        ("matmul", (X, X.T.astype(np.float64)), {}, "b has dtype float64 but a has float32"),
        ("matmul", (X, X.T, np.ones(3, np.float32)), {}, "dimension n"),
        ("matmul", (X[0], X.T), {}, "a has shape (3,)"),
        ("matmul", (X, X.T), {"transpose_a": 1}, "transpose_a=1"),
        ("rmsnorm", (X, np.ones(3, np.float32)), {"eps": 0.0}, "eps=0.0"),
        ("rmsnorm", (X, np.ones(3, np.float32)), {"eps": np.nan}, "eps=nan"),
        ("rmsnorm", (X[:, :0], np.ones(0, np.float32)), {}, "cols = 0"),
        ("attention", (Q[:, :3], K, K), {}, "heads = 3 must be a multiple of kv_heads = 2"),
        ("attention", (Q, K, K), {"causal": "left"}, "'left'"),
        ("attention", (Q, K, K), {"scale": -1.0}, "scale=-1.0"),
        ("attention", (Q, K, K[:, :, :4]), {}, "dimension keys"),
        ("rope", (Q[0], np.array([0, 9, 0, 0]), X, X), {}, "positions[1] = 9"),
        ("rope", (Q[0], np.array([0, -1, 0, 0]), X, X), {}, "positions[1] = -1"),
        ("rope", (Q[0, :, :, :4], np.zeros(4, int), X, X), {}, "head_dim is 4"),
        ("rope", (Q[0], np.zeros(4), X, X), {}, "positions has dtype float64"),
        ("rope", (Q[0], np.zeros(4, int), X, X), {"pairing": "llama"}, "'llama'"),
    ],
)
def test_refuses_what_is_outside_the_specification(name, arrays, params, words):
    with pytest.raises(InputError) as caught:
        OPERATORS[name](*arrays, **params)
    assert words in str(caught.value)


def test_rows_that_see_nothing():
    out, lse = OPERATORS["attention"](Q[:, :, :, :], K[:, :, :1], K[:, :, :1], causal="bottom_right")
    assert out[0, 0].tolist() == [[0.0] * 8, [1.0] * 8]
    assert lse[0, 0, 0] == -np.inf
    assert np.isfinite(lse[0, 0, 1])


def test_unknown_operator_suggests_a_name():
    with pytest.raises(UnknownOperatorError, match="did you mean 'softmax'"):
        find_operator("sofmax")
    with pytest.raises(UnknownOperatorError, match=r"known operators: .*attention"):
        find_operator("zzz")


def test_one_name_one_operator():
    def sum(x):
        return x

    with pytest.raises(ValueError, match="registered twice"):
        operator(family="reduce")(sum)


def test_signature_needs_annotations():
    def unheard_of(x):
        return x

    with pytest.raises(TypeError, match="argument x has no annotation"):
        operator(family="reduce")(unheard_of)
    assert "unheard_of" not in OPERATORS


@pytest.mark.parametrize("name", ALL)
def test_expectations_can_be_worked_out_where_subnormal_numbers_are_flushed(name):
    record = find_operator(name)
    for dtype in set(record.dtypes) & {"float16", "float32", "float64"}:
        numerics = NUMERICS["float64" if dtype == "float64" else "float32"].with_changes(name="f", flush_to_zero=True)
        cases = make_cases(name, dtype, curated_count(name), 0)
        for case in [case for case in cases if case.value_class in ("subnormals", "mixed")][:2]:
            for expected in record.expect(case.inputs(), record.signature.complete(case.params), numerics):
                assert not np.isnan(expected.bound).any()

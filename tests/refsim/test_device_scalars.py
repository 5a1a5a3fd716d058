"""Scalars: NumPy's operators by name, builtins, bit counts, loads and stores with cache hints."""

import math

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda
from numba.cuda import ldcg, stwt

import refsim

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize(
    "name",
    ["greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or",
     "logical_xor"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("a", "b"), [("int32", "uint32"), ("float32", "float64"), ("int64", "float32"), ("int8", "int8")]
)
def test_numpy_operator_on_numbers(name, a, b):
    function = getattr(np, name)

    def apply(x, y, out):
        i = cuda.grid(1)
        out[i] = function(x[i], y[i])

    x, y = np.array([0, 1, 2, 3, 0, 7], a), np.array([1, 1, 3, 2, 0, 1], b)
    out = np.zeros(6)
    launch_clean(apply, 1, 6, x, y, out)
    np.testing.assert_array_equal(out, function(x, y).astype(np.float64))


@pytest.mark.parametrize(("a", "b", "result"), [("int32", "uint32", "float64"), ("float32", "float32", "float32"),
                                                ("int8", "int8", "float32")])  # fmt: skip
def test_numpy_divide_is_float_division_in_numbas_type(a, b, result):
    def apply(x, y, out):
        i = cuda.grid(1)
        out[i] = np.divide(x[i], y[i])

    x, y = np.array([0, 1, 2, 3, 5, 7], a), np.array([1, 1, 3, 2, 7, 1], b)
    out = np.zeros(6)
    launch_clean(apply, 1, 6, x, y, out)
    np.testing.assert_array_equal(out, x.astype(result) / y.astype(result))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
@pytest.mark.parametrize("kind", ["int32", "uint64", "int16"])
def test_numpy_bit_operator_on_integers(name, kind):
    function = getattr(np, name)

    def apply(x, y, out):
        i = cuda.grid(1)
        out[i] = function(x[i], y[i])

    x, y = np.array([5, 100, 77, 1], kind), np.array([3, 2, 1, 5], kind)
    out = np.zeros(4, kind)
    launch_clean(apply, 1, 4, x, y, out)
    np.testing.assert_array_equal(out, function(x, y))


def test_numpy_unary_operators():
    def apply(x, out):
        i = cuda.grid(1)
        out[i, 0] = np.invert(x[i])
        out[i, 1] = np.logical_not(x[i])
        out[i, 2] = np.conjugate(x[i])

    x, out = np.array([0, 5, -3], np.int32), np.zeros((3, 3), np.int64)
    launch_clean(apply, 1, 3, x, out)
    np.testing.assert_array_equal(out, np.stack([~x, x == 0, x], axis=1))


@pytest.mark.parametrize("kind", INTEGERS)
def test_bit_count_counts_the_bits_of_the_type(kind):
    def apply(x, out):
        i = cuda.grid(1)
        out[i] = x[i].bit_count()

    info = np.iinfo(kind)
    x = np.array([0, 1, 5, info.max, info.min], kind)
    out = np.zeros(5, np.int64)
    launch_clean(apply, 1, 5, x, out)
    assert out.tolist() == [(int(v) % 2**info.bits).bit_count() for v in x]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
def test_loads_and_stores_with_cache_hints(kind):
    def copy(x, out):
        i = cuda.grid(1)
        cuda.stcg(out, (0, i), cuda.ldca(x, i))
        cuda.stcs(out, (1, i), ldcg(x, i))
        cuda.stwb(out, (2, i), cuda.ldcs(x, i))
        stwt(out, (3, i), cuda.ldlu(x, i))
        cuda.stwt(out, (4, i), cuda.ldcv(out, (3, i)))

    x, out = np.arange(8).astype(kind), np.zeros((5, 8), kind)
    launch_clean(copy, 1, 8, x, out)
    np.testing.assert_array_equal(out, np.tile(x, (5, 1)))


def test_a_hinted_load_out_of_bounds_is_found_and_wrong_uses_are_refused():
    def beyond(x, out):
        out[0] = cuda.ldcg(x, 4)

    report = refsim.launch(beyond, 1, 1, np.zeros(4, np.float32), np.zeros(1, np.float32))
    assert [finding.kind for finding in report.findings] == ["out_of_bounds"]

    def of_complex(x, out):
        out[0] = cuda.ldcg(x, 0)

    with pytest.raises(refsim.KernelTypeError, match="integers or floats"):
        refsim.launch(of_complex, 1, 1, np.zeros(4, np.complex64), np.zeros(1, np.complex64))

    def too_few(x, out):
        out[0] = cuda.ldcg(x, 0)

    with pytest.raises(refsim.KernelTypeError, match="2 dimensions"):
        refsim.launch(too_few, 1, 1, np.zeros((2, 2), np.float32), np.zeros(1, np.float32))


def test_nanosleep_changes_nothing():
    def wait(out):
        cuda.nanosleep(100)
        out[cuda.grid(1)] = 1

    out = np.zeros(4, np.int32)
    launch_clean(wait, 1, 4, out)
    assert out.tolist() == [1, 1, 1, 1]


def test_builtins_on_numbers():
    def apply(x, n, out):
        i = cuda.grid(1)
        quotient, rest = divmod(x[i], 0.7)
        out[i, 0] = quotient
        out[i, 1] = rest
        out[i, 2] = round(x[i], 2)
        out[i, 3] = pow(n[i], 3)
        out[i, 4] = pow(x[i], 2)
        out[i, 5] = int(x[i]) + float(n[i]) + bool(n[i])
        mantissa, exponent = math.frexp(x[i])
        out[i, 6] = math.ldexp(mantissa, exponent + 1)
        fraction, whole = math.modf(x[i])
        out[i, 7] = fraction + 10 * whole
        whole_quotient, whole_rest = divmod(n[i], 3)
        out[i, 8] = 10 * whole_quotient + whole_rest
        out[i, 9] = x[i].real + x[i].imag + n[i].conjugate()

    x, n = np.array([3.14159, -2.71828, 10.5, 0.006]), np.array([7, -7, 0, 5])
    out = np.zeros((4, 10))
    launch_clean(apply, 1, 4, x, n, out)
    for row, a, b in zip(out, x.tolist(), n.tolist(), strict=True):
        fraction, whole = math.modf(a)
        expected = [*divmod(a, 0.7), round(a, 2), b**3, a * a, int(a) + float(b) + bool(b), 2 * a]
        expected += [fraction + 10 * whole, 10 * (b // 3) + b % 3, a + b]
        np.testing.assert_allclose(row, expected, rtol=1e-15)

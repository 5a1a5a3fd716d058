"""Complex numbers in kernels: arithmetic, parts, cmath and NumPy functions, arrays in every memory."""

import cmath
import math

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import complex64, complex128, cuda

import refsim

VALUES = np.array([1 + 2j, -0.5 + 0.25j, 3 - 4j, 1e-3j, -2.0, 0.3 + 0.7j, -1.25 - 0.1j, 7 + 0j], np.complex128)


def by_hand(op, x, y):
    """Python's complex arithmetic, which is rounded operation by operation."""
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([{"+": a + b, "-": a - b, "*": a * b, "/": a / b}[op] for a, b in pairs])


def test_arithmetic_of_complex128_is_that_of_python():
    def arithmetic(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] + y[i]
        out[i, 1] = x[i] - y[i]
        out[i, 2] = x[i] * y[i]
        out[i, 3] = x[i] / y[i]
        out[i, 4] = -x[i]
        out[i, 5] = x[i] * 2 + 1j

    x, y = VALUES, np.roll(VALUES, 3)
    out = np.zeros((x.size, 6), np.complex128)
    launch_clean(arithmetic, 1, x.size, x, y, out)
    expected = [by_hand(op, x, y) for op in "+-*/"] + [-x, np.array([v * 2 + 1j for v in x.tolist()])]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


def test_arithmetic_of_complex64_rounds_every_operation_to_float32():
    def arithmetic(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] * y[i]
        out[i, 1] = x[i] / y[i]

    x, y = VALUES.astype(np.complex64), np.roll(VALUES, 3).astype(np.complex64)
    out = np.zeros((x.size, 2), np.complex64)
    launch_clean(arithmetic, 1, x.size, x, y, out)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    np.testing.assert_array_equal(out[:, 0].real, a * c - b * d)
    np.testing.assert_array_equal(out[:, 0].imag, a * d + b * c)
    np.testing.assert_allclose(out[:, 1], by_hand("/", x, y), rtol=5e-7)


def test_parts_comparisons_and_builtins():
    def parts(x, reals, wholes, flags):
        i = cuda.grid(1)
        z = x[i]
        reals[i, 0] = z.real
        reals[i, 1] = z.imag
        reals[i, 2] = abs(z)
        reals[i, 3] = cuda.threadIdx.x.real
        reals[i, 4] = reals[i, 0].imag
        wholes[i, 0] = z.conjugate()
        wholes[i, 1] = complex(z.imag, z.real)
        wholes[i, 2] = complex(reals[i, 0])
        wholes[i, 3] = np.conjugate(z)
        wholes[i, 4] = np.complex64(z)
        flags[i, 0] = z == x[0]
        flags[i, 1] = z != x[0]
        flags[i, 2] = bool(z - x[0])

    n = VALUES.size
    reals, wholes, flags = np.zeros((n, 5)), np.zeros((n, 5), np.complex128), np.zeros((n, 3), np.bool_)
    launch_clean(parts, 1, n, VALUES, reals, wholes, flags)
    z = VALUES
    expected = [z.real, z.imag, [math.hypot(v.real, v.imag) for v in z], np.arange(n), np.zeros(n)]
    np.testing.assert_array_equal(reals, np.stack(expected, axis=1))
    swapped = z.imag + 1j * z.real
    expected = [z.conj(), swapped, z.real, z.conj(), z.astype(np.complex64)]
    np.testing.assert_array_equal(wholes, np.stack(expected, axis=1))
    np.testing.assert_array_equal(flags, np.stack([z == z[0], z != z[0], z != z[0]], axis=1))


UNARY = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10", "sin", "sinh", "sqrt",
         "tan", "tanh", "phase"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", UNARY)
def test_cmath_function(name, dtype):
    function = getattr(cmath, name)

    def apply(x, out):
        i = cuda.grid(1)
        out[i] = function(x[i])

    x = VALUES.astype(dtype)
    got = mapped(apply, x, "float64" if name == "phase" else "complex128")
    expected = np.array([function(complex(v)) for v in x])
    np.testing.assert_allclose(got, expected, rtol=4e-15 if dtype == "complex128" else 4e-7)


def test_cmath_functions_with_other_signatures():
    def apply(x, y, numbers, tests):
        i = cuda.grid(1)
        radius, angle = cmath.polar(x[i])
        numbers[i, 0] = complex(radius, angle)
        numbers[i, 1] = cmath.rect(radius, angle)
        numbers[i, 2] = cmath.log(x[i], y[i])
        tests[i, 0] = cmath.isnan(x[i])
        tests[i, 1] = cmath.isinf(x[i])
        tests[i, 2] = cmath.isfinite(x[i])

    x, y = np.append(VALUES[:6], [complex("nan+1j"), complex("inf+2j")]), np.roll(VALUES, 2)
    numbers, tests = np.zeros((8, 3), np.complex128), np.zeros((8, 3), np.bool_)
    launch_clean(apply, 1, 8, x, y, numbers, tests)
    for i in range(6):
        radius, angle = cmath.polar(x[i])
        expected = [complex(radius, angle), x[i], cmath.log(x[i], y[i])]
        np.testing.assert_allclose(numbers[i], expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(tests, np.stack([np.isnan(x), np.isinf(x), np.isfinite(x)], axis=1))


@pytest.mark.parametrize("name", ["sin", "cosh", "arctan", "conjugate", "log"])
def test_numpy_function_on_complex(name):
    function = getattr(np, name)

    def apply(x, out):
        i = cuda.grid(1)
        out[i] = function(x[i])

    np.testing.assert_allclose(mapped(apply, VALUES, np.complex128), function(VALUES), rtol=1e-14)


def test_complex_arrays_in_shared_local_and_constant_memory():
    table = np.array([1j, 2.0, 3 - 1j, 0.5j])

    @cuda.jit
    def spread(x, out):
        cells = cuda.shared.array(8, complex128)
        mine = cuda.local.array(2, complex64)
        known = cuda.const.array_like(table)
        i = cuda.threadIdx.x
        cells[i] = x[i]
        cuda.syncthreads()
        mine[0] = cells[7 - i]
        mine[1] = 1j
        mine[i % 2] += 1
        total = 0j
        for k in range(2):
            total += mine[k] * known[i % 4]
        out[i] = total if i > 2 else cells[i]

    out = np.zeros(8, np.complex128)
    launch_clean(spread, 1, 8, VALUES, out)
    i = np.arange(8)
    mine = np.stack([VALUES[::-1], np.full(8, 1j)]).astype(np.complex64)
    mine[i % 2, i] += np.complex64(1)
    total = mine.astype(np.complex128).sum(axis=0) * table[i % 4]
    np.testing.assert_allclose(out, np.where(i > 2, total, VALUES), rtol=1e-12, atol=1e-12)


def test_complex_scalars_pass_as_arguments():
    def scale(factor, x, out):
        i = cuda.grid(1)
        out[i] = factor * x[i]

    out = np.zeros(8, np.complex128)
    launch_clean(scale, 1, 8, 2 - 1j, VALUES, out)
    np.testing.assert_array_equal(out, by_hand("*", np.full(8, 2 - 1j), VALUES))
    launch_clean(scale, 1, 8, np.complex64(1j), VALUES, out)
    np.testing.assert_array_equal(out, by_hand("*", np.full(8, 1j), VALUES))


def test_a_race_on_complex_cells_is_found():
    def collide(out):
        out[0] = complex(cuda.threadIdx.x, 0)

    report = refsim.launch(collide, 1, 2, np.zeros(1, np.complex128))
    assert [finding.kind for finding in report.findings] == ["race"]


def refused(kernel, *arguments):
    with pytest.raises((refsim.KernelTypeError, refsim.UnsupportedError)) as error:
        refsim.launch(kernel, 1, 1, *arguments)
    return str(error.value)


def test_what_numba_cuda_refuses_on_complex_is_refused():
    x, reals = VALUES.copy(), np.zeros(8)

    def atomic(x):
        cuda.atomic.add(x, 0, x[1])

    def narrow(x, reals):
        reals[0] = x[0]

    def cast(x, reals):
        reals[0] = np.float64(x[0])

    def order(x, reals):
        reals[0] = 1.0 if x[0] < x[1] else 2.0

    def power(x):
        x[0] = x[1] ** x[2]

    assert "complex128" in refused(atomic, x)
    assert "complex128" in refused(narrow, x, reals)
    assert "does not convert" in refused(cast, x, reals)
    assert "complex128" in refused(order, x, reals)
    assert "no device code" in refused(power, x)

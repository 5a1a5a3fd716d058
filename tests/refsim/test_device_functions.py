"""Functions, closures and globals of kernels, names, and Python that is refused by name and line."""

import math

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda, float32, int32

import refsim

FACTOR = 3


@pytest.mark.parametrize("offset", [1, -7, 2.5])
def test_closure_values_are_constants_of_each_kernel(offset):
    def shift(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * FACTOR + offset

    np.testing.assert_array_equal(mapped(shift, np.arange(4), np.float64), np.arange(4) * 3 + offset)


def test_changed_global_is_seen_by_the_next_launch():
    def scale(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * FACTOR

    global FACTOR
    assert mapped(scale, np.arange(3), np.int64).tolist() == [0, 3, 6]
    FACTOR = 5
    try:
        # a jit dispatcher would keep what it compiled; the plain function is translated for what it refers to now
        assert mapped(scale, np.arange(3), np.int64).tolist() == [0, 5, 10]
    finally:
        FACTOR = 3


@cuda.jit(device=True)
def clamp(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


@cuda.jit(device=True)
def polar(x, y):
    return math.sqrt(x * x + y * y), x > 0


@cuda.jit(device=True)
def scaled_clamp(value, factor):
    low = -10
    high = 10
    return clamp(value * factor, low, high) + clamp(value, 0, 1)


@cuda.jit(device=True)
def fill(row, value):
    for k in range(row.size):
        row[k] = value
        value += 1


def test_device_functions_with_several_returns_and_nested_calls():
    def apply(x, out):
        i = cuda.grid(1)
        low = 100  # the callee has a variable of this name: they must not mix
        out[i] = scaled_clamp(x[i], 4) + low

    x = np.arange(-6, 7)
    expected = np.clip(x * 4, -10, 10) + np.clip(x, 0, 1) + 100
    np.testing.assert_array_equal(mapped(apply, x, np.int64), expected)


def test_device_function_that_returns_a_tuple():
    def apply(x, out):
        i = cuda.grid(1)
        radius, positive = polar(x[i], x[i] + 1)
        out[i] = radius if positive else -radius

    x = np.array([-3.0, 0.0, 4.0])
    radius = np.sqrt(x * x + (x + 1) * (x + 1))
    np.testing.assert_array_equal(mapped(apply, x, np.float64), np.where(x > 0, radius, -radius))


def test_device_function_that_writes_through_a_view():
    def apply(out):
        i = cuda.grid(1)
        fill(out[i], 10 * i)

    out = np.zeros((5, 4), np.int64)
    launch_clean(apply, 1, 5, out)
    np.testing.assert_array_equal(out, 10 * np.arange(5)[:, None] + np.arange(4))


def test_device_function_from_a_closure():
    @cuda.jit(device=True)
    def square(v):
        return v * v

    def apply(x, out):
        i = cuda.grid(1)
        out[i] = square(x[i]) + square(2)

    assert mapped(apply, np.arange(4), np.int64).tolist() == [4, 5, 8, 13]


def test_device_function_with_shared_memory_is_allocated_once_per_call_site():
    @cuda.jit(device=True)
    def block_sum(value):
        cells = cuda.shared.array(32, int32)
        i = cuda.threadIdx.x
        cells[i] = value
        cuda.syncthreads()
        total = 0
        for k in range(32):
            total += cells[k]
        cuda.syncthreads()
        return total

    def apply(x, out):
        i = cuda.threadIdx.x
        out[i] = block_sum(x[i]) + 1000 * block_sum(2 * x[i])

    x = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(mapped(apply, x, np.int64), np.full(32, 496 + 992_000))


def test_names_that_generated_code_might_use():
    def clash(x, out):
        i = cuda.grid(1)
        g = x[i]
        c = 2 * g
        w64 = c + 1
        lanes = w64 + 1
        mask = lanes
        np_ = mask * 2
        active = np_ + g
        out[i] = active

    x = np.arange(5)
    np.testing.assert_array_equal(mapped(clash, x, np.int64), (2 * x + 2) * 2 + x)


def test_deeply_nested_loops():
    def nested(out):
        i = cuda.grid(1)
        total = 0
        for a in range(2):
            for b in range(a + 1):
                for c in range(b + i % 3):
                    for d in range(2):
                        for e in range(c + 1):
                            if (a + b + c + d + e + i) % 5 == 4:
                                continue
                            total += a + 2 * b + 3 * c + 4 * d + 5 * e
        out[i] = total

    def python(i):
        total = 0
        for a in range(2):
            for b in range(a + 1):
                for c in range(b + i % 3):
                    for d in range(2):
                        for e in range(c + 1):
                            if (a + b + c + d + e + i) % 5 != 4:
                                total += a + 2 * b + 3 * c + 4 * d + 5 * e
        return total

    out = np.zeros(40, np.int64)
    launch_clean(nested, 1, 40, out)
    assert out.tolist() == [python(i) for i in range(40)]


def test_docstring_pass_and_expression_statements():
    def documented(x, out):
        """A kernel with a docstring."""
        i = cuda.grid(1)
        if x[i] < 0:
            pass
        else:
            out[i] = float32(x[i])

    assert mapped(documented, np.array([-1, 2]), np.float32).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("name", "words"),
    [("uses_list", "append"), ("uses_generator", "generators"), ("uses_try", "try"), ("uses_string_method", "upper")],
)
def test_unsupported_python_names_itself_and_its_line(name, words):
    def uses_list(out):
        values = [1, 2, 3]
        values.append(4)
        out[0] = values[0]

    def uses_generator(out):
        out[0] = sum(v + 1 for v in (1, 2))

    def uses_try(out):
        try:
            out[0] = 1
        except ValueError:
            out[0] = 2

    def uses_string_method(out):
        text = "a".upper()
        out[0] = len(text)

    kernel = {k.__name__: k for k in (uses_list, uses_generator, uses_try, uses_string_method)}[name]
    with pytest.raises(refsim.UnsupportedError) as caught:
        refsim.launch(kernel, 1, 1, np.zeros(1))
    message = str(caught.value)
    assert __file__ in message
    assert words in message.lower()

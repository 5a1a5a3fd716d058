"""The Python of kernels: control flow, indexing, slices, tuples, closures, device functions."""

import math

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda, float32, int32

import refsim

FACTOR = 3
TABLE = (2, 3, 5, 7)


# ---- control flow -------------------------------------------------------------------------------------------------


def test_collatz_lengths_by_while_break_continue():
    def collatz(x, out):
        i = cuda.grid(1)
        value = x[i]
        steps = 0
        while True:
            if value == 1:
                break
            steps += 1
            if value % 2 == 0:
                value //= 2
                continue
            value = 3 * value + 1
        out[i] = steps

    def length(value):
        steps = 0
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps += 1
        return steps

    x = np.arange(1, 200)
    assert mapped(collatz, x, np.int64).tolist() == [length(int(v)) for v in x]


def test_break_out_of_a_loop_and_early_return():
    def prime(x, out):
        i = cuda.grid(1)
        if i >= x.size:
            return
        if x[i] < 2:
            out[i] = -1
            return
        found = True
        for d in range(2, x[i]):
            if d * d > x[i]:
                break
            if x[i] % d == 0:
                found = False
                break
        out[i] = 1 if found else 0

    x = np.arange(150)
    out = np.zeros(150, np.int32)
    launch_clean(prime, 3, 64, x, out)
    expected = [-1 if n < 2 else int(all(n % d for d in range(2, n))) for n in range(150)]
    assert out.tolist() == expected


def test_ranges_with_start_stop_and_negative_step():
    def sums(out):
        i = cuda.grid(1)
        total = 0
        for k in range(i):
            total += k
        for k in range(i, 20, 3):
            total += 100 * k
        for k in range(20, i, -2):
            total += 10000 * k
        for _ in range(i, 0):
            total -= 1000000
        out[i] = total

    out = np.zeros(25, np.int64)
    launch_clean(sums, 1, 25, out)
    assert out.tolist() == [
        sum(range(i)) + 100 * sum(range(i, 20, 3)) + 10000 * sum(range(20, i, -2)) for i in range(25)
    ]


def test_short_circuit_protects_the_index():
    def guarded(x, out):
        i = cuda.grid(1)
        if i < x.size and x[i] > 0:
            out[i] = 1
        if i >= x.size or x[i] < 0:
            out[i] = -1
        out[i] += 10 if not (i < x.size and x[i] == 0) else 20

    x = np.array([1, -1, 0, 5], np.float32)
    out = np.zeros(8, np.int32)
    launch_clean(guarded, 1, 8, x, out)
    assert out.tolist() == [11, 9, 20, 11, 9, 9, 9, 9]


def test_division_is_not_evaluated_in_lanes_that_did_not_ask():
    def safe(x, out):
        i = cuda.grid(1)
        out[i] = 1.0 / x[i] if x[i] != 0 else -1.0
        if x[i] != 0 and 12 // int(x[i]) > 3:
            out[i] += 100

    x = np.array([0, 1, 2, 4, 0], np.float64)
    assert mapped(safe, x, np.float64).tolist() == [-1, 101, 100.5, 0.25, -1]


def test_chained_comparison_and_boolean_values():
    def inside(x, out):
        i = cuda.grid(1)
        low = 2 <= x[i] < 5
        high = x[i] > 7
        out[i] = low or high
        if low != high and not (low and high):
            out[i] = out[i] and x[i] != 3

    x = np.arange(10)
    expected = [(2 <= v < 5 or v > 7) and v != 3 for v in range(10)]
    assert mapped(inside, x, np.bool_).tolist() == expected


def test_variable_defined_in_both_branches():
    def branch(x, out):
        i = cuda.grid(1)
        if x[i] > 2:
            label = 1
            scale = 2.5
        elif x[i] > 0:
            label = 2
            scale = 1
        else:
            label = 3
            scale = 0
        out[i] = label * scale

    x = np.array([-1, 0, 1, 2, 3, 4], np.int32)
    assert mapped(branch, x, np.float64).tolist() == [0, 0, 2, 2, 2.5, 2.5]


def test_loop_over_tuples():
    def weigh(x, out):
        i = cuda.grid(1)
        total = 0
        for weight in TABLE:
            total += weight * x[i]
        for weight in (10, 20):
            total += weight
        out[i] = total

    assert mapped(weigh, np.arange(5), np.int64).tolist() == [17 * v + 30 for v in range(5)]


def test_augmented_assignment_of_every_kind():
    def all_kinds(x, out):
        i = cuda.grid(1)
        v = x[i]
        v += 5
        v -= 1
        v *= 3
        v //= 2
        v %= 50
        v <<= 2
        v >>= 1
        v |= 1
        v &= 0xFF
        v ^= 2
        v **= 2
        out[i] = v
        out[i] += i
        out[i] *= 2

    def python(v, i):
        v = ((v + 5 - 1) * 3 // 2 % 50) << 2 >> 1
        v = ((v | 1) & 0xFF) ^ 2
        return (v**2 + i) * 2

    x = np.arange(-10, 30)
    assert mapped(all_kinds, x, np.int64).tolist() == [python(int(v), i) for i, v in enumerate(x)]


# ---- indexing -----------------------------------------------------------------------------------------------------


def test_negative_and_multidimensional_indices():
    def pick(x, out):
        i = cuda.grid(1)
        out[i, 0] = x[-1, -1, i]
        out[i, -2] = x[i % 2][-2][i]
        out[i, 2] = x[-2, 1][-1 - i]

    x = np.arange(24.0).reshape(2, 3, 4)
    out = np.zeros((4, 3))
    launch_clean(pick, 1, 4, x, out)
    i = np.arange(4)
    np.testing.assert_array_equal(out, np.stack([x[-1, -1, i], x[i % 2, -2, i], x[-2, 1][-1 - i]], axis=1))


def test_slices_are_views():
    def write(x):
        i = cuda.grid(1)
        row = x[1]
        column = x[:, 2]
        block = x[2:4, 3:]
        row[i % 5] = 100 + i % 5
        cuda.syncthreads()  # the row and the column share a cell
        if i < 4:
            column[i] += 1000
        if i < 2:
            block[i, 0] = -1
            block[i, -1] = -2

    x = np.zeros((4, 5))
    launch_clean(write, 1, 5, x)
    expected = np.zeros((4, 5))
    expected[1] = 100 + np.arange(5)
    expected[:, 2] += 1000
    expected[2:4, 3] = -1
    expected[2:4, 4] = -2
    np.testing.assert_array_equal(x, expected)


def test_slices_with_steps_and_open_ends():
    def read(x, out):
        i = cuda.grid(1)
        out[i, 0] = x[::2][i]
        out[i, 1] = x[::-1][i]
        out[i, 2] = x[3:][i]
        out[i, 3] = x[-5:][i]
        out[i, 4] = x[1:-1:3][i]
        out[i, 5] = x[:-4].size
        out[i, 6] = x[2:100].shape[0]
        out[i, 7] = len(x[7:3])

    x = np.arange(12) * 10
    out = np.zeros((4, 8), np.int64)
    launch_clean(read, 1, 4, x, out)
    i = np.arange(4)
    columns = [x[::2][i], x[::-1][i], x[3:][i], x[-5:][i], x[1:-1:3][i]]
    np.testing.assert_array_equal(out[:, :5], np.stack(columns, axis=1))
    assert out[:, 5:].tolist() == [[8, 10, 0]] * 4


def test_slice_that_starts_where_the_thread_says():
    def windows(x, out):
        i = cuda.grid(1)
        window = x[i : i + 3]
        out[i] = window[0] + 10 * window[-1] + 100 * window.size

    x = np.arange(10)
    out = np.zeros(8, np.int64)
    launch_clean(windows, 1, 8, x, out)
    assert out.tolist() == [i + 10 * (i + 2) + 300 for i in range(8)]


def test_array_attributes():
    def describe(x, out):
        if cuda.grid(1) == 0:
            out[0] = x.shape[0]
            out[1] = x.shape[-1]
            out[2] = x.size
            out[3] = x.ndim
            out[4] = len(x)
            rows, columns = x.shape
            out[5] = rows * 100 + columns

    out = np.zeros(6, np.int64)
    launch_clean(describe, 1, 32, np.zeros((4, 7), np.float32), out)
    assert out.tolist() == [4, 7, 28, 2, 4, 407]


def test_swap_by_tuple_assignment():
    def swap(x):
        i = cuda.grid(1)
        x[i], x[-1 - i] = x[-1 - i], x[i]

    x = np.arange(10)
    launch_clean(swap, 1, 5, x)
    assert x.tolist() == list(range(9, -1, -1))


def test_tuples():
    def tuples(x, out):
        i = cuda.grid(1)
        pair = (x[i], 2 * i)
        first, second = pair
        nested = (pair, TABLE[i % 4])
        (a, b), c = nested
        out[i] = first + second + pair[0] + pair[-1] + a + b + c + len(pair) + TABLE[2]

    x = np.arange(6) * 100
    i = np.arange(6)
    expected = 3 * x + 3 * (2 * i) + np.array(TABLE)[i % 4] + 2 + 5
    np.testing.assert_array_equal(mapped(tuples, x, np.int64), expected)


# ---- closures and device functions --------------------------------------------------------------------------------


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
    [("uses_list", "append"), ("uses_lambda", "lambda"), ("uses_try", "try"), ("uses_string_method", "upper")],
)
def test_unsupported_python_names_itself_and_its_line(name, words):
    def uses_list(out):
        values = [1, 2, 3]
        values.append(4)
        out[0] = values[0]

    def uses_lambda(out):
        f = lambda v: v + 1  # noqa: E731
        out[0] = f(1)

    def uses_try(out):
        try:
            out[0] = 1
        except ValueError:
            out[0] = 2

    def uses_string_method(out):
        text = "a".upper()
        out[0] = len(text)

    kernel = {k.__name__: k for k in (uses_list, uses_lambda, uses_try, uses_string_method)}[name]
    with pytest.raises(refsim.UnsupportedError) as caught:
        refsim.launch(kernel, 1, 1, np.zeros(1))
    message = str(caught.value)
    assert "test_device_language.py" in message
    assert words in message.lower()

"""Control flow of kernels: branches, loops, break, continue, return, short circuit, assignment of every kind."""

import numpy as np
from clean_launch import launch_clean, mapped
from numba import cuda

TABLE = (2, 3, 5, 7)


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

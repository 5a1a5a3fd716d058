"""The gated delta rule and the selective scan against loops over scalars, and what they refuse."""

import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from oracle.ops.recurrent_chunks import delta_rule_in_chunks

NOT_NUMBERS = {"not_a_number", "infinities", "mixed"}


def unit(row):
    root = math.sqrt(math.fsum(x * x for x in row) + 1e-6)
    return [x / root for x in row]


def delta_rule(q, k, v, g, beta, state, normalise):
    """One head of one sequence, all as lists; the matrix is kept as one list per value column."""
    columns = [list(column) for column in zip(*state, strict=True)] or []
    outputs, largest = [], 0.0
    for query, key, value, decay, strength in zip(q, k, v, g, beta, strict=True):
        if normalise:
            query, key = unit(query), unit(key)
        row = []
        for j, column in enumerate(columns):
            old = [math.exp(decay) * s for s in column]
            gap = value[j] - math.fsum(a * b for a, b in zip(key, old, strict=True))
            columns[j] = [s + strength * a * gap for s, a in zip(old, key, strict=True)]
            terms = [a * b for a, b in zip(query, columns[j], strict=True)]
            largest = max([largest, *map(abs, terms), *map(abs, columns[j]), abs(value[j])])
            row.append(math.fsum(terms) / math.sqrt(len(query)))
        outputs.append(row)
    return outputs, columns, largest


def test_delta_rule_against_scalar_loops():
    for case in make_cases("gated_delta_rule", "float32", 40, seed=3):
        if case.value_class in NOT_NUMBERS or math.prod(case.dims.values()) > 6000:
            continue
        inputs = list(case.inputs().values())
        out, final = find_operator("gated_delta_rule").value(case.inputs(), case.params)
        for b, h in np.ndindex(out.shape[:2]):
            lists = [array[b, h].tolist() for array in inputs]
            want, columns, largest = delta_rule(*lists, case.params.get("normalise", False))
            if out.shape[2] and out.shape[3]:
                np.testing.assert_allclose(out[b, h], want, rtol=1e-10, atol=1e-13 * largest)
                np.testing.assert_allclose(final[b, h].T, columns, rtol=1e-10, atol=1e-13 * largest)


@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_chunks_are_the_rule_step_by_step(size):
    rng = np.random.default_rng(size)
    q, k, v = (rng.standard_normal((2, 3, 13, width)).astype(np.float32) / 2 for width in (4, 4, 6))
    g, beta = -rng.random((2, 3, 13)).astype(np.float32), rng.random((2, 3, 13)).astype(np.float32)
    start = rng.standard_normal((2, 3, 4, 6)).astype(np.float32)
    wide = [array.astype(np.float64) for array in (q, k, v, g, beta, start)]
    step_by_step = find_operator("gated_delta_rule")(q, k, v, g, beta, start)
    for one, other in zip(delta_rule_in_chunks(*wide, 0.5, size), step_by_step, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["gated_delta_rule", "selective_scan"])
def test_chunks_must_be_declared(name):
    case = make_cases(name, "float32", 1, seed=0)[0]
    record = find_operator(name)
    steps, chunks = (
        record.expect(case.inputs(), case.params, NUMERICS[name]) for name in ("float32", "float32_chunked")
    )
    for one, other in zip(steps, chunks, strict=True):
        assert np.array_equal(one.value, other.value)
        assert np.all(one.bound <= other.bound)
        assert np.any(one.bound < other.bound)
    assert "linear recurrences may be solved up to 64 steps at once" in NUMERICS["float32_chunked"].describe()


def softplus(x):
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def test_scan_against_scalar_loops():
    for case in make_cases("selective_scan", "float32", 40, seed=3):
        if case.value_class in NOT_NUMBERS or math.prod(case.dims.values()) > 6000:
            continue
        x, dt, a, b, c, state, d, dt_bias, z = case.inputs().values()
        out, final = find_operator("selective_scan").value(case.inputs(), case.params)
        for i, channel in np.ndindex(x.shape[:2]):
            held = [float(h) for h in state[i, channel]]
            largest = 1e-30
            for t in range(x.shape[2]):
                step = float(dt[i, channel, t]) + (0.0 if dt_bias is None else float(dt_bias[channel]))
                if case.params.get("dt_softplus"):
                    step = softplus(step)
                value = float(x[i, channel, t])
                for n in range(len(held)):
                    held[n] = math.exp(step * float(a[channel, n])) * held[n] + step * float(b[i, n, t]) * value
                terms = [h * float(c[i, n, t]) for n, h in enumerate(held)]
                terms.append(0.0 if d is None else value * float(d[channel]))
                gate = 1.0 if z is None else float(z[i, channel, t])
                gate = gate if z is None else gate / (1 + math.exp(-gate))
                largest = max([largest, *map(abs, terms), *map(abs, held)])
                want = math.fsum(terms) * gate
                assert math.isclose(out[i, channel, t], want, rel_tol=1e-10, abs_tol=1e-13 * largest), str(case)
            np.testing.assert_allclose(final[i, channel], held, rtol=1e-10, atol=1e-13 * largest)


def test_a_whole_update_stores_the_value():
    key = np.eye(3, dtype=np.float32)[np.newaxis, np.newaxis]
    values = np.array([[[[5.0, 1.0], [6.0, 2.0], [7.0, 3.0]]]], np.float32)
    still, whole = np.zeros((1, 1, 3), np.float32), np.ones((1, 1, 3), np.float32)
    start = np.full((1, 1, 3, 2), 9.0, np.float32)
    out, final = find_operator("gated_delta_rule")(key, key, values, still, whole, start)
    assert np.array_equal(final, values)
    np.testing.assert_allclose(out, values.astype(np.float64) / math.sqrt(3), rtol=1e-15)


def ones(*shape):
    return np.ones(shape, np.float32)


Q, G, X, B = ones(1, 1, 2, 3), ones(1, 1, 2), ones(1, 2, 3), ones(1, 4, 3)


@pytest.mark.parametrize(
    ("name", "arrays", "words"),
    [
        ("gated_delta_rule", (Q[..., :0], Q[..., :0], Q, G, G, ones(1, 1, 0, 3)), "key_dim = 0"),
        ("gated_delta_rule", (Q, Q, Q, ones(1, 2, 2), G, ones(1, 1, 3, 3)), "dimension heads is 2 in g"),
        ("gated_delta_rule", (Q, Q, Q, G.astype(np.float16), G, ones(1, 1, 3, 3)), "g has dtype float16"),
        ("selective_scan", (X, X, ones(2, 4), B, ones(1, 5, 3), ones(1, 2, 4)), "dimension n is 5 in c"),
        ("selective_scan", (X, X, np.ones((2, 4)), B, B, ones(1, 2, 4)), "a has dtype float64"),
    ],
)
def test_refuses(name, arrays, words):
    with pytest.raises(InputError) as caught:
        find_operator(name)(*arrays)
    assert words in str(caught.value)

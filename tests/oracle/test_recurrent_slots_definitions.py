"""Packed convolutions and steps of a scan with states in slots: against loops over scalars, and what they refuse."""

import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator

NOT_NUMBERS = {"not_a_number", "infinities", "mixed", "nan_unread"}


def logistic(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def small(name):
    for case in make_cases(name, "float32", 45, seed=4):
        if case.value_class not in NOT_NUMBERS and math.prod(case.dims.values()) < 1e5:
            inputs = case.inputs()
            yield case, inputs, find_operator(name).value(inputs, case.params)


def test_packed_convolution_against_scalar_loops():
    for case, inputs, (out, new_state) in small("causal_conv1d_varlen"):
        x, weight, state, edges, slots, bias, fresh = inputs.values()
        kept = state.astype(np.float64)
        for channel in range(x.shape[0]):
            for s, slot in enumerate(slots):
                tokens = range(edges[s], edges[s + 1])
                if slot < 0:
                    assert not out[channel, edges[s] : edges[s + 1]].any()
                    continue
                register = [0.0] * state.shape[2] if fresh is not None and fresh[s] else state[slot, channel].tolist()
                for token in tokens:
                    register.append(float(x[channel, token]))
                    terms = [float(tap) * value for tap, value in zip(weight[channel], register, strict=True)]
                    terms.append(0.0 if bias is None else float(bias[channel]))
                    total = math.fsum(terms)
                    want = total * logistic(total) if case.params.get("activation") == "silu" else total
                    slack = 1e-15 * max(map(abs, terms))
                    assert math.isclose(out[channel, token], want, rel_tol=1e-12, abs_tol=slack), str(case)
                    register.pop(0)
                kept[slot, channel] = register
        assert np.array_equal(new_state, kept)


def test_step_against_scalar_loops():
    for case, inputs, (out, new_state) in small("selective_state_update"):
        state, x, dt, a, b, c, slots, d, dt_bias, z = inputs.values()
        kept, per_group = state.astype(np.float64), x.shape[1] // b.shape[1]
        for s, head, row in np.ndindex(x.shape):
            if slots[s] < 0:
                assert out[s, head, row] == 0
                continue
            step = float(dt[s, head, row]) + (0.0 if dt_bias is None else float(dt_bias[head, row]))
            if case.params.get("dt_softplus"):
                step = step + math.log1p(math.exp(-step)) if step > 0 else math.log1p(math.exp(step))
            value, terms = float(x[s, head, row]), [0.0]
            for n in range(a.shape[2]):
                old = float(state[slots[s], head, row, n])
                new = math.exp(step * float(a[head, row, n])) * old + step * value * float(b[s, head // per_group, n])
                kept[slots[s], head, row, n] = new
                terms.append(new * float(c[s, head // per_group, n]))
            terms.append(0.0 if d is None else value * float(d[head, row]))
            gate = 1.0 if z is None else float(z[s, head, row]) * logistic(float(z[s, head, row]))
            slack = 1e-14 * max(map(abs, terms))
            assert math.isclose(out[s, head, row], math.fsum(terms) * gate, rel_tol=1e-11, abs_tol=slack), str(case)
        np.testing.assert_allclose(new_state, kept, rtol=1e-11, atol=1e-14 * np.abs(kept).max(initial=0))


def test_packed_scan_against_scalar_loops():
    for case, inputs, (out, new_state) in small("selective_scan_varlen"):
        x, dt, a, b, c, state, edges, slots, d, dt_bias, z, fresh = inputs.values()
        kept = state.astype(np.float64)
        for s, channel in np.ndindex(len(slots), x.shape[0]):
            if slots[s] < 0:
                assert not out[channel, edges[s] : edges[s + 1]].any()
                continue
            begins = fresh is not None and fresh[s]
            held = [0.0 if begins else float(h) for h in state[slots[s], channel]]
            for token in range(edges[s], edges[s + 1]):
                step = float(dt[channel, token]) + (0.0 if dt_bias is None else float(dt_bias[channel]))
                if case.params.get("dt_softplus"):
                    step = step + math.log1p(math.exp(-step)) if step > 0 else math.log1p(math.exp(step))
                value, terms = float(x[channel, token]), [0.0]
                for n, old in enumerate(held):
                    held[n] = math.exp(step * float(a[channel, n])) * old + step * float(b[n, token]) * value
                    terms.append(held[n] * float(c[n, token]))
                terms.append(0.0 if d is None else value * float(d[channel]))
                gate = 1.0 if z is None else float(z[channel, token]) * logistic(float(z[channel, token]))
                slack = 1e-13 * max(map(abs, terms))
                assert math.isclose(out[channel, token], math.fsum(terms) * gate, rel_tol=1e-10, abs_tol=slack), str(
                    case
                )
            kept[slots[s], channel] = held
        np.testing.assert_allclose(new_state, kept, rtol=1e-10, atol=1e-13 * np.abs(kept).max(initial=0))


def test_a_sequence_in_pieces_is_the_whole_sequence():
    rng = np.random.default_rng(5)
    x, weight, bias = rng.standard_normal((3, 9)), rng.standard_normal((3, 4)), rng.standard_normal(3)
    start, one = np.zeros((2, 3, 3)), np.array([1])
    convolve = find_operator("causal_conv1d_varlen")
    whole, final = convolve(x, weight, start, np.array([0, 9], np.int32), one, bias)
    first, state = convolve(x[:, :2], weight, start, np.array([0, 2], np.int32), one, bias)
    rest, last = convolve(x[:, 2:], weight, state, np.array([0, 7], np.int32), one, bias)
    assert np.array_equal(np.concatenate([first, rest], axis=1), whole)
    assert np.array_equal(last, final)


def ones(*shape):
    return np.ones(shape, np.float32)


EDGES = np.array([0, 1, 3], np.int32)
SCAN = (ones(2, 3), ones(2, 3), ones(2, 5), ones(5, 3), ones(5, 3), ones(4, 2, 5))
STEP = (ones(2, 4, 3, 5), ones(2, 4, 3), ones(2, 4, 3), ones(4, 3, 5))


@pytest.mark.parametrize(
    ("name", "arrays", "words"),
    [
        ("causal_conv1d_varlen", (ones(2, 3), ones(2, 2), ones(2, 2, 1), EDGES[1:], np.array([0])), "[1, 3] must rise"),
        ("causal_conv1d_varlen", (ones(2, 3), ones(2, 2), ones(2, 2, 1), EDGES, np.array([0])), "need one more"),
        ("causal_conv1d_varlen", (ones(2, 3), ones(2, 2), ones(2, 2, 1), EDGES, np.array([1, 1])), "a slot twice"),
        ("causal_conv1d_varlen", (ones(2, 3), ones(2, 3), ones(2, 2, 1), EDGES, np.array([0, 1])), "taps need 2"),
        ("selective_state_update", (*STEP, ones(2, 3, 5), ones(2, 3, 5), np.array([0, 1])), "multiple of groups = 3"),
        ("selective_state_update", (*STEP, ones(2, 2, 5), ones(2, 2, 5), np.array([0, 2])), "slots[1] = 2"),
        ("selective_state_update", (*STEP, ones(2, 2, 5), ones(2, 2, 5), np.array([0, 0])), "a slot twice"),
        ("selective_scan_varlen", (*SCAN, EDGES, np.array([0])), "need one more"),
        ("selective_scan_varlen", (*SCAN, EDGES, np.array([3, 3])), "a slot twice"),
        ("selective_scan_varlen", (*SCAN, EDGES - 1, np.array([0, 1])), "cu_seqlens[0] = -1"),
    ],
)
def test_refuses(name, arrays, words):
    with pytest.raises(InputError) as caught:
        find_operator(name)(*arrays)
    assert words in str(caught.value)

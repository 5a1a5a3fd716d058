"""Causal convolutions against loops over scalars with an exact sum, and what they refuse."""

import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator

NOT_NUMBERS = {"not_a_number", "infinities", "mixed", "nan_unread"}


def close(got, want, scale):
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15 * scale)


def logistic(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def convolved(history, taps, bias, activation):
    """The outputs of one channel from its whole history, as lists."""
    outputs, largest = [], 0.0
    for end in range(len(taps), len(history) + 1):
        terms = [tap * x for tap, x in zip(taps, history[end - len(taps) : end], strict=True)] + [bias]
        largest = max([largest, *map(abs, terms)])
        y = math.fsum(terms)
        outputs.append(y * logistic(y) if activation == "silu" else y)
    return outputs, largest


def test_full_convolution_against_scalar_loops():
    for case in make_cases("causal_conv1d", "float32", 50, seed=3):
        if case.value_class in NOT_NUMBERS:
            continue
        x, weight, state, bias, fresh = case.inputs().values()
        out, final = find_operator("causal_conv1d").value(case.inputs(), case.params)
        for b, d in np.ndindex(x.shape[:2]):
            before = [0.0] * state.shape[2] if fresh is not None and fresh[b] else state[b, d].tolist()
            history = before + x[b, d].tolist()
            added = 0.0 if bias is None else float(bias[d])
            want, largest = convolved(history, weight[d].tolist(), added, case.params.get("activation"))
            close(out[b, d], want, largest)
            assert final[b, d].tolist() == history[len(history) - len(before) :]


def test_update_against_scalar_loops():
    for case in make_cases("causal_conv1d_update", "float32", 50, seed=3):
        if case.value_class in NOT_NUMBERS:
            continue
        x, weight, state, slots, bias = case.inputs().values()
        out, new_state = find_operator("causal_conv1d_update").value(case.inputs(), case.params)
        want_state = state.astype(np.float64)
        for b, d in np.ndindex(x.shape[:2]):
            if slots[b] < 0:
                assert not out[b, d].any()
                continue
            history = state[slots[b], d].tolist() + x[b, d].tolist()
            added = 0.0 if bias is None else float(bias[d])
            want, largest = convolved(history, weight[d].tolist(), added, case.params.get("activation"))
            close(out[b, d], want, largest)
            want_state[slots[b], d] = history[x.shape[2] :]
        assert np.array_equal(new_state, want_state)


def test_steps_give_what_the_whole_gives():
    rng = np.random.default_rng(5)
    x, weight, bias = rng.standard_normal((2, 3, 9)), rng.standard_normal((3, 4)), rng.standard_normal(3)
    state = rng.standard_normal((2, 3, 3))
    out, final = find_operator("causal_conv1d")(x, weight, state, bias, activation="silu")
    slots = np.array([1, 0])
    kept = state[[1, 0]]
    for step in range(9):
        piece = x[:, :, step : step + 1]
        y, kept = find_operator("causal_conv1d_update")(piece, weight, kept, slots, bias, activation="silu")
        np.testing.assert_allclose(y[..., 0], out[..., step], rtol=1e-13)
    assert np.array_equal(kept[[1, 0]], final)


X, W = np.ones((1, 2, 5)), np.ones((2, 4))


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("causal_conv1d", (X, W, np.ones((1, 2, 4))), {}, "state holds 4 inputs; width = 4 taps need 3"),
        ("causal_conv1d", (X, W[:, :0], np.ones((1, 2, 0))), {}, "width = 0"),
        ("causal_conv1d", (X, W, np.ones((2, 2, 3))), {}, "dimension batch"),
        ("causal_conv1d", (X, W, np.ones((1, 2, 3))), {"activation": "gelu"}, "'gelu'"),
        ("causal_conv1d", (X, W, np.ones((1, 2, 3)), None, np.array([2])), {}, "fresh[0] = 2"),
        ("causal_conv1d_update", (X, W, np.ones((3, 2, 3)), np.array([3])), {}, "slots[0] = 3"),
        ("causal_conv1d_update", (np.ones((2, 2, 1)), W, np.ones((3, 2, 3)), np.array([1, 1])), {}, "a slot twice"),
    ],
)
def test_refuses(name, arrays, params, words):
    with pytest.raises(InputError) as caught:
        find_operator(name)(*arrays, **params)
    assert words in str(caught.value)

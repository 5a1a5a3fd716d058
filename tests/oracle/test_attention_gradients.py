"""Gradients of attention against central differences of the loops over Python floats."""

import attention_loops
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.cases.draw import curated_count
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from oracle.signature import InputError


@pytest.mark.parametrize("name", ["attention_backward", "attention_bias_backward", "attention_sinks_backward"])
def test_equals_loops_over_floats(name):
    """As far as float64 tells: differences of large sums are off by what its own bound says."""
    record = find_operator(name)
    for case in make_cases(name, "float32", curated_count(name) + 6, seed=7):
        inputs = case.inputs()
        loops = getattr(attention_loops, name)(*inputs.values(), **case.params)
        results = record.expect(inputs, case.params, NUMERICS["float64"])
        for result, other in zip(results, loops if isinstance(loops, tuple) else (loops,), strict=True):
            known = np.isfinite(result.value)
            assert np.array_equal(np.isnan(result.value), np.isnan(other)), case
            assert np.all(np.abs(result.value - other)[known] <= result.bound[known]), case
            assert np.all(result.bound[known] <= 1e-6 * np.abs(other[known]).max(initial=1.0)), case


def _case(causal="none", heads=2, kv_heads=1, queries=3, keys=4):
    rng = np.random.default_rng(5)
    q, dout = rng.standard_normal((2, 1, heads, queries, 4))
    k, v = rng.standard_normal((2, 1, kv_heads, keys, 4))
    out, lse = find_operator("attention")(q, k, v, causal=causal)
    return dout, q, k, v, out, lse.astype(np.float32)


@pytest.mark.parametrize("causal", ["none", "top_left", "bottom_right"])
@pytest.mark.parametrize(("queries", "keys"), [(3, 4), (5, 2), (1, 1)])
def test_gradients_are_slopes_of_the_result(causal, queries, keys):
    """Central differences of Σ dout · out, where out comes from the loops over floats."""
    dout, q, k, v, out, lse = _case(causal, queries=queries, keys=keys)
    gradients = find_operator("attention_backward")(dout, q, k, v, out, lse, causal=causal)
    step = 1e-5
    for which, gradient in enumerate(gradients):
        for at in np.ndindex(gradient.shape):
            ends = []
            for sign in (1, -1):
                moved = [q.copy(), k.copy(), v.copy()]
                moved[which][at] += sign * step
                ends.append(np.sum(dout * attention_loops.flash_attention(*moved, causal=causal)[0]))
            assert abs((ends[0] - ends[1]) / (2 * step) - gradient[at]) < 2e-6  # lse is float32


def test_gradients_use_the_lse_that_is_given():
    dout, q, k, v, out, lse = _case()
    whole = find_operator("attention_backward")(dout, q, k, v, out, lse)[2]
    half = find_operator("attention_backward")(dout, q, k, v, out, lse + np.float32(np.log(2)))[2]
    np.testing.assert_allclose(half, whole / 2, rtol=1e-6)


def test_gradients_of_a_window():
    dout, q, k, v, _, _ = _case(queries=4, keys=4)
    flash = find_operator("flash_attention")
    window = {"window_left": 1, "window_right": 0}
    out, lse = flash(q, k, v, **window)
    dq, dk, dv = find_operator("attention_backward")(dout, q, k, v, out, lse.astype(np.float32), **window)
    step = 1e-5
    for array, gradient in ((q, dq), (k, dk), (v, dv)):
        direction = np.random.default_rng(6).standard_normal(array.shape)
        ends = []
        for sign in (1, -1):
            moved = [x + sign * step * direction if x is array else x for x in (q, k, v)]
            ends.append(np.sum(dout * flash(*moved, **window)[0]))
        assert abs((ends[0] - ends[1]) / (2 * step) - np.sum(gradient * direction)) < 1e-5


def _slope(function, array, direction, step=1e-5):
    ends = [function(array + sign * step * direction) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize("softcap", [None, 1.5])
@pytest.mark.parametrize("alibi", ["distance", "last_key"])
def test_gradients_with_everything_that_changes_scores(softcap, alibi):
    dout, q, k, v, _, _ = _case(queries=4, keys=5)
    rng = np.random.default_rng(7)
    bias, slopes = rng.standard_normal((1, 2, 4, 5)), np.array([0.5, 0.25], np.float32)
    bias[0, 0, 1, 2], sinks = -np.inf, np.array([0.3, -0.4], np.float32)
    params = {"causal": "bottom_right", "softcap": softcap, "alibi": alibi}

    def whole(q, k, v, bias, sinks):
        return attention_loops.flash_attention(q, k, v, bias, slopes, sinks, **params)

    out, lse = whole(q, k, v, bias, sinks)
    given = (dout, q, k, v, out, lse.astype(np.float32), bias, slopes)
    dq, dk, dv = find_operator("attention_backward")(*given, **params)
    dbias = find_operator("attention_bias_backward")(*given, **params)
    dsinks = find_operator("attention_sinks_backward")(dout, out, lse.astype(np.float32), sinks)
    arrays = [q, k, v, bias, sinks.astype(np.float64)]
    for which, gradient in enumerate((dq, dk, dv, dbias, dsinks)):
        direction = rng.standard_normal(gradient.shape)

        def loss(moved, which=which):
            return np.sum(dout * whole(*arrays[:which], moved, *arrays[which + 1 :])[0])

        assert abs(_slope(loss, arrays[which], direction) - np.sum(gradient * direction)) < 1e-5


def test_the_gradient_of_a_hidden_bias_is_zero():
    dout, q, k, v, _, _ = _case()
    bias = np.zeros((1, 2, 3, 4))
    bias[..., 1] = -np.inf
    out, lse = find_operator("flash_attention")(q, k, v, bias)
    dbias = find_operator("attention_bias_backward")(dout, q, k, v, out, lse.astype(np.float32), bias)
    assert np.all(dbias[..., 1] == 0)
    np.testing.assert_allclose(dbias.sum(axis=-1), 0, atol=1e-6)  # a constant added to a row changes nothing


def test_what_gradients_refuse():
    dout, q, k, v, out, lse = _case()
    backward = find_operator("attention_backward")
    with pytest.raises(InputError, match="lse has dtype float64; expected one of float32"):
        backward(dout, q, k, v, out, lse.astype(np.float64))
    with pytest.raises(InputError, match="heads = 2 must be a multiple of kv_heads = 0"):
        backward(dout, q, k[:, :0], v[:, :0], out, lse)
    with pytest.raises(InputError, match="dimension v_dim is 3 in out"):
        backward(dout, q, k, v, out[..., :3], lse)


def test_a_query_that_sees_nothing_has_no_gradient_under_a_soft_cap_whatever_is_in_it():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, size, 4)).astype(np.float32) for size in (3, 2, 2))
    seen = {"causal": "bottom_right", "softcap": 2.0}
    out, lse = find_operator("flash_attention")(q, k, v, **seen)
    assert np.isneginf(lse[0, 0, 0])
    q[0, 0, 0, 1] = np.nan
    dq, *_ = find_operator("attention_backward")(
        np.ones_like(q), q, k, v, out.astype(np.float32), lse.astype(np.float32), **seen
    )
    assert (dq[0, 0, 0] == 0).all()
    assert np.isfinite(dq).all()

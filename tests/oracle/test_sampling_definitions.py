"""Sampling against whole numbers and scalar loops, and what it refuses."""

import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator

ONE = 2**160  # float32 numbers, and products of two uniform ones, are integers in this unit
CLOSE = 10**12
SAMPLERS = ("sample_top_k", "sample_top_p", "sample_min_p", "sample_top_k_top_p")


def whole(x):
    """A number in whole units of 1 / ONE, exactly."""
    above, under = float(x).as_integer_ratio()
    return above * ONE // under


class Undecided(Exception):
    """Two exact numbers lie closer than float64 sums can tell."""


def below(a, b, exactly):
    """Whether a < b, unless float64 could not say."""
    if not exactly and abs(a - b) * CLOSE < max(a, b):
        raise Undecided
    return a < b


def top_k(p, params):
    falling = sorted(range(len(p)), key=lambda t: (-p[t], t))
    if params["ties"] == "lowest":
        return set(falling[: params["top_k"]])
    return {t for t in range(len(p)) if p[t] >= p[falling[params["top_k"] - 1]]}


def nucleus(p, mass, total, params, exactly):
    """Tokens before which less than top_p of the total lies, each by a sum of its own."""
    kept = set()
    for t in range(len(p)):
        ahead = [s for s in range(len(p)) if p[s] > p[t] or (params["ties"] == "lowest" and p[s] == p[t] and s < t)]
        if below(sum(mass[s] for s in ahead) * ONE, whole(params["top_p"]) * total, exactly):
            kept.add(t)
    return kept


def token_of(p, u, params, exactly):
    kept = set(range(len(p)))
    if "top_k" in params:
        kept = top_k(p, params)
    if "top_p" in params:
        mass, total = p, ONE
        if params.get("order") == "top_k_first":
            mass = [p[t] if t in kept else 0 for t in range(len(p))]
            total = sum(mass)
        kept &= nucleus(p, mass, total, params, exactly)
    if "min_p" in params:
        limit, best = whole(params["min_p"]), max(p)
        kept = {t for t in kept if p[t] == best or not below(p[t] * ONE, limit * best, exactly)}
    total, running = sum(p[t] for t in kept), 0
    for t in sorted(kept):
        running += p[t]
        if p[t] and below(u * total, running * ONE, exactly):
            return t
    raise AssertionError("the whole mass is below u")


@pytest.mark.parametrize("name", SAMPLERS)
def test_tokens_against_whole_numbers(name):
    record = find_operator(name)
    compared = 0
    for case in make_cases(name, "float32", 50, seed=2):
        if math.prod(case.dims.values()) > 1600:
            continue
        probs, uniform = case.inputs().values()
        params = record.signature.complete(case.params)
        (tokens,) = record.value(case.inputs(), case.params)
        for row, u, token in zip(probs.tolist(), uniform.tolist(), tokens.tolist(), strict=True):
            try:
                want = token_of(list(map(whole, row)), whole(u), params, case.value_class == "exact_edges")
            except Undecided:
                continue
            assert token == want, str(case)
            compared += 1
    assert compared > 150


def test_temperature_against_scalar_loops():
    for case in make_cases("temperature_softmax", "float32", 40, seed=2):
        logits, temperature = case.inputs().values()
        (out,) = find_operator("temperature_softmax").value(case.inputs(), {})
        for row, heat, got in zip(logits.tolist(), temperature.tolist(), out, strict=True):
            if heat == 0:
                want = [float(t == row.index(max(row))) for t in range(len(row))]
            else:
                parts = [math.exp((x - max(row)) / heat) for x in row]
                want = [part / math.fsum(parts) for part in parts]
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-300, err_msg=str(case))


def test_greedy_against_a_loop():
    for case in make_cases("greedy", "bfloat16", 50, seed=2):
        (tokens,) = find_operator("greedy").value(case.inputs(), {})
        for row, token in zip(case.inputs()["logits"].astype(float).tolist(), tokens.tolist(), strict=True):
            nans = [t for t, x in enumerate(row) if math.isnan(x)]
            assert token == (nans[0] if nans else row.index(max(row)))


P, U = np.full((2, 4), 0.25, np.float32), np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("sample_top_k", (P, U), {"top_k": 5}, "top_k = 5 exceeds vocab = 4"),
        ("sample_top_k", (P, U), {"top_k": 0}, "top_k=0"),
        ("sample_top_k", (P, U), {"ties": "first"}, "'first'"),
        ("sample_top_p", (P, U), {"top_p": 1.5}, "top_p = 1.5 must be at most 1"),
        ("sample_top_p", (P, U.astype(np.float64)), {}, "uniform has dtype float64"),
        ("sample_top_p", (P.astype(np.float64), U), {}, "probs has dtype float64"),
        ("sample_min_p", (P, U), {"min_p": 2.0}, "min_p = 2.0"),
        ("sample_top_k_top_p", (P[:, :0], U), {}, "vocab = 0"),
        ("sample_top_k_top_p", (P, U[:1]), {}, "dimension rows"),
        ("greedy", (P[:, :0],), {}, "vocab = 0"),
        ("temperature_softmax", (P, U[:1]), {}, "dimension rows"),
    ],
)
def test_refuses(name, arrays, params, words):
    with pytest.raises(InputError) as caught:
        find_operator(name)(*arrays, **params)
    assert words in str(caught.value)

"""Sampling by row against whole numbers, what is done to logits against scalar loops, and what they refuse."""

import math

import numpy as np
import pytest
from test_sampling_definitions import ONE, Undecided, below, nucleus, top_k, whole

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator


def token_of(p, u, keep_top, mass_top, least, params, exactly):
    kept = set(range(len(p)))
    if least is not None:
        kept = {t for t in kept if p[t] == max(p) or not below(p[t] * ONE, least * max(p), exactly)}
    if keep_top:
        kept &= top_k(p, {**params, "top_k": min(keep_top, len(p))})
    if mass_top is not None and mass_top < 1:
        mass, total = p, ONE
        if params["order"] == "in_turn":
            mass = [p[t] if t in kept else 0 for t in range(len(p))]
            total = sum(mass)
        kept &= nucleus(p, mass, total, {**params, "top_p": max(mass_top, 1e-30)}, exactly)
    total, running = sum(p[t] for t in kept), 0
    for t in sorted(kept):
        running += p[t]
        if p[t] and below(u * total, running * ONE, exactly):
            return t
    raise AssertionError("the whole mass is below u")


def test_tokens_against_whole_numbers():
    record, compared = find_operator("sample_by_row"), 0
    for case in make_cases("sample_by_row", "float32", 50, seed=2):
        if math.prod(case.dims.values()) > 1600:
            continue
        probs, uniform, *filters = case.inputs().values()
        params = record.signature.complete(case.params)
        (tokens,) = record.value(case.inputs(), case.params)
        for row in range(len(probs)):
            tops, mass, least = (None if one is None else one[row].item() for one in filters)
            p, share = [whole(x) for x in probs[row]], None if least is None else whole(least)
            try:
                want = token_of(p, whole(uniform[row]), tops, mass, share, params, case.value_class == "exact_edges")
            except Undecided:
                continue
            assert tokens[row] == want, str(case)
            compared += 1
    assert compared > 150


def test_rows_with_the_same_filters_are_the_samplers_of_one():
    for case in make_cases("sample_top_k_top_p", "float32", 20, seed=9):
        probs, uniform = case.inputs().values()
        p = find_operator("sample_top_k_top_p").signature.complete(case.params)
        filters = np.full(len(probs), p["top_k"]), np.full(len(probs), p["top_p"], np.float32)
        order = {"joint": "joint", "top_k_first": "in_turn"}[p["order"]]
        rows = find_operator("sample_by_row")(probs, uniform, *filters, order=order, ties=p["ties"])
        one = {**p, "top_p": float(np.float32(p["top_p"]))}
        assert np.array_equal(rows, find_operator("sample_top_k_top_p")(probs, uniform, **one))


def test_a_nucleus_of_nothing_keeps_the_most_probable():
    probs, uniform = np.array([[0.25, 0.5, 0.25]], np.float32), np.array([0.99], np.float32)
    assert find_operator("sample_by_row")(probs, uniform, None, np.zeros(1, np.float32)).tolist() == [1]


def test_penalties_against_scalar_loops():
    for case in make_cases("apply_penalties", "float32", 40, seed=2):
        logits, prompt, output, repetition, frequency, presence = case.inputs().values()
        (out,) = find_operator("apply_penalties").value(case.inputs(), {})
        for (row, token), got in np.ndenumerate(out):
            x, r = float(logits[row, token]), float(repetition[row])
            if prompt[row, token] or output[row, token]:
                x = x / r if x > 0 else x * r
            if output[row, token]:
                x = x - float(frequency[row]) * int(output[row, token])
                x = x - float(presence[row])
            np.testing.assert_allclose(got, x, rtol=1e-13, atol=1e-14)


def test_bias_and_mask_against_scalar_loops():
    for case in make_cases("apply_logit_bias", "float32", 40, seed=2):
        logits, rows, tokens, bias = case.inputs().values()
        (out,) = find_operator("apply_logit_bias").value(case.inputs(), {})
        added = {(int(r), int(t)): float(b) for r, t, b in zip(rows, tokens, bias, strict=True)}
        for place, got in np.ndenumerate(out):
            np.testing.assert_equal(got, float(logits[place]) + added[place] if place in added else logits[place])
    for case in make_cases("apply_token_bitmask", "float32", 40, seed=2):
        logits, words, mask = case.inputs().values()
        (out,) = find_operator("apply_token_bitmask").value(case.inputs(), {})
        for (row, token), got in np.ndenumerate(out):
            bits = format(int(words[mask[row], token // 32]) % 2**32, "032b")[::-1] if mask[row] >= 0 else "1" * 32
            np.testing.assert_equal(got, logits[row, token] if bits[token % 32] == "1" else -np.inf)


P, U, ONES = np.full((2, 4), 0.25, np.float32), np.zeros(2, np.float32), np.ones(2, np.float32)
ROWS, WORDS = np.zeros(2, np.int64), np.zeros((1, 1), np.int32)


@pytest.mark.parametrize(
    ("name", "arrays", "words"),
    [
        ("sample_by_row", (P, U, np.array([1, -1])), "top_k[1] = -1"),
        ("sample_by_row", (P, U, None, None, 2 * ONES), "min_p = 2 must be at most 1"),
        ("sample_by_row", (P[:, :0], U), "vocab = 0"),
        ("sample_by_row", (P, U, None, ONES[:1]), "dimension rows"),
        ("apply_penalties", (P, P.astype(int) - 1, P.astype(int), ONES, U, U), "prompt_counts[0, 0] = -1"),
        ("apply_logit_bias", (P, ROWS, ROWS, ONES), "name a place twice"),
        ("apply_logit_bias", (P, ROWS, ROWS + 4, ONES), "bias_tokens[0] = 4"),
        ("apply_token_bitmask", (np.ones((2, 33), np.float32), WORDS, ROWS), "words = 1 hold 32 bits; vocab = 33"),
        ("apply_token_bitmask", (P, WORDS, ROWS + 1), "mask_of_row[0] = 1"),
    ],
)
def test_refuses(name, arrays, words):
    with pytest.raises(InputError) as caught:
        find_operator(name)(*arrays)
    assert words in str(caught.value)

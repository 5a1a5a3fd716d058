"""The mixture of experts against loops over scalars in Python's own floats and lists, and what it refuses."""

import math
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator

EXACTLY_FINITE = {"not_a_number", "infinities", "mixed", "masked"}


def softplus(x):
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def logistic(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def scores_of(row, scoring):
    if scoring == "sigmoid":
        return [logistic(x) for x in row]
    if scoring == "sqrt_softplus":
        return [math.sqrt(softplus(x)) for x in row]
    top = max(row)
    parts = [math.exp(x - top) for x in row]
    return [part / math.fsum(parts) for part in parts]


def routed(row, bias, p):
    """Ids of one token: sort all experts, look at their group's place, take the first ones."""
    scores = scores_of(row, p["scoring"])
    added = [0.0] * len(row) if bias is None else bias.tolist()
    choice = [score + more for score, more in zip(scores, added)]
    size = len(row) // p["groups"]
    if p["groups"] > 1:
        quality = []
        for group in range(p["groups"]):
            members = sorted(choice[group * size : (group + 1) * size], reverse=True)
            quality.append(members[0] + members[1] if p["group_score"] == "top_two" else members[0])
        good = sorted(range(p["groups"]), key=lambda g: (-quality[g], g))[: p["top_groups"]]
        outside = 0.0 if p["masked"] == "zero" else -math.inf
        choice = [c if e // size in good else outside for e, c in enumerate(choice)]
    ids = sorted(range(len(row)), key=lambda e: (-choice[e], e))[: p["top_k"]]
    weights = [scores[e] for e in ids]
    total = math.fsum(weights) if p["renormalise"] else 1.0
    return ids, [w / total * p["scaling"] if total else math.nan for w in weights], choice


def test_gate_against_sorted_lists():
    record = find_operator("moe_gate")
    compared = 0
    for case in make_cases("moe_gate", "float32", 90, seed=4):
        inputs = case.inputs()
        p = record.signature.complete(case.params)
        ids, weights = record.value(inputs, case.params)
        for token, row in enumerate(inputs["logits"].astype(np.float64)):
            want, factors, choice = routed([float(x) for x in row], inputs["bias"], p)
            gaps = sorted(choice, reverse=True)
            if any(0 < a - b < 1e-13 for a, b in pairwise(gaps)):
                continue  # two float64 evaluations may order these differently
            assert ids[token].tolist() == want, str(case)
            np.testing.assert_allclose(weights[token], factors, rtol=1e-11, atol=1e-300, err_msg=str(case))
            compared += 1
    assert compared > 300


def activated(gate, up, kind):
    if kind == "swiglu_oai":
        gate, up = min(gate, 7.0), max(-7.0, min(up, 7.0))
        return gate * logistic(1.702 * gate) * (up + 1)
    if kind == "gelu":
        return gate * (1 + math.erf(gate / math.sqrt(2))) / 2 * up
    return gate * logistic(gate) * up


def network(x, first, second, p):
    """One feed-forward network of a list of floats, and the largest term of its second product."""
    inner = second.shape[1]
    both = [math.fsum(a * b for a, b in zip(x, row)) for row in first.tolist()]
    middle = [activated(both[i], both[inner + i], p["activation"]) for i in range(inner)]
    if p["intermediate"] != "compute":
        narrow = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}[p["intermediate"]]
        middle = [float(np.float32(m).astype(narrow)) for m in middle]
    terms = [[a * b for a, b in zip(middle, row)] for row in second.tolist()]
    return np.array([math.fsum(row) for row in terms]), max((abs(t) for row in terms for t in row), default=0.0)


def routed_sum(hidden, first, second, ids, weights, p):
    want, scale = np.zeros(hidden.shape), 1e-30
    for t, j in np.argwhere(ids >= 0):
        e, w = int(ids[t, j]), float(weights[t, j])
        x = [float(value) * (w if p["weighted"] == "input" else 1.0) for value in hidden[t]]
        result, largest = network(x, first[e], second[e], p)
        want[t] += result * (w if p["weighted"] == "output" else 1.0)
        scale = max(scale, largest)
    return want, scale


def small_expert_cases(name):
    for case in make_cases(name, "float32", 60, seed=4):
        if case.value_class not in EXACTLY_FINITE and math.prod(case.dims.values()) <= 4e5:
            yield case


def test_experts_against_scalar_loops():
    record = find_operator("fused_experts")
    compared = 0
    for case in small_expert_cases("fused_experts"):
        inputs = case.inputs()
        *routed, shared = inputs.values()
        want, scale = routed_sum(*routed, record.signature.complete(case.params))
        if shared is not None:
            want += shared
        np.testing.assert_allclose(record.value(inputs, case.params)[0], want, rtol=1e-11, atol=1e-12 * scale)
        compared += 1
    assert compared > 25


def test_shared_experts_against_scalar_loops():
    record = find_operator("fused_experts_with_shared")
    compared = 0
    for case in make_cases(record.name, "float32", 40, seed=4):
        if case.value_class in EXACTLY_FINITE or math.prod(case.dims.values()) > 1e7:
            continue
        inputs = case.inputs()
        p = record.signature.complete(case.params)
        hidden, first, second, ids, weights, up, down, gate = inputs.values()
        want, scale = routed_sum(hidden, first, second, ids, weights, p)
        want *= p["routed_scaling"]
        for t, x in enumerate(hidden.tolist()):
            own, largest = network(x, up, down, p)
            share = 1.0 if gate is None else logistic(math.fsum(a * b for a, b in zip(x, gate.tolist())))
            own = own * share * p["shared_scaling"]
            if p["parts"] == "rounded":
                want[t], own = want[t].astype(np.float32), own.astype(np.float32)
            want[t] += own
            scale = max(scale, largest)
        rtol = 1e-7 if p["parts"] == "rounded" else 1e-11
        scale *= p["routed_scaling"] * (1e5 if p["parts"] == "rounded" else 1.0)
        np.testing.assert_allclose(record.value(inputs, case.params)[0], want, rtol=rtol, atol=1e-12 * scale)
        compared += 1
    assert compared > 20


def test_sum_against_scalar_loops():
    for case in make_cases("moe_sum", "float32", 60, seed=4):
        if case.value_class in EXACTLY_FINITE:
            continue
        x, ids, weights = case.inputs().values()
        (got,) = find_operator("moe_sum").value(case.inputs(), {})
        for t, i in np.ndindex(got.shape):
            terms = [
                float(x[t, j, i]) * (1.0 if weights is None else float(weights[t, j]))
                for j in range(x.shape[1])
                if ids is None or ids[t, j] >= 0
            ]
            if any(map(math.isnan, terms)):  # a NaN in a slot that counts
                assert math.isnan(got[t, i])
                continue
            bulk = max(map(abs, terms), default=0.0)
            assert math.isclose(got[t, i], math.fsum(terms), rel_tol=1e-12, abs_tol=1e-14 * bulk)


def test_blocks_hold_each_slot_once_and_one_expert():
    for case in make_cases("moe_align_block_size", "int32", 60, seed=4):
        flat = case.inputs()["topk_ids"].reshape(-1).tolist()
        p = find_operator("moe_align_block_size").signature.complete(case.params)
        slots, owners, total = find_operator("moe_align_block_size").value(case.inputs(), case.params)
        size, at = p["block_size"], 0
        for expert in range(p["experts"]):
            mine = [slot for slot, e in enumerate(flat) if e == expert]
            mine += [len(flat)] * (-len(mine) % size)
            assert slots[at : at + len(mine)].tolist() == mine
            assert owners[at // size : (at + len(mine)) // size].tolist() == [expert] * (len(mine) // size)
            at += len(mine)
        assert total.tolist() == [at]
        assert set(slots[at:].tolist()) <= {len(flat)}
        assert set(owners[at // size :].tolist()) <= {-1}


def test_near_ties_may_go_either_way_and_their_weights_follow():
    record = find_operator("moe_gate")
    logits = np.array([[1.0, 1.0 + 2.0**-23, 0.0]], np.float32)
    params = {"scoring": "sigmoid", "top_k": 1, "renormalise": False}
    expected = record.expect({"logits": logits}, params, NUMERICS["float32"], {"ids": np.array([[0]], np.int32)})
    assert not expected[0].choice.wrong(np.array([[0]])).any()
    assert not expected[0].choice.wrong(np.array([[1]])).any()
    assert expected[0].choice.wrong(np.array([[2]])).any()
    assert math.isclose(expected[1].value[0, 0], logistic(1.0), rel_tol=1e-15)


L = np.zeros((2, 8), np.float32)


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("moe_gate", (L,), {"groups": 3}, "experts = 8 must be a positive multiple of groups = 3"),
        ("moe_gate", (L,), {"groups": 4, "top_groups": 5}, "top_groups = 5"),
        ("moe_gate", (L,), {"groups": 4, "top_groups": 2, "top_k": 5}, "top_k = 5 exceeds the 4 experts"),
        ("moe_gate", (L,), {"groups": 8, "top_groups": 2, "group_score": "top_two"}, "have one"),
        ("moe_gate", (L,), {"scaling": 0.0}, "scaling=0.0"),
        ("moe_gate", (L,), {"scoring": "relu"}, "'relu'"),
        ("moe_gate", (L, np.zeros(8)), {}, "bias has dtype float64"),
        ("moe_align_block_size", (np.array([[0, 9]]),), {"experts": 9}, "topk_ids holds 9 in slot 1"),
        ("moe_align_block_size", (np.array([[0, -2]]),), {}, "topk_ids[0, 1] = -2"),
        ("moe_align_block_size", (np.array([[0]]),), {"block_size": 0}, "block_size=0"),
        ("moe_sum", (np.ones((1, 2, 3)), np.zeros((1, 3), int)), {}, "dimension k"),
    ],
)
def test_refuses(name, arrays, params, words):
    with pytest.raises(InputError) as caught:
        find_operator(name)(*arrays, **params)
    assert words in str(caught.value)


def test_shared_experts_refuse_halves_that_do_not_fit():
    one, weight = np.ones((1, 1)), np.ones((1, 1), np.float32)
    given = one, np.ones((1, 2, 1)), np.ones((1, 1, 1)), np.array([[0]]), weight
    with pytest.raises(InputError, match="of the shared experts, w_gate_up has 3 rows"):
        find_operator("fused_experts_with_shared")(*given, np.ones((3, 1)), one)
    with pytest.raises(InputError, match=r"routed_scaling=0\.0"):
        find_operator("fused_experts_with_shared")(*given, np.ones((2, 1)), one, routed_scaling=0.0)


def test_experts_refuse_halves_that_do_not_fit():
    first, second = np.ones((2, 6, 4)), np.ones((2, 4, 2))
    with pytest.raises(InputError, match="w_gate_up has 6 rows per expert"):
        find_operator("fused_experts")(np.ones((1, 4)), first, second, np.array([[0]]), np.ones((1, 1), np.float32))
    weights = np.ones((1, 1), np.float32)
    with pytest.raises(InputError, match=r"topk_ids\[0, 0\] = 2"):
        find_operator("fused_experts")(np.ones((1, 4)), first[:, :4], second, np.array([[2]]), weights)

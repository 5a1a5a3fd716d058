"""Gating against NumPy: every score, bias, ties, any number of experts."""

import numpy as np
import pytest

from kernels_numba.moe import accept_one_group
from oracle.cases import Case


def _case(dtype, tokens, experts, top_k, scoring="softmax", **fields):
    params = {"top_k": top_k, "scoring": scoring, **fields.pop("params", {})}
    return Case("moe_gate", dtype, {"tokens": tokens, "experts": experts}, params, **fields)


@pytest.mark.parametrize(("tokens", "experts", "top_k"), [(3, 8, 2), (1, 1, 1), (0, 4, 2), (2, 129, 8), (2, 300, 1)])
@pytest.mark.parametrize("scoring", ["softmax", "sigmoid", "sqrt_softplus"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_chooses_and_weighs(judge, dtype, scoring, tokens, experts, top_k):
    judge("moe_gate", _case(dtype, tokens, experts, top_k, scoring, absent=("bias",) if tokens == 3 else ()))


@pytest.mark.parametrize("value_class", ["near_ties", "few_values", "zeros", "masked", "negative_bias", "wide"])
def test_ties_and_extremes(judge, value_class):
    params = {"renormalise": False, "scaling": 2.5}
    judge("moe_gate", _case("float32", 4, 40, 4, value_class=value_class, params=params))


def test_the_lower_of_equal_experts_comes_first(run):
    logits = np.zeros((1, 200), np.float32)
    logits[0, [7, 150, 135]] = 1.0
    ids, weights = run("moe_gate", {"logits": logits, "bias": None}, top_k=4)
    assert ids.tolist() == [[7, 135, 150, 0]]
    np.testing.assert_allclose(weights, [np.array([np.e, np.e, np.e, 1]) / (3 * np.e + 1)], rtol=1e-6)


def test_refuses():
    few, many = np.zeros((1, 4)), np.zeros((1, 1025))
    assert "groups=2" in accept_one_group({"logits": few}, {"groups": 2})
    assert "1025 experts" in accept_one_group({"logits": many}, {"groups": 1})

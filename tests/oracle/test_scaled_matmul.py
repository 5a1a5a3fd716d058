"""`scaled_matmul` and `scaled`: float32 kernels that put scales anywhere stay in the bound, for any exponents."""

import itertools

import numpy as np
import pytest

from oracle.error import envelope, exact
from oracle.formats import round_to
from oracle.numerics import NUMERICS
from oracle.vocabulary import accumulate, scaled, scaled_matmul

F = np.float32


def sequential(x, y):
    total = np.zeros((len(x), y.shape[1]), F)
    for k in range(x.shape[1]):
        total = total + x[:, k, np.newaxis] * y[k]
    return total


def codes_first(x, y, left, right, block):
    return sequential(x * np.repeat(left, block, 1)[:, : x.shape[1]], y * np.repeat(right, block, 1)[:, : x.shape[1]].T)


def by_blocks(scale):
    def kernel(x, y, left, right, block):
        total = np.zeros((len(x), y.shape[1]), F)
        for number, start in enumerate(range(0, x.shape[1], block)):
            part = sequential(x[:, start : start + block], y[start : start + block])
            total = total + scale(part, left[:, number, np.newaxis], right[np.newaxis, :, number])
        return total

    return kernel


KERNELS = {
    "codes_first": codes_first,
    "left_then_right": by_blocks(lambda part, left, right: part * left * right),
    "right_then_left": by_blocks(lambda part, left, right: part * right * left),
    "pair": by_blocks(lambda part, left, right: part * (left * right)),
    "folded_left": lambda x, y, left, right, block: codes_first(x, y, F(1) * left, right, block),
}


def drawn(rng, reach, k, block, short):
    """Codes, and scales 2^±reach times a short or a full significand."""
    x, y = rng.integers(-8, 9, (5, k)).astype(F) / F(8), rng.integers(-8, 9, (k, 6)).astype(F)
    bits = 3 if short else 24
    scales = [
        (rng.integers(2 ** (bits - 1), 2**bits, (size, -(-k // block))) * 2.0 ** (1 - bits)).astype(F)
        * F(2) ** rng.integers(-reach, reach + 1, (size, -(-k // block))).astype(F)
        for size in (5, 6)
    ]
    return x, y, *scales


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("reach", [0, 4, 60, 75])
def test_every_placement_stays_within(reach, short):
    rng = np.random.default_rng([reach, short])
    numerics = NUMERICS["float32"]
    for k, block in itertools.product((1, 2, 7, 16), (1, 4, 16)):
        x, y, left, right = drawn(rng, reach, k, block, short)
        spread_left, spread_right = (np.repeat(s, block, 1)[:, :k] for s in (left, right))
        arrays = [exact(array, numerics) for array in (x, spread_left, y, spread_right.T)]
        with np.errstate(all="ignore"):
            result = envelope(scaled_matmul(arrays[0], (arrays[1],), arrays[2], (arrays[3],)), "float32")
            low, high = (round_to(result.value + sign * result.bound, "float32") for sign in (-1, 1))
            for name, kernel in KERNELS.items():
                got = kernel(x, y, left, right, block).astype(np.float64)
                judged = np.isfinite(result.bound)
                assert ((got >= low) & (got <= high))[judged].all(), (name, k, block)
        if reach <= 4:
            assert np.isfinite(result.bound).all()
            assert (result.bound <= (k + 6) * 2.0**-23 * (np.abs(x * spread_left) @ np.abs(y * spread_right.T))).all()


def test_powers_of_two_are_exact():
    rng = np.random.default_rng(3)
    x, y = rng.integers(-100, 100, (4, 30)).astype(float), rng.integers(-100, 100, (30, 5)).astype(float)
    scale = 2.0 ** rng.integers(-5, 5, (4, 1))
    numerics = NUMERICS["float32"]
    product = scaled_matmul(exact(x, numerics), (exact(scale, numerics),), exact(y, numerics), ())
    assert (envelope(product, "float32").bound == 0).all()
    assert (product.value == (x @ y) * scale).all()


def test_a_bias_keeps_what_the_placement_costs():
    rng = np.random.default_rng(4)
    x, y, left, right = drawn(rng, 3, 1, 1, short=False)
    numerics = NUMERICS["float32"]
    product = scaled_matmul(
        *(exact(x, numerics), (exact(left, numerics),)), exact(y, numerics), (exact(right.T, numerics),)
    )
    bias = exact(np.full(6, 2.0**-40), numerics)
    assert (envelope(accumulate(product, bias), "float32").bound >= envelope(product, "float32").bound * 0.5).all()


def test_plain_arrays_and_no_terms():
    assert scaled_matmul(np.ones((2, 3)), (np.full((2, 1), 2.0),), np.ones((3, 1)), (0.5,)).tolist() == [[3.0], [3.0]]
    numerics = NUMERICS["float32"]
    empty = scaled_matmul(exact(np.ones((2, 0)), numerics), (), exact(np.ones((0, 1)), numerics), ())
    assert empty.value.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("terms", [1, 2, 16, 250, 1000])
def test_a_scale_folded_into_integers_rounds_their_sum(terms):
    rng = np.random.default_rng(terms)
    numerics = NUMERICS["float32"]
    for q, k in ((np.ones((1, terms)), np.ones((terms, 1))), (rng.integers(-9, 10, (3, terms)), np.ones((terms, 2)))):
        result = envelope(scaled(exact(q.astype(F), numerics) @ exact(k.astype(F), numerics), 0.1), "float32")
        got = sequential(q.astype(F) * F(0.1), k.astype(F)).astype(np.float64)
        assert (got >= round_to(result.value - result.bound, "float32")).all()
        assert (got <= round_to(result.value + result.bound, "float32")).all()
        assert (np.abs(got - result.value) <= 8 * result.sigma + np.spacing(np.abs(got).astype(F))).all()

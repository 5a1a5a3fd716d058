"""Where numbers leave the range, at either end: what is lost is charged, and what may be NaN is not judged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from honest_kernels import FLOAT32, F, analysed, assert_honest, attention, rmsnorm, softmax

from oracle.cases import Case
from oracle.error import Envelope, envelope, exact
from oracle.formats import FORMATS
from oracle.numerics import NUMERICS, underflow_error
from oracle.operator import find_operator
from oracle.vocabulary import chain

FAST, DOUBLE = NUMERICS["float32_fast"], NUMERICS["float64"]
SMALLEST = 2.0**-1074


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
def test_underflow_loses_half_of_the_smallest_number(name: str) -> None:
    assert underflow_error(FORMATS[name]) == FORMATS[name].min_subnormal / 2


def test_underflow_error_of_float64_is_not_zero() -> None:
    assert underflow_error(FORMATS["float64"]) == SMALLEST


# float64: the oracle's own range ends where the kernel's does


def _holds(result: Envelope, got: np.ndarray, most: float) -> None:
    """The kernel's result is inside, and the bound is at most `most` of float64's smallest numbers."""
    assert (np.abs(got - result.value) <= result.bound).all()
    assert (result.bound <= most * SMALLEST).all()


def test_float64_chain_in_any_order() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(1, 2**40, (20, 30)) * SMALLEST, rng.standard_normal(30)
    result = envelope(rmsnorm(exact(x, DOUBLE), exact(w, DOUBLE)), "float64")
    root = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    orders = [x * root * w, x * w * root, x * (w * root)]
    assert (orders[0] != orders[1]).any()
    for got in orders:
        assert (np.abs(got - result.value) <= result.bound).all()
    assert (result.bound <= 2.0**-50 * np.abs(result.value) + 4096 * SMALLEST).all()


def test_float64_chain_whose_partial_product_vanishes() -> None:
    """(tiny * tiny) * large is 0, tiny * (tiny * large) is not."""
    tiny = np.array([2.0**-600])
    result = envelope(chain(exact(tiny, DOUBLE), tiny, np.array([2.0**600])), "float64")
    assert result.value == 0.0
    assert result.bound >= 2.0**-600


def test_float64_errors_that_underflow_stay_errors() -> None:
    """An argument off by one smallest number moves a product, a quotient and a half by one."""
    a, b = np.array([3 * SMALLEST]), np.array([0.3])
    moved = exact(a, DOUBLE) * exact(b, DOUBLE)  # 0.9: rounded to 1, in a kernel with other operands to 0 or 2
    assert envelope(moved, "float64").bound >= SMALLEST
    for step in (lambda z: z * exact(b, DOUBLE), lambda z: z * 0.25, lambda z: z / exact(np.array([5.0]), DOUBLE)):
        result = envelope(step(moved), "float64")
        assert result.value == 0.0
        _holds(result, np.array([SMALLEST]), most=4)


def test_float64_zeros_stay_exact() -> None:
    x = exact(np.array([0.0, 1.0]), DOUBLE)
    assert (envelope(x * exact(np.array([SMALLEST, 1.0]), DOUBLE), "float64").bound[:1] == 0).all()
    assert envelope(exact(np.zeros(5), DOUBLE) @ exact(np.ones(5), DOUBLE), "float64").bound == 0.0


# float32 products below the normal range


def _flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.finfo(F).tiny, F(0), x).astype(F)


def _products(a: np.ndarray, b: np.ndarray, *, flush: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Both orders of additions, with and without FMA."""
    keep = _flushed if flush else np.asarray
    a, b = keep(a), keep(b)
    for order in (range(a.shape[1]), range(a.shape[1])[::-1]):
        apart = fused = np.zeros((a.shape[0], b.shape[1]), F)
        for at in order:
            left, right = a[:, at, None], b[None, at]
            apart = keep(apart + keep(left * right))
            product = left.astype(np.longdouble) * right.astype(np.longdouble)
            fused = keep((product + fused.astype(np.longdouble)).astype(F))
        yield f"separate, {order}", apart
        yield f"FMA, {order}", fused


def test_two_subnormal_products() -> None:
    """Both forms of two multiply-adds, on data that once lay 44 sigma off: 2^-149 is the step there."""
    case = Case(
        "matmul", "float32", {"m": 32, "n": 64, "k": 2}, {"transpose_a": True}, "subnormals", "misaligned", 281765331,
        ("bias",),
    )  # fmt: skip
    inputs = case.inputs()
    assert inputs["a"] is not None
    assert inputs["b"] is not None
    a, b = inputs["a"].T, inputs["b"]
    result = analysed(np.matmul, a, b)
    results = dict(_products(a, b, flush=False))
    assert len({got.tobytes() for got in results.values()}) > 1
    assert max(assert_honest(result, got, name) for name, got in results.items()) < 4.0


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 17, 64])
def test_products_around_the_smallest_normal_number(length: int, flush: bool) -> None:
    """Flushed or not: small terms beside a few large ones, single products, inputs that are subnormal themselves."""
    rng = np.random.default_rng(length)
    for exponent in range(-134, -110, 4):
        for heavy in (False, True):
            a = rng.standard_t(1.2, (12, length)) if heavy else rng.standard_normal((12, length))
            b = (rng.standard_normal((length, 9)) * 2.0 ** rng.integers(-6, 7)).astype(F)
            a = np.clip(a * 2.0**exponent, -(2.0**-90), 2.0**-90).astype(F)
            result = analysed(np.matmul, a, b, numerics=FAST if flush else FLOAT32)
            for name, got in _products(a, b, flush=flush):
                assert_honest(result, got, f"2^{exponent}, {name}")


def test_flushing_is_not_granted_by_default() -> None:
    a, b = np.full((1, 1), 2.0**-126, F), np.full((1, 1), 0.75, F)
    assert analysed(np.matmul, a, b).bound == 0.0
    assert analysed(np.matmul, a, b, numerics=FAST).bound >= 0.75 * 2.0**-126


# weighted means at the ends of the range


def _weighted_mean(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, divide_first: bool) -> np.ndarray:
    with np.errstate(all="ignore"):
        scores = q @ k.T
        weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
        total = weight.sum(axis=-1, keepdims=True)
        return (weight / total) @ v if divide_first else (weight @ v) / total


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Envelope:
    seen = np.ones((q.shape[0], k.shape[0]), bool)
    with np.errstate(all="ignore"):
        return envelope(attention(*(exact(x, FLOAT32) for x in (q, k, v)), seen, 1.0)[0], "float32")


@pytest.mark.parametrize("size", [1e19, 1e20, 1e30])
def test_scores_that_overflow_leave_no_bound(size: float) -> None:
    """inf − inf is NaN in an honest kernel too: the hull of V promises nothing there."""
    rng = np.random.default_rng(1)
    q, k = (rng.standard_normal((rows, 16)).astype(F) * F(size) for rows in (6, 20))
    v = rng.standard_normal((20, 3)).astype(F)
    got = _weighted_mean(q, k, v, divide_first=True)
    assert np.isnan(got).all()
    assert np.isinf(_attention(q, k, v).bound).all()


@pytest.mark.parametrize("size", [1e3, 1e9, 1e18])
def test_large_scores_keep_the_hull(size: float) -> None:
    """Scores without any correct digit still average V."""
    rng = np.random.default_rng(2)
    q, k = (rng.standard_normal((rows, 16)).astype(F) * F(size) for rows in (6, 20))
    v = rng.uniform(1.0, 2.0, (20, 3)).astype(F)
    result = _attention(q, k, v)
    assert (result.bound <= 1.01).all()
    assert (np.abs(_weighted_mean(q, k, v, divide_first=True) - result.value) <= result.bound).all()


def test_a_logit_that_overflows_downwards_vanishes() -> None:
    x = np.array([[3e38, -3e38, 3e38, 1e38]], F)
    result = analysed(softmax, x)
    with np.errstate(over="ignore"):
        weight = np.exp(x - x.max(axis=-1, keepdims=True))
    assert_honest(result, weight / weight.sum(axis=-1, keepdims=True), "softmax")
    assert (result.bound[:, [1, 3]] == 0).all()
    assert (result.bound < 1e-5).all()


@pytest.mark.parametrize(("size", "bounded"), [(1e35, True), (1e38, False)])
def test_undivided_weights_times_the_largest_values(size: float, bounded: bool) -> None:
    """Twenty values under weights of 1 overflow before the division, in kernels that divide last."""
    q, k = np.zeros((1, 1, 4, 8), F), np.zeros((1, 1, 20, 8), F)
    v = np.random.default_rng(3).uniform(1.0, 3.0, (1, 1, 20, 2)).astype(F) * F(size)
    out, _ = find_operator("attention").expect({"q": q, "k": k, "v": v}, {}, FLOAT32)
    assert np.isfinite(out.bound).all() == bounded
    assert np.isfinite(_weighted_mean(q[0, 0], k[0, 0], v[0, 0], divide_first=False)).all() == bounded


@pytest.mark.parametrize("size", [1.0, 1e20, 1e36])
def test_subnormal_weights_times_enormous_values(size: float) -> None:
    """A weight that is divided before it meets V may become subnormal, and what it loses is multiplied by V."""
    rng = np.random.default_rng(4)
    weight, v = (rng.uniform(1, 2, (6, 40)) * 2.0**-126).astype(F), (rng.standard_normal((40, 5)) * size).astype(F)
    total = np.full((6, 1), 999.0, F)
    result = analysed(lambda p, x, t: p @ x / t, weight, v, total)
    assert_honest(result, weight @ v / total, "divided last")
    assert_honest(result, (weight / total) @ v, "divided first")
    assert (result.bound <= 41 * 2.0**-149 * max(1.0, np.abs(v).max())).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_flushed_input_is_zero_in_what_it_is_multiplied_by(dtype: str) -> None:
    numerics = NUMERICS[dtype].with_changes(name="flushing", flush_to_zero=True)
    x = np.array([0.75, 3.0]) * FORMATS[dtype].min_normal
    for factors in ((x, 1000.0, 2.0), (1000.0, 2.0, x)):
        result = envelope(chain(*(exact(np.asarray(factor), numerics) for factor in factors)), dtype)
        assert result.bound[0] >= result.value[0] > FORMATS[dtype].min_normal
        assert result.bound[1] < 0.01 * result.value[1]

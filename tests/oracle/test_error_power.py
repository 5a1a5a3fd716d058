"""What the envelope refuses: low precision leaves sigma by far, exact data leave one result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from honest_kernels import (
    F,
    analysed,
    assert_honest,
    attention,
    exp32,
    flash,
    one_pass,
    product_in_blocks,
    product_in_order,
    rms_divide,
    rms_reciprocal,
    rmsnorm,
    rows_of,
    scores_of,
    sequential,
    softmax,
)

from oracle.formats import round_to, spacing


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(np.frombuffer(request.node.name.encode(), np.uint8).tolist())


# low precision and wrong kernels


def rounded(x: np.ndarray, name: str) -> np.ndarray:
    return np.asarray(round_to(x.astype(np.float64), name)).astype(F)


def tf32(x: np.ndarray) -> np.ndarray:
    """10 fraction bits kept, as the matrix unit reads a float32."""
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(F)


def low_accumulator(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), F)
    for k in range(a.shape[1]):
        total = rounded(total + a[:, k, None] * b[None, k], "bfloat16")
    return total


def truncating_accumulator(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        total = np.asarray(
            round_to(total + a[:, k, None].astype(float) * b[None, k].astype(float), "float32", "toward_zero")
        )
    return total.astype(F)


def rms(scores: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(scores[np.isfinite(scores)]))))


@pytest.mark.parametrize("kind", ["normal", "rising", "falling", "heavy tail", "half and half"])
def test_low_precision_matmul_exceeds_sigma(
    kind: str, rng: np.random.Generator, record_property: Callable[[str, object], None]
) -> None:
    a, b = rows_of(kind, rng, 32, 1024), rows_of("normal", rng, 1024, 32)
    result = analysed(np.matmul, a, b)
    honest = rms(scores_of(result, product_in_blocks(a, b)))
    low_input, low_sum = (
        rms(scores_of(result, product_in_blocks(tf32(a), tf32(b)))),
        rms(scores_of(result, low_accumulator(a, b))),
    )
    record_property("rms_z", f"honest {honest:.2g}, TF32 {low_input:.3g}, bfloat16 accumulator {low_sum:.3g}")
    print(f"{kind}: rms z honest {honest:.2g}, TF32 {low_input:.3g}, bfloat16 accumulator {low_sum:.3g}")
    assert honest < 1.5
    assert low_input > 50
    assert low_sum > 500


def test_truncating_accumulator_exceeds_sigma(rng: np.random.Generator) -> None:
    a, b = rows_of("normal", rng, 32, 1024), rows_of("normal", rng, 1024, 32)
    assert rms(scores_of(analysed(np.matmul, a, b), truncating_accumulator(a, b))) > 2.5
    a, b = np.abs(a), np.abs(b)
    assert rms(scores_of(analysed(np.matmul, a, b), truncating_accumulator(a, b))) > 2.5


def test_exact_data_leave_one_result() -> None:
    """One-hot rows with full significands, sparse integers: bound 0, so TF32 and a dropped k are wrong bit for bit."""
    rng = np.random.default_rng(3)
    a, b = np.eye(64, dtype=F)[rng.permutation(64)], rows_of("normal", rng, 64, 48)
    result = analysed(np.matmul, a, b)
    assert (result.bound == 0).all()
    assert (tf32(b)[a.argmax(axis=1)] != result.value).mean() > 0.99
    a, b = rows_of("sparse integers", rng, 16, 512), rows_of("sparse integers", rng, 16, 512).T
    result = analysed(np.matmul, a, b)
    assert (result.bound == 0).mean() > 0.9
    assert (analysed(np.matmul, a[:, :-1], b[:-1]).value != result.value).any()


def test_exact_logits_leave_one_result() -> None:
    """Logits far apart: the weights are exactly 0 and 1, whatever the order, the tiles and the form of exp."""
    rng = np.random.default_rng(4)
    x = (rng.permutation(200)[None] * 128.0 - 20000.0).astype(F)
    result = analysed(softmax, x)
    assert (round_to(result.value + result.bound, "float32") == round_to(result.value - result.bound, "float32")).all()
    q, k, v = (
        np.full((3, 16), 64, F),
        (rng.permutation(90)[:, None] * np.full(16, 8.0)).astype(F),
        rows_of("normal", rng, 90, 5),
    )
    visible = np.tril(np.ones((3, 90), bool), 60)
    out = analysed(lambda a, b, c: attention(a, b, c, visible, 0.25)[0], q, k, v)
    assert (round_to(out.value + out.bound, "float32") == round_to(out.value - out.bound, "float32")).all()
    assert_honest(out, flash(q, k, v, visible, 0.25, 8, True)[0], "flash")


def test_wrong_softmax_is_outside(rng: np.random.Generator) -> None:
    """A maximum that starts at 0 dies on rows below -128; low precision weights pass sigma by far."""
    x = rows_of("below -128", rng, 8, 100)
    with np.errstate(all="ignore"):
        e = exp32(x - np.maximum(x.max(axis=-1, keepdims=True), F(0)))
        got = e / e.sum(axis=-1, keepdims=True, dtype=F)
    result = analysed(softmax, x)
    with np.errstate(all="ignore"):
        assert not (np.abs(got - result.value) <= result.bound + spacing(result.value, "float32")).all()
    x = rows_of("normal", rng, 8, 1000)
    e = rounded(exp32(x - x.max(axis=-1, keepdims=True)), "bfloat16")
    assert rms(scores_of(analysed(softmax, x), (e / sequential(e)).astype(F))) > 50


def test_wrong_rmsnorm_exceeds_sigma(rng: np.random.Generator) -> None:
    x, w = rows_of("normal", rng, 16, 1000), rows_of("normal", rng, 1, 1000)[0]
    result = analysed(rmsnorm, x, w)
    for wrong in (
        rms_divide(rounded(x, "bfloat16"), w, sequential),
        x / np.sqrt(sequential(x * x) / F(999) + F(1e-6)) * w,
        rounded(rms_divide(x, np.ones_like(w), sequential), "bfloat16") * w,
    ):
        assert rms(scores_of(result, wrong.astype(F))) > 50


def test_rows_that_see_nothing() -> None:
    """Weights 0, total 1: the result is exactly 0 and the log-sum-exp exactly -inf."""
    q = k = v = np.ones((2, 4), F)
    visible = np.array([[False, False], [True, False]])
    out, lse = (analysed(lambda a, b, c, n=n: attention(a, b, c, visible, 0.5)[n], q, k, v) for n in (0, 1))
    np.testing.assert_array_equal(out.value[0], 0.0)
    np.testing.assert_array_equal(out.bound, 0.0)
    assert np.isneginf(lse.value[0])
    assert lse.bound[0] == 0.0


@pytest.mark.parametrize(("operator", "shape"), [("softmax", (16, 512)), ("rmsnorm", (16, 512))])
def test_bound_is_useful(
    operator: str, shape: tuple[int, int], rng: np.random.Generator, record_property: Callable[[str, object], None]
) -> None:
    """The bound stays within three orders of magnitude of what honest kernels are off by, sigma within two."""
    x = rows_of("normal", rng, *shape)
    if operator == "softmax":
        result, got = analysed(softmax, x), one_pass(x, sequential)
    else:
        w = rows_of("normal", rng, 1, shape[1])[0]
        result, got = analysed(rmsnorm, x, w), rms_reciprocal(x, w, sequential)
    error = np.sqrt(np.mean(np.square((got - result.value) / result.value)))
    bound, sigma = (
        np.median(result.bound / np.abs(result.value)) / error,
        np.median(result.sigma / np.abs(result.value)) / error,
    )
    record_property("over_error", f"bound {bound:.3g}, sigma {sigma:.3g}")
    print(f"{operator}: bound / error {bound:.3g}, sigma / error {sigma:.3g}")
    assert bound < 3000
    assert 0.2 < sigma < 100


def test_long_contraction_keeps_its_power() -> None:
    """At K = 16,384 the guaranteed bound no longer sees TF32; sigma does, and honest orders stay inside."""
    rng = np.random.default_rng(5)
    a, b = (rng.random(shape).astype(F) for shape in ((8, 16384), (16384, 8)))
    result = analysed(np.matmul, a, b)
    for order in (np.arange(16384), rng.permutation(16384)):
        assert_honest(result, product_in_order(order)(a, b), "K = 16,384")
    low = product_in_blocks(tf32(a), tf32(b))
    assert (np.abs(low - result.value) < result.bound).all()
    assert rms(scores_of(result, low)) > 50

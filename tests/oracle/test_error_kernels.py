"""Honest float32 kernels never leave the bound nor 6 sigma on hostile data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from honest_kernels import (
    FLOAT32,
    FMA_EXP,
    KINDS,
    LOG2E,
    SOFTMAXES,
    SUMS,
    F,
    analysed,
    assert_honest,
    attention,
    exp2_32,
    five_kernels,
    flash,
    fused_exp2,
    products,
    rms_divide,
    rms_reciprocal,
    rms_weight_first,
    rmsnorm,
    rows_of,
    rsqrt32,
    softmax,
    warp_tree,
)

from oracle.error import ErrorBounded, envelope, exact
from oracle.formats import round_to
from oracle.numerics import NUMERICS
from oracle.vocabulary import accumulate


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(np.frombuffer(request.node.name.encode(), np.uint8).tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_sum(kind: str, rng: np.random.Generator) -> None:
    x = rows_of(kind, rng, 40, 777)
    result = analysed(lambda z: np.sum(z, axis=-1, keepdims=True), x)
    for name, total in SUMS.items():
        assert_honest(result, total(x), name)


@pytest.mark.parametrize("kind", KINDS)
def test_softmax(kind: str, rng: np.random.Generator) -> None:
    x = rows_of(kind, rng, 24, 300)
    result = analysed(softmax, x)
    for name, kernel in SOFTMAXES.items():
        for order, total in SUMS.items():
            assert_honest(result, kernel(x, total), f"{name}, {order}")
    fused = analysed(softmax, x, numerics=FMA_EXP)
    assert_honest(fused, fused_exp2(x, warp_tree), "exp2 with FMA")


@pytest.mark.parametrize("kind", KINDS)
def test_rmsnorm(kind: str, rng: np.random.Generator) -> None:
    x, w = rows_of(kind, rng, 24, 300), rows_of("normal", rng, 1, 300)[0]
    result = analysed(rmsnorm, x, w)
    for kernel in (rms_divide, rms_reciprocal, rms_weight_first):
        for order, total in SUMS.items():
            assert_honest(result, kernel(x, w, total), f"{kernel.__name__}, {order}")


@pytest.mark.parametrize("kind", KINDS)
def test_matmul(kind: str, rng: np.random.Generator) -> None:
    a, b = rows_of(kind, rng, 24, 256), rows_of("normal", rng, 256, 20)
    if kind in ("low entropy", "constant", "sparse integers"):
        b = np.ascontiguousarray(rows_of(kind, rng, 20, 256).T)
    bias = rows_of("heavy tail", rng, 1, 20)[0] * F(100)
    result = analysed(np.matmul, a, b)
    biased = analysed(lambda x, y, z: accumulate(x @ y, z), a, b, bias)
    for name, kernel in products(256, rng):
        assert_honest(result, kernel(a, b), name)
        assert_honest(biased, kernel(a, b) + bias, f"{name}, bias last")
        assert_honest(biased, kernel(a, b, bias), f"{name}, bias first")


ATTENTION_KINDS = (
    "normal",
    "one-hot",
    "sparse integers",
    "low entropy",
    "rising",
    "heavy tail",
    "subnormal",
    "mean >> std",
    "huge logits",
)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_attention(kind: str, causal: bool, rng: np.random.Generator) -> None:
    q, k, v = rows_of(kind, rng, 40, 24), rows_of("normal", rng, 100, 24), rows_of(kind, rng, 100, 12)
    if kind == "mean >> std":
        q = q / F(1000)
    visible = np.tril(np.ones((40, 100), bool), -3) if causal else np.ones((40, 100), bool)
    for scale in (24**-0.5, 0.125):
        out, lse = (analysed(lambda a, b, c, n=n, s=scale: attention(a, b, c, visible, s)[n], q, k, v) for n in (0, 1))
        for kernel, tile, fold in ((flash, 32, False), (flash, 1, False), (flash, 32, True), (five_kernels, 0, False)):
            got_out, got_lse = kernel(q, k, v, visible, scale, tile, fold)
            assert_honest(out, got_out, f"out, {kernel.__name__} {tile} {fold}")
            assert_honest(lse, got_lse, f"lse, {kernel.__name__} {tile} {fold}")
    if causal:
        assert (out.value[:3] == 0).all()
        assert (out.bound[:3] == 0).all()
        assert np.isneginf(lse.value[:3]).all()


def flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.finfo(F).tiny, F(0), x)


def fast_exp(x: np.ndarray) -> np.ndarray:
    """``__expf``: ex2.approx of x·log2(e), subnormals flushed."""
    with np.errstate(all="ignore"):
        return flushed(exp2_32(flushed(x * LOG2E)))


@pytest.mark.parametrize("kind", KINDS)
def test_fast_math(kind: str, rng: np.random.Generator) -> None:
    """Flushed subnormals, approximate functions and divisions stay inside the envelope of float32_fast."""
    fast = NUMERICS["float32_fast"]
    x, w = rows_of(kind, rng, 24, 256), rows_of("normal", rng, 256, 20)
    y = flushed(x)
    total = np.zeros((24, 20), F)
    for k in range(256):
        total = flushed(total + flushed(y[:, k, None] * w[None, k]))
    assert_honest(analysed(np.matmul, x, w, numerics=fast), total, "matmul")
    e = fast_exp(flushed(y - y.max(axis=-1, keepdims=True)))
    got = flushed(e * (F(1) / warp_tree(e)))
    assert_honest(analysed(softmax, x, numerics=fast), got, "softmax")
    mean = flushed(warp_tree(flushed(y * y))) * F(1 / 256)
    got = flushed(flushed(y * flushed(w[:, 0])) * rsqrt32(flushed(mean) + F(1e-6)))
    assert_honest(analysed(rmsnorm, x, w[:, 0].copy(), numerics=fast), got, "rmsnorm")


@pytest.mark.parametrize("kind", KINDS)
def test_narrow_output(kind: str, rng: np.random.Generator) -> None:
    """float32 arithmetic on float16 data, stored as bfloat16 and float16: rounded twice."""
    with np.errstate(over="ignore"):
        a = rows_of(kind, rng, 16, 128).astype(np.float16).astype(F)
    a = np.where(np.isfinite(a), a, F(1))
    b = rows_of("normal", rng, 128, 12).astype(np.float16).astype(F)
    bounded = exact(a, FLOAT32) @ exact(b, FLOAT32)
    for name in ("bfloat16", "float16"):
        result = envelope(bounded, name)
        for label, kernel in products(128, rng):
            got = round_to(kernel(a, b).astype(float), name)
            low, high = round_to(result.value - result.bound, name), round_to(result.value + result.bound, name)
            assert ((low <= got) & (got <= high)).all(), f"{name}, {label}"
            assert kind != "normal" or (low == high).mean() > 0.5, "most elements have one right result"


@pytest.mark.parametrize("kind", KINDS)
def test_float64_kernels(kind: str, rng: np.random.Generator) -> None:
    """The oracle errs as much as a float64 kernel: other orders stay inside, and not everything does."""
    double = NUMERICS["float64"]
    a, b = rows_of(kind, rng, 16, 200).astype(float), rows_of("normal", rng, 200, 12).astype(float)
    w = b[:, 0].copy()

    def check(bounded: ErrorBounded, got: np.ndarray, label: str) -> None:
        result = envelope(bounded, "float64")
        outside = np.isfinite(result.value) & ~(np.abs(got - result.value) <= result.bound)
        assert not outside.any(), (label, got[outside][0], result.value[outside][0], result.bound[outside][0])
        worse = result.value * (1 + 2.0**-30)
        sizeable = np.abs(result.value) > 1e-3
        assert not sizeable.any() or (np.abs(worse - result.value) > result.bound)[sizeable].mean() > 0.4, label

    order = rng.permutation(200)
    with np.errstate(all="ignore"):
        check(exact(a, double) @ exact(b, double), np.cumsum(a[:, order, None] * b[order], axis=1)[:, -1], "matmul")
        e = np.exp(a - a.max(axis=-1, keepdims=True))
        check(softmax(exact(a, double)), e * (1 / np.cumsum(e[:, order], axis=-1)[:, -1:]), "softmax")
        mean = np.cumsum((a * a)[:, order], axis=-1)[:, -1:] / 200
        check(rmsnorm(exact(a, double), exact(w, double)), (a * w) / np.sqrt(mean + 1e-6), "rmsnorm")


@pytest.mark.parametrize("kind", ["normal", "sparse integers", "low entropy", "constant", "rising logits"])
def test_float16_kernels(kind: str, rng: np.random.Generator) -> None:
    """float16 throughout: sums in any order, exp within 2 ulp."""
    half = NUMERICS["float16"]
    with np.errstate(all="ignore"):
        x = rows_of(kind, rng, 16, 64).astype(np.float16)
        x = np.where(np.abs(x) < 60000, x, np.float16(1))
        e = np.exp((x - x.max(axis=-1, keepdims=True)).astype(float)).astype(np.float16)
        got = {
            "softmax": (softmax(exact(x, half)), e / np.cumsum(e, axis=-1, dtype=np.float16)[:, -1:]),
            "sum": (np.sum(exact(x, half), axis=-1), np.cumsum(x, axis=-1, dtype=np.float16)[:, -1]),
        }
    for label, (bounded, result) in got.items():
        limits = envelope(bounded, "float16")
        with np.errstate(all="ignore"):
            low = round_to(limits.value - limits.bound, "float16")
            high = round_to(limits.value + limits.bound, "float16")
        assert ((low <= result) & (result <= high)).all(), label


def rotate(x: Any, cos: Any, sin: Any) -> Any:
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half : 2 * half]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], axis=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_rope(kind: str, rng: np.random.Generator) -> None:
    """With and without FMA; lanes that are copied have one right result."""
    x = rows_of(kind, rng, 20, 40)
    angle = rng.uniform(0, 7, (20, 16))
    c, s = np.cos(angle).astype(F), np.sin(angle).astype(F)
    result = analysed(rotate, x, c, s)
    a, b = x[:, :16].astype(float), x[:, 16:32].astype(float)
    with np.errstate(all="ignore"):
        fused = np.concatenate(
            [(a * c - (b * s).astype(F)).astype(F), (b * c + (a * s).astype(F)).astype(F), x[:, 32:]], 1
        )
    assert_honest(result, rotate(x, c, s), "rounded products")
    assert_honest(result, fused, "FMA")
    assert (result.bound[:, 32:] == 0).all()

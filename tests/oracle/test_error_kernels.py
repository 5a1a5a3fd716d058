"""Honest float32 kernels never leave the bound nor 6 sigma on hostile data."""

from __future__ import annotations

import numpy as np
import pytest
from honest_kernels import (
    FMA_EXP,
    KINDS,
    SOFTMAXES,
    SUMS,
    F,
    analysed,
    assert_honest,
    attention,
    five_kernels,
    flash,
    fused_exp2,
    products,
    rms_divide,
    rms_reciprocal,
    rms_weight_first,
    rmsnorm,
    rows_of,
    softmax,
    warp_tree,
)

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

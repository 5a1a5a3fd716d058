"""Honest float32 kernels in NumPy, the operators they compute, and value classes: material of the error tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oracle.error import Envelope, envelope, exact
from oracle.formats import round_to, spacing
from oracle.numerics import NUMERICS, Numerics
from oracle.vocabulary import chain, hull, may_round, pivot, rescaled, rsqrt, scaled

F = np.float32


ZERO = F(0)
LOG2E = F(np.log2(np.e))


FLOAT32 = NUMERICS["float32"]


FMA_EXP = FLOAT32.with_changes(name="float32 exp2 fma", exp_form="exp2_fma")


# operators, as the vocabulary says to write them


def softmax(x: Any) -> Any:
    shift = pivot(np.max(x, axis=-1, keepdims=True))
    weight = rescaled(np.exp(x - shift))
    return hull(weight / np.sum(weight, axis=-1, keepdims=True), 0.0, 1.0, terms=x.shape[-1])


def rmsnorm(x: Any, weight: Any, eps: float = 1e-6) -> Any:
    return chain(x, rsqrt(np.mean(x * x, axis=-1, keepdims=True) + eps), weight)


def attention(q: Any, k: Any, v: Any, visible: np.ndarray, scale: float) -> tuple[Any, Any]:
    scores = scaled(q @ np.swapaxes(k, -1, -2), scale)
    scores = np.where(visible, scores, -np.inf)
    seen = np.any(visible, axis=-1, keepdims=True)
    shift = pivot(np.where(seen, np.max(scores, axis=-1, keepdims=True, initial=-np.inf), 0.0))
    weight = rescaled(np.exp(scores - shift))
    total = np.where(seen, np.sum(weight, axis=-1, keepdims=True), 1.0)
    out = (may_round(weight) @ v) / total
    out = hull(out, np.min(v, axis=-2, keepdims=True), np.max(v, axis=-2, keepdims=True), terms=k.shape[-2])
    return out, np.where(seen, shift + np.log(total), -np.inf)[..., 0]


# judging


def analysed(operator: Callable[..., Any], *inputs: np.ndarray, numerics: Numerics = FLOAT32) -> Envelope:
    """The envelope of an operator, after checking that its value is the plain float64 run bit for bit."""
    bounded = operator(*(exact(x, numerics) for x in inputs))
    with np.errstate(all="ignore"):
        plain = operator(*(x.astype(np.float64) for x in inputs))
    np.testing.assert_array_equal(bounded.value, plain)
    return envelope(bounded, "float32")


def scores_of(result: Envelope, got: np.ndarray) -> np.ndarray:
    """|got − y| beyond half a step, in sigmas."""
    error = np.maximum(np.abs(got.astype(np.float64) - result.value) - 0.5 * spacing(result.value, "float32"), 0.0)
    with np.errstate(all="ignore"):
        return np.where(error == 0.0, 0.0, error / result.sigma)


def assert_honest(result: Envelope, got: np.ndarray, label: str) -> float:
    """The bound holds everywhere and no element passes 6 sigma; the largest score."""
    assert got.dtype == F
    judged = np.isfinite(result.value)
    with np.errstate(all="ignore"):
        low, high = round_to(result.value - result.bound, "float32"), round_to(result.value + result.bound, "float32")
        outside = judged & ~((low <= got) & (got <= high))
    assert not outside.any(), (
        f"{label}: {result.value[outside][:3]} ± {result.bound[outside][:3]}, got {got[outside][:3]}"
    )
    np.testing.assert_array_equal(got[~judged], result.value[~judged].astype(F))
    with np.errstate(all="ignore"):
        scores = scores_of(result, got)[judged]
    worst = float(scores.max(initial=0.0))
    assert worst <= 6.0, f"{label}: {worst:.3g} sigma"
    return worst


# honest float32 arithmetic


def right(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A float32 function, off by up to an ulp in a way that depends on the argument alone, as real ones are."""

    def evaluate(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            y = function(x.astype(np.float64)).astype(F)
        step = (
            np.ascontiguousarray(x, F).view(np.uint32).reshape(x.shape) * np.uint32(2654435761) >> np.uint32(29)
        ).astype(int)
        y = np.where((step == 0) & (y > 1e-37) & (y != 1) & np.isfinite(y), np.nextafter(y, F(np.inf)), y)
        return np.where((step == 1) & (y > 1e-37) & (y != 1) & np.isfinite(y), np.nextafter(y, F(0)), y)

    return evaluate


exp32, exp2_32, log32, rsqrt32 = right(np.exp), right(np.exp2), right(np.log), right(lambda x: x**-0.5)


def sequential(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x, axis=-1, dtype=F)[..., -1:]


def reversed_order(x: np.ndarray) -> np.ndarray:
    return sequential(x[..., ::-1])


def warp_tree(x: np.ndarray) -> np.ndarray:
    """32 lanes with a stride, then a butterfly."""
    lanes = np.zeros((*x.shape[:-1], 32), F)
    for start in range(0, x.shape[-1], 32):
        piece = x[..., start : start + 32]
        lanes[..., : piece.shape[-1]] += piece
    for half in (16, 8, 4, 2, 1):
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
    return lanes


SUMS = {"sequential": sequential, "reversed": reversed_order, "warp tree": warp_tree}


def one_pass(x: np.ndarray, total: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    e = exp32(x - x.max(axis=-1, keepdims=True))
    return e / total(e)


def through_exp2(x: np.ndarray, total: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    e = exp2_32((x - x.max(axis=-1, keepdims=True)) * LOG2E)
    return e * (F(1) / total(e))


def fused_exp2(x: np.ndarray, total: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    shift = x.max(axis=-1, keepdims=True) * LOG2E
    e = exp2_32((x.astype(float) * float(LOG2E) - shift.astype(float)).astype(F))
    return e / total(e)


def online(tile: int) -> Callable[..., np.ndarray]:
    def kernel(x: np.ndarray, total: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        m = np.full((*x.shape[:-1], 1), -np.inf, F)
        denominator = np.zeros_like(m)
        for start in range(0, x.shape[-1], tile):
            piece = x[..., start : start + tile]
            new = np.maximum(m, piece.max(axis=-1, keepdims=True))
            denominator = denominator * exp32(m - new) + total(exp32(piece - new))
            m = new
        return exp32(x - m) / denominator

    return kernel


SOFTMAXES = {"one pass": one_pass, "exp2": through_exp2, "online 1": online(1), "online 16": online(16)}


def rows_of(kind: str, rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A value class."""
    x = rng.standard_normal((rows, columns))
    ramp = np.linspace(0, 1, columns)
    classes: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: x,
        "one-hot": lambda: np.where(np.arange(columns) == rng.integers(columns, size=(rows, 1)), x * 3, 0.0),
        "sparse integers": lambda: np.where(rng.random(x.shape) < 0.1, rng.integers(-2048, 2048, x.shape), 0),
        "low entropy": lambda: np.take(x[:, :3], rng.integers(0, 3, columns), axis=1),
        "constant": lambda: np.broadcast_to(x[:, :1], x.shape),
        "rising": lambda: np.abs(x) * 2.0 ** (20 * ramp - 20),
        "falling": lambda: np.abs(x) * 2.0 ** (-20 * ramp),
        "rising logits": lambda: 60 * ramp + 0.1 * x,
        "falling logits": lambda: -60 * ramp + 0.1 * x,
        "below -128": lambda: -150 + 5 * x,
        "mean >> std": lambda: 1e4 + x,
        "subnormal": lambda: x * 2.0**-140,
        "huge logits": lambda: rng.integers(-40, 40, x.shape) * 128.0,
        "alternating": lambda: (-1.0) ** np.arange(columns) * (1 + 0.01 * x),
        "half and half": lambda: np.abs(x) * np.where(ramp < 0.5, 1, -1),
        "heavy tail": lambda: rng.standard_t(1.5, x.shape),
        "one large": lambda: np.where(np.arange(columns) == 0, 2.0**23, np.abs(x)),
    }
    return np.ascontiguousarray(classes[kind]()).astype(F)


KINDS = (
    "normal", "one-hot", "sparse integers", "low entropy", "constant", "rising", "falling", "rising logits",
    "falling logits",
    "below -128", "mean >> std", "subnormal", "huge logits", "alternating", "half and half", "heavy tail", "one large",
)  # fmt: skip


def rms_divide(x: np.ndarray, w: np.ndarray, total: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return x / np.sqrt(total(x * x) / F(x.shape[-1]) + F(1e-6)) * w


def rms_reciprocal(x: np.ndarray, w: np.ndarray, total: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return x * rsqrt32(total(x * x) * (F(1) / F(x.shape[-1])) + F(1e-6)) * w


def rms_weight_first(x: np.ndarray, w: np.ndarray, total: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return (x * w) * rsqrt32(total(x * x) / F(x.shape[-1]) + F(1e-6))


def product_in_order(order: np.ndarray, fma: bool = False) -> Callable[..., np.ndarray]:
    def kernel(a: np.ndarray, b: np.ndarray, start: Any = ZERO) -> np.ndarray:
        total = np.zeros((a.shape[0], b.shape[1]), F) + start
        for k in order:
            if fma:
                total = (a[:, k, None].astype(float) * b[None, k].astype(float) + total).astype(F)
            else:
                total = total + a[:, k, None] * b[None, k]
        return total

    return kernel


def product_in_blocks(a: np.ndarray, b: np.ndarray, start: Any = ZERO) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), F) + start
    for k in range(0, a.shape[1], 32):
        total = total + product_in_order(np.arange(min(32, a.shape[1] - k)), fma=True)(a[:, k : k + 32], b[k : k + 32])
    return total


def products(length: int, rng: np.random.Generator) -> Iterator[tuple[str, Callable[..., np.ndarray]]]:
    yield "sequential", product_in_order(np.arange(length))
    yield "reversed with FMA", product_in_order(np.arange(length)[::-1], fma=True)
    yield "shuffled", product_in_order(rng.permutation(length))
    yield "blocks of 32", product_in_blocks


def flash(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, visible: np.ndarray, scale: float, tile: int, fold: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Online attention in tiles of keys, one head."""
    m = np.full((q.shape[0], 1), -np.inf, F)
    total = np.zeros_like(m)
    out = np.zeros((q.shape[0], v.shape[1]), F)
    left = q * F(scale) if fold else q
    for start in range(0, k.shape[0], tile):
        keys = slice(start, start + tile)
        s = product_in_order(np.arange(q.shape[1]), fma=True)(left, np.ascontiguousarray(k[keys].T))
        s = s if fold else s * F(scale)
        s = np.where(visible[:, keys], s, F(-np.inf))
        new = np.maximum(m, s.max(axis=-1, keepdims=True))
        safe = np.where(np.isneginf(new), F(0), new)
        p = exp32(s - safe)
        factor = exp32(m - safe)
        total = total * factor + warp_tree(p)
        out = product_in_order(np.arange(p.shape[1]))(p, v[keys], out * factor)
        m = new
    with np.errstate(all="ignore"):
        seen = total > 0
        return np.where(seen, out / np.where(seen, total, F(1)), F(0)), np.where(seen, m + log32(total), F(-np.inf))[
            :, 0
        ]


def five_kernels(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, visible: np.ndarray, scale: float, tile: int, fold: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Scores, mask, softmax, weighted sum; the weights are divided before they meet V."""
    s = product_in_blocks(q, np.ascontiguousarray(k.T)) * F(scale)
    s = np.where(visible, s, F(-np.inf))
    m = s.max(axis=-1, keepdims=True)
    m = np.where(np.isneginf(m), F(0), m)
    e = exp32(s - m)
    total = sequential(e)
    seen = total > 0
    p = e / np.where(seen, total, F(1))
    with np.errstate(all="ignore"):
        return product_in_blocks(p, v), np.where(seen, m + log32(total), F(-np.inf))[:, 0]

"""Soundness: random expression graphs in float32 and float16, in random summation orders, never leave the bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracle.error import ErrorBounded, envelope, exact
from oracle.formats import round_to, spacing
from oracle.numerics import NUMERICS, Numerics
from oracle.vocabulary import chain, rsqrt, sigmoid

SHAPE = (3, 17)


@dataclass
class Kernel:
    """Arithmetic of an honest kernel: one rounding per operation, its own order of additions, FMA or not."""

    dtype: type[np.floating[Any]]
    rng: np.random.Generator
    fma: bool

    def stored(self, x: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(self.dtype)

    def function(self, f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, ulps: float) -> np.ndarray:
        """f within `ulps` units in the last place."""
        with np.errstate(all="ignore"):
            right = f(x.astype(np.float64))
            unit = np.spacing(np.abs(right).astype(self.dtype)).astype(np.float64)
            slack = np.where(
                (right == 0) | (right == 1) | ~np.isfinite(unit) | (np.abs(right) < unit / 4), 0.0, (ulps - 0.5) * unit
            )
            return self.stored(right + slack * self.rng.uniform(-1, 1, right.shape))

    def sum(self, x: np.ndarray) -> np.ndarray:
        """Over the last axis, sequentially or by a random tree."""
        terms = x[..., self.rng.permutation(x.shape[-1])]
        with np.errstate(all="ignore"):
            if self.rng.integers(2):
                total = terms[..., 0]
                for k in range(1, terms.shape[-1]):
                    total = self.stored(total + terms[..., k])
                return total[..., None]
            while terms.shape[-1] > 1:
                cut = int(self.rng.integers(1, terms.shape[-1] // 2 + 1))
                terms = np.concatenate(
                    [self.stored(terms[..., :cut] + terms[..., cut : 2 * cut]), terms[..., 2 * cut :]], -1
                )
        return terms

    def multiply_add(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            if self.fma:
                return self.stored(x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64))
            return self.stored(self.stored(x * y) + z)

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = np.zeros((a.shape[0], b.shape[1]), self.dtype)
        for k in self.rng.permutation(a.shape[1]):
            total = self.multiply_add(a[:, k, None], b[None, k, :], total)
        return total

    def quotient(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            if self.rng.integers(2):
                return self.stored(x * self.stored(self.dtype(1) / y))
            return self.stored(x / y)


def _leaf(rng: np.random.Generator, dtype: type[np.floating[Any]], shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    kind = rng.integers(7)
    x = rng.standard_normal(shape)
    if kind == 1:
        x = rng.integers(-8, 9, shape).astype(float)
    elif kind == 2:
        x = x * 2.0 ** rng.integers(-6, 4, shape)
    elif kind == 3:
        x = np.full(shape, x.flat[0])
    elif kind == 4:
        x = x * (rng.random(shape) < 0.1)
    elif kind == 5:
        x = 50 + x * 0.01
    elif kind == 6:
        x = x * float(np.finfo(dtype).tiny) * 4
    return x.astype(dtype)


UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Kernel, np.ndarray], np.ndarray]]] = {
    "neg": (lambda x: -x, lambda k, x: -x),
    "abs": (np.abs, lambda k, x: np.abs(x)),
    "square": (lambda x: x * x, lambda k, x: k.stored(x * x)),
    "sqrt": (lambda x: np.sqrt(np.abs(x)), lambda k, x: k.stored(np.sqrt(np.abs(x)))),
    "exp": (
        lambda x: np.exp(np.clip(x, -30.0, 4.0)),
        lambda k, x: k.function(np.exp, np.clip(x, k.dtype(-30), k.dtype(4)), 2),
    ),
    "log": (lambda x: np.log(np.abs(x) + 1.0), lambda k, x: k.function(np.log, k.stored(np.abs(x) + k.dtype(1)), 1)),
    "log1p": (lambda x: np.log1p(np.abs(x)), lambda k, x: k.function(np.log1p, np.abs(x), 1)),
    "expm1": (lambda x: np.expm1(np.minimum(x, 2.0)), lambda k, x: k.function(np.expm1, np.minimum(x, k.dtype(2)), 2)),
    "tanh": (np.tanh, lambda k, x: k.function(np.tanh, x, 2)),
    "sin": (np.sin, lambda k, x: k.function(np.sin, x, 2)),
    "cos": (np.cos, lambda k, x: k.function(np.cos, x, 2)),
    "rsqrt": (
        lambda x: rsqrt(np.abs(x) + 0.5),
        lambda k, x: k.function(lambda z: z**-0.5, k.stored(np.abs(x) + k.dtype(0.5)), 2),
    ),
    "sigmoid": (sigmoid, lambda k, x: k.quotient(np.ones_like(x), k.stored(k.dtype(1) + k.function(np.exp, -x, 2)))),
    "clip": (lambda x: np.clip(x, -1.5, 2.5), lambda k, x: np.clip(x, k.dtype(-1.5), k.dtype(2.5))),
    "sum": (
        lambda x: np.sum(x, axis=-1, keepdims=True) + 0.0 * x,
        lambda k, x: k.stored(k.sum(x) + k.stored(k.dtype(0) * x)),
    ),
    "centre": (
        lambda x: x - np.mean(x, axis=-1, keepdims=True),
        lambda k, x: k.stored(x - k.quotient(k.sum(x), np.full((x.shape[0], 1), x.shape[1], k.dtype))),
    ),
    "max": (lambda x: x - np.max(x, axis=-1, keepdims=True), lambda k, x: k.stored(x - x.max(axis=-1, keepdims=True))),
    "third": (lambda x: x / 3.0, lambda k, x: k.quotient(x, np.full_like(x, 3))),
    "tenth": (lambda x: 0.1 * x, lambda k, x: k.stored(k.dtype(0.1) * x)),
    "half": (lambda x: x * 0.5, lambda k, x: k.stored(x * k.dtype(0.5))),
    "cube": (lambda x: x**3, lambda k, x: k.stored(x * k.stored(x * x))),
    "cumsum": (lambda x: np.cumsum(x, axis=-1), lambda k, x: np.cumsum(x, axis=-1, dtype=k.dtype)),
    "flip": (lambda x: np.flip(x, axis=-1), lambda k, x: x[..., ::-1]),
}  # fmt: skip
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray]]] = {
    "add": (lambda x, y: x + y, lambda k, x, y: k.stored(x + y)),
    "sub": (lambda x, y: x - y, lambda k, x, y: k.stored(x - y)),
    "mul": (lambda x, y: x * y, lambda k, x, y: k.stored(x * y)),
    "div": (lambda x, y: x / y, lambda k, x, y: k.quotient(x, y)),
    "max": (np.maximum, lambda k, x, y: np.maximum(x, y)),
    "min": (np.minimum, lambda k, x, y: np.minimum(x, y)),
    "where": (lambda x, y: np.where(x > y, x, y - 1.0), lambda k, x, y: np.where(x > y, x, k.stored(y - k.dtype(1)))),
    "matmul": (lambda x, y: (x @ y.T) @ x, lambda k, x, y: k.product(k.product(x, y.T), x)),
    "chain": (lambda x, y: chain(x, 0.75, y), lambda k, x, y: k.stored(k.stored(x * y) * k.dtype(0.75))),
    "fma": (lambda x, y: x * y + x, lambda k, x, y: k.multiply_add(x, y, x)),
    "concatenate": (
        lambda x, y: np.concatenate([x[:, :5], y[:, 5:] * 2.0], axis=1),
        lambda k, x, y: np.concatenate([x[:, :5], k.stored(y[:, 5:] * k.dtype(2))], axis=1),
    ),
}
STEP = st.tuples(st.sampled_from([*UNARY, *("2" + name for name in BINARY)]), st.integers(0, 7), st.integers(0, 7))


def _inside(bounded: ErrorBounded, got: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Assert the acceptance rule; the errors and bounds where both are finite and positive."""
    result = envelope(bounded, name)
    y, limit = result.value, result.bound
    assert not np.isnan(limit).any()
    assert (limit >= 0).all()
    with np.errstate(all="ignore"):
        low, high = round_to(y - limit, name), round_to(y + limit, name)
        got = got.astype(np.float64)
        judged = np.isfinite(limit) & ~np.isnan(y)
        wrong = judged & ~((low <= got) & (got <= high))
        error = np.abs(got - y)
    assert not wrong.any(), (y[wrong][0], limit[wrong][0], got[wrong][0])
    useful = judged & np.isfinite(error) & (error > 0) & (limit > 0)
    return error[useful], (limit + 0.5 * spacing(y, name))[useful]  # the output cast itself is off by half a step


def _run(
    dtype: type[np.floating[Any]], seed: int, fma: bool, program: list[tuple[str, int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    name = np.dtype(dtype).name
    numerics: Numerics = NUMERICS[name]
    rng = np.random.default_rng(seed)
    kernel = Kernel(dtype, rng, fma)
    held = [_leaf(rng, dtype) for _ in range(3)]
    plain = [x.astype(np.float64) for x in held]
    bounded: list[Any] = [exact(x, numerics) for x in held]
    for step, i, j in program:
        i, j = i % len(held), j % len(held)
        with np.errstate(all="ignore"):
            if step.startswith("2"):
                formula, honest = BINARY[step[1:]]
                held.append(honest(kernel, held[i], held[j]))
                plain.append(formula(plain[i], plain[j]))
                bounded.append(formula(bounded[i], bounded[j]))
            else:
                formula_one, honest_one = UNARY[step]
                held.append(honest_one(kernel, held[i]))
                plain.append(formula_one(plain[i]))
                bounded.append(formula_one(bounded[i]))
        np.testing.assert_array_equal(bounded[-1].value, plain[-1])
        errors, limits = _inside(bounded[-1], held[-1], name)
    return errors, limits


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32 - 1), fma=st.booleans(), program=st.lists(STEP, min_size=1, max_size=7))
def test_random_graphs_stay_inside(
    dtype: type[np.floating[Any]], seed: int, fma: bool, program: list[tuple[str, int, int]]
) -> None:
    """An honest kernel never leaves the bound, and the value is the plain float64 run bit for bit."""
    _run(dtype, seed, fma, program)


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 300.0), (np.float16, 300.0)])
def test_bound_is_not_vacuous(
    dtype: type[np.floating[Any]], limit: float, record_property: Callable[[str, object], None]
) -> None:
    """The median ratio of bound to actual error over random graphs stays small; it is reported."""
    rng = np.random.default_rng(7)
    names = [*UNARY, *("2" + name for name in BINARY)]
    ratios = []
    for seed in range(150):
        program = [(names[rng.integers(len(names))], int(rng.integers(8)), int(rng.integers(8))) for _ in range(4)]
        errors, limits = _run(dtype, seed, bool(seed % 2), program)
        ratios.append(limits / errors)
    ratio = np.concatenate(ratios)
    assert ratio.size > 1000
    low, middle, high = np.percentile(ratio, [1, 50, 90])
    record_property("bound_over_error", f"p1 {low:.3g} median {middle:.3g} p90 {high:.3g}")
    print(f"{np.dtype(dtype).name}: bound / error: p1 {low:.3g}, median {middle:.3g}, p90 {high:.3g}")
    assert 1.0 <= low < 3.0, "the bound is never nearly reached"
    assert middle < limit

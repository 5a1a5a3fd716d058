"""``cupy.random``: the same distributions, from NumPy's generators. The numbers are not those of cuRAND."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.array import ndarray
from refsim.hosts.cupy_host.conversion import lowered, raised
from refsim.hosts.missing import NotSimulatedError

# Distributions that take (parameters..., size=None, dtype=float), by NumPy's and CuPy's common name.
_WITH_DTYPE = (
    "beta", "binomial", "chisquare", "exponential", "f", "gamma", "geometric", "gumbel", "laplace", "logistic",
    "lognormal", "normal", "pareto", "poisson", "power", "random_sample", "rayleigh", "standard_cauchy",
    "standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "vonmises",
    "wald", "weibull",
)  # fmt: skip
_PLAIN = ("choice", "multinomial", "multivariate_normal", "dirichlet", "permutation", "bytes")
_GENERATOR = (
    "beta", "binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric", "integers", "poisson",
    "power", "random", "standard_exponential", "standard_gamma", "standard_normal", "uniform",
)  # fmt: skip


def _typed(draw: Callable[..., Any]) -> Callable[..., ndarray]:
    def call(*args: Any, dtype: Any = None, **options: Any) -> ndarray:
        drawn = np.asarray(draw(*lowered(args), **{key: lowered(value) for key, value in options.items()}))
        return ndarray.of(drawn if dtype is None else drawn.astype(dtype))

    return call


class RandomState:
    """A generator with state, as `cupy.random.RandomState`."""

    def __init__(self, seed: Any = None) -> None:
        self._state = np.random.RandomState(seed)

    def __getattr__(self, name: str) -> Any:
        if name in _WITH_DTYPE:
            return _typed(getattr(self._state, name))
        if name in _PLAIN:
            draw = getattr(self._state, name)
            return lambda *args, **options: raised(draw(*lowered(args), **options))
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"cupy.random.{name}")

    def seed(self, seed: Any = None) -> None:
        """Start anew."""
        self._state.seed(seed)

    def rand(self, *size: int, dtype: Any = float) -> ndarray:
        """Uniform in [0, 1)."""
        return ndarray.of(np.asarray(self._state.random_sample(size)).astype(dtype))

    def randn(self, *size: int, dtype: Any = float) -> ndarray:
        """Standard normal."""
        return ndarray.of(np.asarray(self._state.standard_normal(size)).astype(dtype))

    def random(self, size: Any = None, dtype: Any = float) -> ndarray:
        """Uniform in [0, 1)."""
        return ndarray.of(np.asarray(self._state.random_sample(size)).astype(dtype))

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> ndarray:
        """Integers in [low, high), or [0, low)."""
        return ndarray.of(np.asarray(self._state.randint(low, high, size, dtype)))

    def shuffle(self, a: Any) -> None:
        """Shuffle along the first axis, in place."""
        self._state.shuffle(lowered(a))


class Generator:
    """A generator as `cupy.random.default_rng` returns it."""

    def __init__(self, seed: Any = None) -> None:
        self._generator = np.random.default_rng(seed)

    def __getattr__(self, name: str) -> Any:
        if name in _GENERATOR:
            draw = getattr(self._generator, name)
            return lambda *args, **options: raised(draw(*lowered(args), **options))
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"cupy.random.Generator.{name}")


def random_functions() -> dict[str, Any]:
    """``cupy.random``: functions of one global state."""
    state = RandomState()
    names = (*_WITH_DTYPE, *_PLAIN, "seed", "rand", "randn", "random", "randint", "shuffle")
    members: dict[str, Any] = {name: getattr(state, name) for name in names}
    members.update(
        RandomState=RandomState, Generator=Generator, default_rng=Generator, ranf=members["random"],
        sample=members["random"], get_random_state=lambda: state,
    )  # fmt: skip
    return members

"""Cases as a hypothesis strategy: what the recipes draw from a generator, hypothesis draws in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from oracle.cases import LAYOUTS, Case
from oracle.cases.recipes import recipe_of

T = TypeVar("T")

# Of so many cases, one has the structure of a curated one.
CURATED_EVERY = 8
RANDOM_STEPS = 1 << 10
SEEDS = 2**31


class DrawnGenerator:
    """What a recipe asks of `numpy.random.Generator`, with each number drawn by hypothesis.

    Integers shrink to the lowest, so a pick shrinks to the first of its choices. Fractions shrink to just below 1:
    recipes write what is unusual as ``rng.random() < 0.5``. Any other method is that of a generator with a drawn seed.
    """

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def integers(self, low: int, high: int | None = None, size: Any = None, **options: Any) -> Any:
        """A number in ``low`` … ``high - 1``, or in 0 … ``low - 1``."""
        if size is not None or options:
            return self._seeded().integers(low, high, size, **options)
        first, beyond = (0, low) if high is None else (low, high)
        return self._draw(st.integers(int(first), int(beyond) - 1))

    def random(self, size: Any = None) -> Any:
        """A fraction in 0 … 1."""
        if size is not None:
            return self._seeded().random(size)
        return (RANDOM_STEPS - 1 - self._draw(st.integers(0, RANDOM_STEPS - 1))) / RANDOM_STEPS

    def _seeded(self) -> np.random.Generator:
        return np.random.default_rng(self._draw(st.integers(0, SEEDS - 1)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seeded(), name)


@st.composite
def cases(draw: st.DrawFn, operator: str, dtype: str) -> Case:
    """Cases of one operator and dtype; they shrink to small sizes, the recipe's first value class, and seed 0."""
    recipe = recipe_of(operator)
    if recipe.curated and draw(st.integers(0, CURATED_EVERY - 1)) == CURATED_EVERY - 1:
        structure = draw(st.sampled_from(recipe.curated))
    else:
        drawn = recipe.random(DrawnGenerator(draw))  # type: ignore[arg-type]
        value_class, layout = draw(st.sampled_from(tuple(recipe.classes))), draw(st.sampled_from(tuple(LAYOUTS)))
        structure = replace(drawn, value_class=value_class, layout=layout)
    return Case(operator, dtype, **vars(structure), seed=draw(st.integers(0, SEEDS - 1)))

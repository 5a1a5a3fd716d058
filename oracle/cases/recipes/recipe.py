"""The Recipe record: value classes of an operator's inputs, the cases that must be there, and random structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from oracle.cases.values import Shape
from oracle.formats import Format
from oracle.signature import Array

Draw: TypeAlias = Callable[[np.random.Generator, Mapping[str, Shape], Mapping[str, Any], Format], dict[str, Array]]

# Sizes at which kernels go wrong: 0 and 1, primes, and one below, at and one above common tile sizes.
SIZES = (1, 2, 3, 5, 7, 13, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 97, 127, 128, 129)


@dataclass(frozen=True)
class Structure:
    """What a case says besides dtype and seed."""

    dims: Mapping[str, int]
    value_class: str = "normal"
    layout: str = "contiguous"
    params: Mapping[str, Any] = field(default_factory=dict)
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """How to draw an operator's cases.

    Attributes
    ----------
    classes : mapping
        Value class to a function that draws all inputs (float64 values, or indices) for given shapes.
    curated : tuple of Structure
        The cases that each run must hold, the ones with the most power first.
    random : function
        Draws dimensions, parameters and absent inputs; value class and layout are drawn by the caller.
    unread : tuple of str
        Inputs with cells that nothing may read, such as padding and pages not in use: NaN lies there.
    """

    classes: Mapping[str, Draw]
    curated: tuple[Structure, ...]
    random: Callable[[np.random.Generator], Structure]
    unread: tuple[str, ...] = ()


def pick(rng: np.random.Generator, choices: tuple[Any, ...]) -> Any:
    """One of the choices, as the Python object it is."""
    return choices[int(rng.integers(len(choices)))]

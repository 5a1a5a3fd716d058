"""What is known of the sum that produced an array."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.error.fields import Array


@dataclass(frozen=True)
class SumFacts:
    """What is known of the sum that produced an array: needed where the sum may be continued or scaled.

    terms: number of nonzero terms (one number broadcast, where all sums have equally many); magnitude:
    S = Σ(|term| + bound); squares: Σ term²; step: the lattice all terms lie on (0 = none known); own: the bound before
    the sum's own roundings; products: the terms are products; repeats: terms per distinct term; largest: the largest
    factor among the products; length: number of terms with zeros (infinite where it is not known); raw: magnitude as a
    matrix unit sees it that pins the exponents of subnormal factors.
    """

    terms: Array
    magnitude: Array
    squares: Array
    step: Array
    own: Array
    products: bool = False
    repeats: Any = 1.0
    largest: Any = 0.0
    length: float = np.inf
    raw: Array | None = None

    @property
    def terms_of_all(self) -> Any:
        """`terms`, or one number where all sums are of equally many, which is quicker."""
        return self.terms[(0,) * self.terms.ndim] if self.terms.size and not any(self.terms.strides) else self.terms

    def reshaped(self, shape: tuple[int, ...]) -> SumFacts:
        """The same facts of a reshaped sum."""
        return replace(
            self,
            terms=self.terms.reshape(shape),
            magnitude=self.magnitude.reshape(shape),
            squares=self.squares.reshape(shape),
            step=self.step.reshape(shape),
            own=self.own.reshape(shape),
            repeats=self.repeats.reshape(shape) if np.ndim(self.repeats) else self.repeats,
            largest=self.largest.reshape(shape) if np.ndim(self.largest) else self.largest,
            raw=None if self.raw is None else self.raw.reshape(shape),
        )

"""Choices: results of a few values of which several may be right, because the numbers they depend on are not exact.

A stage of an operator returns one of these in the place of an array of integers or codes; `oracle.vocabulary.chosen`,
`located` and `stepped` make them. The value that the definition itself gives is in ``ids``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.signature import Array


@dataclass(frozen=True)
class Interval:
    """Integers that may lie anywhere between two ends.

    Attributes
    ----------
    ids, lowest, highest : int64 array (...)
        What the definition gives, and the least and the greatest that is right.
    allowed : bool array (..., candidates), optional
        Which integers may be right at all; without it every one between the ends.
    """

    ids: Array
    lowest: Array
    highest: Array
    allowed: Array | None = None

    def wrong(self, got: Array) -> Array:
        """Which elements of an array of integers are not right."""
        outside: Array = (got < self.lowest) | (got > self.highest)
        if self.allowed is None:
            return outside
        place = np.where(outside, self.ids, got).astype(np.int64)[..., np.newaxis]
        allowed: Array = np.take_along_axis(self.allowed, place, axis=-1)[..., 0]
        return outside | ~allowed


@dataclass(frozen=True)
class Selection:
    """The ``count`` candidates with the largest scores of each row.

    Attributes
    ----------
    ids : int64 array (..., count)
        What the definition selects.
    low, high : float64 array (..., candidates)
        Between which the score of a candidate may lie in an honest implementation.
    ordered : bool
        Whether the selected ones come in order of falling score.
    lowest_first : bool
        Whether of equal exact scores the candidate with the lower index goes first.
    """

    ids: Array
    low: Array
    high: Array
    ordered: bool
    lowest_first: bool

    def wrong(self, got: Array) -> Array:
        """Which elements of an array of integers are not right: no candidate, named twice, or not among the largest.

        A candidate may be selected unless some other one, left out, surely has a larger score. Where scores are exact,
        a tie is decided by the index if ``lowest_first``.
        """
        count = self.low.shape[-1]
        wrong: Array = (got < 0) | (got >= count)
        safe = np.where(wrong, 0, got).astype(np.int64)
        for slot in range(1, got.shape[-1]):
            wrong[..., slot] |= np.any(got[..., slot : slot + 1] == got[..., :slot], axis=-1)
        taken = np.zeros(self.low.shape, bool)
        np.put_along_axis(taken, safe, True, axis=-1)
        best_left = np.max(np.where(taken, -np.inf, self.low), axis=-1, keepdims=True, initial=-np.inf)
        high = np.take_along_axis(self.high, safe, axis=-1)
        wrong |= high < best_left
        if self.lowest_first:
            exact = self.low == self.high
            index = np.arange(count)
            for slot in range(got.shape[-1]):
                mine, my_score = safe[..., slot : slot + 1], high[..., slot : slot + 1]
                tied = exact & ~taken & (self.low == my_score) & (index < mine)
                wrong[..., slot] |= np.any(tied, axis=-1)
        if self.ordered and got.shape[-1] > 1:
            low = np.take_along_axis(self.low, safe, axis=-1)
            wrong[..., :-1] |= high[..., :-1] < low[..., 1:]
            if self.lowest_first:
                same = (low == high)[..., :-1] & (low == high)[..., 1:] & (low[..., :-1] == low[..., 1:])
                wrong[..., :-1] |= same & (safe[..., :-1] > safe[..., 1:])
        return wrong


@dataclass(frozen=True)
class Span:
    """Numbers of a format that may lie anywhere between two ends.

    Attributes
    ----------
    ids, lowest, highest : float64 array (...)
        What the definition gives, and the least and the greatest that is right. NaN stands for NaN alone.
    free : bool array (...), optional
        Where the definition says nothing, and anything may be returned.
    """

    ids: Array
    lowest: Array
    highest: Array
    free: Array | None = None

    def wrong(self, got: Array) -> Array:
        """Which elements of an array of numbers are not right."""
        number = got.astype(np.float64)
        right = (number >= self.lowest) & (number <= self.highest) | np.isnan(number) & np.isnan(self.ids)
        return ~(right if self.free is None else right | self.free)


Choice = Interval | Selection | Span


def is_choice(value: Any) -> bool:
    """Whether a stage's result is a choice."""
    return isinstance(value, Choice)

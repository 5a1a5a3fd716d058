"""Linear recurrences that may be solved for several steps at once: `in_chunks` and `chunk_operand`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.error.fields import plus_zero
from oracle.vocabulary.alternatives import either
from oracle.vocabulary.operands import arithmetic_of
from oracle.vocabulary.roundings import may_round


def in_chunks(results: tuple[Any, ...], form: Callable[[int], tuple[Any, ...]], steps: int) -> tuple[Any, ...]:
    """The results of a recurrence step by step; a kernel that is granted chunks may solve for several steps at once.

    Parameters
    ----------
    results : tuple of arrays
        Step by step.
    form : function
        The same results by ``form(size)``, which solves for `size` steps at once, and for fewer at the end.
    steps : int
        How many there are.

    Notes
    -----
    Under `Numerics.chunk` the bound is the larger one of both, chunks as large as they may be; what the forms differ by
    counts. Infinities meet in another order in each, so that nothing is known where one of them is not finite.
    """
    numerics = arithmetic_of(*results)
    if numerics is None or numerics.chunk < 2 or not steps:
        return results
    return tuple(_either(*pair) for pair in zip(results, form(numerics.chunk), strict=True))


def chunk_operand(x: Any) -> Any:
    """A factor of a product within a chunk, which may be rounded to `Numerics.chunk_format` first; the value stays."""
    numerics = arithmetic_of(x)
    return x if numerics is None or numerics.chunk_format is None else may_round(x, numerics.chunk_format)


def _either(step_by_step: Any, chunked: Any) -> Any:
    result = either(step_by_step, chunked)
    lost = ~(np.isfinite(result.value) & np.isfinite(chunked.value))
    if lost.any():
        result.value = np.where(np.isnan(result.value), np.inf, result.value)
        result.bound = np.where(lost, np.inf, plus_zero(result.bound))
    return result

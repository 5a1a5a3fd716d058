"""The power guard: answers that need no computing, which the cases of an operator must refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.operator import Expected
from refsim.conformance.judge import Judge

Refusals = dict[tuple[str, str], bool]


def cheats(
    expected: Expected, inputs: Mapping[str, np.ndarray[Any, Any] | None], previous: np.ndarray[Any, Any] | None
) -> dict[str, np.ndarray[Any, Any]]:
    """Cheap answers in the shape of an output, by name; float64 values that the output's format holds.

    Parameters
    ----------
    expected : Expected
        The output; ``permuted rows`` and ``constant`` are made from its value.
    inputs : mapping
        The case's inputs; each floating-point one is copied, repeated or cut to fit.
    previous : array, optional
        The value of this output in the case before.
    """
    shape = np.shape(expected.value)
    value = round_to(np.asarray(expected.value, np.float64), expected.format)
    finite = value[np.isfinite(value)]
    answers = {"zeros": np.zeros(shape), "ones": np.ones(shape)}
    if finite.size and value.size > 1:  # the mean of one number is that number
        with np.errstate(over="ignore"):
            answers["constant"] = np.full(shape, finite.mean())
    for name, array in inputs.items():
        if array is not None and array.dtype.kind not in "iu" and array.size:
            answers[f"copy of {name}"] = np.resize(array.astype(np.float64), shape)
    if previous is not None and previous.size:
        answers["previous output"] = np.resize(previous, shape)
    rows = value.reshape(-1, shape[-1]) if len(shape) > 1 and shape[-1] else value.reshape(-1, 1)
    if len(rows) > 1:
        turned = np.roll(rows, 1, axis=0)
        if not np.array_equal(turned, rows, equal_nan=True):  # equal rows cannot be told apart
            answers["permuted rows"] = turned.reshape(shape)
    if not expected.format.has_nan:
        answers = {name: np.nan_to_num(answer) for name, answer in answers.items()}
    return {name: round_to(answer, expected.format) for name, answer in answers.items()}


def refusals(
    judges: Iterable[Judge],
    inputs: Mapping[str, np.ndarray[Any, Any] | None],
    previous: Mapping[str, np.ndarray[Any, Any]],
) -> Refusals:
    """For each output and cheap answer of one case: whether the judge refuses it."""
    refused: Refusals = {}
    for judge in judges:
        name = judge.expected.name
        for cheat, answer in cheats(judge.expected, inputs, previous.get(name)).items():
            refused[name, cheat] = judge.refuses(answer)
    return refused


def accepted_cheats(cases: Iterable[Refusals]) -> list[str]:
    """The cheap answers that no case refuses, in words; empty where the cases have power."""
    refused: Refusals = {}
    for case in cases:
        for cheat, outcome in case.items():
            refused[cheat] = refused.get(cheat, False) or outcome
    return [f"{cheat} as {output}" for (output, cheat), outcome in refused.items() if not outcome]

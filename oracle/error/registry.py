"""Tables of what has an error rule, and the errors raised for what has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
"""ufunc -> rule(numerics, *operands)."""

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""NumPy function -> rule with the function's own arguments."""

REFUSED: dict[str, str] = {
    "astype": "a cast is a rounding point; say it with vocabulary.round_to_format or may_round.",
    "float": "it would lose the error; keep the array.",
    "int": "it would lose the error; keep the array.",
    "item": "it would lose the error; keep the array.",
    "tolist": "it would lose the error; keep the array.",
    "array": "it would lose the error; use np.stack or np.concatenate.",
    "sort": "the order of elements within their errors is undecided.",
    "argsort": "the order of elements within their errors is undecided.",
    "rint": "rounding to integers is a discrete output, judged as a stage of its own.",
    "round": "rounding to integers is a discrete output, judged as a stage of its own.",
    "floor": "rounding to integers is a discrete output, judged as a stage of its own.",
    "ceil": "rounding to integers is a discrete output, judged as a stage of its own.",
    "trunc": "rounding to integers is a discrete output, judged as a stage of its own.",
    "sign": "it jumps at 0; compare and use np.where.",
    "at": "the order of additions is hidden; write a sum.",
}
"""Names refused on purpose -> why, and what to write instead."""

Rule = TypeVar("Rule", bound=Callable[..., Any])


class UnsupportedOperationError(TypeError):
    """An operation without an error rule met an error-bounded array."""


class UndecidableError(ValueError):
    """A decision that the error bound leaves open was asked for."""


def ufunc_rule(*ufuncs: np.ufunc) -> Callable[[Rule], Rule]:
    """Register a rule for ufuncs."""

    def register(rule: Rule) -> Rule:
        for ufunc in ufuncs:
            UFUNCS[ufunc] = rule
        return rule

    return register


def function_rule(*functions: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Register a rule for NumPy functions."""

    def register(rule: Rule) -> Rule:
        for function in functions:
            FUNCTIONS[function] = rule
        return rule

    return register

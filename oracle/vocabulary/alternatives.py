"""Formulas that are equal in exact arithmetic, of which a kernel may evaluate any: `either`."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded, lift
from oracle.error.fields import Errors, plus_zero, root_sum
from oracle.error.settle import make, settle
from oracle.vocabulary.operands import arithmetic_of


def either(first: Any, *others: Any) -> Any:
    """The value of the first of several formulas that are algebraically equal; a kernel may evaluate any of them.

    Parameters
    ----------
    first, others
        Arrays of one shape: ``either(1.0 + np.tanh(z), 2.0 * sigmoid(2.0 * z))``. The claim is tested where it is
        made: what the formulas differ by counts as an error.
    """
    numerics = arithmetic_of(first, *others)
    if numerics is None:
        return first
    forms = [settle(lift(form, numerics)) for form in (first, *others)]
    value = forms[0].value
    with np.errstate(all="ignore"):
        off = [np.where(_same(form.value, value), 0.0, np.abs(form.value - value)) for form in forms]
        bounds = [plus_zero(form.bound) + error for form, error in zip(forms, off, strict=True)]
        commons = [root_sum(form.common, error) for form, error in zip(forms, off, strict=True)]

    def largest(errors: list[Errors]) -> Errors:
        return reduce(np.maximum, [np.broadcast_to(plus_zero(error), value.shape) for error in errors])

    result = make(
        value,
        numerics,
        largest(bounds),
        largest([form.sigma for form in forms]),
        largest(commons),
    )
    result.may_overflow = any(form.may_overflow for form in forms if isinstance(form, ErrorBounded))
    return result


def _same(one: Any, other: Any) -> Any:
    return (one == other) | (np.isnan(one) & np.isnan(other))

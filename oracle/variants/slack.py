"""Why an operator's sigma is more than four times what its controls need, or why no control shows that it is not."""

from __future__ import annotations

RESCALED = (
    "the roundings by which an online softmax follows its maximum count as common to all weights of a row; what of "
    "them cancels between the weighted sum and the sum of the weights, running analysis does not see"
)
FEW_SCALES = (
    "a scale is one quotient, and a case has few: a control that is off by anything up to the promised two ulps comes "
    "to 1.5 sigma, where several elements are judged by 6 and one by 8"
)
EXACT_SUMS = (
    "products of codes are exact, and so are most of their sums; sigma counts every addition as one that rounds, "
    "and only those between blocks of very different scale do"
)
ACTIVATED = (
    "a few roundings, then an activation whose exponential and quotient are promised in ulps at their worst: a control "
    "that is off by anything up to that comes to 1.5 sigma, where several elements are judged by 6"
)
SUMMED_ERRORS = (
    "errors that terms share (a factor of the row, a state's decay) are added up, not in quadrature; in the controls "
    "they have different signs"
)

_OPERATORS: dict[str, tuple[str, ...]] = {
    RESCALED: (),
    FEW_SCALES: (),
    EXACT_SUMS: (),
    ACTIVATED: (),
    SUMMED_ERRORS: (),
}

SLACK: dict[str, str] = {operator: reason for reason, operators in _OPERATORS.items() for operator in operators}
"""Reason by operator."""

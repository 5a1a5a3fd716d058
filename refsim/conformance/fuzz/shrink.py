"""A failing case, made smaller where hypothesis stops: sizes that no recipe draws, and simpler classes of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from oracle.cases import LAYOUTS, Case
from oracle.cases.recipes import recipe_of
from oracle.cases.recipes.recipe import SIZES
from oracle.operator import find_operator
from oracle.signature import InputError

MOST_TRIALS = 200


def complexity(case: Case) -> tuple[int, ...]:
    """What makes a case hard to read: elements, then sizes, the value class, the layout, parameters, the seed."""
    elements = 1
    for size in case.dims.values():
        elements *= max(size, 1)
    value_class = list(recipe_of(case.operator).classes).index(case.value_class)
    layout = list(LAYOUTS).index(case.layout)
    return elements, sum(case.dims.values()), value_class, layout, len(case.params), case.seed


def shrink(case: Case, fails: Callable[[Case], bool], most: int = MOST_TRIALS) -> Case:
    """The simplest case found that still fails in the same way, after at most ``most`` runs."""
    trials = 0
    improved = True
    while improved:
        improved = False
        for candidate in _simpler(case):
            if trials >= most:
                return case
            if complexity(candidate) >= complexity(case) or not drawable(candidate):
                continue
            trials += 1
            if fails(candidate):
                case, improved = candidate, True
                break
    return case


def _simpler(case: Case) -> Iterator[Case]:
    """Cases with one thing simpler, the boldest first."""
    for name, size in case.dims.items():
        for smaller in dict.fromkeys((*SIZES, size // 2, size - 1)):
            if 0 < smaller < size:
                yield replace(case, dims={**case.dims, name: smaller})
    classes = list(recipe_of(case.operator).classes)
    for value_class in classes[: classes.index(case.value_class)]:
        yield replace(case, value_class=value_class)
    if case.layout != "contiguous":
        yield replace(case, layout="contiguous")
    for name in case.params:
        yield replace(case, params={key: value for key, value in case.params.items() if key != name})
    for seed in range(min(case.seed, 3)):
        yield replace(case, seed=seed)


def drawable(case: Case) -> bool:
    """Whether the case fits its operator, and its inputs can be made."""
    record = find_operator(case.operator)
    try:
        record.validate(case.inputs(), case.params)
    except (InputError, ValueError, LookupError, ArithmeticError, TypeError):
        return False
    return True

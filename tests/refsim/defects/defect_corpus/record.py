"""The record of one seeded defect: a wrong kernel, its right twin, one launch, and NumPy's answer."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KINDS = {
    "race",
    "out_of_bounds",
    "uninitialized_read",
    "barrier_divergence",
    "warp_divergence",
    "launch_limit",
    "value",
}
_MARKER = re.compile(r"#! (?P<kind>\w+)(?:\((?P<array>\w+)\))?(?P<note> note)?\s*$")


@dataclass(frozen=True)
class Launch:
    """How a kernel of a pair is launched."""

    grid: Any
    block: Any
    shared_bytes: int = 0


@dataclass(frozen=True)
class Expectation:
    """What the marks in a wrong kernel's source ask for.

    A mark is a trailing comment: ``#! race(tile)`` names the kind and the array, ``#! race(flag) note`` a note
    instead of an error, ``#! value`` a wrong result that no check can see.
    """

    kind: str
    lines: frozenset[int]
    arrays: frozenset[str]
    severity: str


@dataclass(frozen=True)
class Defect:
    """One pair of kernels that differ in one mistake."""

    name: str
    story: str
    wrong: Callable[..., None]
    right: Callable[..., None]
    wrong_launch: Launch
    right_launch: Launch
    arguments: Callable[[], tuple[Any, ...]]
    expected: Callable[..., dict[int, np.ndarray]]
    rtol: float = 0.0
    wrong_producer: Callable[..., None] | None = None
    right_producer: Callable[..., None] | None = None
    marked_functions: tuple[Callable[..., Any], ...] = ()
    also: frozenset[str] = frozenset()
    expectation: Expectation = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "expectation", marks_of(self.wrong, *self.marked_functions))


def marks_of(kernel: Callable[..., None], *device_functions: Callable[..., Any]) -> Expectation:
    """Read the marks from the source of a kernel and its device functions; they all name one kind."""
    found = []
    for function in (kernel, *device_functions):
        source, first_line = inspect.getsourcelines(function)
        found += [(first_line + i, match) for i, text in enumerate(source) if (match := _MARKER.search(text))]
    kinds = {match["kind"] for _, match in found}
    if len(kinds) != 1 or not kinds <= KINDS:
        raise ValueError(f"{kernel.__qualname__}: expected marks of one known kind, found {sorted(kinds)}")
    return Expectation(
        kind=kinds.pop(),
        lines=frozenset(line for line, _ in found),
        arrays=frozenset(match["array"] for _, match in found if match["array"]),
        severity="note" if any(match["note"] for _, match in found) else "error",
    )


DEFECTS: list[Defect] = []


def defect(record: type) -> type:
    """Register a class body as a pair.

    The class has a docstring that tells the mistake, ``wrong`` and ``right`` (kernels without ``self``),
    ``arguments()`` (fresh launch arguments) and ``expected(*arguments)`` (argument position -> array after the
    launch, computed from the arguments as they were before it). ``launch`` is the launch of both kernels unless
    ``wrong_launch`` or ``right_launch`` says otherwise; a ``wrong_producer`` and a ``right_producer`` run first.
    ``rtol`` is the relative tolerance of the comparison (0: equal); ``also`` names kinds that may follow from the
    mistake at other lines; ``marked_functions`` are device functions whose source carries marks.
    """
    values = vars(record)
    launch = values.get("launch")
    DEFECTS.append(
        Defect(
            name=re.sub(r"(?<!^)(?=[A-Z])", "_", record.__name__).lower(),
            story=inspect.cleandoc(record.__doc__ or ""),
            wrong=values["wrong"],
            right=values["right"],
            wrong_launch=values.get("wrong_launch", launch),
            right_launch=values.get("right_launch", launch),
            arguments=values["arguments"],
            expected=values["expected"],
            rtol=values.get("rtol", 0.0),
            wrong_producer=values.get("wrong_producer"),
            right_producer=values.get("right_producer"),
            marked_functions=values.get("marked_functions", ()),
            also=values.get("also", frozenset()),
        )
    )
    return record

"""For tests of your own implementations, under pytest::

    from refsim.testing import conforms

    @conforms("rmsnorm")
    def test_my_rmsnorm():
        return my_rmsnorm

The test function returns what is to be judged, and may take fixtures. Each dtype is a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar

# Where a test function carries its demands. No marker: those must be known to pytest, which comes after the decorator.
DEMANDS = "__refsim_conforms__"

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Demand:
    """What a test function's answer is to conform to; None stands for the option of the command line."""

    operator: str
    dtypes: tuple[str, ...] | None
    cases: int | None
    seed: int
    strict: bool
    device: str | None


def conforms(
    operator: str,
    *,
    dtypes: Sequence[str] | None = None,
    cases: int | None = None,
    seed: int = 0,
    strict: bool = False,
    device: str | None = None,
) -> Callable[[Test], Test]:
    """Have a test function pass if what it returns conforms to an operator's definition.

    Parameters
    ----------
    operator : str
        As in ``refsim ops``.
    dtypes : sequence of str, optional
        Dtypes to judge; by default those of ``refsim check``, as far as the operator has them.
    cases : int, optional
        Cases per dtype; ``--refsim-cases`` (48) by default.
    seed : int
        Seed of all inputs.
    strict : bool
        SUSPECT fails, too.
    device : str, optional
        Where kernels run: ``sim:NAME`` or ``cuda:NUMBER``; ``--refsim-device`` (sim:sm_90) by default.

    The test function returns a function of NumPy arrays, host code whose first argument is ``launcher``, a
    `refsim.library.Kernel`, a list of them, or a backend. A test is skipped where every case is refused, and fails
    where the cases cannot tell right from wrong.

    Raises
    ------
    oracle.operator.UnknownOperatorError
        No operator has that name.
    UsageError
        A dtype that the operator does not have, no dtype, a number of cases below 1, or a seed below 0.
    TypeError
        An argument of another type, or a decorator above anything but a function.
    """
    if callable(operator):
        raise TypeError('conforms needs the operator\'s name: write @conforms("softmax"), not @conforms alone')
    for name, value, kinds, what in (
        ("operator", operator, (str,), "a name, such as 'softmax'"),
        ("dtypes", dtypes, (list, tuple, NoneType), "a list of names, such as ['float32']"),
        ("cases", cases, (int, NoneType), "a whole number"),
        ("seed", seed, (int,), "a whole number"),
        ("strict", strict, (bool,), "True or False"),
        ("device", device, (str, NoneType), "a name, such as 'sim:sm_90'"),
    ):
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(f"{name} must be {what}, not {value!r}")
    from oracle.operator import find_operator
    from refsim.conformance.backends.backend import UsageError

    record = find_operator(operator)
    if dtypes is not None and not dtypes:
        raise UsageError(f"dtypes must be a list of names with at least one, not {dtypes!r}")
    for dtype in dtypes or ():
        if dtype not in record.dtypes:
            raise UsageError(f"{operator} has no dtype {dtype!r}; it has {', '.join(record.dtypes)}")
    if cases is not None and cases < 1:
        raise UsageError(f"cases must be at least 1, not {cases!r}")
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed!r}")
    demand = Demand(operator, None if dtypes is None else tuple(dtypes), cases, seed, strict, device)

    def demanding(test: Test) -> Test:
        if isinstance(test, type) or not callable(test):
            raise TypeError(f"conforms goes above a test function, not above {test!r}")
        setattr(test, DEMANDS, (*getattr(test, DEMANDS, ()), demand))
        return test

    return demanding

"""The judge on simulated kernels: honest ones pass in every dtype, wrong ones and cheap answers never do."""

import functools

import pytest
from implementations import MODULES

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.conformance.backends.backend import Capability
from refsim.conformance.backends.functions import FunctionBackend
from refsim.conformance.runner import check_row, prepare
from refsim.conformance.verdicts import Verdict

DTYPES = ("float16", "float32", "float64")
COUNT = 32


@functools.cache
def prepared(operator, dtype):
    numerics = NUMERICS["float64" if dtype == "float64" else "float32"]
    return numerics, tuple(prepare(make_cases(operator, dtype, COUNT, seed=0), numerics))


def judged(function, operator, dtype):
    """The row of the report for one function."""
    backend = FunctionBackend(function, find_operator(operator), "test")
    numerics, cases = prepared(operator, dtype)
    return check_row(backend, Capability(operator, backend.kernel, dtype), numerics, cases)


def honest():
    return [(operator, name) for operator, module in MODULES.items() for name in module.HONEST]


def wrong():
    return [
        (operator, name, dtype)
        for operator, module in MODULES.items()
        for name in module.WRONG
        for dtype in DTYPES
        if (name, dtype) not in module.UNSEEN
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("operator", "name"), honest())
def test_honest_implementations_pass(operator, name, dtype):
    result = judged(MODULES[operator].HONEST[name], operator, dtype)
    assert result.verdict is Verdict.PASS, result.reason
    assert result.worst_margin <= 1.0
    assert result.cases == COUNT


@pytest.mark.parametrize(("operator", "name", "dtype"), wrong())
def test_wrong_implementations_do_not_pass(operator, name, dtype):
    result = judged(MODULES[operator].WRONG[name], operator, dtype)
    assert result.verdict in (Verdict.FAIL, Verdict.SUSPECT), result.verdict
    assert result.failures


@pytest.mark.parametrize("operator", MODULES)
def test_at_least_six_of_each_kind(operator):
    module = MODULES[operator]
    assert len(module.HONEST) >= 6
    assert len(module.WRONG) >= 6

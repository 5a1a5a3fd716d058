"""Conformance: is an implementation of an operator what it promises to be?"""

from refsim.conformance.backends import (
    Backend,
    Capability,
    FunctionBackend,
    KernelBackend,
    Refused,
    RunResult,
    UsageError,
    load_backend,
    promised,
    usual_numerics,
)
from refsim.conformance.judge import Judge, Judgement
from refsim.conformance.runner import check
from refsim.conformance.verdicts import Element, Failure, Report, Result, Verdict

__all__ = [
    "Backend",
    "Capability",
    "Element",
    "Failure",
    "FunctionBackend",
    "Judge",
    "Judgement",
    "KernelBackend",
    "Refused",
    "Report",
    "Result",
    "RunResult",
    "UsageError",
    "Verdict",
    "check",
    "load_backend",
    "promised",
    "usual_numerics",
]

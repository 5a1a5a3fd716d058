"""Backends: the implementations that the judge can be pointed at, and how they are found."""

from refsim.conformance.backends.backend import (
    Backend,
    Capability,
    Refused,
    RunResult,
    UsageError,
    promised,
    usual_numerics,
)
from refsim.conformance.backends.functions import FunctionBackend
from refsim.conformance.backends.kernels import KernelBackend
from refsim.conformance.backends.library import HostArrays, LibraryBackend, Table
from refsim.conformance.backends.loading import load_backend

__all__ = [
    "Backend",
    "Capability",
    "FunctionBackend",
    "HostArrays",
    "KernelBackend",
    "LibraryBackend",
    "Refused",
    "RunResult",
    "Table",
    "UsageError",
    "load_backend",
    "promised",
    "usual_numerics",
]

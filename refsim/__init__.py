"""refsim: run, check and judge GPU kernels on a machine without a GPU.

The names below are imported when they are first used, so that the command line answers Ctrl-C while it starts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refsim.checks.findings import Access, Finding, Report
    from refsim.counters.picture import picture_of_shared
    from refsim.engine.buffers import empty
    from refsim.errors import FindingError, KernelTypeError, RefsimError, UnsupportedError
    from refsim.raw import RawKernel, RawModule
    from refsim.simulator import launch, simulate

__all__ = [
    "Access",
    "Finding",
    "FindingError",
    "KernelTypeError",
    "RawKernel",
    "RawModule",
    "RefsimError",
    "Report",
    "UnsupportedError",
    "empty",
    "launch",
    "picture_of_shared",
    "simulate",
]
__version__ = "0.1.0"

_HOMES = {
    "refsim.checks.findings": ("Access", "Finding", "Report"),
    "refsim.counters.picture": ("picture_of_shared",),
    "refsim.engine.buffers": ("empty",),
    "refsim.errors": ("FindingError", "KernelTypeError", "RefsimError", "UnsupportedError"),
    "refsim.raw": ("RawKernel", "RawModule"),
    "refsim.simulator": ("launch", "simulate"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

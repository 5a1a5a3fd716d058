"""refsim: run, check and judge GPU kernels on a machine without a GPU."""

from refsim.checks.findings import Access, Finding, Report
from refsim.engine.buffers import empty
from refsim.errors import FindingError, KernelTypeError, RefsimError, UnsupportedError
from refsim.simulator import launch, simulate

__all__ = [
    "Access",
    "Finding",
    "FindingError",
    "KernelTypeError",
    "RefsimError",
    "Report",
    "UnsupportedError",
    "empty",
    "launch",
    "simulate",
]
__version__ = "0.1.0"

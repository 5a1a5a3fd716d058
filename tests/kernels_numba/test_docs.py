"""The example of docs/kernels.md runs, and its table names every kernel."""

import doctest
from pathlib import Path

from kernels_numba import KERNELS

PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"


def test_example_runs():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_kernel_is_described():
    page = PAGE.read_text(encoding="utf-8")
    assert [kernel.name for kernel in KERNELS if f"| `{kernel.name}` |" not in page] == []

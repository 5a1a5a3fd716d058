"""The example of docs/kernels_cupy.md runs, and its tables name every kernel and every header."""

import doctest
from pathlib import Path

from kernels_cupy import KERNELS
from kernels_cupy.source import FOLDER

PAGE = Path(__file__).parents[2] / "docs" / "kernels_cupy.md"


def test_example_runs():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_kernel_and_header_is_described():
    page = PAGE.read_text(encoding="utf-8")
    names = [kernel.name for kernel in KERNELS]
    assert [name for name in names if f"| `{name}` |" not in page] == []
    assert [path.name for path in FOLDER.glob("*.cuh") if f"| `{path.name}` |" not in page] == []

"""The record of one pair in C++: its source, the marks in it, and how it is launched."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from defect_corpus import DEFECTS, Launch

import refsim

from .launches import ALSO, LAUNCHES

FOLDER = Path(__file__).parent
OPTIONS = ("-std=c++17",)
DEVICES = {"wavefronts.cu": "sim:gfx942"}
KINDS = {
    "race",
    "out_of_bounds",
    "uninitialized_read",
    "barrier_divergence",
    "warp_divergence",
    "misaligned",
    "launch_limit",
    "deadlock",
    "value",
}
_NAMESPACE = re.compile(r"^namespace (?P<name>\w+) \{$")
_KERNEL = re.compile(
    r"__global__ void (?:__launch_bounds__\(.*?\) )?(?P<name>\w+)\(|^using (?P<scope>\w+)::(?P<used>right);"
)
_MARKER = re.compile(r"//! (?P<kind>\w+)(?:\((?P<array>\w+)\))?(?P<note> note)?$")


@dataclass(frozen=True)
class Pair:
    """One pair of kernels that differ in one mistake.

    ``kind``, ``lines``, ``arrays`` and ``severity`` are what the marks in the wrong kernel ask for: ``//! race(tile)``
    names the kind and the array, ``//! race(flag) note`` a note instead of an error, ``//! value`` a wrong result that
    no check can see. The launches and the answers are those of the Numba corpus or of ``launches.py``.
    """

    name: str
    file: Path
    kernels: frozenset[str]
    kind: str
    lines: frozenset[int]
    arrays: frozenset[str]
    severity: str
    wrong_launch: Launch
    right_launch: Launch
    arguments: Callable[[], tuple[Any, ...]]
    expected: Callable[..., dict[int, np.ndarray]]
    rtol: float
    also: frozenset[str]

    @property
    def device(self) -> str:
        """The simulated device that the family is for."""
        return DEVICES.get(self.file.name, "sim:sm_90")

    def kernel(self, role: str) -> Any:
        """The kernel ``wrong``, ``right``, ``wrong_producer`` or ``right_producer``."""
        return module(self.file).get_function(f"{self.name}::{role}")


@cache
def module(file: Path) -> refsim.RawModule:
    """All kernels of a file, compiled together; findings name the file and its lines."""
    names = [f"{pair}::{kernel}" for pair, text in namespaces(file) for kernel in kernels_in(text)]
    code = f'#line 1 "{file.as_posix()}"\n{file.read_text(encoding="utf-8")}'
    return refsim.RawModule(code=code, options=OPTIONS, name_expressions=names)


def kernels_in(text: list[tuple[int, str]]) -> list[str]:
    """Names of the kernels that a namespace defines or takes over from another one."""
    return [match["name"] or match["used"] for _, line in text if (match := _KERNEL.search(line))]


def namespaces(file: Path) -> list[tuple[str, list[tuple[int, str]]]]:
    """The pairs of a file: name, and numbered lines."""
    found: list[tuple[str, list[tuple[int, str]]]] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if match := _NAMESPACE.match(line):
            found.append((match["name"], []))
        elif found:
            found[-1][1].append((number, line))
    return found


def pairs_of_folder() -> list[Pair]:
    """All pairs, in the order of files and lines."""
    numba = {defect.name: defect for defect in DEFECTS}
    pairs = []
    for file in sorted(FOLDER.glob("*.cu")):
        for name, text in namespaces(file):
            marks = [(number, mark) for number, line in text if (mark := _MARKER.search(line))]
            kinds = {mark["kind"] for _, mark in marks}
            if len(kinds) != 1 or not kinds <= KINDS:
                raise ValueError(f"{file.name}: {name}: expected marks of one known kind, found {sorted(kinds)}")
            told = numba.get(name) or LAUNCHES[name]
            pairs.append(
                Pair(
                    name=name,
                    file=file,
                    kernels=frozenset(kernels_in(text)),
                    kind=kinds.pop(),
                    lines=frozenset(number for number, _ in marks),
                    arrays=frozenset(mark["array"] for _, mark in marks if mark["array"]),
                    severity="note" if any(mark["note"] for _, mark in marks) else "error",
                    wrong_launch=told.wrong_launch,
                    right_launch=told.right_launch,
                    arguments=told.arguments,
                    expected=told.expected,
                    rtol=told.rtol,
                    also=ALSO.get(name, frozenset(getattr(told, "also", ()))),
                )
            )
    return pairs

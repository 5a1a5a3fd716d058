"""From source text to one preprocessed buffer, and from a byte of that buffer back to file and line."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from pathlib import Path

from refsim.devices import Device
from refsim.dialect import Place
from refsim.frontends.cuda_cpp import clang
from refsim.frontends.cuda_cpp.options import Options, is_hip, language, target

INCLUDE = Path(__file__).parents[2] / "include"
MARKER = re.compile(rb'# (\d+) "((?:[^"\\]|\\.)*)"')
NAME_PREFIX = "refsim_name_"
NAMES_FILE = "<name expressions>"


@dataclass
class Preprocessed:
    """A preprocessed translation unit.

    Attributes
    ----------
    text
        The buffer that clang parses; offsets in the tree count its bytes.
    names
        Name expressions; the i-th one is the initial value of the variable ``refsim_name_i``.
    """

    text: bytes
    names: tuple[str, ...]
    written: dict[str, list[str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    _starts: list[int] = field(default_factory=list)
    _origins: list[tuple[str, int]] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _places: dict[int, Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        files: dict[str, None] = {}
        name, number, start = "", 0, 0
        self._lines = self.text.split(b"\n")
        for line in self._lines:
            match = MARKER.match(line) if line.startswith(b"# ") else None
            self._starts.append(start)
            self._origins.append((name, number))
            if match:
                name, number = re.sub(r"\\(.)", r"\1", match[2].decode()), int(match[1]) - 1
                files[name] = None
            number += 1
            start += len(line) + 1
        self.files = tuple(files)

    def place(self, offset: int) -> Place:
        """File, line and text of a byte."""
        row = bisect.bisect_right(self._starts, offset) - 1
        if row not in self._places:
            name, number = self._origins[row]
            text = self._written_line(name, number) or self._lines[row].decode(errors="replace")
            self._places[row] = Place(name, number, text)
        return self._places[row]

    def _written_line(self, name: str, number: int) -> str:
        """A line as its author wrote it, before macros were expanded."""
        if name not in self.written:
            try:
                self.written[name] = Path(name).read_text(errors="replace").split("\n")
            except OSError:
                self.written[name] = []
        lines = self.written[name]
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def column(self, offset: int) -> int:
        """One-based column of a byte."""
        return offset - self._starts[bisect.bisect_right(self._starts, offset) - 1] + 1

    def between(self, begin: int, end: int) -> str:
        """Text from one byte to another."""
        return self.text[begin:end].decode(errors="replace")


def preprocess(code: str, options: Options, names: tuple[str, ...], device: Device, file: str) -> Preprocessed:
    """Run the preprocessor over a source, our built-in declarations, and one variable per name expression.

    Parameters
    ----------
    code
        CUDA or HIP C++.
    names
        Kernels as the source would write them: ``"kernel"`` or ``"kernel<float, 4>"``.
    file
        Name of the source in findings and errors.
    """
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    code = code.replace("\r\n", "\n")
    wrapped = [*options.definitions, f'# 1 "{quoted}"', code, f'# 1 "{NAMES_FILE}"']
    wrapped += [f"static auto* const {NAME_PREFIX}{i} = &{name};" for i, name in enumerate(names)]
    if options.device_default:
        wrapped = ["#pragma clang force_cuda_host_device begin", *wrapped, "#pragma clang force_cuda_host_device end"]
    folder = [] if file.startswith("<") else ["-I", str(Path(file).parent)]
    prelude = "hip/hip_runtime.h" if is_hip(device) else "refsim_prelude.h"
    arguments = [
        *target(device, options), *language(device, False), "-E", *folder, *options.clang, "-I", str(INCLUDE),
        *_definitions(device), "-include", prelude, "-",
    ]  # fmt: skip
    return Preprocessed(clang.run(arguments, "\n".join(wrapped) + "\n"), names, {file: code.split("\n")})


def _definitions(device: Device) -> list[str]:
    if is_hip(device):
        return [
            "-D__HIPCC__=1", "-D__HIPCC_RTC__=1", "-D__HIP_PLATFORM_AMD__=1", "-D__HIP_DEVICE_COMPILE__=1",
            "-DUSE_ROCM=1", "-DREFSIM=1",
        ]  # fmt: skip
    return [
        "-D__CUDACC__=1", "-D__CUDACC_RTC__=1", "-D__NVCC__=1", "-DCUDA_VERSION=12080", "-DREFSIM=1",
        "-D__CUDACC_VER_MAJOR__=12", "-D__CUDACC_VER_MINOR__=8", "-D__CUDACC_VER_BUILD__=0", "-DCUDART_VERSION=12080",
    ]  # fmt: skip


def syntax_tree(source: Preprocessed, options: Options, device: Device) -> bytes:
    """clang's syntax tree of a preprocessed source, as JSON."""
    return clang.run(_tree_arguments(options, device), source.text.decode())


def tolerated_tree(source: Preprocessed, options: Options, device: Device) -> tuple[bytes, str]:
    """The syntax tree of a source whatever errors it has, empty if there is none, and clang's error messages."""
    arguments = ["-ferror-limit", "0", *_tree_arguments(options, device)]
    tree, errors, _ = clang.attempt(arguments, source.text.decode())
    return tree, errors


def _tree_arguments(options: Options, device: Device) -> list[str]:
    return [*target(device, options), *language(device, True), "-fsyntax-only", "-ast-dump=json", "-"]

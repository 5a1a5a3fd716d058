"""The language of C++ kernels: every construct gives what the host's C++ compiler gives, bit for bit.

The constructs are namespaces in ``cpp_language/*.cuh``, each with a function ``result`` of numbers to a number. All
of them are compiled for the host in one library; a kernel calls the same function with the same inputs.
"""

import ctypes
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import refsim

FOLDER = Path(__file__).parent / "cpp_language"
COUNT = 512
TYPES = {
    "bool": np.bool_,
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
COMPILER = shutil.which("g++") or shutil.which("c++")
FLAGS = ("-std=c++20", "-O1", "-shared", "-fPIC", "-w", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off")


@dataclass(frozen=True)
class Construct:
    """One namespace of a file: its text, its first line, and the types of its function."""

    file: Path
    name: str
    line: int
    text: str
    result: str
    parameters: tuple[str, ...]
    includes: str

    def loop_body(self):
        """The statement that stores one result."""
        arguments = ", ".join(f"x{k}[i]" for k in range(len(self.parameters)))
        return f"out[i] = {self.name}::result({arguments});"

    def signature(self):
        """Parameters of the function that maps arrays."""
        inputs = [f"const {kind}* x{k}" for k, kind in enumerate(self.parameters)]
        return ", ".join([*inputs, f"{self.result}* out"])


def constructs():
    """All namespaces of all files."""
    found = []
    for file in sorted(FOLDER.glob("*.cuh")):
        text = file.read_text(encoding="utf-8")
        for match in re.finditer(r"^namespace (\w+) \{\n.*?(?=^namespace |\Z)", text, re.MULTILINE | re.DOTALL):
            result, parameters = re.search(r"DEVICE ([\w ]+) result\(([^)]*)\)", match[0]).groups()
            kinds = tuple(" ".join(one.split()[:-1]) for one in parameters.split(","))
            line = text.count("\n", 0, match.start()) + 1
            includes = "".join(re.findall(r"^#include .*\n", text, re.MULTILINE))
            found.append(Construct(file, match[1], line, match[0], result, kinds, includes))
    return found


CONSTRUCTS = constructs()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """All constructs as a library of the host."""
    if COMPILER is None:
        pytest.skip("no C++ compiler for the expected values")
    folder = tmp_path_factory.mktemp("host")
    parts = ["#include <cstring>", "#include <initializer_list>", "#include <new>", "#define DEVICE"]
    parts += [f'#include "{file}"' for file in sorted({c.file for c in CONSTRUCTS})]
    for c in CONSTRUCTS:
        parts.append(f'extern "C" void {c.name}_all(long n, {c.signature()}) {{')
        parts.append(f"    for (long i = 0; i < n; i++) {c.loop_body()}\n}}")
    (folder / "constructs.cpp").write_text("\n".join(parts))
    subprocess.run([COMPILER, *FLAGS, "-o", folder / "constructs.so", folder / "constructs.cpp"], check=True)
    return ctypes.CDLL(str(folder / "constructs.so"))


def inputs_of(kinds):
    """Arrays of small numbers, of the ends of each type's range, and of anything; NaN and infinities for floats."""
    rng = np.random.default_rng(len(kinds))
    arrays = []
    for kind in kinds:
        dtype = np.dtype(TYPES[kind])
        if dtype.kind == "f":
            ends = np.array([0, -0.0, 1, -1, 0.5, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, 2**31, 1e9], dtype)
            values = np.concatenate([rng.integers(-20, 20, COUNT) / 4, rng.normal(size=COUNT) * 1e4]).astype(dtype)
        elif dtype.kind == "b":
            ends, values = np.array([False, True]), rng.integers(0, 2, COUNT) > 0
        else:
            info = np.iinfo(dtype)
            ends = np.array([0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1, info.max // 2 + 1], dtype)
            small = rng.integers(max(info.min, -20), min(info.max, 100), COUNT)
            large = rng.integers(info.min, info.max, COUNT, dtype, endpoint=True)
            values = np.concatenate([small, large]).astype(dtype)
        chosen = rng.choice(values, COUNT)
        places = rng.choice(COUNT, COUNT // 4, replace=False)
        chosen[places] = rng.choice(ends, places.size)
        arrays.append(np.ascontiguousarray(chosen, dtype))
    return arrays


def test_every_file_is_read():
    assert len(CONSTRUCTS) >= 50
    assert len({c.name for c in CONSTRUCTS}) == len(CONSTRUCTS)
    texts = [file.read_text(encoding="utf-8") for file in FOLDER.glob("*.cuh")]
    assert sum(text.count("\nnamespace ") for text in texts) == len(CONSTRUCTS)


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: c.name)
def test_construct_gives_the_hosts_values(construct, host):
    inputs = inputs_of(construct.parameters)
    expected = np.zeros(COUNT, TYPES[construct.result])
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*inputs, expected)]
    getattr(host, f"{construct.name}_all")(ctypes.c_long(COUNT), *pointers)

    code = (
        f"#define DEVICE __device__\n{construct.includes}"
        f'#line {construct.line} "{construct.file.as_posix()}"\n{construct.text}'
        f'extern "C" __global__ void all({construct.signature()}) {{\n'
        f"    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {construct.loop_body()}\n}}\n"
    )
    out = np.zeros_like(expected)
    standard = "c++20" if construct.file.stem in ("cpp20", "standard_library") else "c++17"
    report = refsim.RawKernel(code, "all", (f"-std={standard}",))((COUNT // 64,), (64,), (*inputs, out))
    assert not report.findings, str(report)
    different = np.flatnonzero(~((out == expected) | ((out != out) & (expected != expected))))
    shown = different[:4]
    lanes = [[array[k] for array in inputs] for k in shown]
    assert not different.size, f"{different.size} differ; of {lanes}: {out[shown]}, not {expected[shown]}"

"""Every instantiation of every .cu file becomes NVPTX and AMDGPU code, unchanged, by the clang that the front end uses.

clang brings no CUDA or HIP installation; the few declarations that kernels need stand in ``code_generation/``.
"""

import re
import subprocess
from pathlib import Path

import pytest

from kernels_cupy import SOURCES
from kernels_cupy.source import FOLDER
from refsim.frontends.cuda_cpp.clang import ClangError, find_clang

HEADERS = Path(__file__).parent / "code_generation"

# Where a kernel starts in the assembly, and an access of 16 bytes.
NVPTX = (r"\.entry (\w+)", r"ld\.global(\.nc)?\.v[24]\.")
AMDGPU = (r"\.amdhsa_kernel (\w+)", r"global_load_(dwordx4|b128)")

TARGETS = {
    "sm_90": ("cuda", "nvptx64-nvidia-cuda", NVPTX),
    "gfx90a": ("hip", "amdgcn-amd-amdhsa", AMDGPU),
    "gfx942": ("hip", "amdgcn-amd-amdhsa", AMDGPU),
    "gfx950": ("hip", "amdgcn-amd-amdhsa", AMDGPU),
}

try:
    CLANG = find_clang()
    MISSING = ""
except ClangError as error:
    MISSING = str(error)

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def assembly(source, target):
    """Assembly of all instantiations for a target."""
    language, triple, _ = TARGETS[target]
    uses = [f"static auto* const use_{number} = &{name};" for number, name in enumerate(source.instantiations)]
    command = [
        *CLANG.command, "-cc1", "-S", "-O2", "-std=c++17", "-x", language, "-fcuda-is-device", "-fdeclspec",
        "-triple", triple, "-aux-triple", "x86_64-unknown-linux-gnu", "-target-cpu", target, "-Wall", "-Werror",
        "-Wno-unused-const-variable", "-include", str(HEADERS / language / "prelude.h"),
        "-I", str(HEADERS / language), "-I", str(FOLDER), "-o", "-", "-",
    ]  # fmt: skip
    if language == "cuda":
        command += ["-target-feature", "+ptx80"]
    done = subprocess.run(
        command, input="\n".join([source.code, *uses]), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.file)
def test_becomes_code(source, target):
    entry, sixteen_bytes = TARGETS[target][2]
    text = assembly(source, target)
    kernels = set(re.findall(entry, text))
    assert len(kernels) == len(source.instantiations)
    assert re.search(sixteen_bytes, text)

"""Every instantiation of every .cu file compiles with NVRTC, unchanged, and moves 16 bytes at a time.

No GPU is needed, but NVRTC and CUDA's headers are:
``pip install numba-cuda nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt``.
"""

import re

import pytest

from kernels_cupy import SOURCES
from kernels_cupy.source import OPTIONS

ARCHITECTURE = "compute_90"


def _include_folder():
    """Where ``cuda_fp16.h`` lies; raises where NVRTC or the headers are missing."""
    from cuda.bindings import nvrtc
    from cuda.pathfinder import find_nvidia_header_directory

    nvrtc.nvrtcVersion()
    folder = find_nvidia_header_directory("cudart")
    if folder is None:
        raise FileNotFoundError("CUDA headers")
    return folder


try:
    INCLUDE = _include_folder()
    MISSING = ""
except Exception as error:  # whichever part is looked for first, each with its own exception
    MISSING = f"no NVRTC to compile with: {type(error).__name__}"

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def _call(function, *arguments):
    status, *values = function(*arguments)
    assert status == 0, f"{function.__name__}: {status!r}"
    return values[0] if values else None


def compile_to_ptx(source):
    """PTX of all instantiations, and what the compiler said."""
    from cuda.bindings import nvrtc

    program = _call(nvrtc.nvrtcCreateProgram, source.code.encode(), source.file.encode(), 0, [], [])
    for name in source.instantiations:
        _call(nvrtc.nvrtcAddNameExpression, program, name.encode())
    options = [*OPTIONS, f"--gpu-architecture={ARCHITECTURE}", f"-I{INCLUDE}"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = bytearray(_call(nvrtc.nvrtcGetProgramLogSize, program))
    _call(nvrtc.nvrtcGetProgramLog, program, log)
    said = log.decode().strip("\0\n")
    assert status == 0, said
    ptx = bytearray(_call(nvrtc.nvrtcGetPTXSize, program))
    _call(nvrtc.nvrtcGetPTX, program, ptx)
    _call(nvrtc.nvrtcDestroyProgram, program)
    return ptx.decode(), said


def entries_of(ptx):
    """The text of each kernel."""
    return re.split(r"\.entry ", ptx)[1:]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.file)
def test_compiles_without_a_word(source):
    ptx, said = compile_to_ptx(source)
    assert said == ""
    kernels = entries_of(ptx)
    assert len(kernels) == len(source.instantiations)
    sixteen_bytes = re.compile(r"ld\.global(\.nc)?\.(v4\.[a-z]32|v2\.[a-z]64)")
    by_element = ("matmul_tiled", "round_to_output")
    for kernel in kernels:
        if not any(name in kernel.splitlines()[0] for name in by_element):
            assert sixteen_bytes.search(kernel), f"no 16-byte load in {kernel.splitlines()[0]}"
        double = re.search(r"\b(add|sub|mul|fma|div|max|min|sqrt)(\.\w+)*\.f64\b", kernel)
        assert bool(double) <= ("double" in kernel.splitlines()[0] or "Id" in kernel.splitlines()[0])

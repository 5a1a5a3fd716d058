"""Launching a C++ kernel that must run without a finding."""

import numpy as np

import refsim

LANES = 64
INDEX = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"


def launched(body, *args, block=LANES, grid=1, before="", device="sim:sm_90", options=("-std=c++17",), **launch):
    """Run ``body`` as a kernel whose parameters a, b, … have the arguments' types: the report, without findings."""
    names = {
        "float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "int64": "long long",
        "uint64": "unsigned long long", "int16": "short", "uint16": "unsigned short", "int8": "signed char",
        "uint8": "unsigned char", "float16": "__half", "bfloat16": "__nv_bfloat16",
    }  # fmt: skip
    parameters = ", ".join(f"{names[arg.dtype.name]}* {name}" for arg, name in zip(args, "abcdefgh", strict=False))
    code = f'{before}\nextern "C" __global__ void kernel({parameters}) {{\n{INDEX}\n{body}\n}}\n'
    report = refsim.RawKernel(code, "kernel", options)((grid,), (block,), args, device=device, **launch)
    assert not report.findings, str(report)
    return report


def ramp(dtype, count=LANES):
    return np.arange(count, dtype=dtype)


def words(dtype=np.uint32, count=LANES):
    """Numbers of all magnitudes, 0 and the largest among them."""
    rng = np.random.default_rng(7)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    x[: count // 2] >>= rng.integers(0, info.bits, count // 2).astype(dtype)
    x[:3] = 0, info.max, info.min
    return x

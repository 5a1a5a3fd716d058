"""Defects around loops that run as machine code: each is found, at its line, in the words of lane code."""

import numpy as np
import pytest
from same_bits import same_bits

import refsim
from refsim.devices import device_named

BLOCKS, THREADS = 3, 64

HEADER = """
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(const float* x, float* out, int n) {
  __shared__ float s[80];
  __shared__ float stage[2][64];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  float a = 0;
  s[t] = x[i]; if (t < 16) s[t + 64] = 1;
  stage[0][t] = x[i]; stage[1][t] = 2 * x[i];
  __syncthreads();
"""
LOOP = "for (int k = 0; k < 16; ++k) a += s[k] * s[t + k];"

BODIES = {
    "none": (LOOP, set()),
    "write before, without barrier": (f"s[t] = a + 1;\n{LOOP}", {"race"}),
    "write before, with a barrier": (f"s[t] = a + 1;\n__syncthreads();\n{LOOP}", set()),
    "write after, without barrier": (f"{LOOP}\ns[t] = a;", {"race"}),
    "write after, with a barrier": (f"{LOOP}\n__syncthreads();\ns[t] = a;", set()),
    "write after by one thread": (f"{LOOP}\nif (t == 9) s[17] = a;", {"race"}),
    "write of the cell that only the writer reads": ("for (int k = 0; k < 16; ++k) a += s[t];\ns[t] = a;", set()),
    "write after many reads": (
        "for (int k = 0; k < 64; ++k) a += s[k] + s[63 - k] + s[t] * s[k] * s[k];\nif (t == 40) s[12] = a;", {"race"},
    ),
    "write after many loops": (
        "for (int j = 0; j < 40; ++j)\nfor (int k = 0; k < 64; ++k) a += s[k];\nif (t == 3) s[3] = a;", {"race"},
    ),
    "atomic operation after": (f"{LOOP}\natomicAdd(&s[5], a);", {"race"}),
    "buffer filled again without barrier": (
        f"for (int r = 0; r < 3; ++r) {{\n__syncthreads();\n{LOOP}\ns[t] = a;\n}}", {"race"},
    ),
    "buffer filled again with a barrier": (
        f"for (int r = 0; r < 3; ++r) {{\n{LOOP}\n__syncthreads();\ns[t] = a;\n__syncthreads();\n}}", set(),
    ),
    "past the end in the last trip": ("for (int k = 0; k <= 17; ++k) a += s[t + k];", {"out_of_bounds"}),
    "past the end in the last trip of a few threads": (
        "for (int k = 0; k < 81 - (t & 1); ++k) a += s[k] * 0.5f;", {"out_of_bounds"},
    ),
    "before the beginning in the last trip": ("for (int k = 15; k >= -1; --k) a += s[k];", {"out_of_bounds"}),
    "an index that overflows": ("for (int k = 0; k < 5; ++k) a += s[k * 536870912 * n];", {"out_of_bounds"}),
    "cells that nobody wrote": (
        "__shared__ float u[80];\nu[t] = a;\n__syncthreads();\nfor (int k = 0; k < 80; ++k) a += u[k];",
        {"uninitialized_read"},
    ),
    "cells that nobody wrote and nobody reads": (
        "__shared__ float u[80];\nu[t] = a;\n__syncthreads();\nfor (int k = 0; k < 64; ++k) a += u[k];", set(),
    ),
    "copy in flight": (
        "__pipeline_memcpy_async(&s[t], x + i, 4);\n__pipeline_commit();\n"
        f"{LOOP}\n__pipeline_wait_prior(0);", {"race"},
    ),
    "copy into the other half": (
        "__pipeline_memcpy_async(&stage[1][t], x + i, 4);\n__pipeline_commit();\n"
        "for (int k = 0; k < 64; ++k) a += stage[0][k];\n__pipeline_wait_prior(0);\n__syncthreads();\n"
        "for (int k = 0; k < 64; ++k) a += stage[1][k];", set(),
    ),
    "copy waited for, without barrier": (
        "__pipeline_memcpy_async(&s[t], x + i, 4);\n__pipeline_commit();\n__pipeline_wait_prior(0);\n"
        f"{LOOP}", {"race"},
    ),
    "a warp's barrier where the block must meet": (f"{LOOP}\n__syncwarp();\ns[t] = a;", {"race"}),
    "a warp's barrier for a warp's cells": (
        "for (int k = 0; k < 8; ++k) a += s[t / 32 * 32 + k];\n__syncwarp();\ns[t] = a;", set(),
    ),
    "warps apart": (f"if (t < 32) {{\n{LOOP}\n}} else s[t] = 3;", {"race"}),
    "blocks apart": (f"if (blockIdx.x == 1) {{\n{LOOP}\n}}\ns[t] = 3;", {"race"}),
    "threads that left": (f"if (t >= 32) return;\n{LOOP}\n__syncthreads();\ns[t] = a;", set()),
    "barrier that some do not reach": (f"if (t < 32) {{\n{LOOP}\n__syncthreads();\n}}", {"barrier_divergence"}),
    "same value after": (f"{LOOP}\ns[9] = 1.5f;", {"race"}),
    "a global array that another block writes": (
        "for (int k = 0; k < 8; ++k) a += out[k * 8];", {"race", "uninitialized_read"},
    ),
}  # fmt: skip

UNSETTLED = {  # clean, but a check must look at each read
    "cells that nobody wrote and nobody reads",
    "copy into the other half",
    "a warp's barrier for a warp's cells",
}


@pytest.mark.parametrize("options", [{}, {"lanes_per_batch": 1}, {"checks": "racecheck"}, {"lanes": "warp"}], ids=str)
@pytest.mark.parametrize("name", BODIES)
def test_findings_are_those_of_lane_code(name, options):
    body, kinds = BODIES[name]
    kernel = refsim.RawKernel(f"{HEADER}\n{body}\nout[i] = a;\n}}", "kernel")
    x = np.random.default_rng(0).normal(size=BLOCKS * THREADS).astype(np.float32)
    reports, results = [], []
    for native in ("never", "always"):
        out = refsim.empty(x.size, np.float32)
        reports.append(refsim.launch(kernel, BLOCKS, THREADS, x, out, 1, native=native, **options))
        results.append(np.array(out))
    never, always = reports
    assert str(always) == str(never)
    assert repr(always.findings) == repr(never.findings)
    assert same_bits(*results)
    found = {finding.kind for finding in always.findings}
    if not options:
        assert found == kinds
    elif "checks" in options:
        assert found == kinds & {"race"}
    if not kinds and name not in UNSETTLED and "lanes" not in options:
        loops = kernel.lane_code((x, out, 1), device_named("sim:sm_90")).native_loops
        assert any(loop.variants for loop in loops)

"""Explicit signatures of Numba kernels, and arrays that a GPU would misread under them."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import numpy as np
from numba import cuda

@cuda.jit("void(float32[:])")
def float_kernel(x):
    x[cuda.threadIdx.x] += 1

@cuda.jit("void(uint32[:])")
def word_kernel(x):
    x[cuda.threadIdx.x] += x[cuda.threadIdx.x] // 2

for array in (np.zeros(4), np.zeros(4, np.int32), np.zeros((4, 1), np.float32)):
    try:
        float_kernel[1, 4](array)
    except TypeError as error:
        print(error)
x = np.zeros(4, np.float32)
float_kernel[1, 4](x)
words = np.full(4, -2, np.int32)
word_kernel[1, 4](words)
print(x, words)
"""


def test_an_array_that_the_signature_does_not_describe(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "refsim", "run", str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second, third, values = done.stdout.splitlines()
    declared = "the signature declares 1-dimensional arrays of float32, and the array given has "
    assert first == (
        f"{declared}1 dimension and dtype float64: a GPU would misread its memory; "
        "pass x.astype('float32') or change the signature"
    )
    assert second.startswith(f"{declared}1 dimension and dtype int32")
    assert third.startswith(f"{declared}2 dimensions and dtype float32")
    # 0xfffffffe + 0x7fffffff wraps to 0x7ffffffd
    assert values == "[1. 1. 1. 1.] [2147483645 2147483645 2147483645 2147483645]"

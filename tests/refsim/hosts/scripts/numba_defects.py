"""Three launches of a kernel with a race and an access out of bounds, and one that reads what nobody wrote."""

import numpy as np
from numba import cuda, float32


@cuda.jit
def rotate(x, out):
    cells = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    cells[i] = x[i]
    out[i] = cells[(i + 1) % 64]  # race
    if i == 63:
        out[i + 1] = 0  # out of bounds


@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    out[i] = x[i]  # uninitialised


x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
for _ in range(3):
    rotate[1, 64](x, out)
copy[1, 64](cuda.device_array(64, np.float32), out)
print("done")

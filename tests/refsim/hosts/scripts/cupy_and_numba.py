"""One array, two libraries: what either hands to the other is the same memory."""

import cupy as cp
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


x = cp.arange(8, dtype=cp.float32)
double[1, 8](x)
double[1, 8](x[4:])
assert x.tolist() == [0, 2, 4, 6, 16, 20, 24, 28]

device = cuda.to_device(x.get())
y = cp.asarray(device)
y += 1
assert device.copy_to_host().tolist() == [1, 3, 5, 7, 17, 21, 25, 29]
add = cp.RawKernel(
    'extern "C" __global__ void add(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }', "add"
)
add((1,), (8,), (device, x))
assert cuda.as_cuda_array(y)[7] == 57

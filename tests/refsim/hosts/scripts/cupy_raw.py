"""Raw kernels and modules: pointers, scalars, structures, templates, complex numbers, dynamic shared memory."""

import cupy as cp
import numpy as np

LARGE = 60 * 1024

add = cp.RawKernel(
    r"""
extern "C" __global__ void add(const float* a, const float* b, float* out, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
""",
    "add",
)
a = cp.arange(25, dtype=cp.float32).reshape(5, 5)
out = cp.empty((5, 5), dtype=cp.float32)
add((2,), (16,), (a, a, out, 25))
assert (out == 2 * a).all()

rotate = cp.RawKernel(
    r"""
#include <cupy/complex.cuh>
extern "C" __global__ void rotate(const complex<float>* x, complex<float>* y, complex<float> by, float scale) {
  int i = threadIdx.x;
  y[i] = scale * (x[i] * by);
}
""",
    "rotate",
)
x = cp.arange(8).astype(cp.complex64)
y = cp.zeros(8, cp.complex64)
rotate((1,), (8,), (x, y, np.complex64(1j), cp.float32(2)))
assert y.tolist() == [2j * i for i in range(8)]

module = cp.RawModule(
    code=r"""
template <typename T, int N> __global__ void fill(T* x, T value) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = value * N;
}
struct Line { float slope; int start; };
extern "C" __global__ void draw(Line line, float* y) { y[threadIdx.x] = line.slope * threadIdx.x + line.start; }
extern "C" __global__ void reverse(float* x) {
  extern __shared__ float cells[];
  cells[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = cells[blockDim.x - 1 - threadIdx.x];
}
""",
    options=("-std=c++17",),
    name_expressions=("fill<float, 2>", "fill<double, 3>"),
)
doubles = cp.zeros(8)
module.get_function("fill<double, 3>")((2,), (4,), (doubles, 1.5))
assert doubles.tolist() == [4.5] * 8
line = np.array([(0.5, 7)], dtype=[("slope", np.float32), ("start", np.int32)])
drawn = cp.zeros(4, cp.float32)
module.get_function("draw")((1,), (4,), (line, drawn))
assert drawn.tolist() == [7, 7.5, 8, 8.5]

reverse = module.get_function("reverse")
reverse((1,), (4,), (drawn,), shared_mem=16, stream=cp.cuda.Stream.null)
assert drawn.tolist() == [8.5, 8, 7.5, 7]
many = cp.zeros(64, cp.float32)
try:
    reverse((1,), (64,), (many,), shared_mem=LARGE)
except RuntimeError as error:
    assert "max_dynamic_shared_size_bytes" in str(error)  # noqa: PT017  a script, not a test
else:
    assert cp.cuda.runtime.is_hip, "more shared memory than a kernel has without asking"
reverse.max_dynamic_shared_size_bytes = LARGE
reverse((1,), (64,), (many,), shared_mem=LARGE)
for wrong in ((np.zeros(4, np.float32),), (drawn, 3)):
    try:
        reverse((1,), (4,), wrong, shared_mem=16)
    except TypeError:
        pass
    else:
        raise AssertionError(f"{wrong} was accepted")

# variables of a module, and memory by address
module = cp.RawModule(
    code=r"""
extern "C" {
__constant__ float weights[4];
__device__ int calls;
__global__ void weigh(float* x) {
  x[threadIdx.x] *= weights[threadIdx.x];
  if (threadIdx.x == 0) calls += 1;
}
}
"""
)
weights = cp.ndarray((2, 2), cp.float32, module.get_global("weights"))
weights[...] = cp.asarray([[1, 2], [3, 4]])
weigh = module.get_function("weigh")
ones = cp.ones(8, cp.float32)
for part in (ones[:4], ones[4:]):
    weigh((1,), (4,), (part,))
assert ones.tolist() == [1, 2, 3, 4] * 2
assert cp.ndarray((1,), cp.int32, module.get_global("calls")).tolist() == [2]
memory = cp.cuda.alloc(32)
memory.memset(0, 32)
placed = cp.ndarray((4,), cp.float32, memory + 16)
weigh((1,), (4,), (placed,))
assert placed.tolist() == [0, 0, 0, 0]
assert placed.data.ptr == memory.ptr + 16
memory.copy_from_device(ones.data + 12, 8)
assert cp.ndarray((2,), cp.float32, memory).tolist() == [4, 1]
assert cp.ndarray((2,), cp.float32, ones.data, strides=(16,)).tolist() == [1, 1]

"""A race in a raw kernel, and an element-wise kernel that reads what nobody wrote."""

import cupy as cp

rotate = cp.RawKernel(
    r"""
extern "C" __global__ void rotate(const float* x, float* out) {
  __shared__ float cells[64];
  int i = threadIdx.x;
  cells[i] = x[i];
  out[i] = cells[(i + 1) % 64];  // race
}
""",
    "rotate",
)
x = cp.arange(64, dtype=cp.float32)
for _ in range(2):
    rotate((1,), (64,), (x, cp.empty_like(x)))
more = cp.ElementwiseKernel("T x", "T y", "y = x + 1", "more")
more(cp.empty(4, cp.float32))

"""A race in a raw kernel; kernels from definitions that read what nobody wrote, and past the end."""

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
last = cp.ReductionKernel("T x, raw T w", "T y", "x * w[i + 1]", "a + b", "y = a", "0", "last")
last(x, x)
next_ = cp.ElementwiseKernel("raw T x", "T y", "y = x[i" + " + 1]", "next")
next_(x, cp.empty_like(x))

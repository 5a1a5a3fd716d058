"""Reduction kernels as CuPy's guide describes them."""

import cupy as cp
import numpy as np

norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
x = cp.arange(10, dtype=np.float32).reshape(2, 5)
cp.testing.assert_allclose(norm(x, axis=1), np.sqrt([30, 255]), rtol=1e-6)
cp.testing.assert_allclose(norm(x), np.sqrt(285), rtol=1e-6)
assert norm(x, axis=0, keepdims=True).shape == (1, 5)
assert norm(x, axis=(0, 1)).shape == ()
out = cp.zeros(5, np.float32)
assert norm(x, axis=0, out=out) is out
assert out[0] == 5
assert norm(x, out, axis=0) is out

total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
values = cp.random.RandomState(0).randint(-50, 50, (3, 40, 70))
for axis in (None, 0, 1, 2, (0, 2), (1, 2), (0, 1), -1):
    assert (total(values, axis=axis) == values.sum(axis=axis)).all(), axis
    assert (total(values.transpose(2, 0, 1), axis=axis) == values.transpose(2, 0, 1).sum(axis=axis)).all(), axis
assert total(cp.zeros((0, 3), np.float32), axis=0).tolist() == [0, 0, 0]

dot = cp.ReductionKernel("T x, T y", "float64 z", "(double)x * y", "a + b", "z = a", "0", "dot", reduce_type="double")
assert dot(x, x).dtype == np.float64
assert dot(x, 2) == 90
weighted = cp.ReductionKernel("T x, raw T w", "T y", "x * w[i]", "a + b", "y = a", "0", "weighted")
assert weighted(x[0], x[1]) == (x[0] * x[1]).sum()
largest = cp.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", "-1000000", "largest", preamble="#define B 1")
assert largest(x, axis=1).tolist() == [4, 9]

place = cp.ReductionKernel(
    "T x", "int64 y", "Best(x, _j)", "better(a, b)", "y = a.place", "Best(-1e30f, -1)", "place", reduce_type="Best",
    preamble="""
    struct Best {
      float value; long long place;
      __device__ Best() : value(0), place(0) {}
      __device__ Best(float v, long long p) : value(v), place(p) {}
    };
    __device__ Best better(Best a, Best b) { return a.value >= b.value ? a : b; }
    """,
)  # fmt: skip
assert place(cp.asarray([1, 5, 2], dtype=cp.float32)) == 1
nothing = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", None, "nothing")
for wrong, kind in ((lambda: nothing(cp.zeros((0, 2), np.float32), axis=0), ValueError),
                    (lambda: total(x, axis=2), ValueError), (lambda: total(x, axis=(0, 0)), ValueError),
                    (lambda: total(x, x), ValueError), (lambda: total(), TypeError),
                    (lambda: weighted(x, x, axis=1), NotImplementedError)):  # fmt: skip
    try:
        wrong()
    except kind:
        pass
    else:
        raise AssertionError("not refused")

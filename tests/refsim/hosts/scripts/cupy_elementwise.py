"""Element-wise kernels as CuPy's guide describes them."""

import cupy as cp
import numpy as np

distance = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "distance")
x = cp.arange(10, dtype=np.float32).reshape(2, 5)
y = cp.arange(5, dtype=np.float32)
assert distance(x, y).tolist() == [[0] * 5, [25] * 5]
assert distance(x, 5).tolist() == ((x - 5) ** 2).tolist()
z = cp.empty((2, 5), dtype=np.float32)
assert distance(x, y, z) is z
assert z.tolist() == [[0] * 5, [25] * 5]
assert distance(x.T, 0).tolist() == (x.T * x.T).tolist()
distance(x.T, 0, z.T)
assert z.tolist() == (x * x).tolist()

square = cp.ElementwiseKernel("T x", "T y", "T once = x; y = once * once", "square")
for dtype in ("int8", "uint16", "int64", "float16", "float64", "complex64"):
    values = cp.arange(7).astype(dtype)
    result = square(values)
    assert result.dtype == dtype
    assert result.tolist() == (values * values).tolist(), dtype

convert = cp.ElementwiseKernel("X x, Y y", "Z z", "z = x + y", "convert")
whole = cp.zeros(5, dtype=cp.int32)
convert(y + 0.75, cp.ones(5), whole)
assert whole.tolist() == [1, 2, 3, 4, 5]
for arguments, text in (((y, y), "type 'Z'"), ((y, y, y, y), "Wrong number")):
    try:
        convert(*arguments)
    except TypeError as error:
        assert text in str(error), error  # noqa: PT017  a script, not a test
    else:
        raise AssertionError(text)
for wrong in ((cp.zeros(2), 1), (np.zeros(2, np.float32), 1), (x, y, cp.zeros((2, 5)))):
    try:
        distance(*wrong)
    except TypeError:
        pass
    else:
        raise AssertionError(f"{wrong} was accepted")

backwards = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "backwards")
assert backwards(y, y).tolist() == [4] * 5
column = cp.ElementwiseKernel(
    "raw T x, int32 column", "T y, int64 rows", "ptrdiff_t at[] = {i, column}; y = x[at]; rows = x.shape()[0]", "column"
)
picked, rows = column(x, 3, cp.zeros(2, np.float32), cp.zeros(2, np.int64))
assert picked.tolist() == [3, 8]
assert rows.tolist() == [2, 2]
picked, _ = column(x.T, 1, cp.zeros(5, np.float32), cp.zeros(5, np.int64))
assert picked.tolist() == [5, 6, 7, 8, 9]

everywhere = cp.ElementwiseKernel(
    "raw T x", "raw T y", "y[i] = x[x.size() - 1 - i] + ONE", "everywhere",
    preamble="#define ONE 1", loop_prep="int visited = 0", after_loop="(void)visited",
)  # fmt: skip
reversed_ = cp.zeros(5, np.float32)
everywhere(y, reversed_, size=5)
assert reversed_.tolist() == [5, 4, 3, 2, 1]
for call in (lambda: everywhere(y, reversed_), lambda: backwards(y, y, size=5)):
    try:
        call()
    except ValueError:
        pass
    else:
        raise AssertionError("the size of the loop was not checked")

gather = cp.ElementwiseKernel(
    "S value, int32 group", "raw U sums, raw U counts",
    """
    int at[] = {group, i % 5};
    atomicAdd(&sums[at], value);
    atomicAdd(&counts[0], 1);
    """,
    "gather",
)  # fmt: skip
sums, counts = cp.zeros((3, 5), np.float64), cp.zeros(1, np.float64)
gather(x.astype(np.float64), 1, sums, counts)
assert sums.tolist() == [[0] * 5, [5, 7, 9, 11, 13], [0] * 5]
assert counts[0] == 10

place = cp.ElementwiseKernel("T x", "int32 row, int32 col", "row = _ind.get()[0]; col = _ind.get()[1]", "place")
row, col = place(x)
assert row.tolist() == [[0] * 5, [1] * 5]
assert col.tolist() == [[0, 1, 2, 3, 4]] * 2
assert square(cp.zeros(0, np.float32)).shape == (0,)
large = cp.arange(3000, dtype=cp.int32)
assert (square(large) == large * large).all()

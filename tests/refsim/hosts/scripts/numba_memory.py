"""Every kind of memory, and what device arrays can do."""

import numpy as np
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


@cuda.jit
def copy(source, target):
    i = cuda.grid(1)
    if i < source.size:
        target[i] = source[i]


host = np.arange(6, dtype=np.float64)
kept = cuda.to_device(host)
double[1, 32](kept)
assert host[1] == 1  # a copy
np.testing.assert_array_equal(kept.copy_to_host(), 2 * host)

double[1, 32](cuda.In(host))
assert host[1] == 1
double[1, 32](cuda.InOut(host))
assert host[1] == 2
target = np.zeros(6)
copy[1, 32](cuda.In(host), cuda.Out(target))
np.testing.assert_array_equal(target, host)

for make in (cuda.mapped_array, cuda.managed_array, cuda.pinned_array):
    shared = make(6, np.float64)
    shared[:] = 1
    double[1, 32](shared)
    assert (shared == 2).all(), make
like = cuda.mapped_array_like(host)
assert like.shape == (6,)
assert cuda.is_cuda_array(like)

matrix = cuda.to_device(np.arange(12).reshape(3, 4))
assert matrix.shape == (3, 4)
assert matrix.ndim == 2
assert matrix.size == 12
assert len(matrix) == 3
assert matrix[1, 2] == 6
assert matrix.T.shape == (4, 3)
assert matrix.is_c_contiguous()
assert matrix.T.is_c_contiguous()  # numba's transpose is a copy
row = matrix[2]
row[:] = np.zeros(4, np.int64)
matrix[0, 1:3] = 9
assert matrix.copy_to_host().tolist() == [[0, 9, 9, 3], [4, 5, 6, 7], [0, 0, 0, 0]]
assert matrix.reshape(12).ravel().view(np.uint64).dtype == np.uint64
assert [part.size for part in matrix.ravel().split(5)] == [5, 5, 2]
assert np.asarray(matrix).sum() == matrix.copy_to_host().sum()

for wrong, kind in ((np.zeros((3, 4)), TypeError), (np.zeros((4, 3), np.int64), ValueError)):
    try:
        matrix.copy_to_device(wrong)
    except kind:
        pass
    else:
        raise AssertionError("copied from another shape or dtype")
try:
    matrix + 1
except TypeError:
    pass
else:
    raise AssertionError("a device array has no arithmetic")


class Wrapper:
    """An array of a third library."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


foreign = Wrapper(kept[1:5])
double[1, 32](foreign)
assert kept.copy_to_host().tolist() == [0, 4, 8, 12, 16, 10]
assert cuda.as_cuda_array(foreign).copy_to_host().tolist() == [4, 8, 12, 16]

total = cuda.reduce(lambda a, b: a + b)
assert total(kept) == 50
assert total(host[:3], init=1) == 1 + host[:3].sum()


@cuda.reduce
def largest(a, b):
    return a if a > b else b


result = cuda.device_array(1, np.float64)
assert largest(kept, res=result) is None
assert result[0] == 16

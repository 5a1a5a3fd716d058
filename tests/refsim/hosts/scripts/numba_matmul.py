"""A tiled product of matrices in shared memory, with a signature that casts its scalar, against NumPy."""

import numpy as np
from numba import cuda, float32, float64, int32, void

TILE = 8


@cuda.jit(void(float32[:, :], float32[:, :], float32[:, :], float32))
def scaled_product(a, b, out, factor):
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for step in range(a.shape[1] // TILE):
        tile_a[y, x] = a[row, step * TILE + x]
        tile_b[y, x] = b[step * TILE + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    out[row, column] = factor * total


@cuda.jit(["(int32[:], int32)", (float64[:], float64)])
def shift(x, by):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += by


a = np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)
b = np.random.default_rng(1).standard_normal((32, 24)).astype(np.float32)
out = cuda.device_array((16, 24), np.float32)
scaled_product[(3, 2), (TILE, TILE)](cuda.to_device(a), cuda.to_device(b), out, 2)
np.testing.assert_allclose(out.copy_to_host(), 2 * (a @ b), rtol=1e-5)

integers, floats = np.zeros(4, np.int32), np.zeros(4)
try:
    shift[1, 4](integers, 2.75)
except TypeError:  # no signature has (int32[:], float64), and numba passes no float for an integer
    pass
else:
    raise AssertionError("a float was passed for an integer")
shift[1, 4](integers, 2)
shift[1, 4](floats, 3)
assert integers.tolist() == [2] * 4
assert floats.tolist() == [3.0] * 4
for wrong in (np.zeros(4, np.float32), np.zeros((4, 4))):
    try:
        shift[1, 4](wrong, 1)
    except TypeError as error:
        assert "No matching definition for argument type(s) array(" in str(error), error  # noqa: PT017  a script, not a test
    else:
        raise AssertionError("an array of another type was accepted")
assert scaled_product.specialized
assert int32(3.7) == 3

"""Attributes, methods, slices, iteration and reductions of arrays in kernels, against NumPy."""

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda

import refsim
from refsim.errors import KernelTypeError, UnsupportedError


@cuda.jit
def attributes(x, out):
    out[0], out[1], out[2], out[3] = x.size, x.nbytes, x.ndim, x.itemsize
    out[4], out[5], out[6] = x.strides[0], x.strides[1], len(x)
    out[7], out[8] = x.T.shape[0], x.T[2, 1]


@pytest.mark.parametrize("order", ["C", "F"])
def test_attributes(order):
    x = np.asarray(np.arange(12, dtype=np.int16).reshape(3, 4), order=order)
    out = np.zeros(9)
    launch_clean(attributes, 1, 1, x, out)
    expected = [x.size, x.nbytes, x.ndim, x.itemsize, *x.strides, len(x), x.T.shape[0], x.T[2, 1]]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def rearranged(x, out):
    out[0], out[1] = x.reshape(6, 2)[4, 1], x.reshape((2, -1))[1, 3]
    out[2], out[3] = x.ravel()[7], np.reshape(x, (12,))[5]
    out[4], out[5] = np.transpose(x)[1, 2], x.transpose(1, 0)[3, 0]
    out[6], out[7] = x[..., 2][1], x[1, ...][-1]
    out[8] = x[::-1, ::2][0, 1]


def test_rearranged_arrays():
    x, out = np.arange(12.0).reshape(3, 4), np.zeros(9)
    launch_clean(rearranged, 1, 1, x, out)
    expected = [
        x.reshape(6, 2)[4, 1], x.reshape(2, -1)[1, 3], x.ravel()[7], x.reshape(12)[5], x.T[1, 2], x.T[3, 0],
        x[..., 2][1], x[1, ...][-1], x[::-1, ::2][0, 1],
    ]  # fmt: skip
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def bits(raw, start, wide, out):
    i = cuda.threadIdx.x
    out[i] = raw[start + 4 * i : start + 4 * i + 4].view(np.int32)[0]
    out[i] += wide.view(np.uint8)[i]


def test_bytes_seen_as_another_type():
    raw = np.arange(64, dtype=np.uint8)
    wide = np.arange(4, dtype=np.uint32) * 0x01020304
    out = np.zeros(8, np.int64)
    launch_clean(bits, 1, 8, raw, 6, wide, out)
    np.testing.assert_array_equal(out, raw[6:38].view(np.int32).astype(np.int64) + wide.view(np.uint8)[:8])


@cuda.jit
def parts(z, out):
    i = cuda.grid(1)
    cuda.atomic.add(z.real, i, 1)
    z.imag[i] = 2 * z.imag[i]
    out[i] = z[::-1].imag[i]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_parts_of_a_complex_array(dtype):
    z = (np.arange(8) + 3j).astype(dtype)[::2]
    out, expected = np.zeros(4), z.real + 1 + 2j * z.imag
    launch_clean(parts, 4, 1, z, out, checks=["memcheck", "initcheck"])
    np.testing.assert_array_equal(z, expected)


@cuda.jit
def race_on_a_part(z):
    z.imag[0] = cuda.threadIdx.x


@cuda.jit
def one_part_each(z):
    if cuda.threadIdx.x:
        z.imag[0] = 1
    else:
        z.real[0] = 1


def test_parts_are_checked_apart():
    assert [f.kind for f in refsim.launch(race_on_a_part, 1, 2, np.zeros(2, np.complex64)).findings] == ["race"]
    launch_clean(one_part_each, 1, 2, np.zeros(2, np.complex64))


@cuda.jit
def scattered(x, out):
    out[0] = x[:, ::2].reshape(6)[0]


def test_only_contiguous_arrays_are_reshaped():
    with pytest.raises(UnsupportedError, match="not contiguous"):
        refsim.launch(scattered, 1, 1, np.zeros((3, 4)), np.zeros(1))


@cuda.jit
def slices(a, b, scalar):
    i = cuda.threadIdx.x
    a[i, :] = b
    a[i, 1::2] = scalar
    a[i, ::2] += i
    a[i, :2] *= b[:2]


def test_assignment_to_slices():
    a, b = np.zeros((3, 4)), np.arange(4.0) + 1
    expected = a.copy()
    for i in range(3):
        expected[i, :] = b
        expected[i, 1::2] = 9
        expected[i, ::2] += i
        expected[i, :2] *= b[:2]
    launch_clean(slices, 1, 3, a, b, 9)
    np.testing.assert_array_equal(a, expected)


@cuda.jit
def fill(a, b):
    a[:] = b


def test_a_slice_takes_an_array_of_its_own_shape():
    assert refsim.launch(fill, 1, 1, np.zeros(4), np.zeros(3)).findings[0].kind == "assertion"
    a = np.zeros((2, 3))
    launch_clean(fill, 1, 1, a, np.arange(3.0))
    np.testing.assert_array_equal(a, [[0, 1, 2]] * 2)


@cuda.jit
def iteration(x, y, out):
    for i, (a, b) in enumerate(zip(x, y), 1):
        out[0] += i * a * b
    for row in y.reshape(2, 2):
        out[1] = out[1] * 3 + row[1]
    for v in reversed(range(2, 9, 3)):
        out[2] = out[2] * 10 + v
    for v in y.reshape(2, 2).T.flat:
        out[3] = out[3] * 2 + v
    for i, j in np.ndindex(2, 3):
        out[4] += 10 * i + j
    for v in np.nditer(y):
        out[5] += v.item()
    for (i, j), v in np.ndenumerate(y.reshape(2, 2)):
        out[6] += (i + 2 * j) * v
    for v in y.reshape(2, 2):
        for w in v:
            out[7] += w
    for a, k in zip(x, range(5, 0, -2)):
        out[8] += a * k
    for a in x[::-1]:
        if a < 2:
            break
    else:
        out[9] = 1
    out[9] += a


def test_iteration():
    x, y, out = np.arange(4.0), np.arange(4.0) + 1, np.zeros(10)
    launch_clean(iteration, 1, 1, x, y, out)
    square = y.reshape(2, 2)
    expected = [
        sum(i * a * b for i, (a, b) in enumerate(zip(x, y, strict=True), 1)), 2 * 3 + 4, 852,
        ((1 * 2 + 3) * 2 + 2) * 2 + 4, sum(10 * i + j for i, j in np.ndindex(2, 3)), y.sum(),
        sum((i + 2 * j) * v for (i, j), v in np.ndenumerate(square)), y.sum(), 0 * 5 + 1 * 3 + 2 * 1, 1,
    ]  # fmt: skip
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def reductions(x, out):
    out[0], out[1], out[2], out[3] = x.sum(), x.prod(), x.mean(), x.min()
    out[4], out[5], out[6], out[7] = np.max(x), x.argmin(), np.argmax(x), np.var(x)
    out[8], out[9], out[10], out[11] = x.std(), np.all(x), x.any(), np.count_nonzero(x)
    out[12], out[13], out[14], out[15] = np.nansum(x), np.nanmin(x), np.nanmax(x), np.nanmean(x)
    out[16] = np.ptp(x)


def plain_reductions(x):
    with np.errstate(all="ignore"):
        return [
            x.sum(), x.prod(), x.mean(), x.min(), x.max(), x.argmin(), x.argmax(), x.var(), x.std(), x.all(), x.any(),
            np.count_nonzero(x), np.nansum(x), np.nanmin(x), np.nanmax(x), np.nanmean(x), np.ptp(x),
        ]  # fmt: skip


@pytest.mark.parametrize(
    "x",
    [
        np.array([2.0, -1.0, 4.5, 0.5]), np.array([3.0, np.nan, 1.0]), np.array([0.0, -0.0, 0.0]),
        np.arange(6, dtype=np.int32).reshape(2, 3) - 2, np.array([[200, 100], [7, 9]], np.uint8),
        np.array([0.1, 0.2, 0.7], np.float32), np.arange(12.0).reshape(3, 4)[::2, 1::2],
    ],
    ids=["float64", "nan", "zeros", "int32", "uint8", "float32", "strided"],
)  # fmt: skip
def test_reductions(x):
    out = np.zeros(17)
    launch_clean(reductions, 1, 1, x, out)
    tolerance = 1e-6 if x.dtype == np.float32 else 1e-15
    np.testing.assert_allclose(out, np.array(plain_reductions(x), np.float64), rtol=tolerance)


@cuda.jit
def allocates(x, out):
    y = np.zeros(3)
    out[0] = y[0]


@cuda.jit
def adds_arrays(x, out):
    y = x + x
    out[0] = y[0]


def test_new_arrays_are_refused_with_the_reason():
    with pytest.raises(UnsupportedError, match=r"memory management.*cuda.local.array"):
        refsim.launch(allocates, 1, 1, np.zeros(3), np.zeros(1))
    with pytest.raises(KernelTypeError, match="whole arrays"):
        refsim.launch(adds_arrays, 1, 1, np.zeros(3), np.zeros(1))


@cuda.jit
def walrus(out):
    total = 0
    while (step := total * 2 + 1) < 20:
        total += step
    out[0], out[1] = total, step


def test_assignment_within_an_expression():
    out = np.zeros(2)
    launch_clean(walrus, 1, 1, out)
    assert out.tolist() == [13, 27]

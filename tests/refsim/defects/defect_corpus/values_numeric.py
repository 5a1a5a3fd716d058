"""Wrong results of the arithmetic: a wrong start value, too narrow an accumulator, a missing rescale."""

import math

import numpy as np
from numba import cuda, float32

from .inputs import ramp
from .record import Launch, defect

THREADS = 64
COLUMNS = 48


def softmax(x):
    weights = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@defect
class RowMaximumStartedAtZero:
    """A row of negative numbers has no element as large as 0."""

    launch = Launch(1, 8)

    def arguments():
        return ramp(8, 5) - 50, np.zeros(8, np.float32)

    def expected(x, out):
        return {1: x.max(axis=1)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        largest = float32(0.0)  #! value
        for j in range(x.shape[1]):
            largest = max(largest, x[row, j])
        out[row] = largest

    def right(x, out):
        row = cuda.threadIdx.x
        largest = float32(-math.inf)
        for j in range(x.shape[1]):
            largest = max(largest, x[row, j])
        out[row] = largest


@defect
class AccumulationInFloat16:
    """float16 stops counting at 2,048: inputs may be narrow, the sum may not."""

    launch = Launch(1, 4)

    def arguments():
        return np.ones((4, 3000), np.float16), np.zeros(4, np.float32)

    def expected(x, out):
        return {1: np.full(4, 3000, np.float32)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        total = np.float16(0.0)
        for j in range(x.shape[1]):
            total = np.float16(total + x[row, j])  #! value
        out[row] = total

    def right(x, out):
        row = cuda.threadIdx.x
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += float32(x[row, j])
        out[row] = total


@defect
class SoftmaxWithoutMaximum:
    """exp(100) is infinite in float32."""

    launch = Launch(1, 4)
    rtol = 1e-5

    def arguments():
        return 100 + ramp(4, 6), np.zeros((4, 6), np.float32)

    def expected(x, out):
        return {1: softmax(x)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += math.exp(x[row, j])  #! value
        for j in range(x.shape[1]):
            out[row, j] = math.exp(x[row, j]) / total  #! value

    def right(x, out):
        row = cuda.threadIdx.x
        largest = x[row, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[row, j])
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += math.exp(x[row, j] - largest)
        for j in range(x.shape[1]):
            out[row, j] = math.exp(x[row, j] - largest) / total


@defect
class OnlineSoftmaxWithoutRescale:
    """When a new maximum appears, what was summed before must be scaled down."""

    launch = Launch(1, 4)
    rtol = 1e-5

    def arguments():
        return (ramp(4, COLUMNS) * 17) % 29 / 4, np.zeros((4, COLUMNS), np.float32)

    def expected(x, out):
        return {1: softmax(x)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        largest = float32(-math.inf)
        total = float32(0.0)
        for j in range(x.shape[1]):
            above = max(largest, x[row, j])
            total = total + math.exp(x[row, j] - above)  #! value
            largest = above
        for j in range(x.shape[1]):
            out[row, j] = math.exp(x[row, j] - largest) / total

    def right(x, out):
        row = cuda.threadIdx.x
        largest = float32(-math.inf)
        total = float32(0.0)
        for j in range(x.shape[1]):
            above = max(largest, x[row, j])
            total = total * math.exp(largest - above) + math.exp(x[row, j] - above)
            largest = above
        for j in range(x.shape[1]):
            out[row, j] = math.exp(x[row, j] - largest) / total


@defect
class LogSumExpWithoutMaximum:
    """The shift by the maximum has to be added back."""

    launch = Launch(1, 4)
    rtol = 1e-5

    def arguments():
        return ramp(4, 10) / 3, np.zeros(4, np.float32)

    def expected(x, out):
        return {1: np.log(np.exp(x.astype(np.float64)).sum(axis=1))}

    def wrong(x, out):
        row = cuda.threadIdx.x
        largest = x[row, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[row, j])
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += math.exp(x[row, j] - largest)
        out[row] = math.log(total)  #! value

    def right(x, out):
        row = cuda.threadIdx.x
        largest = x[row, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[row, j])
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += math.exp(x[row, j] - largest)
        out[row] = math.log(total) + largest


@defect
class MeanOverThePaddedWidth:
    """The mean divides by the width of the block, not of the row."""

    launch = Launch(3, THREADS)
    rtol = 1e-6

    def arguments():
        return ramp(3, COLUMNS), np.zeros(3, np.float32)

    def expected(x, out):
        return {1: x.mean(axis=1)}

    def wrong(x, out):
        sums = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        sums[tid] = x[row, tid] if tid < x.shape[1] else float32(0.0)
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                sums[tid] += sums[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            out[row] = sums[0] / cuda.blockDim.x  #! value

    def right(x, out):
        sums = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        sums[tid] = x[row, tid] if tid < x.shape[1] else float32(0.0)
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                sums[tid] += sums[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            out[row] = sums[0] / x.shape[1]


@defect
class EpsilonOutsideTheRoot:
    """sqrt(mean + eps), not sqrt(mean) + eps: rows of zeros and tiny rows tell them apart."""

    launch = Launch(1, 3)
    rtol = 1e-6

    def arguments():
        return np.array([[0, 0, 0, 0], [1e-4, 2e-4, 0, 0], [1, 2, 3, 4]], np.float32), np.zeros((3, 4), np.float32)

    def expected(x, out):
        wide = x.astype(np.float64)
        return {1: wide / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-6)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += x[row, j] * x[row, j]
        root = math.sqrt(total / x.shape[1]) + 1e-6  #! value
        for j in range(x.shape[1]):
            out[row, j] = x[row, j] / root

    def right(x, out):
        row = cuda.threadIdx.x
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += x[row, j] * x[row, j]
        root = math.sqrt(total / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            out[row, j] = x[row, j] / root


@defect
class VarianceAsDifferenceOfSquares:
    """E[x^2] - E[x]^2 cancels when the mean is large: subtract the mean first."""

    launch = Launch(1, 4)
    rtol = 1e-4

    def arguments():
        return 4096 + (ramp(4, 32) % 5) / 4, np.zeros(4, np.float32)

    def expected(x, out):
        return {1: x.astype(np.float64).var(axis=1)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        first = float32(0.0)
        second = float32(0.0)
        for j in range(x.shape[1]):
            first += x[row, j]
            second = float32(second + x[row, j] * x[row, j])
        mean = float32(first / float32(32.0))
        out[row] = float32(second / float32(32.0)) - mean * mean  #! value

    def right(x, out):
        row = cuda.threadIdx.x
        first = float32(0.0)
        for j in range(x.shape[1]):
            first += x[row, j]
        mean = float32(first / float32(32.0))
        second = float32(0.0)
        for j in range(x.shape[1]):
            second += (x[row, j] - mean) * (x[row, j] - mean)
        out[row] = second / float32(32.0)


@defect
class MaskedScoreZeroInsteadOfMinusInfinity:
    """A masked key must not take part; a score of 0 still has weight exp(0 - max)."""

    launch = Launch(1, 8)
    rtol = 1e-5

    def arguments():
        return (ramp(8, 8) * 5) % 7 / 2, np.zeros((8, 8), np.float32)

    def expected(x, out):
        return {1: softmax(np.where(np.tri(8, dtype=bool), x, -np.inf))}

    def wrong(x, out):
        row = cuda.threadIdx.x
        largest = float32(-math.inf)
        for j in range(x.shape[1]):
            score = x[row, j] if j <= row else float32(0.0)  #! value
            largest = max(largest, score)
        total = float32(0.0)
        for j in range(x.shape[1]):
            score = x[row, j] if j <= row else float32(0.0)  #! value
            total += math.exp(score - largest)
        for j in range(x.shape[1]):
            score = x[row, j] if j <= row else float32(0.0)  #! value
            out[row, j] = math.exp(score - largest) / total

    def right(x, out):
        row = cuda.threadIdx.x
        largest = float32(-math.inf)
        for j in range(x.shape[1]):
            score = x[row, j] if j <= row else float32(-math.inf)
            largest = max(largest, score)
        total = float32(0.0)
        for j in range(x.shape[1]):
            score = x[row, j] if j <= row else float32(-math.inf)
            total += math.exp(score - largest)
        for j in range(x.shape[1]):
            score = x[row, j] if j <= row else float32(-math.inf)
            out[row, j] = math.exp(score - largest) / total


@defect
class BiasAddedOncePerTile:
    """The bias belongs outside the loop over K."""

    launch = Launch((2, 2), (4, 4))

    def arguments():
        return ramp(8, 12) % 5, ramp(12, 8) % 3, ramp(8) + 1, np.zeros((8, 8), np.float32)

    def expected(a, b, bias, out):
        return {3: a @ b + bias}

    def wrong(a, b, bias, out):
        column, row = cuda.grid(2)
        total = float32(0.0)
        for k0 in range(0, a.shape[1], 4):
            for k in range(k0, k0 + 4):
                total += a[row, k] * b[k, column]
            total += bias[column]  #! value
        out[row, column] = total

    def right(a, b, bias, out):
        column, row = cuda.grid(2)
        total = float32(0.0)
        for k0 in range(0, a.shape[1], 4):
            for k in range(k0, k0 + 4):
                total += a[row, k] * b[k, column]
        out[row, column] = total + bias[column]

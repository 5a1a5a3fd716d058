"""Launches that a device refuses: too many threads, too much shared memory, a grid or block axis too long."""

import numpy as np
from numba import cuda, float32

from .inputs import ramp
from .record import Launch, defect

BIG = 60_000
SMALL = 1_000


@defect
class TooManyThreadsInABlock:
    """2,048 threads in one block; the limit is 1,024."""

    wrong_launch = Launch(1, 2048)
    right_launch = Launch(2, 1024)

    def arguments():
        return ramp(2048), np.zeros(2048, np.float32)

    def expected(x, out):
        return {1: x + 1}

    def wrong(x, out):  #! launch_limit
        i = cuda.grid(1)
        out[i] = x[i] + 1

    def right(x, out):
        i = cuda.grid(1)
        out[i] = x[i] + 1


@defect
class TooManyThreadsInThreeAxes:
    """Each axis is within its limit, the product is not."""

    wrong_launch = Launch(1, (16, 16, 8))
    right_launch = Launch((1, 1, 2), (16, 16, 4))

    def arguments():
        return ramp(16, 16, 8), np.zeros((16, 16, 8), np.float32)

    def expected(x, out):
        return {1: x * 2}

    def wrong(x, out):  #! launch_limit
        i, j, k = cuda.grid(3)
        out[i, j, k] = x[i, j, k] * 2

    def right(x, out):
        i, j, k = cuda.grid(3)
        out[i, j, k] = x[i, j, k] * 2


@defect
class BlockTooDeep:
    """A block axis z of 128; the limit of that axis is 64."""

    wrong_launch = Launch(1, (1, 1, 128))
    right_launch = Launch((1, 1, 2), (1, 1, 64))

    def arguments():
        return ramp(128), np.zeros(128, np.float32)

    def expected(x, out):
        return {1: x * 3}

    def wrong(x, out):  #! launch_limit
        k = cuda.blockIdx.z * cuda.blockDim.z + cuda.threadIdx.z
        out[k] = x[k] * 3

    def right(x, out):
        k = cuda.blockIdx.z * cuda.blockDim.z + cuda.threadIdx.z
        out[k] = x[k] * 3


@defect
class GridTooTall:
    """70,000 rows of blocks; the y axis of a grid ends at 65,535."""

    wrong_launch = Launch((1, 70_000), 1)
    right_launch = Launch((70_000, 1), 1)

    def arguments():
        return (np.zeros(70_000, np.float32),)

    def expected(out):
        return {0: np.ones(70_000, np.float32)}

    def wrong(out):  #! launch_limit
        out[cuda.blockIdx.x + cuda.blockIdx.y] = 1

    def right(out):
        out[cuda.blockIdx.x + cuda.blockIdx.y] = 1


@defect
class TooMuchStaticSharedMemory:
    """240 kB of static shared memory; a block of sm_90 can have 227 KiB."""

    launch = Launch(1, 32)

    def arguments():
        return ramp(32), np.zeros(32, np.float32)

    def expected(x, out):
        return {1: x[::-1]}

    def wrong(x, out):  #! launch_limit
        pool = cuda.shared.array(BIG, float32)  #! launch_limit
        tid = cuda.threadIdx.x
        pool[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = pool[31 - tid]

    def right(x, out):
        pool = cuda.shared.array(SMALL, float32)
        tid = cuda.threadIdx.x
        pool[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = pool[31 - tid]


@defect
class TooMuchDynamicSharedMemory:
    """The launch asks for 300,000 bytes of dynamic shared memory."""

    wrong_launch = Launch(1, 32, shared_bytes=300_000)
    right_launch = Launch(1, 32, shared_bytes=128)

    def arguments():
        return ramp(32), np.zeros(32, np.float32)

    def expected(x, out):
        return {1: x[::-1]}

    def wrong(x, out):  #! launch_limit
        pool = cuda.shared.array(0, float32)  #! launch_limit
        tid = cuda.threadIdx.x
        pool[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = pool[31 - tid]

    def right(x, out):
        pool = cuda.shared.array(0, float32)
        tid = cuda.threadIdx.x
        pool[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = pool[31 - tid]

"""Races in shared memory: a barrier is missing, or stands in the wrong place, or something weaker stands there."""

import numpy as np
from numba import cuda, float32, int32

from .inputs import ramp
from .record import Launch, defect

THREADS = 64
HALF = THREADS // 2  # Numba takes a literal or a global for the size of a shared array, no expression
BINS = 16
WARP = 32


@defect
class MissingBarrierBeforeRead:
    """Every thread reads its right neighbour's cell before the block has met."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.roll(x, -1)}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]  #! race(cells)
        out[tid] = cells[(tid + 1) % THREADS]  #! race(cells)

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = cells[(tid + 1) % THREADS]


@defect
class MissingBarrierAfterRead:
    """A buffer is refilled in a loop while slower threads still read the previous round."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(4, THREADS), np.zeros((4, THREADS), np.float32)

    def expected(x, out):
        return {1: x[:, ::-1]}

    def wrong(x, out):
        row = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        for r in range(x.shape[0]):
            row[tid] = x[r, tid]  #! race(row)
            cuda.syncthreads()
            out[r, tid] = row[THREADS - 1 - tid]  #! race(row)

    def right(x, out):
        row = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        for r in range(x.shape[0]):
            row[tid] = x[r, tid]
            cuda.syncthreads()
            out[r, tid] = row[THREADS - 1 - tid]
            cuda.syncthreads()


@defect
class TreeReductionWithoutBarrierInLoop:
    """Shared-memory tree: every level needs the level below to be complete."""

    launch = Launch(4, 128)

    def arguments():
        return ramp(512), np.zeros(4, np.float32)

    def expected(x, out):
        return {1: x.reshape(4, 128).sum(axis=1)}

    def wrong(x, out):
        partial = cuda.shared.array(128, float32)
        tid = cuda.threadIdx.x
        partial[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        stride = 64
        while stride > 0:
            if tid < stride:
                partial[tid] += partial[tid + stride]  #! race(partial)
            stride //= 2
        if tid == 0:
            out[cuda.blockIdx.x] = partial[0]

    def right(x, out):
        partial = cuda.shared.array(128, float32)
        tid = cuda.threadIdx.x
        partial[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        stride = 64
        while stride > 0:
            if tid < stride:
                partial[tid] += partial[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            out[cuda.blockIdx.x] = partial[0]


@defect
class ScanWithoutBarrierBetweenReadAndWrite:
    """Hillis-Steele scan in one buffer: all must have read before anybody writes."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2 * THREADS), np.zeros(2 * THREADS, np.float32)

    def expected(x, out):
        return {1: np.cumsum(x.reshape(2, THREADS), axis=1, dtype=np.float32).ravel()}

    def wrong(x, out):
        sums = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        sums[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        distance = 1
        while distance < THREADS:
            if tid >= distance:
                sums[tid] += sums[tid - distance]  #! race(sums)
            cuda.syncthreads()
            distance *= 2
        out[cuda.grid(1)] = sums[tid]

    def right(x, out):
        sums = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        sums[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        distance = 1
        while distance < THREADS:
            left = float32(0.0)
            if tid >= distance:
                left = sums[tid - distance]
            cuda.syncthreads()
            sums[tid] += left
            cuda.syncthreads()
            distance *= 2
        out[cuda.grid(1)] = sums[tid]


@defect
class SharedHistogramWithPlainAdd:
    """Several threads add to one bin without an atomic: increments are lost."""

    launch = Launch(2, THREADS)

    def arguments():
        return (ramp(2 * THREADS, dtype=np.int32) * 7) % BINS, np.zeros(BINS, np.int32)

    def expected(keys, counts):
        return {1: np.bincount(keys, minlength=BINS).astype(np.int32)}

    def wrong(keys, counts):
        local = cuda.shared.array(BINS, int32)
        tid = cuda.threadIdx.x
        if tid < BINS:
            local[tid] = 0
        cuda.syncthreads()
        local[keys[cuda.grid(1)]] += 1  #! race(local)
        cuda.syncthreads()
        if tid < BINS:
            cuda.atomic.add(counts, tid, local[tid])

    def right(keys, counts):
        local = cuda.shared.array(BINS, int32)
        tid = cuda.threadIdx.x
        if tid < BINS:
            local[tid] = 0
        cuda.syncthreads()
        cuda.atomic.add(local, keys[cuda.grid(1)], 1)
        cuda.syncthreads()
        if tid < BINS:
            cuda.atomic.add(counts, tid, local[tid])


@defect
class SharedHistogramClearedWithoutBarrier:
    """The bins are cleared by some threads while others already count."""

    launch = Launch(1, THREADS)

    def arguments():
        return (ramp(THREADS, dtype=np.int32) * 5) % BINS, np.zeros(BINS, np.int32)

    def expected(keys, counts):
        return {1: np.bincount(keys, minlength=BINS).astype(np.int32)}

    def wrong(keys, counts):
        local = cuda.shared.array(BINS, int32)
        tid = cuda.threadIdx.x
        if tid < BINS:
            local[tid] = 0  #! race(local)
        cuda.atomic.add(local, keys[cuda.grid(1)], 1)  #! race(local)
        cuda.syncthreads()
        if tid < BINS:
            counts[tid] = local[tid]

    def right(keys, counts):
        local = cuda.shared.array(BINS, int32)
        tid = cuda.threadIdx.x
        if tid < BINS:
            local[tid] = 0
        cuda.syncthreads()
        cuda.atomic.add(local, keys[cuda.grid(1)], 1)
        cuda.syncthreads()
        if tid < BINS:
            counts[tid] = local[tid]


@defect
class SharedAtomicMixedWithPlainRead:
    """The total is read while other threads still add to it atomically."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS, dtype=np.int32), np.zeros(THREADS, np.int32)

    def expected(x, out):
        return {1: np.full(THREADS, x.sum(), np.int32)}

    def wrong(x, out):
        total = cuda.shared.array(1, int32)
        tid = cuda.threadIdx.x
        if tid == 0:
            total[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(total, 0, x[tid])  #! race(total)
        out[tid] = total[0]  #! race(total)

    def right(x, out):
        total = cuda.shared.array(1, int32)
        tid = cuda.threadIdx.x
        if tid == 0:
            total[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(total, 0, x[tid])
        cuda.syncthreads()
        out[tid] = total[0]


@defect
class WarpSynchronousReduction:
    """The last 32 values are folded by one warp that relies on lockstep, which Volta gave up."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2 * THREADS), np.zeros(2, np.float32)

    def expected(x, out):
        return {1: x.reshape(2, THREADS).sum(axis=1)}

    def wrong(x, out):
        partial = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        partial[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        if tid < WARP:
            offset = WARP
            while offset > 0:
                partial[tid] += partial[tid + offset]  #! race(partial)
                offset //= 2
        if tid == 0:
            out[cuda.blockIdx.x] = partial[0]

    def right(x, out):
        partial = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        partial[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        if tid < WARP:
            offset = WARP
            while offset > 0:
                upper = partial[tid + offset]
                cuda.syncwarp()
                partial[tid] += upper
                cuda.syncwarp()
                offset //= 2
        if tid == 0:
            out[cuda.blockIdx.x] = partial[0]


@defect
class SyncwarpWhereTheBlockMustMeet:
    """Values cross from one warp to the other; syncwarp orders only the lanes of one warp."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x[::-1]}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]  #! race(cells)
        cuda.syncwarp()
        out[tid] = cells[THREADS - 1 - tid]  #! race(cells)

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = cells[THREADS - 1 - tid]


@defect
class WarpExchangeWithoutSyncwarp:
    """Inside one warp a reversal through shared memory needs syncwarp, and syncwarp is enough."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x.reshape(2, WARP)[:, ::-1].ravel()}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        lane = tid % WARP
        cells[tid] = x[tid]  #! race(cells)
        out[tid] = cells[tid - lane + WARP - 1 - lane]  #! race(cells)

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        lane = tid % WARP
        cells[tid] = x[tid]
        cuda.syncwarp()
        out[tid] = cells[tid - lane + WARP - 1 - lane]


@defect
class FenceInsteadOfBarrier:
    """A fence orders one thread's own accesses; nobody waits at it."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.roll(x, -3)}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]  #! race(cells)
        cuda.threadfence_block()
        out[tid] = cells[(tid + 3) % THREADS]  #! race(cells)

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = cells[(tid + 3) % THREADS]


@defect
class BroadcastWithoutBarrier:
    """Thread 0 prepares a value for the block; the others use it at once."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2 * THREADS), np.zeros(2 * THREADS, np.float32)

    def expected(x, out):
        return {1: np.repeat(x[::THREADS], THREADS)}

    def wrong(x, out):
        head = cuda.shared.array(1, float32)
        i = cuda.grid(1)
        if cuda.threadIdx.x == 0:
            head[0] = x[i]  #! race(head)
        out[i] = head[0]  #! race(head)

    def right(x, out):
        head = cuda.shared.array(1, float32)
        i = cuda.grid(1)
        if cuda.threadIdx.x == 0:
            head[0] = x[i]
        cuda.syncthreads()
        out[i] = head[0]


@defect
class TwoWritersOfOneCell:
    """Halving the index gives every cell two writers with different values."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS // 2, np.float32)

    def expected(x, out):
        return {1: x[1::2]}

    def wrong(x, out):
        odd = cuda.shared.array(HALF, float32)
        tid = cuda.threadIdx.x
        odd[tid // 2] = x[tid]  #! race(odd)
        cuda.syncthreads()
        if tid < THREADS // 2:
            out[tid] = odd[tid]

    def right(x, out):
        odd = cuda.shared.array(HALF, float32)
        tid = cuda.threadIdx.x
        if tid % 2 == 1:
            odd[tid // 2] = x[tid]
        cuda.syncthreads()
        if tid < THREADS // 2:
            out[tid] = odd[tid]


@defect
class BitonicSortWithoutBarrier:
    """Compare-and-swap stages overlap."""

    launch = Launch(1, THREADS)

    def arguments():
        return (ramp(THREADS) * 37) % 101, np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.sort(x)}

    def wrong(x, out):
        keys = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        keys[tid] = x[tid]
        cuda.syncthreads()
        size = 2
        while size <= THREADS:
            stride = size // 2
            while stride > 0:
                partner = tid ^ stride
                if partner > tid:
                    ascending = (tid & size) == 0
                    low = keys[tid]  #! race(keys)
                    high = keys[partner]  #! race(keys)
                    if (low > high) == ascending:
                        keys[tid] = high  #! race(keys)
                        keys[partner] = low  #! race(keys)
                stride //= 2
            size *= 2
        cuda.syncthreads()
        out[tid] = keys[tid]

    def right(x, out):
        keys = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        keys[tid] = x[tid]
        cuda.syncthreads()
        size = 2
        while size <= THREADS:
            stride = size // 2
            while stride > 0:
                partner = tid ^ stride
                if partner > tid:
                    ascending = (tid & size) == 0
                    low = keys[tid]
                    high = keys[partner]
                    if (low > high) == ascending:
                        keys[tid] = high
                        keys[partner] = low
                cuda.syncthreads()
                stride //= 2
            size *= 2
        out[tid] = keys[tid]


@defect
class SameValueFromManyThreads:
    """Every thread raises one flag: all write the same value, which is only worth a note."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x + 1}

    def wrong(x, out):
        flag = cuda.shared.array(1, float32)
        tid = cuda.threadIdx.x
        flag[0] = 1.0  #! race(flag) note
        cuda.syncthreads()
        out[tid] = x[tid] + flag[0]

    def right(x, out):
        flag = cuda.shared.array(1, float32)
        tid = cuda.threadIdx.x
        if tid == 0:
            flag[0] = 1.0
        cuda.syncthreads()
        out[tid] = x[tid] + flag[0]

"""Races in global memory: within a block, between blocks, and around atomics and fences."""

import numpy as np
from numba import cuda, float32, int32

from .inputs import ramp
from .record import Launch, defect

THREADS = 64
BLOCKS = 4
N = THREADS * BLOCKS


@defect
class PlainAddInsteadOfAtomic:
    """The textbook sum with += where an atomic is needed."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(1, np.float32)

    def expected(x, out):
        return {1: x.sum(keepdims=True)}

    def wrong(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[0] += x[i]  #! race(out)

    def right(x, out):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(out, 0, x[i])


@defect
class TwoBlocksWriteOneOutput:
    """The output index forgets the block: every block stores into the first tile."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(N, np.float32)

    def expected(x, out):
        return {1: x * 2}

    def wrong(x, out):
        i = cuda.grid(1)
        out[cuda.threadIdx.x] = x[i] * 2  #! race(out)

    def right(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * 2


@defect
class BlockReadsItsNeighboursOutput:
    """Chained in one launch: block b continues from the last value of block b - 1."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(N, np.float32)

    def expected(x, out):
        return {1: x + np.roll(x, THREADS)}

    def wrong(x, out):
        i = cuda.grid(1)
        out[i] = x[i]  #! race(out)
        cuda.syncthreads()
        out[i] += out[i - THREADS]  #! race(out)

    def right(x, out):
        i = cuda.grid(1)
        out[i] = x[i]
        cuda.syncthreads()
        out[i] += x[i - THREADS]


@defect
class InPlaceStencilBetweenBlocks:
    """A barrier cannot protect the cells at the edge of the block from the neighbouring block."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(N, np.float32)

    def expected(x, out):
        return {1: np.append(x[:-1] + x[1:], x[-1])}

    def wrong(x, out):
        i = cuda.grid(1)
        value = x[i]
        if i + 1 < x.size:
            value += x[i + 1]  #! race(x)
        cuda.syncthreads()
        x[i] = value  #! race(x)
        out[i] = value

    def right(x, out):
        i = cuda.grid(1)
        value = x[i]
        if i + 1 < x.size:
            value += x[i + 1]
        cuda.syncthreads()
        out[i] = value


@defect
class InPlaceStencilWithinBlock:
    """One block, in place: all must have read before anybody writes."""

    launch = Launch(1, THREADS)

    def arguments():
        return (ramp(THREADS),)

    def expected(x):
        return {0: np.append(x[:-1] + x[1:], x[-1])}

    def wrong(x):
        i = cuda.grid(1)
        if i + 1 < x.size:
            x[i] += x[i + 1]  #! race(x)

    def right(x):
        i = cuda.grid(1)
        value = x[i]
        if i + 1 < x.size:
            value += x[i + 1]
        cuda.syncthreads()
        x[i] = value


@defect
class ScratchInGlobalMemoryWithoutBarrier:
    """Global memory is shared memory too: the same barrier is needed."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32), np.zeros(THREADS, np.float32)

    def expected(x, scratch, out):
        return {1: x * x, 2: (x * x)[::-1]}

    def wrong(x, scratch, out):
        i = cuda.grid(1)
        scratch[i] = x[i] * x[i]  #! race(scratch)
        out[i] = scratch[x.size - 1 - i]  #! race(scratch)

    def right(x, scratch, out):
        i = cuda.grid(1)
        scratch[i] = x[i] * x[i]
        cuda.syncthreads()
        out[i] = scratch[x.size - 1 - i]


@defect
class LastBlockReductionWithoutFence:
    """The ticket says that all partial sums are done, but without a fence nobody promised that they are visible."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(BLOCKS, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32)

    def expected(x, partial, tickets, out):
        return {1: x.reshape(BLOCKS, THREADS).sum(axis=1), 3: x.sum(keepdims=True)}

    def wrong(x, partial, tickets, out):
        sums = cuda.shared.array(THREADS, float32)
        last = cuda.shared.array(1, int32)
        tid = cuda.threadIdx.x
        sums[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                sums[tid] += sums[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            partial[cuda.blockIdx.x] = sums[0]  #! race(partial)
            ticket = cuda.atomic.add(tickets, 0, 1)
            last[0] = 1 if ticket == cuda.gridDim.x - 1 else 0
        cuda.syncthreads()
        if last[0] == 1 and tid == 0:
            total = float32(0.0)
            for b in range(cuda.gridDim.x):
                total += partial[b]  #! race(partial)
            out[0] = total

    def right(x, partial, tickets, out):
        sums = cuda.shared.array(THREADS, float32)
        last = cuda.shared.array(1, int32)
        tid = cuda.threadIdx.x
        sums[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                sums[tid] += sums[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            partial[cuda.blockIdx.x] = sums[0]
            cuda.threadfence()
            ticket = cuda.atomic.add(tickets, 0, 1)
            cuda.threadfence()
            last[0] = 1 if ticket == cuda.gridDim.x - 1 else 0
        cuda.syncthreads()
        if last[0] == 1 and tid == 0:
            total = float32(0.0)
            for b in range(cuda.gridDim.x):
                total += partial[b]
            out[0] = total


@defect
class PartialsReadByAnyBlock:
    """The second stage of a reduction runs in block 0 without knowing that the others are done."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(BLOCKS, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32)

    expected = LastBlockReductionWithoutFence.expected

    def wrong(x, partial, tickets, out):
        sums = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        sums[tid] = x[cuda.grid(1)]
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                sums[tid] += sums[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            partial[cuda.blockIdx.x] = sums[0]  #! race(partial)
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.blockIdx.x == 0 and tid == 0:
            total = float32(0.0)
            for b in range(cuda.gridDim.x):
                total += partial[b]  #! race(partial)
            out[0] = total

    right = LastBlockReductionWithoutFence.right


@defect
class FlagPublishedWithoutFence:
    """A message and its flag: whoever sees the flag by an atomic must also see the message."""

    launch = Launch(2, 32)

    def arguments():
        return np.zeros(1, np.float32), np.zeros(1, np.int32), np.full(1, 7, np.float32)

    def expected(message, flag, out):
        return {0: np.array([42.0], np.float32), 1: np.array([1], np.int32), 2: np.array([42.0], np.float32)}

    def wrong(message, flag, out):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                message[0] = 42.0  #! race(message)
                cuda.atomic.exch(flag, 0, 1)
            elif cuda.atomic.add(flag, 0, 0) == 1:
                out[0] = message[0]  #! race(message)

    def right(message, flag, out):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                message[0] = 42.0
                cuda.threadfence()
                cuda.atomic.exch(flag, 0, 1)
            elif cuda.atomic.add(flag, 0, 0) == 1:
                cuda.threadfence()
                out[0] = message[0]


@defect
class GlobalHistogramWithPlainAdd:
    """Bins in global memory, counted without atomics, by threads of several blocks."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return (ramp(N, dtype=np.int32) * 11) % 23, np.zeros(23, np.int32)

    def expected(keys, counts):
        return {1: np.bincount(keys, minlength=23).astype(np.int32)}

    def wrong(keys, counts):
        i = cuda.grid(1)
        counts[keys[i]] += 1  #! race(counts)

    def right(keys, counts):
        i = cuda.grid(1)
        cuda.atomic.add(counts, keys[i], 1)


@defect
class GridStrideWithTheBlockStride:
    """The stride of a grid-stride loop is the block's, so blocks walk over each other's elements."""

    launch = Launch(2, 32)

    def arguments():
        return (ramp(256),)

    def expected(x):
        return {0: x + 1}

    def wrong(x):
        for i in range(cuda.grid(1), x.size, cuda.blockDim.x):
            x[i] += 1  #! race(x)

    def right(x):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            x[i] += 1


@defect
class TransposeInPlaceByEveryThread:
    """Both threads of a pair swap the pair."""

    launch = Launch((2, 2), (8, 8))

    def arguments():
        return (ramp(16, 16),)

    def expected(x):
        return {0: x.T}

    def wrong(x):
        i, j = cuda.grid(2)
        if i != j:
            value = x[i, j]  #! race(x)
            x[i, j] = x[j, i]  #! race(x)
            x[j, i] = value  #! race(x)

    def right(x):
        i, j = cuda.grid(2)
        if i < j:
            value = x[i, j]
            x[i, j] = x[j, i]
            x[j, i] = value


@defect
class OverlappingTiles:
    """A tile of 64 outputs, but blocks that start 63 apart: the seam is written twice."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(N, np.float32)

    def expected(x, out):
        return {1: x + np.repeat(np.arange(BLOCKS, dtype=np.float32), THREADS)}

    def wrong(x, out):
        i = cuda.blockIdx.x * (THREADS - 1) + cuda.threadIdx.x
        out[i] = x[i] + cuda.blockIdx.x  #! race(out)

    def right(x, out):
        i = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
        out[i] = x[i] + cuda.blockIdx.x


@defect
class MaximumByCompareAndStore:
    """Compare, then store: two threads can both win."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return (ramp(N, dtype=np.int32) * 77) % 257, np.zeros(1, np.int32)

    def expected(x, out):
        return {1: x.max(keepdims=True)}

    def wrong(x, out):
        i = cuda.grid(1)
        if x[i] > out[0]:  #! race(out)
            out[0] = x[i]  #! race(out)

    def right(x, out):
        i = cuda.grid(1)
        cuda.atomic.max(out, 0, x[i])


@defect
class CompactionWithPlainCounter:
    """Stream compaction: the place in the output comes from a counter that is not atomic."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N, dtype=np.int32), np.zeros(1, np.int32), np.zeros(N, np.int32)

    def expected(x, count, flags):
        return {1: np.array([(x % 3 == 0).sum()], np.int32), 2: np.arange(N) < (x % 3 == 0).sum()}

    def wrong(x, count, flags):
        i = cuda.grid(1)
        if x[i] % 3 == 0:
            place = count[0]  #! race
            count[0] = place + 1  #! race
            flags[place] = 1

    def right(x, count, flags):
        i = cuda.grid(1)
        if x[i] % 3 == 0:
            place = cuda.atomic.add(count, 0, 1)
            flags[place] = 1


@defect
class CounterReadWhileOthersAdd:
    """A plain read of a counter that threads of other blocks still add to."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return np.zeros(1, np.int32), np.zeros(N, np.int32)

    def expected(count, seen):
        return {0: np.array([N], np.int32), 1: np.ones(N, np.int32)}

    def wrong(count, seen):
        cuda.atomic.add(count, 0, 1)  #! race(count)
        seen[cuda.grid(1)] = 1 if count[0] > 0 else 0  #! race(count)

    def right(count, seen):
        before = cuda.atomic.add(count, 0, 1)
        seen[cuda.grid(1)] = 1 if before >= 0 else 0


@defect
class AliasedInputAndOutput:
    """Source and destination are two views of one buffer, one element apart."""

    launch = Launch(1, THREADS)

    def arguments():
        buffer = ramp(THREADS + 1)
        return buffer[:-1], buffer[1:]

    def expected(source, target):
        return {1: source}

    def wrong(source, target):
        i = cuda.grid(1)
        target[i] = source[i]  #! race

    def right(source, target):
        i = cuda.grid(1)
        value = source[i]
        cuda.syncthreads()
        target[i] = value


@defect
class ClearedByOneBlockFilledByAll:
    """Block 0 clears the accumulator in the launch that adds to it."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(1, np.float32)

    def expected(x, out):
        return {1: x.sum(keepdims=True)}

    def wrong(x, out):
        i = cuda.grid(1)
        if i == 0:
            out[0] = 0.0  #! race(out)
        cuda.syncthreads()
        cuda.atomic.add(out, 0, x[i])  #! race(out)

    def right(x, out):
        i = cuda.grid(1)
        cuda.atomic.add(out, 0, x[i])


@defect
class FlagRaisedByEveryBlock:
    """All blocks store the same value into one flag: a note, not an error."""

    launch = Launch(BLOCKS, THREADS)

    def arguments():
        return ramp(N), np.zeros(1, np.int32)

    def expected(x, found):
        return {1: np.ones(1, np.int32)}

    def wrong(x, found):
        if x[cuda.grid(1)] > 100:
            found[0] = 1  #! race(found) note

    def right(x, found):
        if x[cuda.grid(1)] > 100:
            cuda.atomic.exch(found, 0, 1)

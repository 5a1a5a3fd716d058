"""Barriers that only a part of a block reaches. Threads that have returned are not waited for: that is allowed."""

import numpy as np
from numba import cuda, float32

from .inputs import ramp
from .record import Launch, defect

THREADS = 64


@defect
class BarrierUnderDivergentBranch:
    """Half of the block waits inside a branch, the other half at the next barrier."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.append(x[:32][::-1], np.zeros(32))}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        if tid < 32:
            cells[tid] = x[tid]
            cuda.syncthreads()  #! barrier_divergence
            out[tid] = cells[31 - tid]
        cuda.syncthreads()  #! barrier_divergence

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        if tid < 32:
            cells[tid] = x[tid]
        cuda.syncthreads()
        if tid < 32:
            out[tid] = cells[31 - tid]


@defect
class EarlyReturnIsNotABranch:
    """Threads that return are not waited for (right); threads that skip the barrier and live on are (wrong)."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.append(x[:40][::-1], np.zeros(24))}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        used = tid < 40
        if used:
            cells[tid] = x[tid]
            cuda.syncthreads()  #! barrier_divergence
        if used:
            out[tid] = cells[39 - tid]
        else:
            out[tid] = 0

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        if tid >= 40:
            return
        cells[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = cells[39 - tid]


@defect
class TwoBarriersForTwoHalves:
    """Both sides of a branch have a barrier, but not the same one."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.where(x < 32, x, -x)[::-1]}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        if tid < 32:
            cells[tid] = x[tid]
            cuda.syncthreads()  #! barrier_divergence
        else:
            cells[tid] = -x[tid]
            cuda.syncthreads()  #! barrier_divergence
        out[tid] = cells[tid]

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        if tid < 32:
            cells[tid] = x[tid]
        else:
            cells[tid] = -x[tid]
        cuda.syncthreads()
        out[tid] = cells[THREADS - 1 - tid]


@defect
class LoopWithDifferentTripCounts:
    """A barrier in a loop over a thread's own elements: the last round is not everybody's."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(100), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x[:64] + np.append(x[64:], np.zeros(28))}

    def wrong(x, out):
        tid = cuda.threadIdx.x
        total = float32(0.0)
        for i in range(tid, x.size, THREADS):
            total += x[i]
            cuda.syncthreads()  #! barrier_divergence
        out[tid] = total

    def right(x, out):
        tid = cuda.threadIdx.x
        total = float32(0.0)
        for start in range(0, x.size, THREADS):
            if start + tid < x.size:
                total += x[start + tid]
            cuda.syncthreads()
        out[tid] = total


@defect
class BreakPastTheBarrier:
    """Threads that have found their element leave a loop that others still synchronise in."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x % 4 + 1}

    def wrong(x, out):
        tid = cuda.threadIdx.x
        steps = 0
        for k in range(4):
            steps += 1
            if k == tid % 4:
                break
            cuda.syncthreads()  #! barrier_divergence
        out[tid] = steps

    def right(x, out):
        tid = cuda.threadIdx.x
        steps = 0
        for k in range(4):
            if k <= tid % 4:
                steps += 1
            cuda.syncthreads()
        out[tid] = steps


@defect
class WhileUntilOwnValueIsSmall:
    """A while loop whose condition is the thread's own, with a barrier in its body."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.frexp(x)[1]}

    def wrong(x, out):
        tid = cuda.threadIdx.x
        value = x[tid]
        halvings = 0
        while value >= 1:
            value *= float32(0.5)
            halvings += 1
            cuda.syncthreads()  #! barrier_divergence
        out[tid] = halvings

    def right(x, out):
        tid = cuda.threadIdx.x
        value = x[tid]
        halvings = 0
        while cuda.syncthreads_or(1 if value >= 1 else 0):
            if value >= 1:
                value *= float32(0.5)
                halvings += 1
        out[tid] = halvings


@defect
class CountUnderDivergentBranch:
    """syncthreads_count is a barrier as well."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2 * THREADS), np.zeros(2, np.float32)

    def expected(x, out):
        return {1: (x.reshape(2, THREADS) % 6 == 5).sum(axis=1)}

    def wrong(x, out):
        i = cuda.grid(1)
        if cuda.threadIdx.x > 0:
            count = cuda.syncthreads_count(1 if x[i] % 6 == 5 else 0)  #! barrier_divergence
            if cuda.threadIdx.x == 1:
                out[cuda.blockIdx.x] = count

    def right(x, out):
        i = cuda.grid(1)
        count = cuda.syncthreads_count(1 if x[i] % 6 == 5 else 0)
        if cuda.threadIdx.x == 1:
            out[cuda.blockIdx.x] = count


@defect
class ContinuePastSyncthreadsOr:
    """The loop votes at its end, but some threads take a shortcut back to its top."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.where(x < 20, 4, 8)}

    def wrong(x, out):
        tid = cuda.threadIdx.x
        total = 0
        for k in range(4):
            if x[tid] < 20:
                total += 1
                continue
            total += 1 + cuda.syncthreads_or(1 if k == tid % 4 else 0)  #! barrier_divergence
        out[tid] = total

    def right(x, out):
        tid = cuda.threadIdx.x
        total = 0
        for k in range(4):
            anybody = cuda.syncthreads_or(1 if k == tid % 4 else 0)
            if x[tid] < 20:
                total += 1
                continue
            total += 1 + (1 if anybody != 0 else 0)
        out[tid] = total


@cuda.jit(device=True)
def block_reverse(cells, value, tid, count):
    cells[tid] = value
    cuda.syncthreads()  #! barrier_divergence
    return cells[count - 1 - tid]


@defect
class DeviceFunctionWithBarrierUnderBranch:
    """The barrier hides in a device function that only a part of the block calls."""

    marked_functions = (block_reverse.py_func,)
    also = frozenset({"race"})  # the other threads' cells are not ordered by a barrier that they do not reach
    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.where(x < 48, x[::-1], x)}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]
        cuda.syncthreads()
        if tid < 48:
            out[tid] = block_reverse(cells, x[tid], tid, THREADS)
        else:
            out[tid] = x[tid]
        cuda.syncthreads()  #! barrier_divergence

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        reverse = block_reverse(cells, x[tid], tid, THREADS)
        if tid < 48:
            out[tid] = reverse
        else:
            out[tid] = x[tid]


@defect
class BarrierInsideTheTailGuard:
    """The usual guard `if i < n` around the whole body makes the last block's barrier divergent."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(100), np.zeros(100, np.float32)

    def expected(x, out):
        return {1: np.concatenate([x[:64][::-1], x[64:]])}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        inside = i < x.size
        if inside:
            cells[tid] = x[i]
            cuda.syncthreads()  #! barrier_divergence
            if cuda.blockIdx.x == 0:
                out[i] = cells[THREADS - 1 - tid]
            else:
                out[i] = cells[tid]

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        inside = i < x.size
        if inside:
            cells[tid] = x[i]
        cuda.syncthreads()
        if inside:
            if cuda.blockIdx.x == 0:
                out[i] = cells[THREADS - 1 - tid]
            else:
                out[i] = cells[tid]


@defect
class BarrierForOneRowOfThreads:
    """In a two-dimensional block the first row synchronises on its own, while the others go on to the last barrier."""

    launch = Launch(1, (16, 4))

    def arguments():
        return ramp(4, 16), np.zeros((4, 16), np.float32)

    def expected(x, out):
        return {1: x + x[0][::-1]}

    def wrong(x, out):
        head = cuda.shared.array(16, float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        if ty == 0:
            head[tx] = x[0, tx]
            cuda.syncthreads()  #! barrier_divergence
        cuda.syncthreads()  #! barrier_divergence
        out[ty, tx] = x[ty, tx] + head[15 - tx]

    def right(x, out):
        head = cuda.shared.array(16, float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        if ty == 0:
            head[tx] = x[0, tx]
        cuda.syncthreads()
        out[ty, tx] = x[ty, tx] + head[15 - tx]

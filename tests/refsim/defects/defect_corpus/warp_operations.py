"""Warp operations whose mask names lanes that are not there, or whose source lane is not."""

import numpy as np
from numba import cuda, float32

from .inputs import ramp
from .record import Launch, defect

FULL = 0xFFFFFFFF
WARP = 32


@defect
class ShuffleInsideABranch:
    """A full mask inside a branch that only half of the warp takes."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP), np.zeros(WARP, np.float32)

    def expected(x, out):
        return {1: np.where(x < 16, x + np.roll(x, -1), x)}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        value = x[lane]
        if lane < 16:
            value += cuda.shfl_down_sync(FULL, value, 1)  #! warp_divergence
        out[lane] = value

    def right(x, out):
        lane = cuda.threadIdx.x
        value = x[lane]
        right = cuda.shfl_down_sync(FULL, value, 1)
        if lane < 16:
            value += right
        out[lane] = value


@defect
class PartnerBeyondAPartialWarp:
    """A block of 48 threads: in the second warp, lanes 0 ... 15 ask lanes 16 ... 31, which do not exist.

    The full mask itself is allowed there (right): it names lanes that have exited, as it were.
    """

    launch = Launch(1, 48)

    def arguments():
        return ramp(48), np.zeros(48, np.float32)

    def expected(x, out):
        return {1: x[np.arange(48) ^ 8]}

    def wrong(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.shfl_xor_sync(FULL, x[i], 16)  #! warp_divergence

    def right(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.shfl_xor_sync(FULL, x[i], 8)


@defect
class ShufflePastTheEdgeOfTheGroup:
    """24 lanes take part; lanes 8 ... 23 ask lanes 24 ... 39 for a value."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP), np.zeros(1, np.float32)

    def expected(x, out):
        return {1: x[:24].sum(keepdims=True)}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        if lane < 24:
            total = x[lane]
            for offset in (16, 8, 4, 2, 1):
                total += cuda.shfl_down_sync(0xFFFFFF, total, offset)  #! warp_divergence
            if lane == 0:
                out[0] = total

    def right(x, out):
        lane = cuda.threadIdx.x
        total = x[lane] if lane < 24 else float32(0.0)
        for offset in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(FULL, total, offset)
        if lane == 0:
            out[0] = total


@defect
class SourceLaneNotInMask:
    """The mask names the lower half; the source lane is in the upper half."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP), np.zeros(16, np.float32)

    def expected(x, out):
        return {1: np.full(16, x[5])}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        if lane < 16:
            out[lane] = cuda.shfl_sync(0xFFFF, x[lane], 21)  #! warp_divergence

    def right(x, out):
        lane = cuda.threadIdx.x
        if lane < 16:
            out[lane] = cuda.shfl_sync(0xFFFF, x[lane], 5)


@defect
class CallerNotInItsOwnMask:
    """Every lane of the warp calls with a mask that names the lower half only."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP), np.zeros(WARP, np.float32)

    def expected(x, out):
        return {1: np.repeat([x[0], x[16]], 16)}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        out[lane] = cuda.shfl_sync(0xFFFF, x[lane], lane // 16 * 16)  #! warp_divergence

    def right(x, out):
        lane = cuda.threadIdx.x
        mask = 0xFFFF if lane < 16 else 0xFFFF0000
        out[lane] = cuda.shfl_sync(mask, x[lane], lane // 16 * 16)


@defect
class NeighbourHasReturned:
    """Lanes past the end have returned, and the last one that is left asks its neighbour for a value."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(20), np.zeros(20, np.float32)

    def expected(x, out):
        return {1: np.append(x[1:], 0)}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        if lane >= x.size:
            return
        out[lane] = cuda.shfl_down_sync(FULL, x[lane], 1)  #! warp_divergence

    def right(x, out):
        lane = cuda.threadIdx.x
        value = x[lane] if lane < x.size else float32(0.0)
        right = cuda.shfl_down_sync(FULL, value, 1)
        if lane < x.size:
            out[lane] = right


@defect
class VoteInsideALoopThatLanesLeave:
    """Lanes leave the loop one after the other; those that stay still vote with a full mask."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP, dtype=np.int32), np.zeros(WARP, np.int32)

    def expected(x, out):
        return {1: x % 4 + 1}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        rounds = 0
        while rounds <= x[lane] % 4:
            rounds += 1
            cuda.any_sync(FULL, rounds > 2)  #! warp_divergence
        out[lane] = rounds

    def right(x, out):
        lane = cuda.threadIdx.x
        rounds = 0
        while cuda.any_sync(FULL, rounds <= x[lane] % 4):
            if rounds <= x[lane] % 4:
                rounds += 1
        out[lane] = rounds


@defect
class SyncwarpWithFullMaskInABranch:
    """syncwarp waits for the lanes of its mask; half of them never come."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP), np.zeros(WARP, np.float32)

    def expected(x, out):
        return {1: np.append(x[:16][::-1], np.zeros(16))}

    def wrong(x, out):
        cells = cuda.shared.array(WARP, float32)
        lane = cuda.threadIdx.x
        if lane < 16:
            cells[lane] = x[lane]
            cuda.syncwarp()  #! warp_divergence
            out[lane] = cells[15 - lane]

    def right(x, out):
        cells = cuda.shared.array(WARP, float32)
        lane = cuda.threadIdx.x
        if lane < 16:
            cells[lane] = x[lane]
            cuda.syncwarp(0xFFFF)
            out[lane] = cells[15 - lane]


@defect
class MatchInsideABranch:
    """Lanes with an odd key look for their equals among all 32 lanes."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP, dtype=np.int32) % 5, np.zeros(WARP, np.int32)

    def expected(keys, out):
        same = keys[:, None] == keys[None, :]
        masks = (same * (1 << np.arange(WARP, dtype=np.int64))).sum(axis=1)
        return {1: np.where(keys % 2 == 1, masks.astype(np.uint32).view(np.int32), 0)}

    def wrong(keys, out):
        lane = cuda.threadIdx.x
        if keys[lane] % 2 == 1:
            out[lane] = cuda.match_any_sync(FULL, keys[lane])  #! warp_divergence

    def right(keys, out):
        lane = cuda.threadIdx.x
        equals = cuda.match_any_sync(FULL, keys[lane])
        if keys[lane] % 2 == 1:
            out[lane] = equals


@defect
class SecondPassOfTheReductionByFewLanes:
    """Four warps' partial sums are folded by four lanes that call with a full mask."""

    launch = Launch(1, 4 * WARP)

    def arguments():
        return ramp(4 * WARP), np.zeros(1, np.float32)

    def expected(x, out):
        return {1: x.sum(keepdims=True)}

    def wrong(x, out):
        partial = cuda.shared.array(4, float32)
        tid = cuda.threadIdx.x
        total = x[tid]
        for offset in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(FULL, total, offset)
        if tid % WARP == 0:
            partial[tid // WARP] = total
        cuda.syncthreads()
        if tid < 4:
            total = partial[tid]
            for offset in (2, 1):
                total += cuda.shfl_down_sync(FULL, total, offset)  #! warp_divergence
            if tid == 0:
                out[0] = total

    def right(x, out):
        partial = cuda.shared.array(4, float32)
        tid = cuda.threadIdx.x
        total = x[tid]
        for offset in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(FULL, total, offset)
        if tid % WARP == 0:
            partial[tid // WARP] = total
        cuda.syncthreads()
        if tid < WARP:
            total = partial[tid] if tid < 4 else float32(0.0)
            for offset in (2, 1):
                total += cuda.shfl_down_sync(FULL, total, offset)
            if tid == 0:
                out[0] = total

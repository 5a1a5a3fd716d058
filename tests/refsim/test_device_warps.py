"""Warp operations: shuffles, votes, matches, masks, and blocks whose last warp is not full."""

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda

FULL = 0xFFFFFFFF
WARP = 32
DTYPES = ["int32", "int64", "float32", "float64"]


def values(dtype, warps=2):
    return (np.random.default_rng(11).integers(-1000, 1000, warps * WARP)).astype(dtype)


def by_warp(x):
    return x.reshape(-1, WARP)


@pytest.mark.parametrize("dtype", DTYPES)
def test_shuffle_broadcasts_one_lane(dtype):
    def broadcast(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.shfl_sync(FULL, x[i], 5)

    x = values(dtype)
    np.testing.assert_array_equal(mapped(broadcast, x, dtype), np.repeat(by_warp(x)[:, 5], WARP))


@pytest.mark.parametrize("dtype", DTYPES)
def test_shuffle_from_a_lane_of_each_threads_choice(dtype):
    def gather(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.shfl_sync(FULL, x[i], (i * 7 + 3) % 32)

    x = values(dtype)
    lanes = (np.arange(WARP) * 7 + 3) % WARP
    np.testing.assert_array_equal(mapped(gather, x, dtype), by_warp(x)[:, lanes].ravel())


def test_source_lane_counts_modulo_the_warp():
    def gather(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.shfl_sync(FULL, x[i], 37)

    x = values("int32")
    np.testing.assert_array_equal(mapped(gather, x, "int32"), np.repeat(by_warp(x)[:, 5], WARP))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("delta", [1, 5, 16, 31])
def test_shuffle_up_and_down_keep_their_own_value_past_the_edge(dtype, delta):
    def shift(x, up, down):
        i = cuda.threadIdx.x
        up[i] = cuda.shfl_up_sync(FULL, x[i], delta)
        down[i] = cuda.shfl_down_sync(FULL, x[i], delta)

    x = values(dtype)
    up, down = np.zeros_like(x), np.zeros_like(x)
    launch_clean(shift, 1, x.size, x, up, down)
    rows = by_warp(x)
    np.testing.assert_array_equal(by_warp(up), np.concatenate([rows[:, :delta], rows[:, :-delta]], axis=1))
    np.testing.assert_array_equal(by_warp(down), np.concatenate([rows[:, delta:], rows[:, -delta:]], axis=1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", [1, 8, 31])
def test_shuffle_xor(dtype, mask):
    def exchange(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.shfl_xor_sync(FULL, x[i], mask)

    x = values(dtype)
    np.testing.assert_array_equal(mapped(exchange, x, dtype), by_warp(x)[:, np.arange(WARP) ^ mask].ravel())


def test_shuffles_in_two_and_three_dimensional_blocks_follow_the_linear_thread():
    def neighbour(x, out):
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        tz = cuda.threadIdx.z
        out[tz, ty, tx] = cuda.shfl_xor_sync(FULL, x[tz, ty, tx], 1)

    x = np.arange(96, dtype=np.int32).reshape(4, 3, 8)
    out = np.zeros_like(x)
    launch_clean(neighbour, 1, (8, 3, 4), x, out)
    np.testing.assert_array_equal(out.ravel(), np.arange(96) ^ 1)


def test_shuffle_of_the_lanes_in_the_mask_inside_a_branch():
    def halves(x, out):
        lane = cuda.threadIdx.x % 32
        i = cuda.threadIdx.x
        if lane < 16:
            out[i] = cuda.shfl_xor_sync(0xFFFF, x[i], 3)
        else:
            out[i] = cuda.shfl_xor_sync(0xFFFF0000, x[i], 12)

    x = values("float32")
    lanes = np.arange(WARP)
    source = np.where(lanes < 16, lanes ^ 3, lanes ^ 12)
    np.testing.assert_array_equal(mapped(halves, x, "float32"), by_warp(x)[:, source].ravel())


def test_warp_sum_in_a_loop_with_an_offset_of_each_round():
    def total(x, out):
        i = cuda.grid(1)
        value = x[i]
        offset = 16
        while offset > 0:
            value += cuda.shfl_down_sync(FULL, value, offset)
            offset //= 2
        if cuda.laneid == 0:
            out[i // 32] = value

    x = values("float32", warps=8)
    out = np.zeros(8, np.float32)
    launch_clean(total, 2, 128, x, out)
    np.testing.assert_array_equal(out, by_warp(x).sum(axis=1))


def test_votes():
    def vote(x, out):
        i = cuda.threadIdx.x
        yes = x[i] > 0
        out[i, 0] = 1 if cuda.all_sync(FULL, yes) else 0
        out[i, 1] = 1 if cuda.any_sync(FULL, yes) else 0
        out[i, 2] = 1 if cuda.eq_sync(FULL, yes) else 0
        out[i, 3] = cuda.ballot_sync(FULL, yes)

    x = np.zeros((4, WARP), np.float32)
    x[1] = 1
    x[2, 31] = 1
    x[3, :31] = 1
    out = np.zeros((4 * WARP, 4), np.int64)
    launch_clean(vote, 1, 4 * WARP, x.ravel(), out)
    # a ballot is an int32 in Numba: bit 31 is the sign
    assert out[::WARP].tolist() == [[0, 0, 1, 0], [1, 1, 1, -1], [0, 1, 0, -(2**31)], [0, 1, 0, 2**31 - 1]]
    assert (by_warp(out[:, 3]) == by_warp(out[:, 3])[:, :1]).all()


def test_votes_take_integers():
    def vote(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.ballot_sync(FULL, x[i])

    x = np.zeros(WARP, np.int32)
    x[[2, 3]] = [5, -1]
    assert mapped(vote, x, np.int32).tolist() == [0b1100] * WARP


def test_vote_of_a_part_of_the_warp():
    def vote(x, out):
        i = cuda.threadIdx.x
        if i < 8:
            out[i] = cuda.ballot_sync(0xFF, x[i] > 3)

    x = np.arange(WARP, dtype=np.float32)
    assert mapped(vote, x, np.int32).tolist() == [0xF0] * 8 + [0] * 24


@pytest.mark.parametrize("dtype", DTYPES)
def test_match_any(dtype):
    def match(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.match_any_sync(FULL, x[i])

    x = (values(dtype) % 5).astype(dtype)
    equal = by_warp(x)[:, :, None] == by_warp(x)[:, None, :]
    masks = (equal * (1 << np.arange(WARP, dtype=np.uint64))).sum(axis=2, dtype=np.uint64).astype(np.uint32)
    np.testing.assert_array_equal(mapped(match, x, np.int32), masks.view(np.int32).ravel())


def test_match_all():
    def match(x, mask, found):
        i = cuda.threadIdx.x
        lanes, same = cuda.match_all_sync(FULL, x[i])
        mask[i] = lanes
        found[i] = 1 if same else 0

    x = np.concatenate([np.full(WARP, 3), np.append(np.full(WARP - 1, 3), 4)]).astype(np.int32)
    mask, found = np.full(64, 9, np.int32), np.full(64, 9, np.int32)
    launch_clean(match, 1, 64, x, mask, found)
    assert mask.tolist() == [-1] * WARP + [0] * WARP
    assert found.tolist() == [1] * WARP + [0] * WARP


def test_activemask_holds_the_lanes_of_the_branch():
    def masks(out):
        i = cuda.threadIdx.x
        if i % 32 < 20:
            out[i] = cuda.activemask()

    out = np.zeros(64, np.uint32)
    launch_clean(masks, 1, 64, out)
    lanes = np.arange(64)
    inside = lanes % WARP < 20
    assert (out[inside] >> (lanes[inside] % WARP) & 1).all()  # the lane itself
    assert (out[inside] < 1 << 20).all()  # nobody who went another way
    assert not out[~inside].any()


def test_lanemask_lt():
    def masks(out):
        i = cuda.threadIdx.x
        out[i] = cuda.lanemask_lt()

    out = np.zeros(64, np.uint32)
    launch_clean(masks, 1, 64, out)
    assert out.tolist() == [(1 << lane) - 1 for lane in range(WARP)] * 2


def test_last_warp_with_fewer_lanes():
    def count(out):
        i = cuda.threadIdx.x
        mask = 0xFFFFFFFF if i < 32 else 0xFF
        out[i] = cuda.popc(cuda.ballot_sync(mask, True))

    out = np.zeros(40, np.int32)
    launch_clean(count, 1, 40, out)
    assert out.tolist() == [32] * 32 + [8] * 8


def test_lanes_that_returned_are_not_waited_for():
    def vote(x, out):
        i = cuda.threadIdx.x
        if i >= 20:
            return
        out[i] = cuda.ballot_sync(FULL, x[i] > 3)

    x = np.arange(WARP, dtype=np.float32)
    assert mapped(vote, x, np.int32).tolist() == [(1 << 20) - 16] * 20 + [0] * 12


def test_rank_within_the_warp_by_ballot():
    def compact(x, rank):
        i = cuda.grid(1)
        lane = cuda.laneid
        votes = cuda.ballot_sync(FULL, x[i] > 0)
        below = (1 << lane) - 1
        if x[i] > 0:
            rank[i] = cuda.popc(votes & below)

    x = values("int32", warps=4)
    rank = np.full(x.size, -1, np.int64)
    launch_clean(compact, 2, 64, x, rank)
    positive = by_warp(x) > 0
    expected = np.where(positive, np.cumsum(positive, axis=1) - 1, -1)
    np.testing.assert_array_equal(rank, expected.ravel())

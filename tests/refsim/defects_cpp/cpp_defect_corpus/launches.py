"""How the pairs that only C++ has are launched: grid, block, arguments, and NumPy's answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from defect_corpus import Launch

GIBIBYTE = 1 << 30


def ramp(count, dtype=np.float32):
    """0, 1, 2, ..."""
    return np.arange(count, dtype=dtype)


@dataclass(frozen=True)
class Told:
    """The launch of a pair; ``expected(*arguments)`` gives argument position -> array after the launch."""

    wrong_launch: Launch
    right_launch: Launch
    arguments: Callable[[], tuple[Any, ...]]
    expected: Callable[..., dict[int, np.ndarray]]
    rtol: float = 0.0


LAUNCHES: dict[str, Told] = {}

ALSO = {
    "device_function_with_barrier_under_branch": frozenset({"race"}),  # cells that their barrier does not order
    "one_axis_guarded": frozenset({"race"}),  # the columns too many are those of the next row
}
"""Kinds that may follow from the mistake of a pair at other lines."""


def launched(grid, block, *make, shared_bytes=0):
    """Tell the launch of a pair: a decorator of its answer, which has the pair's name.

    ``make`` are functions without arguments, one for each argument of the kernel.
    """

    def tell(expected):
        launch = Launch(grid, block, shared_bytes)
        LAUNCHES[expected.__name__] = Told(launch, launch, lambda: tuple(one() for one in make), expected)
        return expected

    return tell


def floats(count):
    """0, 1, 2, ... in float32."""
    return lambda: ramp(count)


def ints(count, first=0):
    """first, first + 1, ... in int32."""
    return lambda: ramp(count, np.int32) + np.int32(first)


def zeros(count, dtype=np.float32):
    """An output buffer of zeros."""
    return lambda: np.zeros(count, dtype)


def marked_rows(rows, pitch):
    """Bytes that take no memory until they are written; the first of each row is its number plus one."""

    def make():
        x = np.zeros((rows - 1) * pitch + 1, np.uint8)
        x[::pitch] = np.arange(1, rows + 1)
        return x

    return make


# ------------------------------------------------------------------------------------------------------- pointers.cu


@launched(1, 64, floats(64), zeros(64))
def negative_index_does_not_wrap(x, out):
    return {1: x + np.append(0, x[:-1])}


@launched(1, 4, marked_rows(4, GIBIBYTE), lambda: np.int32(GIBIBYTE), zeros(4, np.uint8))
def index_overflows_int(x, pitch, out):
    return {2: np.arange(1, 5)}


@launched(1, 2, marked_rows(2, 4 * GIBIBYTE), lambda: np.int32(GIBIBYTE), zeros(2, np.uint8))
def index_overflows_int_and_comes_back(x, pitch, out):
    return {2: np.array([1, 2])}


@launched(1, 4, marked_rows(4, 3 * GIBIBYTE // 2), lambda: np.uint32(3 * GIBIBYTE // 2), zeros(4, np.uint8))
def index_overflows_unsigned(x, pitch, out):
    return {2: np.arange(1, 5)}


@launched(3, 8, floats(3 * 33), zeros(24))
def misaligned_vector_load(x, out):
    return {1: x.reshape(3, 33)[:, :32].reshape(24, 4).sum(axis=1)}


@launched(1, 8, floats(16), zeros(18))
def misaligned_vector_store(x, out):
    return {1: np.concatenate([[0], x, [0]])}


@launched(1, 8, floats(30), zeros(32))
def vector_load_past_the_ragged_end(x, out):
    return {1: np.append(x, [0, 0])}


@launched(1, 64, floats(64), zeros(64), shared_bytes=65 * 4)
def dynamic_shared_off_by_one(x, out):
    return {1: x + np.append(0, x[:-1])}


@launched(1, 30, floats(60), zeros(30))
def walking_pointer_passes_the_end(x, out):
    return {1: x[:30] + x[30:]}


@launched(1, 64, floats(64), lambda: None, zeros(64))
def null_pointer_read(x, bias, out):
    return {2: x}


@launched(1, 64, floats(64 * 3), zeros(64))
def struct_array_one_record_too_many(particles, out):
    return {1: np.append(np.diff(particles[2::3]), 0)}


# ------------------------------------------------------------------------------------------------ warp_intrinsics.cu


@launched(1, 64, ints(64), zeros(64, np.int32))
def ballot_after_an_early_return(x, out):
    counts = ((x % 3 == 0) & (x % 2 == 1)).reshape(2, 32).sum(axis=1)
    return {1: np.where(x % 3 == 0, np.repeat(counts, 32), -1)}


@launched(1, 32, ints(32), zeros(32, np.int32))
def reduce_inside_a_branch(x, out):
    return {1: np.where(x >= 8, 31, 0)}


@launched(1, 64, floats(64), zeros(64))
def segment_sum_one_step_short(x, out):
    return {1: np.repeat(x.reshape(8, 8).sum(axis=1), 8)}


# ----------------------------------------------------------------------------------------------------- wavefronts.cu


@launched(1, 128, floats(128), zeros(2))
def reduction_of_32_lanes_on_64(x, out):
    return {1: x.reshape(2, 64).sum(axis=1)}


@launched(1, 64, ints(64), zeros(64, np.int32))
def ballot_kept_in_32_bits(x, out):
    return {1: np.full(64, (x % 3 == 0).sum())}


@launched(1, 64, floats(64), zeros(64))
def mask_of_32_lanes_on_64(x, out):
    return {1: x[np.arange(64) ^ 1]}


@launched(1, 128, floats(128), zeros(1))
def warp_number_by_32_on_64(x, out):
    return {1: x.sum(keepdims=True)}


# ------------------------------------------------------------------------------------------------ synchronisation.cu


@launched(4, 32, zeros(1, np.int32), zeros(1, np.int32))
def lock_without_fences(lock, total):
    return {0: np.array([0]), 1: np.array([1 + 2 + 3 + 4])}


@launched(4, 32, zeros(1, np.int32), zeros(1, np.int32))
def spin_lock_without_fences(lock, total):
    return {0: np.array([0]), 1: np.array([1 + 2 + 3 + 4])}


@launched(4, 32, zeros(1, np.int32), zeros(1, np.int32))
def lock_released_by_a_plain_store(lock, total):
    return {0: np.array([0]), 1: np.array([1 + 2 + 3 + 4])}


@launched(4, 32, zeros(1, np.int32), zeros(1, np.int32))
def lock_asked_once(lock, total):
    return {0: np.array([0]), 1: np.array([1 + 2 + 3 + 4])}


@launched(1, 32, zeros(1, np.int32), zeros(1, np.int32))
def lock_asked_for_twice(lock, total):
    return {0: np.array([0]), 1: np.array([3])}


@launched(4, 64, lambda: (ramp(256) * 77) % 257, zeros(1))
def compare_and_swap_without_retry(x, out):
    return {1: x.max(keepdims=True)}


@launched(4, 64, floats(256), zeros(4), zeros(1))
def last_block_sum_without_fence(x, partial, out):
    return {1: x.reshape(4, 64).sum(axis=1), 2: x.sum(keepdims=True)}


@launched(1, 64, floats(64), zeros(64))
def swapped_pointers_without_barrier(x, out):
    for _ in range(5):
        x = x + np.roll(x, -1)
    return {1: x}


@launched(1, 64, floats(64), zeros(64))
def vector_store_read_by_others(x, out):
    return {1: x[np.arange(64) ^ 3]}


@launched(1, 64, lambda: ramp(64, np.int32) // 3, zeros(64, np.uint8))
def flags_packed_into_a_word(x, out):
    return {1: x % 2}


@launched(4, 64, ints(4, first=5), zeros(256, np.int32))
def device_variable_shared_by_blocks(x, out):
    return {1: np.repeat(x, 64)}


# -------------------------------------------------------------------------------------------- asynchronous_copies.cu


@launched(1, 64, floats(256), zeros(64))
def copy_read_before_the_wait(x, out):
    return {1: x[::4]}


@launched(1, 64, floats(128), zeros(64))
def wait_for_the_wrong_group(x, out):
    return {1: x[:64] + x[64:]}


@launched(1, 64, floats(64), zeros(64))
def wait_without_barrier(x, out):
    return {1: x[::-1]}


# ----------------------------------------------------------------------- values_integer.cu and values_conversion.cu


@launched(1, 64, ints(64, first=-32), lambda: np.uint32(10), zeros(64, np.int32))
def negative_compared_with_unsigned(x, limit, out):
    return {2: x < 10}


@launched(1, 64, ints(64, first=-32), zeros(64, np.int32))
def remainder_of_a_negative_number(x, out):
    return {1: x % 8}


@launched(1, 64, ints(64), zeros(64, np.int64))
def shift_of_an_int_into_64_bits(x, out):
    return {1: (np.int64(1) << (x & 31)) + (x >> 5)}


@launched(1, 64, ints(64), zeros(64, np.int32))
def case_without_break(x, out):
    return {1: np.choose(x % 3, [10 * x, x + 1, -x])}


@launched(2, (8, 4), floats(64), zeros(64))
def second_axis_of_the_block_forgotten(x, out):
    return {1: 2 * x}


@launched(1, 64, ints(64), zeros(64))
def quotient_of_two_ints(x, out):
    return {1: x / 4}


@launched(1, 64, lambda: (ramp(64) - 32) / 4, zeros(64))
def fraction_lost_in_an_int(x, out):
    return {1: np.abs(x)}


@launched(1, 64, lambda: 60000 + 1024 * ramp(64), zeros(64, np.float16))
def narrowed_before_it_is_scaled(x, out):
    return {1: (x / 4).astype(np.float16)}


@launched(1, 256, floats(256), zeros(256))
def more_threads_than_launch_bounds(x, out):
    return {1: x + 1}


# ---------------------------------------------------------------------------------------------- scopes_and_orders.cu


@launched(3, 32, zeros(1, np.int32))
def block_scoped_counter(counter):
    return {0: np.array([96])}


@launched(3, 32, zeros(1, np.int32))
def one_block_adds_with_block_scope(counter):
    return {0: np.array([96])}


@launched(4, 32, zeros(1, np.int32), zeros(1, np.int32))
def block_scoped_lock(lock, total):
    return {0: np.array([0]), 1: np.array([1 + 2 + 3 + 4])}


@launched(4, 32, floats(4), zeros(4), zeros(1, np.uint32), zeros(1))
def block_fence_before_the_ticket(x, partial, tickets, out):
    return {1: 2 * x, 3: 2 * x.sum(keepdims=True)}


@launched(1, 64, lambda: np.full(1, 3, np.float32), zeros(1))
def handed_to_another_warp_without_fence(x, out):
    return {1: x}


def message_expected(x, message, flag, out):
    return {1: x[:1], 3: np.array([0, x[0], x[0]])}


for name in (
    "fence_behind_the_flag", "volatile_flag_without_fence", "flag_without_volatile", "relaxed_store_of_the_flag",
    "release_of_block_scope_between_blocks", "narrow_fence_before_a_wide_store",
):  # fmt: skip
    told = launched(3, 32, lambda: np.full(1, 3, np.float32), zeros(1), zeros(1, np.int32), zeros(3))
    told(message_expected)
    LAUNCHES[name] = LAUNCHES.pop("message_expected")


@launched(2, 64, floats(64), zeros(64), zeros(1, np.int32), zeros(64))
def fence_of_one_thread_for_all(x, message, flag, out):
    return {1: x, 3: x}


@launched(4, 32, floats(128), zeros(128), zeros(1, np.int32), zeros(128))
def hand_made_grid_barrier_without_fence(x, middle, arrived, out):
    return {1: 2 * x, 3: 2 * x[::-1]}


@launched(4, 32, ints(4, first=1), zeros(4, np.int32), zeros(4, np.int32))
def volatile_chain_with_a_weak_link(x, total, state):
    return {1: np.cumsum(x), 2: np.ones(4)}


@launched(2, 32, zeros(1, np.int32))
def volatile_counter(counter):
    return {0: np.array([64])}


@launched(4, 32, floats(4), zeros(4), zeros(1, np.uint32), zeros(1))
def relaxed_ticket_of_the_last_block(x, partial, tickets, out):
    return {1: 2 * x, 3: 2 * x.sum(keepdims=True)}


# ---------------------------------------------------------------------------------------------------- races_mixed.cu


@launched(2, 64, lambda: (ramp(128, np.int32) * 37) % 129, lambda: np.full(1, -1, np.int32), zeros(1, np.int32))
def place_of_the_maximum_stored_plainly(x, best, place):
    return {1: x.max(keepdims=True), 2: np.array([x.argmax()])}


@launched(1, 64, zeros(1, np.uint32))
def word_stored_while_others_set_bits(word):
    return {0: np.array([0xFFFFFFFF], np.uint32)}


@launched(1, 64, zeros(1, np.int32), zeros(1, np.int32))
def mailbox_peeked_at(box, out):
    return {0: np.array([7]), 1: np.array([1])}


@launched(1, 64, ints(64), zeros(1, np.int32), zeros(64, np.int32), zeros(1, np.int32))
def append_and_read_the_length(x, length, values, out):
    return {1: np.array([32]), 3: np.array([32])}


@launched(1, 64, lambda: np.full(64, 5, np.int32), zeros(1, np.int32), zeros(64, np.int32), zeros(1, np.int32))
def list_read_by_its_length(x, length, values, out):
    return {1: np.array([32]), 3: np.array([5])}


@launched(1, 64, zeros(1, np.int32))
def another_value_on_the_way(cell):
    return {0: np.array([5])}


@launched(1, 64, zeros(64, np.int32))
def cleared_by_all_and_set_by_one(out):
    return {0: np.ones(64)}


@launched(2, 64, zeros(1, np.int32))
def flag_raised_in_every_round(flag):
    return {0: np.array([1])}


@launched(3, 32, zeros(1, np.int32), zeros(3, np.int32))
def common_value_read_back(ready, out):
    return {0: np.array([1]), 1: np.ones(3)}


# ----------------------------------------------------------------------------------------- races_warps_and_rounds.cu


@launched(1, 64, floats(64), zeros(1))
def volatile_warp_reduction(x, out):
    return {1: x.sum(keepdims=True)}


@launched(1, 32, ints(32), zeros(32, np.int32))
def warp_scan_without_syncwarp(x, out):
    return {1: np.cumsum(x)}


@launched(1, 32, ints(32), zeros(32, np.int32))
def syncwarp_of_half_a_warp(x, out):
    return {1: x[::-1]}


@launched(1, 32, ints(32), zeros(32, np.int32))
def shuffle_taken_for_a_barrier(x, out):
    return {1: np.roll(x, -1)}


@launched(1, 64, ints(64), zeros(64, np.int32))
def result_of_the_first_lane(x, out):
    return {1: np.repeat(x[::32] + 1, 32)}


@launched(1, 32, ints(32), zeros(32, np.int32), zeros(32, np.int32))
def warp_exchange_in_global_memory(x, scratch, out):
    return {1: x, 2: x[np.arange(32) ^ 5]}


@launched(1, 32, ints(32), zeros(32, np.int32))
def tile_sync_for_the_neighbour_tile(x, out):
    return {1: x[np.arange(32) ^ 15]}


@launched(1, 64, ints(256), zeros(4, np.int32))
def sums_of_warps_reused_for_the_next_row(x, out):
    return {1: x.reshape(4, 64).sum(axis=1)}


@launched(1, 64, lambda: (ramp(64, np.int32) * 29) % 64)
def flag_lowered_while_others_ask(x):
    return {0: np.maximum.accumulate(x)}


@launched(1, 64, floats(6 * 64), zeros(64))
def ring_one_buffer_short(x, out):
    return {1: x.reshape(6, 64).sum(axis=0)[::-1]}


@launched(1, 64, ints(192), zeros(192, np.int32))
def count_of_the_tile_set_back(x, out):
    return {1: np.repeat((x % 3 == 0).reshape(3, 64).sum(axis=1), 64)}


@launched(1, 64, floats(256), zeros(64))
def double_buffer_without_the_first_barrier(x, out):
    return {1: x.reshape(4, 64).sum(axis=0)[np.arange(64) ^ 1]}


@launched(3, 32, floats(96), zeros(96))
def two_global_buffers_and_barriers_of_blocks(a, b):
    for _ in range(4):
        a = a + np.roll(a, -1)
    return {0: a, 1: a}


@launched(1, 64, floats(192), zeros(64))
def stage_refilled_while_read(x, out):
    return {1: x.reshape(3, 64).sum(axis=0)[::-1]}


@launched(1, 64, floats(64), zeros(64))
def committed_after_the_wait(x, out):
    return {1: x}


@launched(1, 64, floats(64), zeros(64))
def cleared_while_the_copy_is_on_its_way(x, out):
    return {1: np.where(np.arange(64) < 60, x, 0)}

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

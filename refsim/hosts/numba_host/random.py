"""``numba.cuda.random``: xoroshiro128+ generators, the same numbers as numba's.

The states are a device array of records, numba's own; they are made here, because numba's own way takes a loop of 128
steps per generator. The functions for kernels are numba's, written again because this module stands in its place.
"""

# mypy: disallow-untyped-calls=False
from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float32, float64, from_dtype, int64, uint32, uint64

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
xoroshiro128p_type = from_dtype(xoroshiro128p_dtype)

TWO_PI_FLOAT32 = np.float32(2 * math.pi)
TWO_PI_FLOAT64 = np.float64(2 * math.pi)

_WORD = 2**64 - 1
_JUMP = (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922)  # Vigna's polynomial: 2**64 steps at once

# ------------------------------------------------------------------------------------------- device functions


def rotl(x, k):  # type: ignore[no-untyped-def]
    """Left rotate x by k bits."""
    x = uint64(x)
    k = uint32(k)
    return (x << k) | (x >> uint32(64 - k))


def xoroshiro128p_next(states, index):  # type: ignore[no-untyped-def]
    """The next random uint64 of generator ``index``."""
    index = int64(index)
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    result = s0 + s1
    s1 ^= s0
    states[index]["s0"] = uint64(rotl(s0, uint32(55))) ^ s1 ^ (s1 << uint32(14))
    states[index]["s1"] = uint64(rotl(s1, uint32(36)))
    return result


def init_xoroshiro128p_state(states, index, seed):  # type: ignore[no-untyped-def]
    """Seed generator ``index`` by SplitMix64."""
    index = int64(index)
    seed = uint64(seed)
    z = seed + uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint32(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint32(27))) * uint64(0x94D049BB133111EB)
    z = z ^ (z >> uint32(31))
    states[index]["s0"] = z
    states[index]["s1"] = z


def xoroshiro128p_jump(states, index):  # type: ignore[no-untyped-def]
    """Advance generator ``index`` by 2**64 steps."""
    index = int64(index)
    jump = (uint64(0xBEAC0467EBA5FACB), uint64(0xD86B048B86AA9922))
    s0 = uint64(0)
    s1 = uint64(0)
    for i in range(2):
        for b in range(64):
            if jump[i] & (uint64(1) << uint32(b)):
                s0 ^= states[index]["s0"]
                s1 ^= states[index]["s1"]
            xoroshiro128p_next(states, index)
    states[index]["s0"] = s0
    states[index]["s1"] = s1


def uint64_to_unit_float64(x):  # type: ignore[no-untyped-def]
    """A uint64 as a float64 in [0, 1)."""
    x = uint64(x)
    return (x >> uint32(11)) * (float64(1) / (uint64(1) << uint32(53)))


def uint64_to_unit_float32(x):  # type: ignore[no-untyped-def]
    """A uint64 as a float32 in [0, 1]."""
    x = uint64(x)
    return float32(uint64_to_unit_float64(x))


def xoroshiro128p_uniform_float32(states, index):  # type: ignore[no-untyped-def]
    """A uniform float32 of generator ``index``."""
    index = int64(index)
    return uint64_to_unit_float32(xoroshiro128p_next(states, index))


def xoroshiro128p_uniform_float64(states, index):  # type: ignore[no-untyped-def]
    """A uniform float64 of generator ``index``."""
    index = int64(index)
    return uint64_to_unit_float64(xoroshiro128p_next(states, index))


def xoroshiro128p_normal_float32(states, index):  # type: ignore[no-untyped-def]
    """A normal float32 of generator ``index``, by Box and Muller; takes two steps."""
    index = int64(index)
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-float32(2.0) * math.log(u1)) * math.cos(TWO_PI_FLOAT32 * u2)


def xoroshiro128p_normal_float64(states, index):  # type: ignore[no-untyped-def]
    """A normal float64 of generator ``index``, by Box and Muller; takes two steps."""
    index = int64(index)
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-float64(2.0) * math.log(u1)) * math.cos(TWO_PI_FLOAT64 * u2)


# --------------------------------------------------------------------------------------------------- states


def create_xoroshiro128p_states(n: int, seed: int, subsequence_start: int = 0, stream: Any = 0) -> Any:
    """States of ``n`` generators that are 2**64 steps apart."""
    from numba.cuda import api

    return api.to_device(_states(n, seed, subsequence_start), stream=stream)


def init_xoroshiro128p_states(states: Any, seed: int, subsequence_start: int = 0, stream: Any = 0) -> None:
    """Set existing states anew."""
    states.copy_to_device(_states(states.shape[0], seed, subsequence_start))


def _states(n: int, seed: int, start: int) -> np.ndarray[Any, Any]:
    """States seeded by SplitMix64. A jump is linear in the bits, so that 2**k jumps are one 128-column matrix."""
    z = (seed + 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    z ^= z >> 31
    first = (z, z)
    for _ in range(start):
        first = _jumped(first)
    states = np.array([first], np.uint64)
    units = [(1 << bit, 0) for bit in range(64)] + [(0, 1 << bit) for bit in range(64)]
    columns = np.array([_jumped(unit) for unit in units], np.uint64)
    while len(states) < n:
        states = np.concatenate([states, _times(columns, states)])
        columns = _times(columns, columns)
    return np.ascontiguousarray(states[:n]).view(xoroshiro128p_dtype).reshape(n)


def _jumped(state: tuple[int, int]) -> tuple[int, int]:
    s0, s1 = state
    sum0 = sum1 = 0
    for word in _JUMP:
        for bit in range(64):
            if word >> bit & 1:
                sum0, sum1 = sum0 ^ s0, sum1 ^ s1
            s1 ^= s0
            s0 = (((s0 << 55) | (s0 >> 9)) ^ s1 ^ (s1 << 14)) & _WORD
            s1 = ((s1 << 36) | (s1 >> 28)) & _WORD
    return sum0, sum1


def _times(columns: np.ndarray[Any, Any], states: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The matrix over GF(2) with these columns, applied to every state."""
    result = np.zeros_like(states)
    for position in range(128):
        bits = states[:, position // 64] >> np.uint64(position % 64) & np.uint64(1)
        result ^= bits[:, None] * columns[position]
    return result

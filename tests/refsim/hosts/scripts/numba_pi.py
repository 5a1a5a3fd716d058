"""Pi by throwing darts, with numba's generators and a device function."""

import sys

import numpy as np
from numba import cuda
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32


@cuda.jit(device=True, inline=True)
def inside(x, y):
    return x * x + y * y <= 1


@cuda.jit(fastmath=True)
def throw(states, darts, out):
    thread = cuda.grid(1)
    hits = 0
    for _ in range(darts):
        x = xoroshiro128p_uniform_float32(states, thread)
        y = xoroshiro128p_uniform_float32(states, thread)
        if inside(x, y):
            hits += 1
    out[thread] = 4.0 * hits / darts


darts = int(sys.argv[1])
out = np.zeros(256, np.float32)
throw[4, 64](create_xoroshiro128p_states(256, seed=1), darts, out)
print(f"pi is about {out.mean():.1f}")

"""The generators of numba.cuda.random give numba's own numbers, bit for bit."""

import numpy as np
import pytest
from numba import cuda

import refsim
from refsim.hosts.numba_host import random


@pytest.mark.parametrize(("n", "seed", "start"), [(1, 0, 0), (37, 7, 0), (300, 2**40 + 1, 3)])
def test_states_and_numbers_are_those_of_numba(n, seed, start):
    from numba.cuda import random as real

    states = np.empty(n, real.xoroshiro128p_dtype)
    real.init_xoroshiro128p_states_cpu(states, seed, start)
    ours = random.create_xoroshiro128p_states(n, seed, start).copy_to_host()
    np.testing.assert_array_equal(ours, states.view(np.uint64).reshape(n, 2))

    drawn = np.zeros(n, np.float32)
    refsim.launch(draw, 1, n, ours, drawn).raise_if_findings()
    wanted = [real.xoroshiro128p_uniform_float32(states, i) for i in range(n)]
    np.testing.assert_array_equal(drawn, np.array(wanted, np.float32))
    np.testing.assert_array_equal(ours, states.view(np.uint64).reshape(n, 2))


uniform = random.xoroshiro128p_uniform_float32


def draw(states, out):
    i = cuda.grid(1)
    out[i] = uniform(states, i)

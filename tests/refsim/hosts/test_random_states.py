"""The generators of numba.cuda.random give numba's own numbers, bit for bit."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda import random as real

import refsim
from refsim.hosts.numba_host import random
from refsim.hosts.session import Session, activate
from refsim.hosts.stand_ins import stand_ins


@pytest.fixture
def simulated():
    """numba's host code on the simulated driver, as in a script."""
    with stand_ins():
        before = activate(Session())
        yield
        activate(before)


DRAWS = [
    ("xoroshiro128p_next", np.uint64),
    ("xoroshiro128p_uniform_float32", np.float32),
    ("xoroshiro128p_uniform_float64", np.float64),
    ("xoroshiro128p_normal_float32", np.float32),
    ("xoroshiro128p_normal_float64", np.float64),
]


def states_of_numba(n, seed, start):
    states = np.empty(n, real.xoroshiro128p_dtype)
    real.init_xoroshiro128p_states_cpu(states, seed, start)
    return states


@pytest.mark.parametrize(("n", "seed", "start"), [(1, 0, 0), (37, 7, 0), (300, 2**40 + 1, 3)])
def test_states_are_those_of_numba(simulated, n, seed, start):
    ours = random.create_xoroshiro128p_states(n, seed, start).copy_to_host()
    assert ours.dtype == real.xoroshiro128p_dtype
    np.testing.assert_array_equal(ours, states_of_numba(n, seed, start))


def drawing(draw):
    def kernel(states, out):
        i = cuda.grid(1)
        for k in range(out.shape[1]):
            out[i, k] = draw(states, i)

    return kernel


@pytest.mark.parametrize(("name", "dtype"), DRAWS, ids=[name for name, _ in DRAWS])
@pytest.mark.parametrize("source", [real, random], ids=["numba", "stand-in"])
def test_numbers_are_those_of_numba(source, name, dtype):
    n, count = 8, 5
    states, drawn = states_of_numba(n, 11, 0), np.zeros((n, count), dtype)
    expected_states, expected = states.copy(), np.zeros((n, count), dtype)
    plain = getattr(real, name)  # numba compiles it for the CPU
    for i in range(n):
        for k in range(count):
            expected[i, k] = plain(expected_states, i)
    refsim.launch(drawing(getattr(source, name)), 1, n, states, drawn).raise_if_findings()
    np.testing.assert_array_equal(states, expected_states)
    if "normal" in name:  # the CPU's sqrt(-2 log u) cos(v) may round otherwise
        np.testing.assert_allclose(drawn, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)
    else:
        np.testing.assert_array_equal(drawn, expected)


seed_one, jump = random.init_xoroshiro128p_state, random.xoroshiro128p_jump


def seeded_and_jumped(states, seed):
    i = cuda.grid(1)
    seed_one(states, i, seed + i)
    jump(states, i)


def test_a_kernel_seeds_and_jumps():
    states, expected = np.zeros(4, real.xoroshiro128p_dtype), np.zeros(4, real.xoroshiro128p_dtype)
    for i in range(4):
        real.init_xoroshiro128p_state(expected, i, 5 + i)
        real.xoroshiro128p_jump(expected, i)
    refsim.launch(seeded_and_jumped, 1, 4, states, 5).raise_if_findings()
    np.testing.assert_array_equal(states, expected)

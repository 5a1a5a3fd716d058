"""Random C++ loops over shared memory and pointers: machine code and NumPy's lane code leave the same bits.

A dozen kernels run by default. Thousands: ``REFSIM_FUZZ_LOOPS=5000 python -m pytest
tests/refsim/engine/native/test_loops_cpp_fuzz.py``; another region of seeds: ``REFSIM_FUZZ_SEED=100000``.
"""

import os

import pytest
from cpp_loop_generator import CppKernel
from same_bits import same_bits

import refsim
from refsim.devices import device_named

KERNELS = int(os.environ.get("REFSIM_FUZZ_LOOPS", "24"))
FIRST_SEED = int(os.environ.get("REFSIM_FUZZ_SEED", "0"))
CHUNK = 12


@pytest.mark.parametrize("chunk", range((KERNELS + CHUNK - 1) // CHUNK))
def test_random_loops_leave_the_same_bits(chunk):
    ran = 0
    seeds = range(FIRST_SEED + chunk * CHUNK, FIRST_SEED + min((chunk + 1) * CHUNK, KERNELS))
    for seed in seeds:
        kernel = CppKernel(seed)
        raw = refsim.RawKernel(kernel.source, "kernel", kernel.options)
        launch = {"lanes_per_batch": kernel.lanes_per_batch, "shared_bytes": kernel.shared_bytes}
        expected, got = kernel.arguments(), kernel.arguments()
        never = refsim.launch(raw, kernel.grid, kernel.block, *expected, native="never", **launch)
        always = refsim.launch(raw, kernel.grid, kernel.block, *got, native="always", **launch)
        where = f"seed {seed}, ({kernel.grid}, {kernel.block}), {launch}, {kernel.options}\n{kernel.source}"
        assert str(never) == str(always), f"{where}\n{never}\n{always}"
        assert not never.findings, f"{where}\n{never}"
        for have, want in zip(got[-3:], expected[-3:]):
            assert same_bits(have, want), f"{where}\n{have}\n{want}"
        ran += any(loop.variants for loop in raw.lane_code(got, device_named("sim:sm_90")).native_loops)
    assert ran >= len(seeds) * 0.4

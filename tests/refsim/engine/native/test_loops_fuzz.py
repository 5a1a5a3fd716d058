"""Random loops over shared memory: machine code and NumPy's lane code leave the same bits.

Some dozens of kernels run by default. Thousands: ``REFSIM_FUZZ_LOOPS=5000 python -m pytest
tests/refsim/engine/native/test_loops_fuzz.py``; another region of seeds: ``REFSIM_FUZZ_SEED=100000``.
"""

import os

import pytest
from loop_generator import Kernel
from same_bits import imported, loops_of, same_bits

import refsim
from refsim.engine import run
from refsim.engine.native import calls

KERNELS = int(os.environ.get("REFSIM_FUZZ_LOOPS", "60"))
FIRST_SEED = int(os.environ.get("REFSIM_FUZZ_SEED", "0"))
CHUNK = 20


@pytest.mark.parametrize("chunk", range((KERNELS + CHUNK - 1) // CHUNK))
def test_random_loops_leave_the_same_bits(chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "usable_cores", lambda: 3)
    ran = 0
    seeds = range(FIRST_SEED + chunk * CHUNK, FIRST_SEED + min((chunk + 1) * CHUNK, KERNELS))
    for seed in seeds:
        kernel = Kernel(seed)
        cores, part, seconds = [(4e7, 1e7, 1), (1, 1e7, 1), (4e7, 1, 0), (1, 1, 0), (4e7, 1e7, 1)][seed % 5]
        monkeypatch.setattr(calls, "WORTH_A_CORE", cores)
        monkeypatch.setattr(calls, "FIRST_PART", part)
        monkeypatch.setattr(calls, "PART_SECONDS", seconds)
        module = imported(kernel.source, tmp_path / f"loops_{seed}.py")
        launch = {"lanes_per_batch": kernel.lanes_per_batch}
        expected, got = kernel.arguments(), kernel.arguments()
        never = refsim.launch(module.kernel, kernel.grid, kernel.block, *expected, native="never", **launch)
        always = refsim.launch(module.kernel, kernel.grid, kernel.block, *got, native="always", **launch)
        where = f"seed {seed}, ({kernel.grid}, {kernel.block}), batches of {kernel.lanes_per_batch}\n{kernel.source}"
        assert str(never) == str(always), f"{where}\n{never}\n{always}"
        assert not never.findings, f"{where}\n{never}"
        for have, want in zip(got[-3:], expected[-3:]):
            assert same_bits(have, want), f"{where}\n{have}\n{want}"
        ran += any(loop.variants for loop in loops_of(module.kernel, *got))
    assert ran >= len(seeds) * 0.4

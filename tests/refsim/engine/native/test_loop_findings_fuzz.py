"""Random kernels with defects around loops: machine code or not, the report is the same word for word.

More programs: ``REFSIM_FUZZ_LOOPS=5000 python -m pytest tests/refsim/engine/native/test_loop_findings_fuzz.py``;
another region of seeds: ``REFSIM_FUZZ_SEED=100000``.
"""

import os

import numpy as np
import pytest
from defect_generator import Program
from same_bits import imported, loops_of, same_bits

import refsim

PROGRAMS = int(os.environ.get("REFSIM_FUZZ_LOOPS", "60"))
FIRST_SEED = int(os.environ.get("REFSIM_FUZZ_SEED", "0"))
CHUNK = 30


@pytest.mark.parametrize("chunk", range((PROGRAMS + CHUNK - 1) // CHUNK))
def test_reports_are_the_same_word_for_word(chunk, tmp_path):
    ran = {True: 0, False: 0}
    for seed in range(FIRST_SEED + chunk * CHUNK, FIRST_SEED + min((chunk + 1) * CHUNK, PROGRAMS)):
        program = Program(seed)
        module = imported(program.source, tmp_path / f"defects_{seed}.py")
        launch = {"lanes_per_batch": program.lanes_per_batch, "checks": program.checks}
        x = np.random.default_rng(seed).normal(size=program.grid * program.block).astype(np.float32)
        never, always = np.zeros((x.size, 2)), np.zeros((x.size, 2))
        expected = refsim.launch(module.kernel, program.grid, program.block, x, 5, never, native="never", **launch)
        report = refsim.launch(module.kernel, program.grid, program.block, x, 5, always, native="always", **launch)
        where = f"seed {seed}, ({program.grid}, {program.block}), {launch}\n{program.source}"
        assert str(report) == str(expected), f"{where}\n{expected}\n{report}"
        assert repr(report.findings) == repr(expected.findings), f"{where}\n{expected.findings}\n{report.findings}"
        assert same_bits(always, never), where
        if any(loop.variants for loop in loops_of(module.kernel, x, 5, never)):
            ran[bool(expected.findings)] += 1
    assert min(ran.values()) >= 3, ran

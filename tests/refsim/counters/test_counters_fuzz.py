"""Counters of random kernels: accesses against plain Python thread by thread, and the same however blocks are run.

``REFSIM_FUZZ_COUNTERS=1000 python -m pytest tests/refsim/counters/test_counters_fuzz.py`` runs more.
"""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import test_control_flow_fuzz as control_flow
from kernel_generator import kernel_source

import refsim

KERNELS = int(os.environ.get("REFSIM_FUZZ_COUNTERS", "12"))
MODES = [{"lanes_per_batch": 1}, {"lanes_per_batch": 50}, {"lanes": "block"}, {"lanes": "warp"}, {"lanes": "thread"}]


class Watched(control_flow.Scalars):
    """An array that counts accesses to its elements."""

    seen: ClassVar[Counter] = Counter()

    def __init__(self, array, space="global"):
        super().__init__(array)
        self.space = space

    def __getitem__(self, index):
        if isinstance(self.array[index], np.ndarray):
            return Watched(self.array[index], self.space)
        Watched.seen[self.space, "load"] += 1
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        Watched.seen[self.space, "store"] += 1
        super().__setitem__(index, value)


def watched(monkeypatch, source, grid, block, arrays):
    """Accesses to global and shared memory by all threads."""
    Watched.seen = Counter()
    made = iter([Watched(array) for array in arrays])

    def wrapped(array):
        shared = array.shape == (control_flow.MOST_THREADS,) and array.dtype == np.int64
        return next(made, None) or Watched(array, "shared" if shared else "local")

    monkeypatch.setattr(control_flow, "Scalars", wrapped)
    control_flow.by_plain_python(source, grid, block, arrays)
    monkeypatch.undo()
    return {key: number for key, number in Watched.seen.items() if key[0] != "local" and number}


@pytest.mark.parametrize("seed", range(KERNELS))
def test_random_kernels(seed, tmp_path, monkeypatch):
    source = kernel_source(seed, budget=(10, 25)[seed % 2], exchanges=seed % 4 == 1)
    grid, block = control_flow.LAUNCHES[seed % len(control_flow.LAUNCHES)]
    module = control_flow.imported(source, tmp_path / f"counted_{seed}.py")

    def counted(**options):
        arrays = control_flow.arguments(seed, grid * block)
        report = refsim.launch(module.kernel, grid, block, *arrays, checks="none", counters=True, **options)
        return report.counters

    whole = counted()
    expected = watched(monkeypatch, source, grid, block, control_flow.arguments(seed, grid * block))
    got = {key: traffic.lanes for key, traffic in whole.traffic.items() if key[0] in ("global", "shared")}
    assert got == expected, source
    other = counted(**MODES[seed % len(MODES)])
    assert other.lines == whole.lines, source

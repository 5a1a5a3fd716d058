"""Atomic operations are tagged when somebody looks for the tags: the findings are those of tagging each at once."""

import importlib.util
import random

import numpy as np
import pytest

import refsim
from refsim.checks import shared_shadow
from refsim.checks.shared_shadow import SharedShadow

PROGRAMS = 160
LAUNCHES = [(1, 16), (2, 40), (3, 8), (1, 64), (4, 33)]
INDICES = ["t", "t", "(t + 1) % 64", "t ^ 1", "t // 2", "x[i] % 64", "x[i] % 3", "0", "t % 2", "b"]
VALUES = ["5", "5", "t", "t * b", "x[i]"]
CONDITIONS = ["t == 0", "t < 8", "t % 2 == 0", "b == 1", "x[i] % 3 == 0", "t >= 32"]

HEADER = """\
from numba import cuda, int64


def kernel(x, out):
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    s = cuda.shared.array(64, int64)
    v = 0
"""


def source(seed):
    """A kernel of atomic operations on a shared array, some other accesses, and barriers, also of single blocks."""
    rng = random.Random(seed)
    lines = []
    if rng.random() < 0.7:
        lines += ["for k in range(t, 64, cuda.blockDim.x):", "    s[k] = k", "cuda.syncthreads()"]
    for _ in range(rng.randint(3, 14)):
        kind, index = rng.random(), rng.choice(INDICES)
        if kind < 0.5:
            lines.append(f"cuda.atomic.add(s, {index}, 1)")
        elif kind < 0.7:
            lines.append(f"s[{index}] = {rng.choice(VALUES)}")
        elif kind < 0.8:
            lines.append(f"v += s[{index}]")
        elif kind < 0.93:
            lines.append("cuda.syncthreads()")
        else:
            lines.append(rng.choice(["cuda.syncwarp()", "if b % 2 == 0:\n        cuda.syncthreads()"]))
        if kind < 0.8 and rng.random() < 0.3:
            lines[-1] = f"if {rng.choice(CONDITIONS)}:\n        {lines[-1]}"
    return HEADER + "".join(f"    {line}\n" for line in lines) + "    out[i] = v\n"


def findings(path, seed, checks):
    grid, block = LAUNCHES[seed % len(LAUNCHES)]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.random.default_rng(seed).integers(0, 200, grid * block)
    return refsim.launch(module.kernel, grid, block, x, np.zeros(grid * block, np.int64), checks=checks).findings


@pytest.mark.parametrize(
    ("checks", "most"), [("all", 1 << 22), ("all", 3 << 10), ("racecheck", 1 << 22), ("initcheck", 1 << 22)]
)
def test_findings_are_those_of_tagging_at_once(checks, most, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_shadow, "LOG_LIMIT", 64 if most == 1 << 22 else 1)
    monkeypatch.setattr(shared_shadow, "MOST_UNTAGGED", most)
    plain = SharedShadow.atomic
    waited = []

    def at_once(self, *access):
        plain(self, *access)
        waited.append(len(self.untagged))
        self._tag_atomics()

    found = 0
    for seed in range(PROGRAMS):
        path = tmp_path / f"atomics_{seed}.py"
        path.write_text(source(seed))
        late = findings(path, seed, checks)
        with monkeypatch.context() as patch:
            patch.setattr(SharedShadow, "atomic", at_once)
            assert late == findings(path, seed, checks), f"seed {seed}\n{source(seed)}"
        found += bool(late)
    assert 0 < found < PROGRAMS
    assert max(waited) > 0

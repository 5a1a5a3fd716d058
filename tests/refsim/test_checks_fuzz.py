"""Random small kernels with barriers in random places: the checks report what the list of all accesses says.

A race is reported iff some pair of accesses is one, an uninitialised read iff nothing was written before it.
Addresses, conditions and stored values depend on thread, block and input only, never on what was loaded, so the list
of accesses is the same in every schedule, and whether two of them race can be decided pair by pair. More programs:
``REFSIM_FUZZ_CHECKS=5000 python -m pytest tests/refsim/test_checks_fuzz.py``.
"""

import importlib.util
import itertools
import os
import random
import types
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

import refsim

PROGRAMS = int(os.environ.get("REFSIM_FUZZ_CHECKS", "400"))
FIRST_SEED = int(os.environ.get("REFSIM_FUZZ_SEED", "0"))
CHUNK = 50
LAUNCHES = [(1, 16), (2, 40), (3, 8), (1, 64), (4, 33)]
BATCHES = [65536, 65536, 1, 80]
CELLS = 128
CONDITIONS = ["t == 0", "t < 8", "t % 2 == 0", "b == 0", "x[i] % 3 == 0", "t >= 32", "(t + b) % 2 == 0", "t // 8 == b"]
WARP = 32

HEADER = """\
from numba import cuda, int64


def kernel(x, g, out):
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    s = cuda.shared.array(128, int64)
    v = 0
"""


# ---- programs -----------------------------------------------------------------------------------------------------


class Program:
    """Writes one kernel. Most accesses are harmless, so that programs without a race are common."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []

    def index(self, space):
        own = "t" if space == "s" else "i"
        kind = self.random.random()
        if kind < 0.5:
            return own
        shift = self.random.choice([1, 2, 16, 32])
        if kind < 0.65:
            return f"({own} + {shift}) % {CELLS}"
        if kind < 0.8:
            return f"{own} ^ {self.random.choice([1, 2, 16])}"
        if kind < 0.9:
            return f"x[{own}] % {CELLS}"
        return str(self.random.randrange(8)) if space == "s" or kind < 0.93 else f"t + {64 * self.random.randrange(2)}"

    def access(self, indent):
        space = self.random.choice("ssg")
        kind = self.random.random()
        if kind < 0.45:
            text = f"v += {space}[{self.index(space)}]"
        elif kind < 0.85:
            text = f"{space}[{self.index(space)}] = {self.random.choice(['t', 'i + 7', '5', 'b', 'x[i]'])}"
        else:
            text = f"cuda.atomic.add({space}, {self.index(space)}, 1)"
        if self.random.random() < 0.3:
            self.lines.append(f"{indent}if {self.random.choice(CONDITIONS)}:")
            indent += "    "
        self.lines.append(indent + text)

    def statements(self, indent, count):
        for _ in range(count):
            kind = self.random.random()
            if kind < 0.4:
                self.lines.append(f"{indent}cuda.syncthreads()")
            elif kind < 0.47:
                self.lines.append(f"{indent}cuda.syncwarp()")
            else:
                self.access(indent)

    def source(self):
        self.statements("    ", self.random.randint(1, 6))
        if self.random.random() < 0.4:
            self.lines.append(f"    for r in range({self.random.randint(2, 3)}):")
            self.statements("        ", self.random.randint(2, 5))
            self.lines.append("        v += r")
        self.statements("    ", self.random.randint(0, 3))
        return HEADER + "\n".join(self.lines) + "\n    out[i] = v\n"


# ---- all pairs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Access:
    """One access of one thread: R, W or A (atomic), its place in the thread, and the barriers of either kind before."""

    kind: str
    value: int
    block: int
    thread: int
    barriers: int
    warp_barriers: int
    order: int


class Recorder:
    """An array that writes down who touches what; loads give 0, since nothing depends on them."""

    def __init__(self, name, threads):
        self.name = name
        self.threads = threads

    def note(self, kind, index, value=0):
        me = self.threads.now
        me.order += 1
        owner = me.block if self.name == "s" else -1
        self.threads.log[self.name, owner, int(index)].append(
            Access(kind, int(value), me.block, me.thread, me.barriers, me.warp_barriers, me.order)
        )

    def __getitem__(self, index):
        self.note("R", index)
        return 0

    def __setitem__(self, index, value):
        self.note("W", index, value)


class Threads:
    """Runs a program thread by thread and collects its accesses, cell by cell."""

    def __init__(self, source, grid, block, x):
        body = source.split("\n", 1)[1]
        body = body.replace("cuda.syncthreads()", "yield 'block'").replace("cuda.syncwarp()", "yield 'warp'")
        code = compile(body + "    yield\n", "<reference>", "exec")
        self.log = defaultdict(list)
        plain = types.SimpleNamespace
        cells = Recorder("s", self)
        for block_index, thread in itertools.product(range(grid), range(block)):
            self.now = plain(block=block_index, thread=thread, barriers=0, warp_barriers=0, order=0)
            cuda = plain(
                grid=lambda n, index=block_index * block + thread: index,
                threadIdx=plain(x=thread),
                blockIdx=plain(x=block_index),
                shared=plain(array=lambda size, dtype: cells),
                atomic=plain(add=lambda array, index, value: array.note("A", index, value)),
            )
            world = {"cuda": cuda, "int64": int}
            exec(code, world)
            for met in world["kernel"]([int(value) for value in x], Recorder("g", self), [0] * len(x)):
                self.now.barriers += met == "block"
                self.now.warp_barriers += met is not None  # a block barrier orders the lanes of a warp as well


def conflict(a, b):
    """ "error", "note" or None for two accesses of one cell."""
    if (a.block, a.thread) == (b.block, b.thread) or a.kind == b.kind == "R" or a.kind == b.kind == "A":
        return None
    if a.block == b.block:
        if a.barriers != b.barriers:
            return None
        if a.thread // WARP == b.thread // WARP and a.warp_barriers != b.warp_barriers:
            return None
    return "note" if a.kind == b.kind == "W" and a.value == b.value else "error"


def races(log):
    """The worst that any pair of accesses does."""
    found = set()
    for accesses in log.values():
        for a, b in itertools.combinations(accesses, 2):
            found.add(conflict(a, b))
            if "error" in found:
                return "error"
    return "note" if "note" in found else None


def before(a, b):
    """Whether a happens before b."""
    if a.block != b.block:
        return False
    if a.thread == b.thread:
        return a.order < b.order
    same_warp = a.thread // WARP == b.thread // WARP
    return a.barriers < b.barriers or (same_warp and a.warp_barriers < b.warp_barriers)


def reads_unwritten(log):
    """Whether a program without races reads a cell before anything was written there; an atomic reads as well."""
    for accesses in log.values():
        writes = [a for a in accesses if a.kind == "W"]
        atomics = [a for a in accesses if a.kind == "A"]
        for b in accesses:
            sources = writes if b.kind == "A" else writes + atomics
            if b.kind != "W" and not any(before(a, b) for a in sources):
                return True
    return False


def simulated(source, path, grid, block, x, **options):
    """The worst that refsim reports, and the report."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    g, out = refsim.empty(CELLS * 2, np.int64), np.zeros(x.size, np.int64)
    report = refsim.launch(module.kernel, grid, block, x, g, out, **options)
    severities = {finding.severity for finding in report.findings}
    return ("error" if "error" in severities else "note" if severities else None), report


@pytest.mark.parametrize("chunk", range((PROGRAMS + CHUNK - 1) // CHUNK))
def test_checks_report_what_the_accesses_say(chunk, tmp_path):
    seen = set()
    for seed in range(FIRST_SEED + chunk * CHUNK, FIRST_SEED + min((chunk + 1) * CHUNK, PROGRAMS)):
        grid, block = LAUNCHES[seed % len(LAUNCHES)]
        lanes = BATCHES[seed % len(BATCHES)]
        x = np.random.default_rng(seed).integers(0, 200, grid * block)
        source = Program(seed).source()
        where = f"seed {seed}, ({grid}, {block}), batches of {lanes}"
        log = Threads(source, grid, block, x).log
        launch = source, tmp_path / f"checks_{seed}.py", grid, block, x

        expected = races(log)
        got, report = simulated(*launch, checks="racecheck", lanes_per_batch=lanes)
        assert got == expected, f"{where}: expected race {expected}, got {got}\n{source}\n{report}"
        seen.add(expected)
        if expected is None:  # a racy program may read what another schedule would have written
            expected = "error" if reads_unwritten(log) else None
            got, report = simulated(*launch, checks="initcheck", lanes_per_batch=lanes)
            assert got == expected, f"{where}: expected uninitialised read {expected}, got {got}\n{source}\n{report}"
            seen.add(f"initialisation {expected}")
    assert seen >= {"error", None, "initialisation error", "initialisation None"}


LANES = [{"lanes": "warp"}, {"lanes": "thread"}, {"schedule": "seed:1"}, {"schedule": "seed:2"}]


@pytest.mark.parametrize("options", LANES, ids=str)
def test_the_checks_do_not_depend_on_who_takes_turns(options, tmp_path):
    for seed in range(FIRST_SEED, FIRST_SEED + PROGRAMS // 16):
        grid, block = [(1, 16), (2, 40), (3, 8), (1, 64)][seed % 4]
        x = np.random.default_rng(seed).integers(0, 200, grid * block)
        source = Program(seed).source()
        expected = races(Threads(source, grid, block, x).log)
        path = tmp_path / f"turns_{seed}.py"
        got, report = simulated(source, path, grid, block, x, checks="racecheck", **options)
        where = f"seed {seed}, ({grid}, {block})"
        assert got == expected, f"{where}: expected race {expected}, got {got}\n{source}\n{report}"

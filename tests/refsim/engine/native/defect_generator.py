"""Random kernels with defects in and around loops that can run as machine code.

Shared memory is written, read in loops, and met by barriers in random places; subscripts may leave their arrays, cells
may never have been written. Most of it is harmless, so that loops run as machine code and kernels without a finding
are common.
"""

import random

HEADER = """\
import math
from numba import cuda, float32, float64, int32, int64


def kernel(x, n, out):
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    i = cuda.grid(1)
    s = cuda.shared.array(SIZE, float32)
    w = cuda.shared.array((8, 16), float64)
    a = float32(1)
    d = 0.5
    r0 = t % 8
"""

CONDITIONS = (
    "t == 0",
    "t < 8",
    "t % 2 == 0",
    "b == 0",
    "x[i] > 0",
    "t >= 32",
    "(t + b) % 2 == 0",
    "b % 2 == 1",
    "n > 3",
)
LAUNCHES = ((1, 16), (2, 40), (3, 8), (1, 64), (4, 33), (17, 32), (33, 8), (1, 1))


class Program:
    """Writes one kernel and says how it is launched."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.counters = 0
        self.grid, self.block = self.pick(*LAUNCHES)
        self.size = self.pick(96, 128, 300)
        self.defects = self.chance(0.7)
        self.long = self.chance(0.2)
        self.lanes_per_batch = self.pick(65536, 65536, 65536, 1, 2 * self.block)
        self.checks = self.pick("all", "all", "all", "all", "racecheck", "initcheck", "memcheck", "none")
        self.source = self._source()

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def emit(self, indent, text):
        self.lines.append("    " * indent + text)

    def _source(self):
        self._fill(1)
        for _ in range(self.random.randint(1, 4)):
            self._phase(1)
        if self.chance(0.4):
            self.emit(1, f"for r in range({self.random.randint(2, 3)}):")
            for _ in range(self.random.randint(1, 3)):
                self._phase(2)
        self.emit(1, "out[i, 0] = a")
        self.emit(1, "out[i, 1] = d")
        return HEADER.replace("SIZE", str(self.size)) + "\n".join(self.lines) + "\n"

    def _fill(self, indent):
        """Write both arrays, seldom in part."""
        first = self.pick(*[0] * 8, 1, 5) if self.defects else 0
        self.emit(indent, f"for j in range(t + {first}, {self.size}, cuda.blockDim.x):")
        self.emit(indent + 1, "s[j] = x[(b * 7 + j) % x.size]")
        last = self.pick(*[128] * 8, 127, 100) if self.defects else 128
        self.emit(indent, f"for j in range(t, {last}, cuda.blockDim.x):")
        self.emit(indent + 1, "w[j // 16, j % 16] = x[(b * 5 + j) % x.size] - 0.25")
        if not self.defects or self.chance(0.85):
            self.emit(indent, "cuda.syncthreads()")

    def _phase(self, indent):
        for _ in range(self.random.randint(1, 2)):
            if self.chance(0.15):
                self.emit(indent, f"if {self.pick(*CONDITIONS)}:")
                self._loop(indent + 1)
            else:
                self._loop(indent)
        if not self.defects or self.chance(0.7):
            self.emit(
                indent,
                self.pick(
                    "cuda.syncthreads()",
                    "cuda.syncthreads()",
                    "cuda.syncwarp()" if self.defects else "cuda.syncthreads()",
                ),
            )
        if self.chance(0.6):
            self._write(indent)
            if not self.defects or self.chance(0.75):
                self.emit(indent, "cuda.syncthreads()")

    def _write(self, indent):
        kind = self.random.random()
        own = kind < 0.5 or not self.defects
        place = "t" if own else self.pick("(t + 1) % 64", "t ^ 1", "3", f"{self.size - 1}", "t // 2")
        if self.chance(0.3) and self.defects:
            self.emit(indent, f"if {self.pick(*CONDITIONS)}:")
            indent += 1
        if self.defects and self.chance(0.15):
            self.emit(indent, f"cuda.atomic.add(s, {place}, float32(1))")
        elif self.chance(0.6):
            self.emit(indent, f"s[{place}] = {self.pick('a', 'float32(t)', 'float32(5)', 'x[i]')}")
        else:
            self.emit(
                indent, f"w[{place} % 8, {self.pick('t // 8 % 16', '2', '15')}] = {self.pick('d', 't * 0.5', '1.5')}"
            )

    def _loop(self, indent):
        trips = self.random.randint(70, 95) if self.long else self.random.randint(1, 12)
        self.counters += 1
        k = f"k{self.counters}"
        span = self.pick(
            f"{trips}", f"0, {trips}", f"{trips - 1}, -1, -1", f"1, {trips}", "n", f"t % 3, {min(trips, 6)}"
        )
        if self.long:
            span = self.pick(f"{trips}", f"{trips - 1}, -1, -1")
        self.emit(indent, f"for {k} in range({span}):")
        last = {"n": 4}.get(span, trips - 1)
        for _ in range(self.random.randint(1, 3)):
            if self.chance(0.15):
                self._guarded(indent + 1, k)
            elif self.chance(0.65):
                self.emit(
                    indent + 1,
                    self.pick("a += {}", "a = a * float32(0.5) + {}", "a = max(a, {})").format(self._cell(k, last)),
                )
            elif last < 16:
                row = self.pick("r0", "r0", "3", "7", "n")
                self.emit(
                    indent + 1,
                    self.pick("d += {}", "d = d * {} - 1", "a, d = float32(d), {}").format(
                        f"w[{row}, {self._inside(k, last, 16)}]"
                    ),
                )
            else:
                self.emit(indent + 1, f"d += {self._cell(k, last)}")

    def _guarded(self, indent, k):
        """A read that some lanes make, or those of some trips; seldom the guard lets one too many in."""
        step, end = self.pick(1, 2, 3, 7), self.size - (0 if self.defects and self.chance(0.1) else 1)
        if self.chance(0.3):
            self.emit(indent, f"a += s[t + {k} * {step}] if t + {k} * {step} <= {end} else float32(0.5)")
            return
        self.emit(indent, f"if t + {k} * {step} <= {end}{self.pick('', f' and {k} > 0', f' and {k} >= n - 5')}:")
        self.emit(indent + 1, f"a += s[t + {k} * {step}]")

    def _inside(self, k, last, size):
        """A subscript that is inside up to the last trip, or seldom only up to the one before it."""
        past = 1 if self.defects and self.chance(0.04) else 0
        kind = self.random.random()
        if kind < 0.6:
            return f"{k} + {max(0, self.random.randint(0, size - 1 - last)) if not past else size - last}"
        if kind < 0.8:
            return f"{size - 1 + past} - {k}"
        if self.defects and kind < 0.83:
            return f"{k} - {min(last, size)}"  # wraps, but for the last trip
        return k

    def _cell(self, k, last):
        kind = self.random.random()
        if kind < 0.25 and self.block + last <= self.size:
            return f"s[t + {k}]"
        if kind < 0.35:
            return "s[t]"
        if self.defects and kind < 0.37:
            return f"s[{k} * int32({self.pick(1 << 27, 1 << 30)}) + t]"
        if self.defects and kind < 0.4:
            return f"s[t - {k}]"
        return f"s[{self._inside(k, last, self.size)}]"

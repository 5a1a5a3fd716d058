"""Random Numba kernels around loops that read arrays and compute with floats and integers.

Shared arrays are filled from the inputs, and every loop that follows reads them, and the inputs, with subscripts that
are inside for every trip. `Kernel.source` is the module's text, `Kernel.arguments` draws what it is launched with.
"""

import random

import numpy as np

OUT_COLUMNS = 6
WIDTH = 256  # elements of one block in each input
N, M = 7, 12  # values of the parameters n and m, by which loops are bounded

HEADER = """\
import math
import numpy as np
from numba import cuda, float32, float64, int16, int32, int64
from numba.cuda import libdevice

TABLE = np.linspace(-2, 3, 40).astype(np.float32)


def kernel(x, y, h, z, p, q, n, m, out, wide, whole):
    t = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
    b = cuda.blockIdx.x
    threads = cuda.blockDim.x * cuda.blockDim.y
    i = b * threads + t
"""

CALLS = ("exp", "exp2", "log", "log2", "log10", "log1p", "expm1")
NUMBERS = ("0.0", "-0.0", "1.0", "-1.5", "0.1", "3.0", "1e-3", "1e30", "-1e38", "1e-40", "math.inf", "math.nan")


class Kernel:
    """One random kernel: its text, its launch, and the values it reads."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.lines = []
        self.arrays = []  # (name, dtype, shape)
        self.names = 0
        self.invariants = {"float32": ["p"], "float64": ["q"]}
        self.states = {"float32": [], "float64": []}
        self.temporaries = {"float32": [], "float64": []}
        self.integers = []  # variables of loops that are needed at the end
        self.sums = []  # integers that loops compute with
        self.counters = []
        self.outer = None
        self.inside = False  # a branch, in which no variable begins
        self.pure = False  # nothing is read
        self.rows = []  # (name, largest value) of index variables that no loop changes
        self.wraps = self.chance(0.04)
        self.reads_inputs = self.chance(0.3)
        self.calls = self.random.random() < 0.4
        self.values = self.pick("plain", "plain", "few", "many", "tiny", "huge")
        self.grid = self.pick(1, 1, 2, 3, 5, 16, 17, 31, 32, 33, 64, 65, 100)
        block = self.pick(1, 3, 8, 17, 32, 33, (4, 3), (8, 4), 40)
        while self.grid * np.prod(block) > 2200:
            block = self.pick(1, 3, 8, 17)
        self.block = block
        self.lanes_per_batch = self.pick(
            65536, 65536, 65536, 65536, 1, 7 * int(np.prod(block)), 33 * int(np.prod(block))
        )
        self.source = self._source()

    # ------------------------------------------------------------------------------------------- inputs

    def arguments(self):
        rng = np.random.default_rng(self.seed)
        threads = self.grid * int(np.prod(self.block))
        x, y, h = (self._inputs(rng, dtype) for dtype in (np.float32, np.float64, np.float16))
        p, q = np.float32(rng.normal()), float(rng.normal())
        outs = np.zeros((threads, OUT_COLUMNS), np.float32), np.zeros((threads, OUT_COLUMNS))
        z = rng.integers(-(2**31), 2**31, (self.grid, WIDTH)) >> rng.integers(0, 32, (self.grid, WIDTH))
        return x, y, h, z.astype(np.int32), p, q, N, M, *outs, np.zeros((threads, OUT_COLUMNS), np.int64)

    def _inputs(self, rng, dtype):
        info = np.finfo(dtype)
        scale = {"tiny": float(info.smallest_normal), "huge": float(info.max) / 8}.get(self.values, 1.0)
        x = (rng.normal(size=(self.grid, WIDTH)) * scale).astype(dtype)
        share = {"few": 0.02, "many": 0.3}.get(self.values, 0.0)
        special = np.array(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, info.smallest_subnormal, -info.smallest_normal, info.max, 1.0], dtype
        )
        chosen = rng.random(x.shape) < share
        x[chosen] = rng.choice(special, int(chosen.sum()))
        return x

    # -------------------------------------------------------------------------------------------- words

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def fresh(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def emit(self, indent, text):
        self.lines.append("    " * indent + text)

    def number(self, dtype):
        text = self.pick(*NUMBERS)
        return f"float32({text})" if dtype == "float32" else f"({text})"

    # ------------------------------------------------------------------------------------------- module

    def _source(self):
        for _ in range(self.random.randint(1, 3)):
            dims = self.pick(1, 1, 2, 2, 3)
            shape = {1: (self.pick(24, 40, 64),), 2: self.pick((16, 12), (5, 33), (12, 17)), 3: (4, 6, 10)}[dims]
            name = self.fresh("s")
            dtype = self.pick("float32", "float32", "float64")
            self.arrays.append((name, dtype, shape))
            text = f"{shape[0]}" if dims == 1 and self.chance(0.5) else f"{shape}"
            self.emit(1, f"{name} = cuda.shared.array({text}, {dtype})")
        self.words = self.chance(0.4)
        if self.words:
            self.emit(1, f"words = cuda.shared.array(40, {self.pick('int32', 'int64', 'int16')})")
            self.emit(1, "for j in range(t, 40, threads):")
            self.emit(2, f"words[j] = z[b, j * {self.random.randint(1, 5)}] & 127")
        for array in self.arrays:
            self._fill(1, array)
        self.emit(1, "cuda.syncthreads()")
        if self.reads_inputs:
            self.emit(1, "table = cuda.const.array_like(TABLE)")
        self._index_variables()
        self._float_variables()
        for dtype, stem in (("float32", "a"), ("float64", "d")):
            for _ in range(self.random.randint(1, 3)):
                name = self.fresh(stem)
                self.emit(1, f"{name} = {self._start(dtype)}")
                self.states[dtype].append(name)
        for _ in range(self.random.randint(0, 2)):
            self.sums.append(self.fresh("e"))
            self.emit(1, f"{self.sums[-1]} = {self.pick('0', '5', '-3', 'int64(z[b, t])', 't * 3', 'b - 2')}")
        if self.chance(0.12):
            self.emit(
                1, f"if {self.pick('t >= 5', 'b % 3 == 1', 't % 3 == 2', 'b >= 2', '(t + b) % 4 == 0', 'i > 20')}:"
            )
            self.emit(2, "return")
        for _ in range(self.random.randint(1, 2)):
            self._loop_somewhere()
            if self.chance(0.3):
                self._between()
        self._results()
        return HEADER + "\n".join(self.lines) + "\n"

    def _fill(self, indent, array, changed=""):
        name, dtype, shape = array
        size = int(np.prod(shape))
        source = "x" if dtype == "float32" else "y"
        j = self.fresh("j")
        places = []
        for position, n in enumerate(shape):
            after = int(np.prod(shape[position + 1 :]))
            place = f"{j} // {after}" if after > 1 else j
            places.append(f"{place} % {n}" if position else place)
        self.emit(indent, f"for {j} in range(t, {size}, threads):")
        self.emit(
            indent + 1, f"{name}[{', '.join(places)}] = {source}[b, ({j} * 3 + {self.seed % 7}) % {WIDTH}]{changed}"
        )

    def _index_variables(self):
        for _ in range(self.random.randint(1, 3)):
            name, most = self.fresh("r"), self.pick(2, 3, 4)
            text, most = self.random.choices(
                [
                    (f"t % {most}", most - 1), (f"{most - 1} - t % {most}", most - 1), (f"int32(t % {most})", most - 1),
                    (f"n % {most}", most - 1), (f"b % {most}", most - 1), (f"(t * 5 + 1) % {most}", most - 1),
                    (f"min(t, {most - 1})", most - 1), (f"(t + b) % {most}", most - 1),
                ],
                [4, 2, 2, 2, 0.4, 2, 1, 0.3],
            )[0]  # fmt: skip
            self.emit(1, f"{name} = {text}")
            self.rows.append((name, most))

    def _float_variables(self):
        for dtype, source in (("float32", "x"), ("float64", "y")):
            for _ in range(self.random.randint(0, 3)):
                name = self.fresh("u")
                text = self.pick(
                    f"{source}[b, t]", f"{source}[0, t]", f"{source}[b, 0]", f"{source}[0, 1]", f"{dtype}(n)",
                    f"{dtype}(t)", f"{dtype}(b)", self.number(dtype),
                )  # fmt: skip
                self.emit(1, f"{name} = {text}")
                self.invariants[dtype].append(name)

    def _start(self, dtype):
        """What a state holds before the loops."""
        return self.pick(self.number(dtype), *self.invariants[dtype], f"{dtype}(t - 2)")

    def _loop_somewhere(self):
        """A loop, under a condition or not, in an outer loop or not."""
        indent, outer = 1, None
        uniform = True
        if self.chance(0.35):
            uniform = False
            self.emit(1, f"if {self._condition_on_place()}:")
            indent = 2
        if self.chance(0.3):
            trips = self.pick(1, 2, 3, 3, 20)
            outer = self.fresh("o"), trips - 1
            self.emit(indent, f"for {outer[0]} in range({trips}):")
            indent += 1
            if uniform and self.chance(0.5):
                self.emit(indent, "cuda.syncthreads()")
                self._fill(indent, self.pick(*self.arrays), f" * ({outer[0]} - 0.5)")
                self.emit(indent, "cuda.syncthreads()")
        rows = list(self.rows)
        if outer is not None and self.chance(0.5):  # other subscripts in every trip
            name, most = self.pick(*self.rows)
            moved = self.fresh("r")
            self.emit(indent, f"{moved} = {name} + {outer[0]} % 4")
            self.rows += [(moved, most + min(outer[1], 3))] * 3
        self._loop(indent, outer)
        self.rows = rows

    def _condition_on_place(self):
        return self.pick(
            "t < 5", "t % 2 == 0", "t == 3", "b < 2", "b % 2 == 1", "b == 0", "n > 3", "n < 3", "(t + b) % 3 == 0",
            "t >= 1", "x[b, t] > 0", "p > -9", "i < 40",
        )  # fmt: skip

    def _between(self):
        """What other code does with the states: branches, subscripts and conversions by what a loop computed."""
        a, d = self.pick(*self.states["float32"]), self.pick(*self.states["float64"])
        self.emit(1, f"if {self.pick(f'{a} > {d}', f'{a} != {a}', f'{d} < 1.0', f'{a} == float32(0)')}:")
        self.emit(2, self.pick(f"{d} = {d} * 0.5", f"{a} = -{a}", f"wide[i, 5] += {d}", f"{a} = float32({d})"))

    def _results(self):
        for column, name in enumerate(self.states["float32"]):
            self.emit(1, f"out[i, {column}] = {name}")
        for column, name in enumerate(self.states["float64"]):
            self.emit(1, f"wide[i, {column}] = {name}")
        for column, name in enumerate((*self.sums, *self.integers)[:OUT_COLUMNS]):
            self.emit(1, f"whole[i, {column}] = {name}")

    # --------------------------------------------------------------------------------------------- loops

    def _range(self, outer):
        """Text of a range, with the least and greatest value of its variable."""
        trips = self.pick(0, 1, 1, 2, 2, 3, 3, 4, 5, 6, N, N, M)
        step = self.pick(1, 1, 1, 2, 3, -1, -2)
        kind = self.random.random()
        if kind < 0.15:
            return self.pick(
                ("t % 3, n", 0, N - 1), ("t % 3, t % 3 + 4", 0, 5), ("t % 2, m, 2", 0, M - 1), ("n, t % 4, -1", 1, N),
                ("min(t, m)", 0, M - 1), ("b % 4 + 1", 0, 3), ("t % 4 + b % 2", 0, 3), ("b % 2, n - t % 2, 3", 0, 6),
                ("(t + b) % 3 + n - 2", 0, N - 1), ("t % 5, n, t % 2 + 1", 0, N - 1), ("m, n", M, M),
            )  # fmt: skip
        if kind < 0.3:
            return self.pick(
                (f"{self.pick('n', 'int32(n)')}", 0, N - 1),
                ("1, m", 1, M - 1),
                ("n, m", N, M - 1),
                ("0, m, 2", 0, M - 2),
            )
        if kind < 0.4:
            return self.pick(("n - 1, -1, -1", 0, N - 1), ("m, n, -1", N + 1, M), ("m - 2, 0, -3", 1, M - 2))
        if outer is not None and kind < 0.6:
            name, most = outer
            return f"{name}, {name} + {max(trips, 1)}", 0, most + max(trips, 1) - 1
        first = self.random.randint(0, 3)
        if step < 0:
            first += -step * max(trips - 1, 0)
        last = first + step * max(trips - 1, 0)
        stop = first + step * trips + (self.pick(0, 1 - abs(step)) if trips else 0) * (1 if step > 0 else -1)
        text = f"{first}, {stop}, {step}" if step != 1 else f"{first}, {stop}"
        return text, min(first, last), max(first, last)

    def _loop(self, indent, outer):
        text, low, high = self._range(outer)
        k = self.fresh("k")
        keeps_counter = self.chance(0.25)
        if keeps_counter:
            self.emit(1 if indent == 1 else indent, f"{k} = -1")
        self.emit(indent, f"for {k} in range({text}):")
        self.counters = [(k, low, high)]
        self.outer = outer
        self.read = 0
        locals_ = []
        kept = {dtype: list(names) for dtype, names in self.temporaries.items()}
        for _ in range(self.random.randint(1, 5)):
            self._statement(indent + 1, locals_)
        if not self.read or self.chance(0.5):
            dtype = self.pick("float32", "float64")
            state = self.pick(*self.states[dtype])
            self.emit(indent + 1, f"{state} += {self._load(dtype)}")
        self.temporaries = kept
        if keeps_counter and indent == 1:
            self.integers.append(k)

    def _statement(self, indent, locals_):
        dtype = self.pick("float32", "float64")
        kind = self.random.random()
        states = self.states[dtype]
        if not self.inside and self.chance(0.12):
            self._branch(indent, locals_)
        elif self.sums and self.chance(0.2):
            self.emit(indent, f"{self.pick(*self.sums)} {self.pick('', '+', '^', '&', '-', '|')}= {self._integer(2)}")
        elif self.inside and kind < 0.35:
            self.emit(indent, f"{self.pick(*states)} = {self._value(dtype, 1)}")
        elif kind < 0.12:
            k, low, high = self.pick(*self.counters)
            factor, offset = self.pick((1, 0), (1, 1), (2, 0), (-1, 1), (1, -low))
            copy = self.fresh("c")
            text = self.pick(
                f"{k} * {factor} + {offset}", f"{offset} + {factor} * {k}", f"int32({k}) * {factor} + {offset}",
                f"int64({k} * int32({factor}) + {offset})",
            )  # fmt: skip
            self.emit(indent, f"{copy} = {text}")
            ends = low * factor + offset, high * factor + offset
            self.counters.append((copy, min(ends), max(ends)))
        elif kind < 0.35:
            name = self.fresh("v")
            self.emit(indent, f"{name} = {self._value(dtype, 2)}")
            self.temporaries[dtype].append(name)
        elif kind < 0.5 and len(states) > 1:
            a, b = self.random.sample(states, 2)
            self.emit(indent, f"{a}, {b} = {b}, {self._value(dtype, 2)}")
        elif kind < 0.62:
            self.emit(indent, f"{self.pick(*states)} {self.pick('+', '-', '*')}= {self._value(dtype, 2)}")
        else:
            self.emit(indent, f"{self.pick(*states)} = {self._value(dtype, 3)}")

    def _branch(self, indent, locals_):
        """Statements that some lanes run, or those of some trips."""
        k, low, high = self.pick(*self.counters)
        offset = self.pick("", *(f" + {name}" for name, _ in self.rows))
        if self.chance(0.5):  # what is read is inside in any case
            more = self.pick("", f" and {k} * 2 >= {low}")
            self.emit(
                indent, f"if {k}{offset} {self.pick('<', '<=')} {self.pick('n', str(high), str(high + 1), 'm')}{more}:"
            )
        else:
            self.emit(indent, f"if {self.pick(self._condition('float32'), f'{k} % 2 == 0', f'{k} != {high}')}:")
            self.pure = self.chance(0.8)
        self.inside = True
        for _ in range(self.random.randint(1, 2)):
            self._statement(indent + 1, locals_)
        if self.pure and self.chance(0.5):
            self.emit(indent, "else:")
            self._statement(indent + 1, locals_)
        self.inside = self.pure = False

    # -------------------------------------------------------------------------------------------- values

    def _integer(self, depth):
        """An int64, or what becomes one."""
        if depth <= 0 or self.chance(0.2):
            load = f"words[{self._place(40)}]" if self.words and not self.pure else "n"
            return self.pick(
                *self.sums, self.pick(*self.counters)[0], "t", "n", self.pick("3", "255", "-7", "1 << 40"), load, load
            )
        a, b = self._integer(depth - 1), self._integer(depth - 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} & {b})", f"({a} ^ {b})", f"({a} | {b})",
            f"({a} >> {self.random.randint(0, 9)})", f"({a} << {self.random.randint(0, 9)})", f"min({a}, {b})",
            f"max({a}, {b})", f"(-{a})", f"(~{a})", f"int64(int32({a}))",
            f"({a} if {self._condition('float32')} else {b})", f"({a} if {b} > {self.pick('3', '-1', 'n')} else n)",
        )  # fmt: skip

    def _load(self, dtype):
        """A reading whose subscripts are inside in every trip, as a value of a type."""
        self.read += 1
        if self.reads_inputs and self.chance(0.3):
            return self._input(dtype)
        name, of, shape = self.pick(*self.arrays)
        places = [self._place(size) for size in shape]
        text = f"{name}[{', '.join(places)}]"
        return text if of == dtype else f"{dtype}({text})"

    def _input(self, dtype):
        """A reading of global or constant memory."""
        of, name = self.pick(("float32", "x"), ("float64", "y"), ("float16", "h"), ("float32", "table"))
        row = self.pick("b", "b", "0")
        text = f"table[{self._place(40)}]" if name == "table" else f"{name}[{row}, {self._place(self.pick(40, WIDTH))}]"
        return text if of == dtype else f"{dtype}({text})"

    def _place(self, size):
        """A subscript from 0 to ``size - 1``: terms that fit, and a number that puts them inside."""
        terms, low, high = [], 0, 0
        variables = [*((n, 0, most) for n, most in self.rows), *self.counters, *self.counters]
        if self.outer is not None:
            variables.append((self.outer[0], 0, self.outer[1]))
        for _ in range(self.random.randint(1, 3)):
            name, least, most = self.random.choice(variables)
            factor = self.pick(1, 1, 1, 2, -1, 3)
            ends = sorted((least * factor, most * factor))
            if high + ends[1] - (low + ends[0]) < size:
                low, high = low + ends[0], high + ends[1]
                terms.append(f"{name} * {factor}" if factor not in (1, -1) else name if factor == 1 else f"(-{name})")
        if any("(-" in term for term in terms):
            terms = [term.replace("(-", "(0 - ") for term in terms]
        offset = self.random.randint(-low, size - 1 - high)
        if self.wraps and self.chance(0.1):
            offset -= size  # wraps
        if offset or not terms:
            terms.append(str(offset))
        return " + ".join(terms)

    def _value(self, dtype, depth):
        if depth <= 0 or self.chance(0.15):
            kind = self.random.random()
            if kind < 0.05 and self.sums:
                return f"{dtype}({self._integer(1)})"
            if kind < 0.4 and not self.pure:
                return self._load(dtype)
            if kind < 0.6:
                return self.pick(*self.states[dtype])
            if kind < 0.75 and self.temporaries[dtype]:
                return self.pick(*self.temporaries[dtype])
            if kind < 0.9:
                return self.pick(*self.invariants[dtype])
            return self.number(dtype)
        a, b = self._value(dtype, depth - 1), self._value(dtype, depth - 1)
        kind = self.random.randrange(15)
        if kind <= 4:
            return f"({a} {self.pick('+', '-', '*', '/', '*')} {b})"
        if kind == 5:
            return f"({self.pick('-', '')}{self.pick('abs', 'math.fabs')}({a}))"
        if kind == 6:
            return f"(-{a})"
        if kind == 7:
            return f"math.sqrt({a})"
        if kind == 8:
            other = "float64" if dtype == "float32" else "float32"
            return f"{dtype}({self._value(other, depth - 1)})"
        if kind == 9:
            mixed = self._value("float64" if dtype == "float32" else "float32", 0)
            text = f"{self.pick('min', 'max')}({', '.join(self.pick((a, b), (a, mixed), (mixed, a)))})"
            return f"{dtype}({text})"
        if kind == 10:
            return f"{self._library('f' + self.pick('min', 'max'), dtype)}({a}, {b})"
        if kind == 11:
            return f"{self.pick('cuda.fma', self._library('fma', dtype))}({a}, {b}, {self._value(dtype, 0)})"
        if kind == 12:
            return f"({self._leaf(dtype)} if {self._condition(dtype)} else {self._leaf(dtype)})"
        if kind == 13 and self.calls:
            return f"math.{self.pick(*CALLS)}({a})"
        return f"({a} + {b})"

    def _library(self, name, dtype):
        return f"libdevice.{name}{'f' if dtype == 'float32' else ''}"

    def _leaf(self, dtype):
        return self.pick(*self.states[dtype], *self.temporaries[dtype], *self.invariants[dtype])

    def _condition(self, dtype):
        a, b = self._leaf(dtype), self._leaf(self.pick("float32", "float64"))
        return f"{a} {self.pick('<', '<=', '>', '>=', '==', '!=')} {b}"

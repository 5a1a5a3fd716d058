"""Random C++ kernels around loops that read arrays and pointers, and compute with floats."""

import numpy as np
from loop_generator import NUMBERS, OUT_COLUMNS, WIDTH, Kernel, M, N

TYPES = {"float32": "float", "float64": "double"}
POOL = 640  # bytes of dynamic shared memory, of which two arrays have one half each
BYTES = {"float32": 4, "float64": 8}
FUNCTIONS = {
    "float32": ("sqrtf", "fabsf", "fabs", "sqrt", "-", "abs"),
    "float64": ("sqrt", "fabs", "-", "abs"),
}
CALLS = {
    "float32": ("expf", "exp2f", "logf", "log2f", "log10f", "log1pf", "expm1f", "exp", "log"),
    "float64": ("exp", "exp2", "log", "log2", "log10", "log1p", "expm1"),
}
PAIRS = {"float32": ("fmaxf", "fminf", "max", "min"), "float64": ("fmax", "fmin", "max", "min")}
PRODUCTS = {"float32": ("fmaf", "__fmaf_rn", "fma"), "float64": ("fma", "__fma_rn")}
OPTIONS = (*[()] * 9, *[("-fmad=true",)] * 3, ("--use_fast_math",), ("-ftz=true",))

HEADER = """\
#include <cuda_fp16.h>

__constant__ float table[40] = {0.5f, -1.25f, 3.0f, -0.0f, 1e30f};

extern "C" __global__ void kernel(
    const float* x, const double* y, const __half* h, const int* z, float p, double q, int n, int m,
    float* out, double* wide, long long* whole
) {
  extern __shared__ unsigned char pool[];
  const int t = threadIdx.x + threadIdx.y * blockDim.x;
  const int b = blockIdx.x;
  const int threads = blockDim.x * blockDim.y;
  const int i = b * threads + t;
"""


class CppKernel(Kernel):
    """One random kernel: its text, its options, its launch, and the values it reads."""

    shared_bytes = POOL

    def _source(self):
        self.options, self.wraps = self.pick(*OPTIONS), False
        halves = self.pick(*[("float32", "float32")] * 4, ("float64", "float64"), ("float32", "float64"))
        for dtype, text in zip(halves, ("pool", f"(pool + {POOL // 2})")):
            name = self.fresh("f")
            self.emit(1, f"{TYPES[dtype]}* {name} = ({TYPES[dtype]}*){text};")
            self.arrays.append((name, dtype, (POOL // 2 // BYTES[dtype],)))
        for _ in range(self.random.randint(0, 2)):
            name, dtype = self.fresh("s"), self.pick("float32", "float32", "float64")
            shape = self.pick((40,), (16, 12), (12, 17))
            self.arrays.append((name, dtype, shape))
            self.emit(1, f"__shared__ {TYPES[dtype]} {name}{''.join(f'[{n}]' for n in shape)};")
        for array in self.arrays:
            self._fill(1, array)
        self.emit(1, "__syncthreads();")
        for _ in range(2):
            self._index_variable()
        for name, dtype, shape in list(self.arrays):
            if len(shape) == 1 and self.chance(0.6):
                offset, most = self.pick(*self.rows)
                factor = self.pick(1, 2, 3)
                pointer = self.fresh("at")
                self.emit(1, f"const {TYPES[dtype]}* {pointer} = {name} + {offset} * {factor};")
                self.arrays.append((pointer, dtype, (shape[0] - most * factor,)))
        self._float_variables()
        for dtype, stem in (("float32", "a"), ("float64", "d")):
            for _ in range(self.random.randint(1, 3)):
                name = self.fresh(stem)
                self.emit(1, f"{TYPES[dtype]} {name} = {self._start(dtype)};")
                self.states[dtype].append(name)
        for _ in range(self.random.randint(0, 2)):
            self.sums.append(self.fresh("e"))
            kind = self.pick("int", "unsigned", "long long", "unsigned char", "short", "unsigned long long")
            self.emit(
                1, f"{kind} {self.sums[-1]} = {self.pick('0', '5', '-3', f'z[b * {WIDTH} + t]', 't * 3', 'b - 2')};"
            )
        if self.chance(0.1):
            self.emit(1, f"if ({self.pick('t >= 5', 'b % 3 == 1', 't % 3 == 2', 'b >= 2', 'i > 20')}) return;")
        for _ in range(self.random.randint(1, 2)):
            self._loop_somewhere()
        self._results()
        return HEADER + "\n".join(self.lines) + "\n}\n"

    def emit(self, indent, text):
        self.lines.append("  " * indent + text)

    def number(self, dtype):
        text = {"math.inf": "INFINITY", "math.nan": "NAN"}.get(number := self.pick(*NUMBERS), number)
        return f"({TYPES[dtype]}){text}" if text.isupper() else f"{text}{'f' if dtype == 'float32' else ''}"

    def _fill(self, indent, array):
        name, dtype, shape = array
        source = "x" if dtype == "float32" else "y"
        place = "[j]" if len(shape) == 1 else f"[j / {shape[1]}][j % {shape[1]}]"
        self.emit(indent, f"for (int j = t; j < {int(np.prod(shape))}; j += threads)")
        self.emit(indent + 1, f"{name}{place} = {source}[b * {WIDTH} + (j * 3 + {self.seed % 7}) % {WIDTH}];")

    def _index_variable(self):
        name, most = self.fresh("r"), self.pick(2, 3, 4)
        text = self.pick(
            f"t % {most}", f"{most - 1} - t % {most}", f"n % {most}", f"(t * 5 + 1) % {most}", f"t & {most - 1}"
        )
        self.emit(1, f"const {self.pick(*['int'] * 9, 'long long')} {name} = {text};")
        self.rows.append((name, most - 1))

    def _float_variables(self):
        for dtype, source in (("float32", "x"), ("float64", "y")):
            for _ in range(self.random.randint(0, 3)):
                name = self.fresh("u")
                text = self.pick(
                    f"{source}[b * {WIDTH} + t]", f"{source}[t]", f"{source}[b * {WIDTH}]", f"{source}[1]",
                    f"({TYPES[dtype]})n", f"({TYPES[dtype]})t", f"({TYPES[dtype]})b", self.number(dtype),
                )  # fmt: skip
                self.emit(1, f"const {TYPES[dtype]} {name} = {text};")
                self.invariants[dtype].append(name)

    def _start(self, dtype):
        return self.pick(self.number(dtype), *self.invariants[dtype], f"({TYPES[dtype]})(t - 2)")

    def _loop_somewhere(self):
        indent, outer = 1, None
        if self.chance(0.3):
            self.emit(1, f"if ({self._condition_on_place()}) {{")
            indent = 2
        if self.chance(0.3):
            outer = self.fresh("o"), self.random.randint(1, 3) - 1
            self.emit(indent, f"for (int {outer[0]} = 0; {outer[0]} <= {outer[1]}; ++{outer[0]})")
        self._loop(indent, outer)
        if indent == 2:
            self.emit(1, "}")

    def _condition_on_place(self):
        return self.pick(
            "t < 5", "t % 2 == 0", "t == 3", "b < 2", "b == 0", "n > 3", "t >= 1", "x[i % 64] > 0", "p > -9"
        )

    def _results(self):
        for column, name in enumerate(self.states["float32"]):
            self.emit(1, f"out[i * {OUT_COLUMNS} + {column}] = {name};")
        for column, name in enumerate(self.states["float64"]):
            self.emit(1, f"wide[i * {OUT_COLUMNS} + {column}] = {name};")
        for column, name in enumerate((*self.sums, *self.integers)[:OUT_COLUMNS]):
            self.emit(1, f"whole[i * {OUT_COLUMNS} + {column}] = {name};")

    def _head(self, k, outer):
        """The head of a loop after its variable's declaration, with the least and greatest value in its body."""
        if outer is not None and self.chance(0.3):
            name, most = outer
            return f"{k} = {name}; {k} < {name} + 4; ++{k}", 0, most + 3
        text, low, high = self.pick(
            ("K = 0; K < n; ++K", 0, N - 1), ("K = 0; K <= n; K++", 0, N), ("K = 1; K < m; K += 2", 1, M - 1),
            ("K = n; K > 0; --K", 1, N), ("K = m - 1; K >= 0; K -= 3", 0, M - 1), ("K = 0; K < 8; K += 1", 0, 7),
            ("K = t % 3; K < n; K += 2", 0, N - 1), ("K = 2; K < 3; ++K", 2, 2), ("K = n; K < 3; ++K", 3, 3),
            ("K = 0; K < t % 4 + 1; ++K", 0, 3), ("K = 0; K * 2 < m; ++K", 0, M // 2), ("K = 8; K > 0; K -= 2", 2, 8),
            ("K = 0; K < m - n; K = K + 1", 0, M - N - 1), ("K = t; K < threads + 9; K += threads", 0, 0),
        )  # fmt: skip
        return text.replace("K", k), low, high

    def _loop(self, indent, outer):
        k = self.fresh("k")
        head, low, high = self._head(k, outer)
        kind = self.pick(*["int"] * 8, "long long", "short")
        if low == high == 0:
            self.read = 1
            self.emit(indent, f"for (int {head}) {self.states['float32'][0]} += x[{k} % 64];")
            return
        if indent == 1 and outer is None and self.chance(0.3):
            self.emit(1, f"{kind} {k};")
            self.integers.append(k)
            kind = ""
        if self.chance(0.1):
            self.emit(indent, "#pragma unroll 2")
        self.emit(indent, f"for ({kind} {head}) {{")
        self.counters, self.outer, self.read = [(k, low, high)], outer, 0
        kept = {dtype: list(names) for dtype, names in self.temporaries.items()}
        for _ in range(self.random.randint(1, 5)):
            self._statement(indent + 1, [])
        dtype = self.pick("float32", "float64")
        self.emit(indent + 1, f"{self.pick(*self.states[dtype])} += {self._load(dtype)};")
        self.temporaries = kept
        self.emit(indent, "}")

    def _statement(self, indent, locals_):
        dtype = self.pick("float32", "float64")
        kind, states = self.random.random(), self.states[dtype]
        if not self.inside and self.chance(0.12):
            self._branch(indent, locals_)
        elif self.sums and self.chance(0.2):
            self.emit(indent, f"{self.pick(*self.sums)} {self.pick('', '+', '^', '&', '-', '|')}= {self._integer(2)};")
        elif self.inside and kind < 0.35:
            self.emit(indent, f"{self.pick(*states)} = {self._value(dtype, 1)};")
        elif kind < 0.15:
            k, low, high = self.pick(*self.counters)
            factor, offset = self.pick((1, 0), (1, 1), (2, 0), (-1, high), (1, -low))
            copy = self.fresh("c")
            text = self.pick(
                f"{k} * {factor} + {offset}", f"{offset} + {factor} * (int){k}", f"(long long){k} * {factor} + {offset}"
            )
            self.emit(indent, f"const {self.pick('int', 'int', 'int', 'int', 'short', 'long long')} {copy} = {text};")
            ends = low * factor + offset, high * factor + offset
            self.counters.append((copy, min(ends), max(ends)))
        elif kind < 0.35:
            name = self.fresh("v")
            self.emit(indent, f"const {TYPES[dtype]} {name} = {self._value(dtype, 2)};")
            self.temporaries[dtype].append(name)
        elif kind < 0.5 and len(states) > 1:
            a, b = self.random.sample(states, 2)
            name = self.fresh("v")
            self.emit(indent, f"const {TYPES[dtype]} {name} = {a};")
            self.emit(indent, f"{a} = {b};")
            self.emit(indent, f"{b} = {self.pick(name, name, self._value(dtype, 2))};")
        elif kind < 0.65:
            self.emit(indent, f"{self.pick(*states)} {self.pick('+', '-', '*')}= {self._value(dtype, 2)};")
        else:
            self.emit(indent, f"{self.pick(*states)} = {self._value(dtype, 3)};")

    def _load(self, dtype):
        self.read += 1
        if self.reads_inputs and self.chance(0.3):
            return self._input(dtype)
        name, of, shape = self.pick(*self.arrays)
        text = f"{name}{''.join(f'[{self._place(size)}]' for size in shape)}"
        if len(shape) == 1 and self.chance(0.3):
            start = self.random.randint(0, 2)
            place = self._place(shape[0] - start)
            text = self.pick(
                f"*({name} + ({place}))", f"({name} + {start})[{place}]", f"*(&{name}[{start}] + ({place}))"
            )
        return text if of == dtype else f"({TYPES[dtype]}){text}"

    def _input(self, dtype):
        of, name = self.pick(("float32", "x"), ("float64", "y"), ("float16", "h"), ("float32", "table"))
        row = self.pick("b", "b", "0")
        place = self._place(40)
        text = f"table[{place}]" if name == "table" else f"{name}[{row} * {WIDTH} + {place}]"
        if of == "float16":
            text, of = f"__half2float({text})", "float32"
        return text if of == dtype else f"({TYPES[dtype]}){text}"

    def _value(self, dtype, depth):
        if depth <= 0 or self.chance(0.15):
            kind = self.random.random()
            if kind < 0.05 and self.sums:
                return f"({TYPES[dtype]})({self._integer(1)})"
            if kind < 0.4 and not self.pure:
                return self._load(dtype)
            if kind < 0.6:
                return self.pick(*self.states[dtype])
            if kind < 0.75 and self.temporaries[dtype]:
                return self.pick(*self.temporaries[dtype])
            return self.pick(*self.invariants[dtype]) if kind < 0.9 else self.number(dtype)
        a, b = self._value(dtype, depth - 1), self._value(dtype, depth - 1)
        kind = self.random.randrange(13)
        if kind <= 4:
            return f"({a} {self.pick('+', '-', '*', '/', '*')} {b})"
        if kind <= 6:
            return f"({self.pick(*FUNCTIONS[dtype])}({a}))"
        if kind == 7:
            other = "float64" if dtype == "float32" else "float32"
            return f"({TYPES[dtype]})({self._value(other, depth - 1)})"
        if kind == 8:
            return f"{self.pick(*PAIRS[dtype])}({a}, {b})"
        if kind == 9:
            return f"{self.pick(*PRODUCTS[dtype])}({a}, {b}, {self._value(dtype, 0)})"
        if kind == 10:
            return f"({self._condition(dtype)} ? {self.pick(a, *[self._leaf(dtype)] * 3)} : {self._leaf(dtype)})"
        if kind == 11 and self.calls:
            return f"{self.pick(*CALLS[dtype])}({a})"
        return f"({a} + {b})"

    def _branch(self, indent, locals_):
        k, _, high = self.pick(*self.counters)
        if self.chance(0.5):
            self.emit(indent, f"if ({k} {self.pick('<', '<=')} {self.pick('n', str(high), 'm')}) {{")
        else:
            self.emit(indent, f"if ({self._condition('float32')}) {{")
            self.pure = self.chance(0.8)
        self.inside = True
        for _ in range(self.random.randint(1, 2)):
            self._statement(indent + 1, locals_)
        self.inside = self.pure = False
        self.emit(indent, "}")

    def _integer(self, depth):
        """An int, unsigned or long long."""
        if depth <= 0 or self.chance(0.2):
            load = f"z[{self._place(40)}]" if self.reads_inputs and not self.pure else "n"
            number = self.pick("3", "255u", "-7", "1ll << 40")
            return self.pick(*self.sums, self.pick(*self.counters)[0], "t", number, load, load)
        a, b = self._integer(depth - 1), self._integer(depth - 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} & {b})", f"({a} ^ {b})", f"({a} | {b})", f"(-({a}))",
            f"({a} >> {self.random.randint(0, 9)})", f"((unsigned)({a}) << {self.random.randint(0, 9)})", f"(~{a})",
            f"(short)({a})", f"(unsigned char)({a})", f"({self._condition('float32')} ? {a} : {b})",
            f"({a} > {b} ? {a} : {b})", f"min((int)({a}), (int)({b}))", f"max((unsigned)({a}), (unsigned)({b}))",
        )  # fmt: skip

    def _condition(self, dtype):
        one = f"{self._leaf(dtype)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self._leaf(self.pick(*TYPES))}"
        return self.pick(one, one, f"!({one})", f"{one} {self.pick('&&', '||')} {self._leaf(dtype)} < 1")

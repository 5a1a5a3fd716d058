"""Random C++ functions of many statements: loops, switches, structures, pointers, references, lambdas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .host import Function

PRELUDE = """
struct Small { short s; unsigned char c; };
struct Pair {
  int a;
  short b;
  Small inner;
  unsigned d;
  __device__ Pair() : a(1), b(-2), d(3) { inner.s = 4; inner.c = 5; }
  __device__ Pair(int x, int y) : a(x), b((short)y), d(x ^ y) {
    inner.s = (short)(x + y);
    inner.c = (unsigned char)x;
  }
  __device__ int total() const { return a + b + inner.s + inner.c + (int)d; }
  __device__ Pair& add(int x) { a += x; b -= (short)x; return *this; }
  __device__ Pair operator+(const Pair& o) const {
    Pair r = *this;
    r.a += o.a;
    r.d ^= o.d;
    r.inner = o.inner;
    return r;
  }
  __device__ int& pick(int i) { if (i & 1) return a; return reinterpret_cast<int&>(d); }
};
template <typename T> __device__ T larger(T x, T y) { return x < y ? y : x; }
template <int N> __device__ int scaled(int x) { if constexpr (N > 2) { return x * N; } else { return x - N; } }
__device__ void swap_them(int& x, int& y) { int t = x; x = y; y = t; }
__device__ void bump(int* p, int by) { *p += by; }
__device__ int early(int x, int y) {
  if (x > y) return x - y;
  for (int i = 0; i < 4; ++i) { if ((x ^ i) == (y & 7)) return i; x += i; }
  return x * 3;
}
__device__ unsigned bits_of(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
__device__ int first_of(const int (&array)[8], int x) {
  int i = 0;
  for (int v : array) {
    if (v > x) break;
    ++i;
  }
  return i;
}
"""

PARAMETERS = ("int", "int", "unsigned", "short")


class ControlFlowGenerator:
    """Writes random statements over ints, an array, two structures, a pointer and a reference."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.depth = 1
        self.counter = 0
        self.in_loop = False
        self.in_switch = False
        self.locals = ["v0", "v1", "v2"]

    def pick(self, *items: str) -> str:
        """One of several texts."""
        return items[int(self.rng.integers(len(items)))]

    def emit(self, text: str) -> None:
        """A line at the current depth."""
        self.lines.append("  " * self.depth + text)

    def fresh(self, prefix: str) -> str:
        """A new name."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def function(self, name: str) -> tuple[str, Function]:
        """A function and its text."""
        self.declare()
        for _ in range(int(self.rng.integers(3, 8))):
            self.statement(3)
        self.finish()
        declared = ", ".join(f"{kind} a{i}" for i, kind in enumerate(PARAMETERS))
        text = "\n".join([f"__device__ unsigned {name}({declared}) {{", *self.lines, "}"])
        return text, Function(name, "unsigned", PARAMETERS)

    def declare(self) -> None:
        """The variables that statements use."""
        self.emit("int v0 = a0, v1 = a1 - 3, v2 = (int)a2;")
        self.emit("int array[8] = {1, a3, 3, a0 & 15};")
        self.emit("Pair p, q(a0, a1);")
        self.emit("int* pointer = &array[a2 & 7];")
        self.emit(f"int& alias = {self.pick('v1', 'array[a0 & 7]', 'p.a', 'q.pick(a1)')};")
        self.emit("unsigned steps = 0;")

    def finish(self) -> None:
        """The result: a number that all variables go into."""
        self.emit("unsigned hash = steps + (unsigned)v0 * 3u + (unsigned)v1 * 5u + (unsigned)v2 * 7u;")
        self.emit("for (int i = 0; i < 8; ++i) hash = hash * 31u + (unsigned)array[i];")
        self.emit("hash ^= (unsigned)p.total() ^ ((unsigned)q.total() << 3);")
        self.emit("return hash ^ (unsigned)(pointer - array) ^ (unsigned)alias;")

    def place(self) -> str:
        """Something that can be assigned."""
        return self.pick(
            *self.locals, f"array[{self.value(1)} & 7]", "p.a", "q.a", "p.b", "q.inner.s", "p.inner.c", "p.d",
            "(*pointer)", "alias", "(&q)->d", "p.pick(v0)",
        )  # fmt: skip

    def value(self, depth: int) -> str:
        """An int expression."""
        if depth <= 0:
            return self.pick(
                *self.locals, "a0", "a1", "a3", "(int)a2", "p.a", "q.b", "q.inner.c", "p.inner.s", "*pointer", "alias",
                "array[v2 & 7]", "(int)q.d", "5", "-7", "1000",
            )  # fmt: skip
        choice = int(self.rng.integers(14))
        if choice < 5:
            return f"({self.value(depth - 1)} {self.pick('+', '-', '*', '&', '|', '^')} {self.value(depth - 1)})"
        x, y = self.value(depth - 1), self.value(depth - 1)
        return (
            f"larger<{self.pick('int', 'long', 'short')}>({x}, {y})", f"scaled<{self.pick('1', '2', '3')}>({x})",
            f"early({x} & 63, {y} & 31)",
            f"({self.condition(depth - 1)} ? {x} : {y})", f"Pair({x}, {y}).total()", "(p + q).total()",
            f"(int)(bits_of((float)({x} & 1023)) >> 8)", f"first_of(array, {x})",
            f"({x} {self.pick('/', '%')} (({y} & 7) + 1))",
        )[choice - 5]  # fmt: skip

    def condition(self, depth: int) -> str:
        """A bool expression."""
        if depth > 0 and self.rng.random() < 0.3:
            return f"({self.condition(depth - 1)} {self.pick('&&', '||')} {self.condition(depth - 1)})"
        return f"({self.value(depth)} {self.pick('<', '<=', '==', '!=', '>')} {self.value(depth)})"

    def block(self, depth: int, count: int = 3) -> None:
        """A few statements, one level deeper, with variables of their own."""
        self.depth += 1
        known = list(self.locals)
        for _ in range(int(self.rng.integers(1, count + 1))):
            self.statement(depth - 1)
        self.locals = known
        self.depth -= 1

    def statement(self, depth: int) -> None:
        """One random statement."""
        simple, nested = self.simple_statements(), self.nested_statements()
        choices = simple if depth <= 0 else (*simple, *nested)
        choice = choices[int(self.rng.integers(len(choices)))]
        if choice in nested:
            choice(depth)  # type: ignore[call-arg]
        else:
            choice()  # type: ignore[call-arg]

    def simple_statements(self) -> tuple[Callable[[], None], ...]:
        """Writers of statements without parts."""
        return (
            self.assignment, self.assignment, self.compound, self.step, self.call, self.record, self.move_pointer,
            self.lambda_, self.declaration, self.leave,
        )  # fmt: skip

    def nested_statements(self) -> tuple[Callable[[int], None], ...]:
        """Writers of statements that hold others, down to a depth."""
        return (self.if_, self.if_, self.for_, self.while_, self.do_, self.switch, self.range_for)

    def assignment(self) -> None:
        self.emit(f"{self.place()} = {self.value(2)};")

    def compound(self) -> None:
        self.emit(f"{self.place()} {self.pick('+=', '-=', '^=', '*=', '|=')} {self.value(2)};")

    def step(self) -> None:
        place = self.place()
        self.emit(self.pick(f"{place}++;", f"--{place};", f"v0 += {self.pick('v1++', '--v2', 'alias++')};"))

    def call(self) -> None:
        a, b = self.pick("v0", "v1"), self.pick("v2", "array[3]", "q.a", "(*pointer)")
        x = self.value(1)
        self.emit(self.pick(f"swap_them({a}, {b});", f"bump(&{b}, {x});", f"p.add({x}).add(2);"))

    def record(self) -> None:
        self.emit(
            self.pick(
                "p = q;",
                "q = p + q;",
                f"p = Pair({self.value(1)}, {self.value(1)});",
                "{ Pair r = p; p = q; q = r; }",
                f"q.inner = Small{{(short)({self.value(1)}), (unsigned char)({self.value(1)})}};",
                "p = Pair();",
                f"{{ Pair pairs[2] = {{p, q}}; pairs[v0 & 1].a = {self.value(1)}; q = pairs[v1 & 1]; }}",
            )
        )

    def move_pointer(self) -> None:
        self.emit(self.pick(f"pointer = array + ({self.value(1)} & 7);", f"pointer = &array[{self.value(1)} & 7];"))

    def lambda_(self) -> None:
        name = self.fresh("f")
        capture = self.pick("&", "=", "&, v0", "=, &v1", "&v1, v2, k = v0 + 1")
        inside = "v2 + k" if "k =" in capture else "v0 + v2"
        change = "v1 += x; " if capture in ("&", "&, v0", "=, &v1", "&v1, v2, k = v0 + 1") else ""
        self.emit(f"{{ auto {name} = [{capture}](int x) {{ {change}return {inside} * x; }};")
        self.emit(f"  v0 = {name}({self.value(1)}) + {name}(3); }}")

    def declaration(self) -> None:
        name = self.fresh("w")
        self.emit(f"int {name} = {self.value(2)};")
        self.locals = [*self.locals, name]

    def leave(self) -> None:
        if self.in_loop and self.rng.random() < 0.5:
            self.emit(f"if {self.condition(1)} {self.pick('break', 'continue') if not self.in_switch else 'continue'};")
        elif self.rng.random() < 0.2:
            self.emit(f"if {self.condition(1)} return (unsigned){self.value(1)};")
        else:
            self.assignment()

    def if_(self, depth: int) -> None:
        self.emit(f"if {self.condition(1)} {{")
        self.block(depth)
        if self.rng.random() < 0.5:
            self.emit("} else {")
            self.block(depth)
        self.emit("}")

    def _loop(self, head: str, tail: str, depth: int, first: str = "") -> None:
        outer, self.in_loop = (self.in_loop, self.in_switch), True
        self.in_switch = False
        self.emit(head)
        self.depth += 1
        self.emit("if (++steps > 60) break;")
        if first:
            self.emit(first)
        self.depth -= 1
        self.block(depth)
        self.emit(tail)
        self.in_loop, self.in_switch = outer

    def for_(self, depth: int) -> None:
        i = self.fresh("i")
        self._loop(f"for (int {i} = 0; {i} < {self.pick('3', '5', '(a0 & 7)')}; ++{i}) {{", "}", depth, f"v0 ^= {i};")

    def while_(self, depth: int) -> None:
        self._loop(f"while {self.condition(1)} {{", "}", depth)

    def do_(self, depth: int) -> None:
        self._loop("do {", f"}} while {self.condition(1)};", depth)

    def range_for(self, depth: int) -> None:
        name = self.fresh("e")
        self._loop(f"for (int{self.pick('', '&')} {name} : array) {{", "}", depth, f"{name} += v1; v2 ^= {name};")

    def switch(self, depth: int) -> None:
        outer, self.in_switch = self.in_switch, True
        self.emit(f"switch ({self.value(1)} & 7) {{")
        for label in ("case 0:", "case 1: case 5:", "case 2:", self.pick("default:", "case 3:", "case -1: default:")):
            self.emit(f"  {label} {{")
            self.block(depth, 2)
            self.emit(f"  }} {self.pick('break;', 'break;', '')}")
        self.emit("}")
        self.in_switch = outer


__all__ = ["PRELUDE", "ControlFlowGenerator"]

"""Random C++ functions over objects: bit-fields, virtual functions, function pointers, destructors, references kept."""

from __future__ import annotations

from collections.abc import Callable

from . import control_flow_generator
from .control_flow_generator import ControlFlowGenerator

PRELUDE = (
    control_flow_generator.PRELUDE
    + """
struct Bits {
  int a : 5;
  unsigned b : 11;
  signed char c : 3;
  bool f : 1;
  int wide : 20;
  unsigned short s : 9;
  long long far : 35;
  __device__ int total() const { return a + (int)b * 3 + c * 5 + f * 7 + wide + s * 11 + (int)far; }
};
struct Shape {
  int k;
  __device__ Shape(int k) : k(k) {}
  __device__ virtual int of(int x) const { return x + k; }
  __device__ virtual Shape& change(int by) { k += by; return *this; }
};
struct Square : Shape {
  short side;
  __device__ Square(int k, int side) : Shape(k), side((short)side) {}
  __device__ int of(int x) const override { return x * side - k; }
};
struct Deep : Square {
  Bits bits;
  __device__ Deep(int k) : Square(k, k ^ 3), bits{1, 2, 3, true, k} {}
  __device__ int of(int x) const override { return Square::of(x) ^ bits.total(); }
  __device__ Shape& change(int by) override { bits.b += (unsigned)by; Shape::change(bits.a); return *this; }
};
struct Kept {
  int& r;
  int* p;
  __device__ int& which(bool first) const { if (first) return r; return *p; }
};
struct Guard {
  unsigned* log;
  int mark;
  __device__ Guard(unsigned* log, int mark) : log(log), mark(mark) { *log += (unsigned)mark; }
  __device__ ~Guard() { *log = *log * 31u ^ (unsigned)mark; }
  __device__ int read() const { return (int)*log ^ mark; }
};
typedef int (*Op)(int, int);
__device__ int op_add(int x, int y) { return x + y; }
__device__ int op_early(int x, int y) { return early(x & 63, y & 31); }
template <int N> __device__ int op_scaled(int x, int y) { return x * N ^ y; }
__device__ int apply(Op op, int x, int y) { return op(x, y); }
"""
)


class ObjectGenerator(ControlFlowGenerator):
    """Writes random statements that also use objects of those classes."""

    def declare(self) -> None:
        super().declare()
        self.emit("unsigned log = 7;")
        self.emit("Guard whole(&log, a0);")
        self.emit("Bits bits = {a0, a2, (signed char)a1, a3 > 0, a1, 5}, others[2] = {{1, 2}, {a1, a2}};")
        self.emit("Shape plain(a1); Square square(a0, a1 & 15); Deep deep(a3);")
        self.emit("Shape* shapes[3] = {&plain, &square, &deep};")
        self.emit("Shape* shape = shapes[a2 % 3u];")
        self.emit("Op ops[3] = {op_add, op_early, op_scaled<3>}, op = op_add;")
        self.emit(f"Kept kept{{{self.pick('v0', 'array[1]', 'p.a', 'array[a0 & 7]')}, &array[a1 & 7]}};")

    def finish(self) -> None:
        self.emit("v0 += bits.total() + others[0].total() * 3 + others[1].total() * 5 + kept.r + *kept.p;")
        self.emit("v1 ^= shape->of(3) + plain.of(1) * 3 + square.of(2) * 5 + deep.of(v0) * 7 + apply(op, v0, 9);")
        self.emit("v2 += (int)log;")
        super().finish()

    def place(self) -> str:
        more = (
            "bits.a", "bits.b", "bits.c", "bits.wide", "bits.s", "bits.far", f"others[{self.pick('v0', 'v1')} & 1].b",
            "others[1].wide", "deep.bits.far", "deep.k", "kept.r", "*kept.p", "kept.which(v1 & 1)", "shape->k",
        )  # fmt: skip
        return f"({self.pick(*more)})" if self.rng.random() < 0.4 else super().place()

    def value(self, depth: int) -> str:
        if self.rng.random() > 0.35:
            return super().value(depth)
        if depth <= 0:
            return self.pick(
                "bits.a", "(int)bits.b", "bits.c", "bits.f", "bits.wide", "(int)bits.far", "kept.r", "(int)log",
            )  # fmt: skip
        x, y = super().value(depth - 1), super().value(depth - 1)
        return self.pick(
            f"shape->of({x})", f"shapes[(unsigned)({x}) % 3u]->of({y})", f"op({x}, {y})",
            f"apply(op_scaled<2>, {x}, {y})",
            f"ops[(unsigned)({x}) % 3u]({y}, {x})", "others[v0 & 1].total()", f"kept.which({x} > 0)",
            "whole.read()", f"apply([](int s, int t) {{ return s - t; }}, {x}, {y})",
        )  # fmt: skip

    def simple_statements(self) -> tuple[Callable[[], None], ...]:
        return (*super().simple_statements(), self.object_, self.object_, self.temporary)

    def nested_statements(self) -> tuple[Callable[[int], None], ...]:
        return (*super().nested_statements(), self.guarded, self.guarded)

    def object_(self) -> None:
        """Change an object, or which one a pointer means."""
        x = self.value(1)
        text = self.pick(
            f"shape = shapes[(unsigned)({x}) % 3u];", f"shape->change({x}).change(2);", "op = ops[(unsigned)v2 % 3u];",
            f"op = {x} > 3 ? op_add : op_scaled<5>;", f"kept.p = &array[{x} & 7];", "others[v1 & 1] = bits;",
            "bits = others[0];", f"++bits.{self.pick('a', 'b', 'wide', 's')};", "bits.f = !bits.f; bits.far <<= 1;",
            f"{{ Deep copy = deep; copy.change({x}); v0 ^= copy.of(v1); }}",
            "{ Shape sliced = *shape; v1 += sliced.of(v2); }",
            f"{{ Kept inner{{v{self.pick('0', '1', '2')}, &v1}}; inner.r += 3; }}",
        )  # fmt: skip
        self.emit(text)

    def temporary(self) -> None:
        """An object that lives for one expression."""
        self.emit(f"v0 ^= Guard(&log, {self.value(1)}).read() + {self.pick('v1', 'a1')};")

    def guarded(self, depth: int) -> None:
        """A block that ends with a destructor, whichever way it is left."""
        name = self.fresh("g")
        self.emit("{")
        self.emit(f"  Guard {name}(&log, {self.value(1)});")
        self.block(depth)
        self.emit(f"  v2 += {name}.read();")
        self.emit("}")


__all__ = ["PRELUDE", "ObjectGenerator"]

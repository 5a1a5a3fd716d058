"""Random kernels for the control-flow fuzz: text of a module with two device functions and one kernel.

Every integer variable stays within LIMIT and every float within LIMIT too, because each assignment is reduced
when its bound says so. Then Python's integers and floats mean the same as Numba's int64 and float64, and the same
text can be run thread by thread as plain Python. Threads share nothing, each reads inputs and writes its own row; but
with ``exchanges`` they pass values through shared memory, between barriers that all threads reach.
"""

import random

LIMIT = 1_000_000
LOCAL_SIZE = 4
OUT_COLUMNS = 6
MOST_THREADS = 64

HEADER = """\
import math
from numba import cuda, float32, float64, int64

SHIFT = {shift}
TABLE = {table}


@cuda.jit(device=True)
def choose(a, b):
{choose}

@cuda.jit(device=True)
def blend(p, q, a):
{blend}

def kernel(x, y, m, z, out, fout, gout):
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    n = x.size
    la = cuda.local.array({local_size}, int64)
    for k in range({local_size}):
        la[k] = k * SHIFT + t
    lr = cuda.local.array({local_size}, int64)
    for k in range({local_size}):
        lr[k] = k - SHIFT * t
"""


class Writer:
    """Writes one module: ``depth`` bounds the nesting, ``length`` a block, ``budget`` (about) the lines."""

    def __init__(self, seed, depth, length, budget, exchanges):
        self.random = random.Random(seed)
        self.exchanges = exchanges
        self.depth = depth
        self.length = length
        self.budget = budget
        self.lines = []
        self.integers = []
        self.floats = []
        self.singles = []
        self.inside_kernel = False
        self.names = 0

    # ---- small choices ----

    def pick(self, *options):
        return self.random.choice(options)

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def emit(self, indent, text):
        self.lines.append("    " * indent + text)

    # ---- expressions: (text, bound of the absolute value) ----

    def atom(self):
        options = [str(self.random.randint(-9, 9)), *self.integers]
        if self.inside_kernel:
            options += ["t", "b", "i", "n", "SHIFT", "x[i]"]
        text = self.random.choice(options)
        if text.lstrip("-").isdigit():
            return (f"({text})" if text.startswith("-") else text), abs(int(text))
        return text, LIMIT if text in self.integers else 1000

    def load(self, depth):
        """A read of an array at an index of the thread's own, sometimes from the end."""
        index, _ = self.integer(depth - 1)
        other, _ = self.integer(depth - 1)
        return self.pick(
            (f"x[({index}) % n]", 1000),
            (f"x[-1 - ({index}) % n]", 1000),
            (f"y[({index}) % 5]", 1000),
            (f"m[({index}) % 3, ({other}) % 4]", 1000),
            (f"m[({index}) % 3][-1 - ({other}) % 4]", 1000),
            (f"la[({index}) % {LOCAL_SIZE}]", LIMIT),
            (f"la[-1 - ({index}) % {LOCAL_SIZE}]", LIMIT),
            (f"lr[{self.random.randrange(LOCAL_SIZE)}]", LIMIT),
            (f"TABLE[{self.random.randrange(-3, 3)}]", 1000),
        )

    def integer(self, depth):
        if depth <= 0 or self.random.random() < 0.25:
            return self.atom()
        kind = self.random.randrange(13 if self.inside_kernel else 8)
        if kind < 4:
            (a, bound_a), (b, bound_b) = self.integer(depth - 1), self.integer(depth - 1)
            if kind == 0 and bound_a * bound_b < 2**60:
                return f"({a} * {b})", bound_a * bound_b
            if kind == 1:
                return f"({a} - {b})", bound_a + bound_b
            return f"({a} + {b})", bound_a + bound_b
        a, bound = self.integer(depth - 1)
        if kind == 4:
            divisor = self.random.choice([-7, -3, 2, 5, 16])
            quotient = self.pick(f"({a} // {divisor})", f"({a} >> 2)")
            return self.pick((quotient, bound + 1), (f"({a} % {divisor})", 16))
        if kind == 5:
            b, bound_b = self.integer(depth - 1)
            return f"{self.pick('min', 'max')}({a}, {b})", max(bound, bound_b)
        if kind == 6:
            b, bound_b = self.integer(depth - 1)
            return f"({a} if {self.condition(depth - 1)} else {b})", max(bound, bound_b)
        if kind == 7:
            options = (f"abs({a})", bound), (f"(-{a})", bound), (f"({a} & 31)", 31), (f"({a} ^ 5)", 2 * bound + 8)
            return self.random.choice(options)
        if kind == 8:
            b, _ = self.integer(depth - 1)
            return f"choose({self.reduced(a, bound)}, {self.reduced(b, LIMIT * LIMIT)})", LIMIT
        if kind == 9:
            f, _ = self.floating(depth - 1)
            return f"int(math.floor({f}) % 1009)", 1009
        if kind == 10:
            b, bound_b = self.integer(depth - 1)
            return f"({a} {self.pick('and', 'or')} {b})", max(bound, bound_b)
        return self.load(depth)

    def reduced(self, text, bound):
        return text if bound <= LIMIT else f"({text}) % {self.pick(997, 100003)}"

    def floating(self, depth):
        if depth <= 0 or self.random.random() < 0.25:
            literal = f"{self.random.uniform(-4, 4):.3f}"
            options = [(f"({literal})", 4.0), *((name, float(LIMIT)) for name in self.floats)]
            if self.inside_kernel:
                options += [("z[i]", 10.0), (f"z[({self.integer(1)[0]}) % n]", 10.0)]
            return self.random.choice(options)
        a, bound_a = self.floating(depth - 1)
        b, bound_b = self.floating(depth - 1)
        kind = self.random.randrange(8 if self.inside_kernel else 6)
        if kind == 0:
            return f"({a} * {b})", bound_a * bound_b
        if kind == 1:
            return f"({a} - {b})", bound_a + bound_b
        if kind == 2:
            return f"({a} / ({b} * {b} + 1.0))", bound_a
        if kind == 3:
            return f"({a} if {self.condition(depth - 1)} else {b})", max(bound_a, bound_b)
        if kind == 4:
            extreme = f"{self.pick('min', 'max')}({a}, {b})"
            return self.pick((f"math.sqrt(abs({a}))", bound_a + 1), (extreme, bound_a + bound_b))
        if kind == 5:
            c, bound_c = self.integer(depth - 1)
            return f"({a} + {c})", bound_a + bound_c
        if kind == 6:
            c, bound_c = self.integer(depth - 1)
            p, q = self.small(a, bound_a), self.small(b, bound_b)
            return f"blend({p}, {q}, {self.reduced(c, bound_c)})", float(LIMIT)
        if self.singles:
            return f"float64({self.random.choice(self.singles)})", float(LIMIT)
        return f"({a} + {b})", bound_a + bound_b

    def small(self, text, bound):
        return text if bound <= LIMIT else f"({text}) % 1024.0"

    def single(self):
        """float32 arithmetic: every operand is a float32, every result is damped."""
        a, b = self.random.choice(self.singles), self.random.choice(self.singles)
        scale, offset = self.random.uniform(-0.6, 0.6), self.random.uniform(-3, 3)
        return self.pick(
            f"{a} * float32({scale:.3f}) + float32({offset:.3f})",
            f"({a} - {b}) * float32(0.25)",
            f"{self.pick('min', 'max')}({a}, {b}) * float32({scale:.3f})",
            f"float32({self.small(*self.floating(2))})",
        )

    def condition(self, depth):
        kind = self.random.randrange(10)
        if kind < 2 and depth > 0:
            return f"({self.condition(depth - 1)} {self.pick('and', 'or')} {self.condition(depth - 1)})"
        if kind == 2 and depth > 0:
            return f"not {self.condition(depth - 1)}"
        relation = self.pick("<", "<=", ">", ">=", "==", "!=")
        if kind < 6 and self.inside_kernel:  # by thread, by block, the same everywhere, by data
            subject = self.pick("t % 5", "t", "b % 3", "b", "n % 4", "SHIFT", "x[i] % 4", "i % 7", "t % 2 + b % 2")
            return f"{subject} {relation} {self.random.randint(0, 6)}"
        if kind == 6:
            return f"{self.integer(1)[0]} {relation} {self.floating(1)[0]}"
        if kind == 7:
            return f"-3 <= {self.atom()[0]} {self.pick('<', '<=')} {self.random.randint(0, 50)}"
        if kind == 8:
            return f"({self.integer(1)[0]}) % 3 {self.pick('== 0', '!= 1', '> 0')}"
        return f"{self.integer(depth)[0]} {relation} {self.integer(depth)[0]}"

    # ---- statements ----

    def assignment(self, indent):
        kind = self.random.randrange(10 if self.inside_kernel else 5)
        name = self.random.choice(self.integers)
        if kind < 2:
            self.emit(indent, f"{name} = {self.reduced(*self.integer(3))}")
        elif kind == 2:
            operator = self.pick("+=", "-=", "*=")
            text = self.reduced(*self.integer(2))
            self.emit(indent, f"{name} {operator} {text}")
            self.emit(indent, f"{name} %= {self.pick(997, 10007, 100003)}")
        elif kind == 3 and len(self.integers) > 1:
            first, second = self.random.sample(self.integers, 2)
            self.emit(indent, f"{first}, {second} = {second}, {self.reduced(*self.integer(2))}")
        elif kind <= 5 and self.floats:
            target = self.random.choice(self.floats)
            if self.random.random() < 0.3:
                self.emit(indent, f"{target} {self.pick('+=', '-=', '*=')} {self.small(*self.floating(2))}")
                self.emit(indent, f"{target} %= 512.0")
            else:
                self.emit(indent, f"{target} = {self.small(*self.floating(3))}")
        elif kind == 6 and self.singles:
            self.emit(indent, f"{self.random.choice(self.singles)} = {self.single()}")
        elif kind == 7 and self.inside_kernel:
            if self.random.random() < 0.5:
                self.registers(indent)
                return
            index, _ = self.integer(2)
            place = self.pick(f"({index}) % {LOCAL_SIZE}", f"-1 - ({index}) % {LOCAL_SIZE}")
            self.emit(indent, f"la[{place}] = {self.reduced(*self.integer(2))}")
        elif kind == 8 and self.inside_kernel:
            column = self.pick(*range(-OUT_COLUMNS, OUT_COLUMNS), f"({self.integer(1)[0]}) % {OUT_COLUMNS}")
            self.emit(indent, f"out[i, {column}] {self.pick('=', '+=')} {self.reduced(*self.integer(3))}")
        elif kind == 9 and self.inside_kernel:
            self.emit(indent, f"fout[i, {self.random.randrange(-2, 2)}] = {self.small(*self.floating(3))}")
        else:
            self.emit(indent, f"{name} = {self.reduced(*self.integer(3))}")

    def registers(self, indent):
        """A change of the array that is indexed by numbers and by counters of loops with known bounds only."""
        if self.random.random() < 0.5:
            place = self.random.randrange(LOCAL_SIZE)
            self.emit(indent, f"lr[{place}] = {self.reduced(*self.integer(2))}")
            return
        counter, factor = self.fresh("c"), self.random.randint(-3, 3)
        first, step = self.pick((0, 1), (1, 2), (LOCAL_SIZE - 1, -1))
        self.emit(indent, f"for {counter} in range({first}, {LOCAL_SIZE if step > 0 else -1}, {step}):")
        if self.random.random() < 0.4:
            self.emit(indent + 1, f"if {self.condition(1)}:")
            self.emit(indent + 2, "continue")
        self.emit(indent + 1, f"lr[{counter}] = (lr[{counter}] * {factor} + {self.atom()[0]} + {counter}) % 10007")

    def branch(self, indent, depth, loop):
        self.emit(indent, f"if {self.condition(2)}:")
        self.block(indent + 1, depth - 1, loop)
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            self.emit(indent, f"elif {self.condition(2)}:")
            self.block(indent + 1, depth - 1, loop)
        if self.random.random() < 0.5:
            self.emit(indent, "else:")
            self.block(indent + 1, depth - 1, loop)

    def loop(self, indent, depth):
        kind = self.random.randrange(5)
        if kind <= 1:
            counter = self.fresh("k")
            trips = self.pick("3", "t % 4", "b % 3 + 1", f"({self.integer(2)[0]}) % 5", f"abs({self.atom()[0]}) % 6")
            span = self.pick(trips, f"t % 3, t % 3 + {trips}", f"{trips}, -2, -2", f"-1, {trips}, 2")
            self.emit(indent, f"for {counter} in range({span}):")
            self.integers.append(counter)
            body = self.block(indent + 1, depth - 1, True, writable=self.integers[:-1])
            self.integers.remove(counter)
            return body
        if kind == 2:
            counter = self.fresh("e")
            values = [self.random.randint(-20, 20) for _ in range(self.random.randint(1, 3))]
            self.emit(indent, f"for {counter} in {self.pick('TABLE', '(' + ', '.join(map(str, values)) + ',)')}:")
            self.integers.append(counter)
            body = self.block(indent + 1, depth - 1, True, writable=self.integers[:-1])
            self.integers.remove(counter)
            return body
        counter = self.fresh("w")
        trips = self.pick("4", "t % 5", "b % 4", f"({self.integer(2)[0]}) % 6")
        self.emit(indent, f"{counter} = {trips}")
        if kind == 3:
            self.emit(indent, f"while {counter} > 0{self.pick('', f' and {self.condition(1)}')}:")
            self.emit(indent + 1, f"{counter} -= 1")
        else:
            self.emit(indent, "while True:")
            self.emit(indent + 1, f"{counter} -= 1")
            self.emit(indent + 1, f"if {counter} < 0{self.pick('', f' or {self.condition(1)}')}:")
            self.emit(indent + 2, "break")
        return self.block(indent + 1, depth - 1, True)

    def block(self, indent, depth, loop, writable=None):
        """A few statements; assignments go only to ``writable`` integers (never to a loop's counter)."""
        kept = self.integers
        for _ in range(self.random.randint(1, self.length)):
            kind = self.random.random()
            if kind < 0.5 or depth <= 0 or len(self.lines) > self.budget:
                self.assignment_to(indent, writable)
            elif kind < 0.75:
                self.branch(indent, depth, loop)
            elif kind < 0.93:
                self.loop(indent, depth)
            elif loop:
                self.emit(indent, f"if {self.condition(1)}:")
                self.emit(indent + 1, self.pick("break", "continue"))
            elif self.inside_kernel and not self.exchanges:
                self.emit(indent, f"if {self.condition(1)}:")
                self.emit(indent + 1, f"out[i, 0] += {self.reduced(*self.integer(1))}")
                self.emit(indent + 1, "return")
            else:
                self.assignment_to(indent, writable)
        assert self.integers is kept

    def assignment_to(self, indent, writable):
        """An assignment whose targets are variables, not counters."""
        before = self.integers
        targets = [name for name in (writable if writable is not None else before) if name.startswith("v")]
        self.integers = targets
        try:
            self.assignment(indent)
        finally:
            self.integers = before

    def exchange(self, indent):
        """Every thread leaves a value in shared memory and takes another thread's."""
        self.emit(indent, f"cells[t] = {self.reduced(*self.integer(2))}")
        self.emit(indent, "cuda.syncthreads()")
        name = self.random.choice(self.integers)
        place = f"({self.integer(2)[0]}) % cuda.blockDim.x"
        taken = self.pick(f"cells[{place}]", f"cells[t] - cells[{place}] % 100", "cells[cuda.blockDim.x - 1 - t]")
        if self.random.random() < 0.3:
            self.emit(indent, f"if {self.condition(2)}:")
            self.emit(indent + 1, f"{name} = {taken}")
        else:
            self.emit(indent, f"{name} = {taken}")
        self.emit(indent, "cuda.syncthreads()")

    def rounds(self):
        """A loop of the same length in all threads, with an exchange in it."""
        counter = self.fresh("r")
        self.emit(1, f"for {counter} in range({self.pick('2', '3', 'abs(SHIFT) % 3 + 1', 'n % 3 + 1')}):")
        self.integers.append(counter)
        self.block(2, self.depth - 1, False, writable=self.integers[:-1])
        self.integers.remove(counter)
        self.exchange(2)
        self.assignment(2)

    # ---- the module ----

    def device_functions(self):
        self.integers, self.floats, start = ["a", "b"], [], len(self.lines)
        self.emit(1, f"if {self.condition(1)}:")
        self.emit(2, f"return {self.reduced(*self.integer(2))}")
        self.emit(1, "v = 0")
        self.emit(1, f"for k in range(abs(b) % {self.random.randint(2, 5)}):")
        self.emit(2, f"v = (v * 3 + {self.reduced(*self.integer(2))} + k) % 9973")
        self.emit(2, f"if {self.condition(1)}:")
        self.emit(3, self.pick("break", "continue", "return v + k"))
        self.emit(1, "return v - a % 7")
        choose, self.lines = self.lines[start:], self.lines[:start]
        self.integers, self.floats = ["a"], ["p", "q"]
        self.emit(1, "while a > 3:")
        self.emit(2, "p = p * 0.5 + q")
        self.emit(2, "a = a // 4")
        self.emit(1, f"if {self.condition(1)}:")
        self.emit(2, f"q = {self.small(*self.floating(2))}")
        self.emit(2, "return p - q * 0.25")
        self.emit(1, f"return {self.small(*self.floating(2))}")
        blend, self.lines = self.lines[start:], self.lines[:start]
        return choose, blend

    def module(self):
        choose, blend = self.device_functions()
        self.inside_kernel = True
        self.integers, self.floats, self.singles = [], [], []
        for name in ("v1", "v2", "v3"):
            self.emit(1, f"{name} = {self.reduced(*self.integer(1))} + x[i] * 0")
            self.integers.append(name)
        for name in ("f1", "f2"):
            self.emit(1, f"{name} = {self.small(*self.floating(1))}")
            self.floats.append(name)
        for name in ("g1", "g2"):
            self.emit(1, f"{name} = float32({self.random.uniform(-2, 2):.3f})")
            self.singles.append(name)
        for _ in range(3):
            self.block(1, self.depth, False)
            if self.exchanges:
                self.random.choice([lambda: self.exchange(1), self.rounds])()
        for column, name in enumerate(self.integers):
            self.emit(1, f"out[i, {column}] += {name} + la[{column}] + lr[{column}]")
        self.emit(1, "fout[i, 0] = f1")
        self.emit(1, "fout[i, 1] = f2")
        self.emit(1, "gout[i] = g1 + g2")
        head = HEADER.format(
            shift=self.random.randint(-5, 9),
            table=tuple(self.random.randint(-9, 9) for _ in range(3)),
            choose="\n".join(choose) + "\n",
            blend="\n".join(blend) + "\n",
            local_size=LOCAL_SIZE,
        )
        if self.exchanges:
            head += f"    cells = cuda.shared.array({MOST_THREADS}, int64)\n"
        return head + "\n".join(self.lines) + "\n"


def kernel_source(seed, depth=4, length=4, budget=60, exchanges=False):
    """The module text of one random kernel."""
    return Writer(seed, depth, length, budget, exchanges).module()

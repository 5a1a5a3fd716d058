"""Random C++ functions of one expression each, over all arithmetic types."""

from __future__ import annotations

import numpy as np

from .host import CPP_TYPES, Function

INTEGERS = tuple(kind for kind, name in CPP_TYPES.items() if "int" in name)
FLOATS = ("float", "double")
TYPES = tuple(CPP_TYPES)

PRELUDE = """
__device__ int bounded(double x) { return x > -1e9 && x < 1e9 ? (int)x : 7; }
"""


class ExpressionGenerator:
    """Writes random expressions; every one is defined for all inputs (but for signed overflow, which wraps)."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.variables: list[tuple[str, str]] = []

    def pick(self, items: tuple[str, ...]) -> str:
        """One of several texts."""
        return items[int(self.rng.integers(len(items)))]

    def function(self, name: str) -> tuple[str, Function]:
        """A function and its text."""
        parameters = tuple(self.pick(TYPES) for _ in range(int(self.rng.integers(1, 5))))
        self.variables = [(f"a{i}", kind) for i, kind in enumerate(parameters)]
        result = self.pick(TYPES)
        declared = ", ".join(f"{kind} a{i}" for i, kind in enumerate(parameters))
        lines = [f"__device__ {result} {name}({declared}) {{"]
        for number in range(int(self.rng.integers(0, 4))):
            kind = self.pick(TYPES)
            lines.append(f"  {kind} v{number} = {self.converted(self.number(3), kind)};")
            self.variables.append((f"v{number}", kind))
            lines += self.update()
        lines += [f"  return {self.converted(self.number(4), result)};", "}"]
        return "\n".join(lines), Function(name, result, parameters)

    def update(self) -> list[str]:
        """A compound assignment or increment of a variable."""
        target, kind = self.variables[int(self.rng.integers(len(self.variables)))]
        choice = int(self.rng.integers(4))
        if kind == "bool":
            return [f"  {target} {self.pick(('&=', '|=', '^='))} {self.integer(2)};"]
        if choice == 0:
            return [f"  {self.pick((f'{target}++', f'++{target}', f'{target}--', f'--{target}'))};"]
        if kind in FLOATS:
            return [f"  {target} {self.pick(('+=', '-=', '*=', '/='))} {self.number(2)[0]};"]
        if choice == 1:
            return [f"  {target} {self.pick(('<<=', '>>='))} {self.integer(2)} & 7;"]
        if choice == 2:
            return [f"  {target} {self.pick(('/=', '%='))} ({self.integer(2)} & 15) + 1;"]
        return [f"  {target} {self.pick(('+=', '-=', '*=', '&=', '|=', '^='))} {self.integer(3)};"]

    @staticmethod
    def converted(text: tuple[str, bool] | str, kind: str) -> str:
        """An expression, made safe to convert to an integer type if it may be a float."""
        if isinstance(text, str):
            return text
        expression, floating = text
        return f"bounded({expression})" if floating and kind not in (*FLOATS, "bool") else expression

    def number(self, depth: int) -> tuple[str, bool]:
        """An expression, and whether it may be a float."""
        if self.rng.random() < 0.35:
            return self.floating(depth), True
        return self.integer(depth), False

    def floating(self, depth: int) -> str:
        """An expression of a floating-point type."""
        if depth <= 0:
            known = [name for name, kind in self.variables if kind in FLOATS]
            if known and self.rng.random() < 0.7:
                return known[int(self.rng.integers(len(known)))]
            return self.pick(("0.5f", "3.0", "-1.25f", "1e3f", "0.1", "7.0f"))
        choice = int(self.rng.integers(6))
        if choice < 3:
            op = self.pick(("+", "-", "*", "/"))
            return f"({self.floating(depth - 1)} {op} {self.either(depth - 1)})"
        if choice == 3:
            return f"(({self.pick(FLOATS)}){self.either(depth - 1)})"
        if choice == 4:
            return f"({self.condition(depth - 1)} ? {self.floating(depth - 1)} : {self.floating(depth - 1)})"
        return f"(- {self.floating(depth - 1)})"

    def either(self, depth: int) -> str:
        """An expression of any arithmetic type."""
        return self.number(depth)[0]

    def integer(self, depth: int) -> str:
        """An expression of an integer type (after promotion)."""
        if depth <= 0:
            known = [name for name, kind in self.variables if kind not in FLOATS]
            if known and self.rng.random() < 0.7:
                return known[int(self.rng.integers(len(known)))]
            return self.pick(("0", "1", "-1", "3u", "7", "255", "-128", "40000", "65537u", "0x7fffffff", "1234567890L"))
        choice = int(self.rng.integers(10))
        if choice < 4:
            op = self.pick(("+", "-", "*", "&", "|", "^"))
            return f"({self.integer(depth - 1)} {op} {self.integer(depth - 1)})"
        if choice == 4:
            return f"({self.integer(depth - 1)} {self.pick(('<<', '>>'))} ({self.integer(depth - 1)} & 15))"
        if choice == 5:
            return f"({self.integer(depth - 1)} {self.pick(('/', '%'))} (({self.integer(depth - 1)} & 15) + 1))"
        if choice == 6:
            return f"(({self.pick(INTEGERS)}){self.integer(depth - 1)})"
        if choice == 7:
            return f"({self.pick(('- ', '~', '+ '))}{self.integer(depth - 1)})"
        if choice == 8:
            return f"({self.condition(depth - 1)} ? {self.integer(depth - 1)} : {self.integer(depth - 1)})"
        return f"(int)({self.condition(depth - 1)})"

    def condition(self, depth: int) -> str:
        """An expression of type bool."""
        if depth <= 0 or self.rng.random() < 0.5:
            op = self.pick(("<", "<=", ">", ">=", "==", "!="))
            return f"({self.either(depth - 1)} {op} {self.either(depth - 1)})"
        choice = int(self.rng.integers(3))
        if choice == 0:
            return f"(!{self.condition(depth - 1)})"
        if choice == 1:
            return f"((bool){self.either(depth - 1)})"
        return f"({self.condition(depth - 1)} {self.pick(('&&', '||'))} {self.condition(depth - 1)})"


HALVES = ("__half", "__nv_bfloat16")
EIGHT_BITS = ("__nv_fp8_e4m3", "__nv_fp8_e5m2")
HALF_PRELUDE = f"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
{PRELUDE}
"""


class HalfExpressionGenerator(ExpressionGenerator):
    """Expressions with variables of 16-bit floats, casts to and from them and 8-bit ones, and integers mixed in."""

    def function(self, name: str) -> tuple[str, Function]:
        """A function and its text: local variables of 16-bit floats, changed by compound assignments."""
        parameters = tuple(self.pick(TYPES) for _ in range(int(self.rng.integers(2, 5))))
        self.variables = [(f"a{i}", kind) for i, kind in enumerate(parameters)]
        self.halves: list[tuple[str, str]] = []
        result = self.pick(TYPES)
        declared = ", ".join(f"{kind} a{i}" for i, kind in enumerate(parameters))
        lines = [f"__device__ {result} {name}({declared}) {{"]
        for number in range(int(self.rng.integers(1, 4))):
            kind = self.pick(HALVES)
            lines.append(f"  {kind} h{number} = {self.half(kind, 2)};")
            self.halves.append((f"h{number}", kind))
            lines += self.update() + self.update_half()
        lines += [f"  return {self.converted(self.number(4), result)};", "}"]
        return "\n".join(lines), Function(name, result, parameters)

    def update_half(self) -> list[str]:
        """A compound assignment or increment of a 16-bit float, whose right side may be of any other type."""
        target, kind = self.halves[int(self.rng.integers(len(self.halves)))]
        if self.rng.random() < 0.25:
            return [f"  {self.pick((f'{target}++', f'++{target}', f'{target}--', f'--{target}'))};"]
        value = self.half(kind, 2) if self.rng.random() < 0.4 else super().number(2)[0]
        return [f"  {target} {self.pick(('+=', '-=', '*=', '/='))} {value};"]

    def floating(self, depth: int) -> str:
        """An expression of type float or double."""
        if depth > 0 and self.rng.random() < 0.5:
            kind, choice = self.pick(HALVES), int(self.rng.integers(3))
            if choice == 0:
                return f"(({self.pick(FLOATS)}){self.half(kind, depth - 1)})"
            if choice == 1:
                return f"((float){self.pick(EIGHT_BITS)}({self.pick(FLOATS)}({super().floating(depth - 1)})))"
            return f"({super().floating(depth - 1)} {self.pick(('+', '-', '*', '/'))} {self.half(kind, depth - 1)})"
        return super().floating(depth)

    def half(self, kind: str, depth: int) -> str:
        """An expression of a 16-bit float type."""
        known = [name for name, other in self.halves if other == kind]
        if known and (depth <= 0 or self.rng.random() < 0.2):
            return known[int(self.rng.integers(len(known)))]
        if depth <= 0:
            return f"(({kind}){self.pick(('0.5f', '3', '-1.25', '1e3f', '0.1', '7u', '-300L', '1e-7f', '65519.0f'))})"
        choice = int(self.rng.integers(7))
        op = self.pick(("+", "-", "*", "/"))
        if choice < 2:
            return f"({self.half(kind, depth - 1)} {op} {self.half(kind, depth - 1)})"
        if choice == 2:
            return f"({self.half(kind, depth - 1)} {op} {self.integer(depth - 1)})"
        if choice == 3:
            return f"({self.integer(depth - 1)} {op} {self.half(kind, depth - 1)})"
        if choice == 4:
            return f"(({kind}){super().number(depth - 1)[0]})"
        if choice == 5:
            return f"({self.condition(depth - 1)} ? {self.half(kind, depth - 1)} : {self.half(kind, depth - 1)})"
        return f"(- {self.half(kind, depth - 1)})"

    def condition(self, depth: int) -> str:
        """An expression of type bool; some compare 16-bit floats, with each other or with an integer."""
        if depth > 0 and self.rng.random() < 0.3:
            kind, op = self.pick(HALVES), self.pick(("<", "<=", ">", ">=", "==", "!="))
            other = self.half(kind, depth - 1) if self.rng.random() < 0.6 else self.integer(depth - 1)
            return f"({self.half(kind, depth - 1)} {op} {other})"
        return super().condition(depth)

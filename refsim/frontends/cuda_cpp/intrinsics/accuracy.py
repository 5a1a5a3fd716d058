"""How exact device functions are: on a simulated device, and as the makers of devices document theirs.

`page` writes the reference page from these tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from refsim.engine.intrinsics import INTRINSICS
from refsim.frontends.cuda_cpp.intrinsics.fast import REPLACED
from refsim.frontends.cuda_cpp.intrinsics.mathematics import ONE, TWO


@dataclass(frozen=True)
class Documented:
    """Largest errors in ulps: NVIDIA's float32 and float64, and AMD's; None where none is given."""

    cuda: tuple[float, float]
    hip: tuple[float | None, float | None] = (None, None)


# CUDA C++ Programming Guide, "Mathematical functions", compute capability 5.2 or later; HIP documentation, "Math API"
STANDARD: dict[str, Documented] = {
    "acos": Documented((2, 2), (1, 1)), "acosh": Documented((4, 3), (1, 1)), "asin": Documented((2, 2), (2, 1)),
    "asinh": Documented((3, 3), (1, 1)), "atan": Documented((2, 2), (2, 1)), "atan2": Documented((3, 2), (3, 2)),
    "atanh": Documented((3, 2), (1, 1)), "cbrt": Documented((1, 1), (2, 1)), "cos": Documented((2, 2), (1, 1)),
    "cosh": Documented((2, 1), (1, 1)), "erf": Documented((2, 2), (4, 4)), "erfc": Documented((4, 5), (2, 2)),
    "exp": Documented((2, 1), (1, 1)), "exp10": Documented((2, 1), (1, 1)), "exp2": Documented((2, 1), (1, 1)),
    "expm1": Documented((1, 1), (1, 2)), "fma": Documented((0, 0), (0, 0)), "fmod": Documented((0, 0), (0, 0)),
    "hypot": Documented((3, 2), (1, 1)), "lgamma": Documented((6, 4), (4, 2)), "log": Documented((1, 1), (2, 1)),
    "log10": Documented((2, 1), (2, 1)), "log1p": Documented((1, 1), (1, 1)), "log2": Documented((1, 1), (1, 1)),
    "pow": Documented((4, 2), (1, 1)), "rsqrt": Documented((2, 1)), "sin": Documented((2, 2), (1, 1)),
    "sinh": Documented((3, 2), (1, 1)), "sqrt": Documented((0, 0), (1, 1)), "tan": Documented((4, 2), (2, 2)),
    "tanh": Documented((2, 1), (2, 1)), "tgamma": Documented((5, 10), (6, 6)),
}  # fmt: skip
"""A documented 0 means rounded correctly."""
COMPOSED: dict[str, tuple[float, float]] = {"rsqrt": (1.5, 1.5), "exp10": (0.51, 2.0)}
"""Errors here of functions that are made of others, in ulps of float32 and float64."""

FAST: dict[str, tuple[str, str]] = {
    "__expf(x)": ("exp2(x × 1.44269504)", "2 + ⌊1.173 × abs(x)⌋ ulp"),
    "__exp10f(x)": ("exp2(x × 3.32192809)", "2 + ⌊2.97 × abs(x)⌋ ulp"),
    "__logf(x)": ("log2(x) × 0.693147181", "2⁻²¹·⁴¹ from 0.5 to 2, else 3 ulp"),
    "__log2f(x)": ("log2(x)", "2⁻²² from 0.5 to 2, else 2 ulp"),
    "__log10f(x)": ("log2(x) × 0.301029996", "2⁻²⁴ from 0.5 to 2, else 3 ulp"),
    "__sinf(x)": ("sin(x)", "2⁻²¹·⁴¹ from −π to π, more elsewhere"),
    "__cosf(x)": ("cos(x)", "2⁻²¹·¹⁹ from −π to π, more elsewhere"),
    "__tanf(x)": ("sin(x) × (1 / cos(x))", "that of its formula"),
    "__powf(x, y)": ("exp2(y × log2(x))", "that of its formula"),
    "__tanhf(x)": ("tanh(x)", "2⁻¹¹ relative"),
    "__fdividef(x, y)": ("x × (1 / y); 0 for a finite y beyond 2¹²⁶", "2 ulp for y from 2⁻¹²⁶ to 2¹²⁶"),
    "__frsqrt_rn(x)": ("1 / sqrt(x), rounded once", "0"),
}
"""Formula, every operation of which is rounded correctly here (sine and cosine: 2 ulp), and NVIDIA's largest error."""


def simulated_ulps(name: str) -> tuple[float, float]:
    """Largest errors of a function here, float32 and float64: 0.5 is rounded correctly."""
    if name in COMPOSED:
        return COMPOSED[name]
    engine = ONE.get(name) or TWO.get(name) or name
    return INTRINSICS[engine, "float32"].ulps, INTRINSICS[engine, "float64"].ulps


def _row(*cells: object) -> str:
    return "| " + " | ".join("" if cell is None else f"{cell}" for cell in cells) + " |"


def page() -> str:
    """The reference page, in Markdown."""
    standard = []
    for name, documented in STANDARD.items():
        ours = [f"{ulps:g}" for ulps in simulated_ulps(name)]
        standard.append(_row(f"`{name}`", *ours, *documented.cuda, *documented.hip))
    fast = [_row(f"`{name}`", formula, error) for name, (formula, error) in FAST.items()]
    replaced = ", ".join(f"`{name}f`" for name in REPLACED)
    return TEXT.format(standard="\n".join(standard), fast="\n".join(fast), replaced=replaced)


TEXT = """# Arithmetic of C++ kernels

What a simulated device computes, where devices or compilers may differ. The page is what `python
tools/accuracy_page.py` writes.

## Options of the compiler

| option | default | means |
| --- | --- | --- |
| `-fmad=true` | false | a product and a sum or difference of it are rounded once: they are fused |
| `-ftz=true` | false | subnormal float32 numbers are zeros of their sign, as operands and as results |
| `-prec-div=false` | true | a float32 quotient is a product by a reciprocal, both rounded (2 ulp) |
| `-prec-sqrt=false` | true | nothing: float32 square roots are rounded correctly also where a device need not |
| `-use_fast_math` | | all of these, and fast functions take the place of {replaced} |
| `-ffast-math` | | the same without `-ftz=true` |

With `-fmad=true` a product is fused with a sum in the same straight run of statements, also where a variable holds it
in between; of two products that are added, the first one is.

NVRTC's own default is `-fmad=true`. Which products it fuses is the compiler's choice, which no source shows, and
the bounds that kernels are judged with hold for either. refsim rounds every operation unless told otherwise, so
that a kernel gives the same bits in every translation; say `-fmad=true` to see the other result. `__fmul_rn`,
`__fadd_rn` and their like are never fused. Operators of 16-bit floats round each time.

CuPy (14.2) compiles every kernel with `-ftz=true`; refsim does only where you say so.

With `-ftz=true` the operations that flush are those whose PTX has `.ftz`: arithmetic, negation, absolute value,
comparisons, minimum, maximum, mathematical functions, `ceilf` and `floorf`, conversions to and from float32. Loads,
stores, choices, `copysignf`, `truncf`, `rintf`, `nextafterf` and all other types keep subnormal numbers.

## Atomic additions

On CUDA devices an atomic addition of float32 to global memory flushes subnormal numbers, whatever the options say;
one to shared memory does not (PTX ISA, `atom`; measured on an H200). On simulated AMD devices both keep them.

## Functions

Largest errors in units of the last place, float32 and float64. Here, 0.5 is rounded correctly and 0.51 rounded
correctly but for rare arguments. NVIDIA's are documented against the correctly rounded result, so that 0 is rounded
correctly. `lgamma`'s do not hold near its zeros.

| function | here, float | here, double | CUDA, float | CUDA, double | HIP, float | HIP, double |
| --- | --- | --- | --- | --- | --- | --- |
{standard}

Sums, differences, products, quotients, `fma` and square roots are rounded correctly. Functions whose names say how
they round, such as `__fadd_rd` or `__float2half_rz`, are exact in that sense for all operands.

## Fast functions

Computed here by the formula that NVIDIA documents, every operation of it rounded correctly, but for sine and cosine
(2 ulp). A device evaluates the same formula with hardware functions.

| function | formula | largest error on an NVIDIA GPU |
| --- | --- | --- |
{fast}
"""

__all__ = ["COMPOSED", "FAST", "STANDARD", "page", "simulated_ulps"]

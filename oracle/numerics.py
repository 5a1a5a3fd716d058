"""Numerics: what arithmetic a kernel promises, as a record of freedoms and ulps.

The error analysis (``oracle.error``) turns one operator plus one `Numerics` into a guaranteed bound. Every rewrite an
honest kernel may use (another summation order, FMA, exp through exp2, an online softmax, a folded scale ...) is a named
freedom here; what is not granted is judged as an error. `Numerics.describe` lists what was granted, for reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from oracle.formats import Format, format_of

__all__ = ["EXP_FORMS", "NUMERICS", "Numerics", "underflow_error"]

EXP_FORMS: tuple[str, ...] = ("exp", "exp2", "exp2_fma")
"""How ``exp(x - m)`` may be evaluated, each form including those before it.

- ``exp``: ``exp(x - m)``.
- ``exp2``: ``exp2((x - m) * log2(e))``: the constant and the product are rounded, so the argument is off by 3u·|x - m|.
- ``exp2_fma``: ``exp2(fma(x, log2(e), -m * log2(e)))`` or ``exp2`` of logits that were scaled by log2(e) beforehand:
  exp(0) is no longer 1 and the argument is off by 2u·max(\\|x\\|, \\|m\\|) more.
"""


@dataclass(frozen=True)
class Numerics:
    """The arithmetic a kernel promises; the freedoms it takes.

    All ``*_ulps`` are maximal errors of a function of the compute format in units in the last place of the result
    (0.5 = correctly rounded). Sources: CUDA C++ Programming Guide, appendix on mathematical functions; PTX ISA.

    Parameters
    ----------
    name
        Key in `NUMERICS`, or a name of your own.
    compute
        Name of the format every intermediate result is rounded to (``float32``).
    accumulate
        Name of the format sums and matrix products accumulate in; None = `compute`. Not narrower than `compute`.
    tree_height
        Promised upper limit of the additions on the longest path of any sum (a tree over at most 2**tree_height
        terms). None = any order, up to n - 1.
    fma
        ``a * b + c`` may be one rounding.
    flush_to_zero
        Subnormal inputs and results may become zero (all or none; both are covered).
    correct_division, correct_sqrt
        Promised to be correctly rounded. Without it a quotient may be a product with a reciprocal, and
        no quotient or root counts as exact.
    division_ulps, sqrt_ulps, rsqrt_ulps, exp_ulps, exp2_ulps, log_ulps, log2_ulps, sin_ulps, cos_ulps
        Error of each function, in ulps.
    tanh_ulps, erf_ulps
        Error of each function, in ulps.
    exp_argument_ulps
        Extra ulps of exp per unit of \\|x\\| (``__expf``: 2 + floor(1.173·\\|x\\|)).
    absolute
        Absolute errors that hold where the relative ones do not: function name -> error (``__logf`` near 1: 2**-21.41).
    exp_form
        One of `EXP_FORMS`.
    online_tile
        Smallest tile of an online (rescaling) softmax; 1 covers every tiling, None = not online.
    welford
        Mean and variance may be Welford's, updated term by term; never exact then.
    chunk
        Most steps of a linear recurrence that may be solved at once; 1 = step by step.
    chunk_format
        Name of the format that what a chunk hands from product to product may be rounded to; None = not rounded.
    folded_scalar
        A scalar factor of a product may be multiplied into an operand first.
    probability_format
        Name of the format softmax weights may be rounded to before they meet V; None = not rounded.
    splits
        Partial results of split-K (or of several blocks) added at the end; 1 = none. Any order of summation covers
        splits in the accumulator's own format; `split_format` names a narrower one.
    split_format
        Name of the format partial results are stored in; None = the accumulator's.
    unit_group, unit_fraction_bits, unit_result_bits
        A matrix unit that adds `unit_group` products and the accumulator aligned and truncated to `unit_fraction_bits`
        and rounds the sum toward zero to `unit_result_bits`; 0 = IEEE arithmetic.
    unit_min_normal
        Smallest normal number of the unit's input format: smaller factors are aligned as if they were that large.
        0 = all factors are normal numbers.
    """

    name: str
    compute: str = "float32"
    accumulate: str | None = None
    tree_height: int | None = None
    fma: bool = True
    flush_to_zero: bool = False
    correct_division: bool = False
    correct_sqrt: bool = False
    division_ulps: float = 0.5
    sqrt_ulps: float = 0.5
    rsqrt_ulps: float = 2.0
    exp_ulps: float = 2.0
    exp2_ulps: float = 2.0
    log_ulps: float = 1.0
    log2_ulps: float = 1.0
    sin_ulps: float = 2.0
    cos_ulps: float = 2.0
    tanh_ulps: float = 2.0
    erf_ulps: float = 2.0
    exp_argument_ulps: float = 0.0
    absolute: MappingProxyType[str, float] = field(default_factory=lambda: MappingProxyType({}))
    exp_form: str = "exp2"
    online_tile: int | None = 1
    welford: bool = False
    chunk: int = 1
    chunk_format: str | None = None
    folded_scalar: bool = True
    probability_format: str | None = None
    splits: int = 1
    split_format: str | None = None
    unit_group: int = 0
    unit_fraction_bits: int = 0
    unit_result_bits: int = 0
    unit_min_normal: float = 0.0

    def __post_init__(self) -> None:
        if self.exp_form not in EXP_FORMS:
            raise ValueError(
                f"Numerics {self.name!r}: exp_form is {self.exp_form!r}; choose one of {', '.join(EXP_FORMS)}."
            )
        for label in ("compute", "accumulate", "probability_format", "split_format", "chunk_format"):
            chosen = getattr(self, label)
            if chosen is not None:
                format_of(chosen)
        if self.accumulator.precision < self.format.precision:
            raise ValueError(
                f"Numerics {self.name!r}: accumulate={self.accumulate!r} is narrower than compute={self.compute!r}; "
                "name the narrower format as compute."
            )
        for entry in fields(self):
            if entry.name.endswith("_ulps"):
                ulps = getattr(self, entry.name)
                least = 0.0 if entry.name == "exp_argument_ulps" else 0.5
                if not ulps >= least:
                    raise ValueError(f"Numerics {self.name!r}: {entry.name}={ulps!r}; it must be at least {least}.")
        if self.tree_height is not None and self.tree_height < 0:
            raise ValueError(
                f"Numerics {self.name!r}: tree_height={self.tree_height}; it must be 0 or more, or None for any order."
            )
        if self.online_tile is not None and self.online_tile < 1:
            raise ValueError(f"Numerics {self.name!r}: online_tile={self.online_tile}; it must be 1 or more, or None.")
        if self.chunk < 1:
            raise ValueError(f"Numerics {self.name!r}: chunk={self.chunk}; it must be 1 or more (1 = step by step).")
        if self.splits < 1:
            raise ValueError(f"Numerics {self.name!r}: splits={self.splits}; it must be 1 or more (1 = no split-K).")
        if self.unit_group and not (self.unit_fraction_bits > 0 and self.unit_result_bits > 0):
            raise ValueError(
                f"Numerics {self.name!r}: a matrix unit needs unit_fraction_bits and unit_result_bits, both positive."
            )

    @cached_property
    def format(self) -> Format:
        """The compute format."""
        return format_of(self.compute)

    @cached_property
    def accumulator(self) -> Format:
        """The format sums accumulate in."""
        return format_of(self.accumulate or self.compute)

    @property
    def is_float64(self) -> bool:
        """True when the kernel computes as precisely as the oracle, which then may be off as much as it is."""
        return self.format.precision >= 53

    @cached_property
    def unit_roundoff(self) -> float:
        """u of the compute format, widened for the oracle's own float64 error (doubled for float64)."""
        return _widened(self.format)

    @cached_property
    def accumulator_roundoff(self) -> float:
        """u of the accumulator, widened likewise."""
        return _widened(self.accumulator)

    def relative_error(self, function: str) -> float:
        """Largest relative error of `function` (``exp``, ``log``, ``rsqrt`` ...): one ulp is at most 2u.

        Functions without a declared error (``expm1``, ``log1p``, ``tan``, ``sigmoid``) count like their relatives.
        """
        ulps = float(getattr(self, f"{_RELATIVES.get(function, function)}_ulps"))
        return (1.0 if ulps == 0.5 else 2.0 * ulps) * self.unit_roundoff

    def with_changes(self, **changes: Any) -> Numerics:
        """A copy with other freedoms; give it a `name` of its own."""
        return replace(self, **changes)

    def describe(self) -> list[str]:
        """The freedoms granted, one phrase each, in the order a report prints them."""
        lines = [f"computes in {self.compute} (u = 2^-{self.format.precision})"]
        if self.accumulate and self.accumulate != self.compute:
            lines.append(f"accumulates in {self.accumulate}")
        lines.append(
            "sums in any order" if self.tree_height is None else f"sums by trees of height at most {self.tree_height}"
        )
        if self.unit_group:
            lines.append(
                f"matrix unit adds {self.unit_group} products truncated to {self.unit_fraction_bits} bits, "
                f"result to {self.unit_result_bits} bits"
            )
        if self.fma:
            lines.append("a*b + c may be one rounding (FMA)")
        if self.flush_to_zero:
            lines.append("subnormals may be flushed to zero")
        lines.append(
            "division is correctly rounded"
            if self.correct_division
            else f"division within {self.division_ulps:g} ulp or by reciprocal"
        )
        lines.append("sqrt is correctly rounded" if self.correct_sqrt else f"sqrt within {self.sqrt_ulps:g} ulp")
        ulps = [(entry.name[:-5], getattr(self, entry.name)) for entry in fields(self) if entry.name.endswith("_ulps")]
        plain = ", ".join(
            f"{name} {amount:g}" for name, amount in ulps if name not in ("division", "sqrt", "exp_argument")
        )
        lines.append(f"ulps: {plain}")
        if self.exp_argument_ulps:
            lines.append(f"exp: {self.exp_argument_ulps:g} ulp more per unit of |x|")
        lines.extend(
            f"{name}: absolute error {error:.3g} where the ulps do not hold" for name, error in self.absolute.items()
        )
        lines.append(
            {
                "exp": "exp as exp",
                "exp2": "exp may go through exp2",
                "exp2_fma": "exp may be exp2 of a scaled argument with FMA",
            }[self.exp_form]
        )
        if self.online_tile is not None:
            lines.append(f"softmax may be online, in tiles of {self.online_tile} or more")
        if self.welford:
            lines.append("mean and variance may be updated term by term (Welford)")
        if self.chunk > 1:
            lines.append(f"linear recurrences may be solved up to {self.chunk} steps at once")
        if self.chunk_format:
            lines.append(f"what a chunk of steps computes may be rounded to {self.chunk_format} on the way")
        if self.folded_scalar:
            lines.append("a scale may be folded into an operand")
        if self.probability_format:
            lines.append(f"softmax weights may be rounded to {self.probability_format}")
        if self.splits > 1:
            lines.append(
                f"contractions split in up to {self.splits} parts stored in "
                f"{self.split_format or self.accumulator.name}"
            )
        return lines


_RELATIVES: dict[str, str] = {
    "expm1": "exp",
    "exp10": "exp",
    "log1p": "log",
    "log10": "log2",
    "tan": "sin",
    "divide": "division",
}


def underflow_error(fmt: Format) -> float:
    """Largest error of rounding to `fmt` below its normal range: half of its smallest number.

    Never 0: float64 cannot hold half of its own smallest number, and there the oracle errs as much as the kernel, so a
    whole one is due anyway.
    """
    return max(0.5 * fmt.min_subnormal, math.ulp(0.0))


def _widened(fmt: Format) -> float:
    u = float(fmt.unit_roundoff)
    return 2.0 * u if fmt.precision >= 53 else u * (1.0 + 2.0**-16)


def _tensor_core(
    name: str, group: int, fraction_bits: int, result_bits: int = 23, min_normal: float = 2.0**-14
) -> Numerics:
    """float32 around a tensor core's sums of products, whose terms are cut off toward zero."""
    return Numerics(
        name,
        division_ulps=2.0,
        sqrt_ulps=1.0,
        unit_group=group,
        unit_fraction_bits=fraction_bits,
        unit_result_bits=result_bits,
        unit_min_normal=min_normal,
    )


NUMERICS: dict[str, Numerics] = {
    numerics.name: numerics
    for numerics in (
        Numerics("float64", compute="float64", division_ulps=1.0, sqrt_ulps=1.0),
        Numerics("float32", division_ulps=2.0, sqrt_ulps=1.0),  # IEEE or 2 ulp division
        Numerics("float32_welford", division_ulps=2.0, sqrt_ulps=1.0, welford=True),
        Numerics("float32_chunked", division_ulps=2.0, sqrt_ulps=1.0, chunk=64),
        Numerics("bfloat16_chunked", division_ulps=2.0, sqrt_ulps=1.0, chunk=64, chunk_format="bfloat16"),
        Numerics(
            "float32_fast",
            flush_to_zero=True,
            division_ulps=2.0,  # __fdividef
            sqrt_ulps=2.0,  # sqrt.approx, rel 2^-23
            exp_ulps=2.0,  # __expf: 2 + floor(1.173 |x|)
            exp_argument_ulps=1.173,
            exp2_ulps=2.0,  # ex2.approx
            log_ulps=3.0,  # __logf
            log2_ulps=2.0,  # __log2f
            tanh_ulps=2.0**12,  # tanh.approx.f32, rel 2^-11
            absolute=MappingProxyType(
                {
                    "log": 2.0**-21.41,
                    "log2": 2.0**-22,
                    "sin": 2.0**-21.41,
                    "cos": 2.0**-21.19,
                }  # intrinsics of the guide
            ),
            exp_form="exp2_fma",
        ),
        Numerics("float16", compute="float16", division_ulps=1.0, sqrt_ulps=1.0, online_tile=None),
        Numerics("split_k_bfloat16", division_ulps=2.0, sqrt_ulps=1.0, splits=16, split_format="bfloat16"),
        _tensor_core("tensor_core_sm70", 4, 23),
        _tensor_core("tensor_core_sm80", 8, 24),
        _tensor_core("tensor_core_sm90", 16, 25),
        _tensor_core("tensor_core_sm89_fp8", 16, 13, 13, 2.0**-6),
        _tensor_core("tensor_core_sm90_fp8", 32, 13, 13, 2.0**-6),
        _tensor_core("tensor_core_sm100_fp8", 32, 25, 23, 2.0**-6),
    )
}
"""Presets by name: ``float64``, ``float32`` (also float16 and bfloat16 inputs accumulated in float32),
``float32_welford`` (the same with Welford's mean and variance), ``float32_chunked`` (linear recurrences in chunks of
up to 64 steps), ``bfloat16_chunked`` (the same, with all that products take rounded to bfloat16), ``float32_fast``
(fast-math intrinsics and flush to zero), ``float16`` (computed in float16 throughout), ``split_k_bfloat16`` (partial
sums of up to 16 parts of k stored in bfloat16, added up in float32). Products on NVIDIA's tensor cores, float32
elsewhere: ``tensor_core_sm70`` (Volta), ``tensor_core_sm80`` (Turing to Ada) and ``tensor_core_sm90`` (Hopper,
Blackwell) for float16 and bfloat16 factors; ``tensor_core_sm89_fp8``, ``tensor_core_sm90_fp8`` (wgmma) and
``tensor_core_sm100_fp8`` for float8 ones. Sources: Xie, Wang, Yang and Yang, "MMA-Sim" (arXiv 2511.10909); Khattak
and Mikaitis (arXiv 2512.07004)."""

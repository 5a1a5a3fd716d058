"""How many cases a second one core judges: NumPy implementations, sizes up to 64; oracle, tolerance and judge included.

Run: ``python benchmarks/conformance.py``; exit status 1 where the demand of 200 cases a second is not met. Seconds are
those of the processor, over all threads. ``--profile`` prints where they go.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time

import numpy as np

from oracle.cases import Case
from oracle.cases.recipes import recipe_of
from oracle.operator import find_operator
from refsim.conformance import Capability, FunctionBackend, Verdict
from refsim.conformance.fuzz.evaluate import evaluate

DEMAND = 200.0
CASES = 300
SIZES = (1, 2, 3, 5, 7, 13, 15, 16, 17, 31, 32, 33, 47, 63, 64)


def wide(x):
    """In the compute type."""
    return x.astype(np.promote_types(x.dtype, np.float32))


def matmul(a, b, bias=None, transpose_a=False, transpose_b=False):
    """The product."""
    out = wide(a.T if transpose_a else a) @ wide(b.T if transpose_b else b)
    return (out if bias is None else out + wide(bias)).astype(a.dtype)


def softmax(x):
    """Exponentials over their sum."""
    weights = np.exp(wide(x) - wide(x).max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def rmsnorm(x, weight, eps=1e-6):
    """Rows over their root mean square."""
    root = np.sqrt(np.mean(wide(x) ** 2, axis=-1, keepdims=True) + eps)
    return (wide(x) / root * wide(weight)).astype(x.dtype)


DIMS = {"matmul": ("m", "n", "k"), "softmax": ("d0", "cols"), "rmsnorm": ("rows", "cols")}


def drawn(operator: str, dtype: str) -> list[Case]:
    """Random sizes and all value classes in turn."""
    rng = np.random.default_rng(0)
    classes = list(recipe_of(operator).classes)
    return [
        Case(
            operator,
            dtype,
            {dim: int(rng.choice(SIZES)) for dim in DIMS[operator]},
            {},
            classes[n % len(classes)],
            seed=n,
        )
        for n in range(CASES)
    ]


def main() -> None:
    """Measure, print, and say whether the demand is met."""
    met = True
    for function in (matmul, softmax, rmsnorm):
        for dtype in ("float16", "float32", "float64"):
            operator = function.__name__
            backend = FunctionBackend(function, find_operator(operator), operator)
            row = Capability(operator, operator, dtype)
            cases = drawn(operator, dtype)
            evaluate(backend, row, cases[0], thorough=False)
            profiler = cProfile.Profile() if "--profile" in sys.argv else None
            started = time.process_time()
            if profiler:
                profiler.enable()
            verdicts = {evaluate(backend, row, case, thorough=False).verdict for case in cases}
            if profiler:
                profiler.disable()
            rate = CASES / (time.process_time() - started)
            met &= rate >= DEMAND
            assert verdicts <= {Verdict.PASS, Verdict.INCONCLUSIVE}, verdicts
            print(f"{operator:8} {dtype:8} {rate:6.0f} cases a second")
            if profiler:
                pstats.Stats(profiler).sort_stats("tottime").print_stats(15)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()

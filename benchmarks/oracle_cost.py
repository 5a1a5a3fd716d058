"""What the oracle's answer to a typical case costs: the exact value, and the tolerance with it.

Run: ``python benchmarks/oracle_cost.py [OPERATOR …]``; exit status 1 where a demand is not met: the exact value in
under 1 s and the tolerance in under 5 s of the clock on 2 cores. ``--profile`` prints where the tolerance's time goes.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable

from oracle.cases import Case
from oracle.numerics import NUMERICS
from oracle.operator import find_operator

VALUE_DEMAND, TOLERANCE_DEMAND = 1.0, 5.0
ATTENTION = {"batch": 2, "heads": 8, "kv_heads": 8, "queries": 512, "keys": 512, "head_dim": 64, "v_dim": 64}
EXPERTS = {"tokens": 128, "experts": 8, "k": 2, "width": 256, "inner": 512, "two_inner": 1024}
TYPICAL = {
    "attention": ATTENTION,
    "flash_attention": ATTENTION,
    "attention_backward": ATTENTION,
    "matmul": {"m": 512, "n": 512, "k": 512},
    "fused_experts": EXPERTS,
    "fused_experts_a8w8": EXPERTS,
    "fused_experts_a8w8_block_scaled": EXPERTS | {"width_blocks": 2, "inner_blocks": 4, "two_inner_blocks": 8},
    "fused_experts_mxfp4": EXPERTS | {"width_blocks": 8, "inner_blocks": 16},
}
"""Dimensions of each operator's case; its dtype is float32, or the last one of operators on codes."""


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    """Measure, print, and say whether the demands are met."""
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")] or list(TYPICAL)
    met, numerics = True, NUMERICS["float32"]
    print(f"{'':32} {'value: clock, processor':>26} {'tolerance: clock, processor':>30}")
    for name in chosen:
        operator = find_operator(name)
        dtype = "float32" if "float32" in operator.dtypes else operator.dtypes[-1]
        case = Case(name, dtype, TYPICAL[name], {}, "normal", seed=0)
        inputs = case.inputs()
        value = seconds(lambda: operator.value(inputs, case.params))  # noqa: B023  called at once
        tolerance = seconds(lambda: operator.expect(inputs, case.params, numerics))  # noqa: B023
        met &= value[0] < VALUE_DEMAND and tolerance[0] < TOLERANCE_DEMAND
        print(f"{name:32} {value[0]:14.2f} s {value[1]:7.2f} s {tolerance[0]:18.2f} s {tolerance[1]:7.2f} s")
        if "--profile" in sys.argv:
            profiler = cProfile.Profile(time.process_time)
            profiler.runcall(operator.expect, inputs, case.params, numerics)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(20)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()

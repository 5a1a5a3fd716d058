"""The pairs under other groups of lanes and a drawn schedule: the same verdicts, and right twins' answers."""

import math

import numpy as np
import pytest
from defect_corpus import DEFECTS
from test_defects import agrees, answers, launched, site

HOW = pytest.mark.parametrize(
    ("options", "most_threads"),
    [
        pytest.param({"lanes": "block"}, 1024, id="block"),
        pytest.param({"lanes": "warp"}, 4096, id="warp"),
        pytest.param({"lanes": "thread"}, 256, id="thread"),
        pytest.param({"schedule": "seed:3"}, 128, id="seed"),
    ],
)
DEPENDS_ON_THE_ORDER = {"flag_published_without_fence"}  # asks once whether the flag is up
MANY_STEPS = {"gemm_tile_used_before_it_is_complete", "gemm_tile_replaced_while_in_use"}


def fits(pair, launch, most_threads, options):
    threads = math.prod(np.atleast_1d(launch.grid)) * math.prod(np.atleast_1d(launch.block))
    slow = pair.name in MANY_STEPS and options.get("lanes") not in ("block", "warp")
    depends = "schedule" in options and pair.name in DEPENDS_ON_THE_ORDER
    return threads <= most_threads and not slow and not depends


@HOW
def test_wrong_kernels_are_caught_at_their_lines(options, most_threads):
    tried = 0
    for pair in DEFECTS:
        asked = pair.expectation
        if asked.kind == "value" or not fits(pair, pair.wrong_launch, most_threads, options):
            continue
        tried += 1
        report, _ = launched(pair, pair.wrong, pair.wrong_launch, pair.wrong_producer, **options)
        seen = pair.name + "\n" + "\n".join(map(site, report.findings))
        caught = [f for f in report.findings if f.kind == asked.kind and f.severity == asked.severity]
        assert caught, seen
        assert all(f.line in asked.lines and (f.other is None or f.other.line in asked.lines) for f in caught), seen
        # who comes first in a race may read what nobody has written
        follows = pair.also | {asked.kind} | ({"uninitialized_read"} if asked.kind == "race" else set())
        assert {f.kind for f in report.errors} <= follows, seen
    assert tried >= 60


@HOW
def test_right_twins_have_no_finding_and_numpys_answer(options, most_threads):
    tried = 0
    for pair in DEFECTS:
        if not fits(pair, pair.right_launch, most_threads, options):
            continue
        tried += 1
        report, arguments = launched(pair, pair.right, pair.right_launch, pair.right_producer, **options)
        assert not report.findings, pair.name + "\n" + "\n".join(map(site, report.findings))
        for i, value in answers(pair).items():
            assert agrees(arguments[i], value, pair.rtol), pair.name
    assert tried >= 80

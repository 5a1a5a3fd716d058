"""Every seeded defect in C++ is caught, with the right kind at the marked line; every right twin runs clean."""

import linecache

import numpy as np
import pytest
from cpp_defect_corpus import PAIRS
from cpp_defect_corpus.launches import LAUNCHES
from defect_corpus import DEFECTS

import refsim

MEMORY_KINDS = {"race", "out_of_bounds", "uninitialized_read", "misaligned"}
NUMBA_ONLY = {"negative_index_wraps_at_the_border"}  # in C++ it is negative_index_does_not_wrap, out of bounds
CAUGHT_BY_CHECKS = [pair for pair in PAIRS if pair.kind != "value"]
CAUGHT_BY_VALUES = [pair for pair in PAIRS if pair.kind == "value"]
HOW = pytest.mark.parametrize(
    "options", [pytest.param({}, id="together"), pytest.param({"lanes_per_batch": 1}, id="block after block")]
)


def by_name(pairs):
    return [pytest.param(pair, id=pair.name) for pair in pairs]


def answers(pair):
    """What NumPy expects, computed from arguments of its own."""
    with np.errstate(all="ignore"):
        return pair.expected(*pair.arguments())


def launched(pair, role, **options):
    """Launch one kernel of a pair on fresh arguments, after its producer if it has one: (report, arguments)."""
    launch = getattr(pair, f"{role}_launch")
    arguments = pair.arguments()
    if f"{role}_producer" in pair.kernels:
        producer = pair.kernel(f"{role}_producer")
        assert not refsim.launch(producer, launch.grid, launch.block, *arguments, device=pair.device).findings
    report = refsim.launch(
        pair.kernel(role), launch.grid, launch.block, *arguments,
        device=pair.device, shared_bytes=launch.shared_bytes, **options,
    )  # fmt: skip
    return report, arguments


def agrees(got, expected, rtol):
    if rtol == 0:
        return np.array_equal(got.ravel(), np.ravel(expected))
    return np.allclose(got.ravel().astype(np.float64), np.ravel(expected), rtol=rtol, atol=0)


def site(finding):
    """One line per finding, for the failure report."""
    other = f" / other line {finding.other.line}" if finding.other is not None else ""
    return f"{finding.severity} {finding.kind} line {finding.line}{other} {finding.array}[{finding.index}]"


def is_where_it_says(access, pair):
    """An access names the .cu file, and the source text that it shows is the text of its line."""
    assert access.file == str(pair.file)
    assert access.source.strip() == linecache.getline(access.file, access.line).strip() != ""


def is_one_lane(access, launch):
    """An access names a block of the grid and a thread of the block."""
    for coordinates, extents in ((access.block, launch.grid), (access.thread, launch.block)):
        given = extents if isinstance(extents, tuple) else (extents,)
        x, y, z = (*given, 1, 1)[:3]
        assert len(coordinates) == 3
        assert all(0 <= c < e for c, e in zip(coordinates, (x, y, z))), (coordinates, extents)


def test_the_corpus_is_the_numba_corpus_and_more():
    names = [pair.name for pair in PAIRS]
    numba = {defect.name for defect in DEFECTS}
    assert len(set(names)) == len(names) >= 50
    assert numba - set(names) == NUMBA_ONLY
    assert set(names) - numba == set(LAUNCHES)
    assert all({"wrong", "right"} <= pair.kernels for pair in PAIRS)


@pytest.mark.parametrize("defect", [d for d in DEFECTS if d.name not in NUMBA_ONLY], ids=lambda d: d.name)
def test_the_verdict_is_that_of_the_numba_corpus(defect):
    pair = next(pair for pair in PAIRS if pair.name == defect.name)
    assert (pair.kind, pair.severity) == (defect.expectation.kind, defect.expectation.severity)


@HOW
@pytest.mark.parametrize("pair", by_name(CAUGHT_BY_CHECKS))
def test_wrong_kernel_is_caught_at_its_line(pair, options):
    report, _ = launched(pair, "wrong", **options)
    seen = "\n".join(map(site, report.findings))

    assert report.ok == (pair.severity == "note"), seen
    caught = [f for f in report.findings if f.kind == pair.kind and f.severity == pair.severity]
    assert caught, f"no {pair.severity} of kind {pair.kind}; seen:\n{seen}"
    for finding in caught:
        assert finding.line in pair.lines, f"marked lines {sorted(pair.lines)}; seen:\n{seen}"
        assert finding.message
        assert "wrong" in finding.kernel
        is_where_it_says(finding, pair)
        if pair.kind in MEMORY_KINDS:
            is_one_lane(finding, pair.wrong_launch)
        if pair.kind == "race":
            other = finding.other
            assert other is not None, seen
            assert other.line in pair.lines, f"marked lines {sorted(pair.lines)}; seen:\n{seen}"
            is_where_it_says(other, pair)
            is_one_lane(other, pair.wrong_launch)
        if pair.arrays:
            assert finding.array in pair.arrays, seen
    strangers = {f.kind for f in report.findings if f.severity == "error"} - {pair.kind} - pair.also
    assert not strangers, seen


@pytest.mark.parametrize("pair", by_name(CAUGHT_BY_VALUES))
def test_wrong_kernel_is_caught_by_its_values(pair):
    report, arguments = launched(pair, "wrong")
    assert not report.findings, "\n".join(map(site, report.findings))
    assert any(not agrees(arguments[i], value, pair.rtol) for i, value in answers(pair).items())


@HOW
@pytest.mark.parametrize("pair", by_name(PAIRS))
def test_right_twin_has_no_finding_and_numpys_answer(pair, options):
    report, arguments = launched(pair, "right", **options)
    assert not report.findings, "\n".join(map(site, report.findings))
    assert report.ok
    for i, value in answers(pair).items():
        assert agrees(arguments[i], value, pair.rtol), (i, arguments[i], value)

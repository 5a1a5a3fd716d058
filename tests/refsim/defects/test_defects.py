"""Every seeded defect is caught, with the right kind at the marked line; every right twin runs without a finding."""

import linecache

import numpy as np
import pytest
from defect_corpus import DEFECTS
from numba import cuda

import refsim

MEMORY_KINDS = {"race", "out_of_bounds", "uninitialized_read"}
CAUGHT_BY_CHECKS = [d for d in DEFECTS if d.expectation.kind != "value"]
CAUGHT_BY_VALUES = [d for d in DEFECTS if d.expectation.kind == "value"]
HOW = pytest.mark.parametrize(
    ("wrap", "options"),
    [
        pytest.param(lambda kernel: kernel, {}, id="plain"),
        pytest.param(cuda.jit, {}, id="jit"),
        pytest.param(lambda kernel: kernel, {"lanes_per_batch": 1}, id="block after block"),
    ],
)


def by_name(pairs):
    return [pytest.param(pair, id=pair.name) for pair in pairs]


def answers(pair):
    """What NumPy expects, computed from arguments of its own."""
    with np.errstate(all="ignore"):
        return pair.expected(*pair.arguments())


def launched(pair, kernel, launch, producer=None, **options):
    """Launch one kernel of a pair on fresh arguments: (report, arguments)."""
    arguments = pair.arguments()
    if producer is not None:
        assert not refsim.launch(producer, launch.grid, launch.block, *arguments).findings
    report = refsim.launch(kernel, launch.grid, launch.block, *arguments, shared_bytes=launch.shared_bytes, **options)
    return report, arguments


def agrees(got, expected, rtol):
    got = np.asarray(got)
    if got.shape != np.shape(expected):
        return False
    if rtol == 0:
        return np.array_equal(got, expected)
    return np.allclose(got.astype(np.float64), np.asarray(expected, np.float64), rtol=rtol, atol=0)


def site(finding):
    """One line per finding, for the failure report."""
    other = f" / other line {finding.other.line}" if finding.other is not None else ""
    return f"{finding.severity} {finding.kind} line {finding.line}{other} {finding.array}[{finding.index}]"


def is_where_it_says(access):
    """The source text that an access shows is the text of its line."""
    assert access.source.strip() == linecache.getline(access.file, access.line).strip() != ""


def is_one_lane(access, launch):
    """An access names a block of the grid, a thread of the block and an index."""
    assert access.index is not None
    for coordinates, extents in ((access.block, launch.grid), (access.thread, launch.block)):
        given = extents if isinstance(extents, tuple) else (extents,)
        x, y, z = (*given, 1, 1)[:3]
        assert len(coordinates) == 3
        assert all(0 <= c < e for c, e in zip(coordinates, (x, y, z))), (coordinates, extents)


def test_the_corpus_is_large_and_has_every_kind():
    kinds = [d.expectation.kind for d in DEFECTS]
    assert len(DEFECTS) >= 50
    assert len({d.name for d in DEFECTS}) == len(DEFECTS)
    assert len(set(kinds)) == 7
    for kind in set(kinds) - {"value"}:
        assert kinds.count(kind) >= 5, kind
    assert all(d.story for d in DEFECTS)


@HOW
@pytest.mark.parametrize("pair", by_name(CAUGHT_BY_CHECKS))
def test_wrong_kernel_is_caught_at_its_line(pair, wrap, options):
    asked = pair.expectation
    report, _ = launched(pair, wrap(pair.wrong), pair.wrong_launch, pair.wrong_producer, **options)
    seen = "\n".join(map(site, report.findings))

    assert report.ok == (asked.severity == "note"), seen
    caught = [f for f in report.findings if f.kind == asked.kind and f.severity == asked.severity]
    assert caught, f"no {asked.severity} of kind {asked.kind}; seen:\n{seen}"
    for finding in caught:
        assert finding.line in asked.lines, f"marked lines {sorted(asked.lines)}; seen:\n{seen}"
        assert finding.message
        assert finding.kernel == "wrong"
        is_where_it_says(finding)
        if asked.kind in MEMORY_KINDS:
            assert finding.dtype
            is_one_lane(finding, pair.wrong_launch)
        if asked.kind == "race":
            other = finding.other
            assert other is not None, seen
            assert other.line in asked.lines, f"marked lines {sorted(asked.lines)}; seen:\n{seen}"
            is_where_it_says(other)
            is_one_lane(other, pair.wrong_launch)
            assert (other.block, other.thread) != (finding.block, finding.thread), str(finding)
        if asked.arrays:
            assert finding.array in asked.arrays, seen
    strangers = {f.kind for f in report.findings if f.severity == "error"} - {asked.kind} - pair.also
    assert not strangers, seen


@pytest.mark.parametrize("pair", by_name(CAUGHT_BY_VALUES))
def test_wrong_kernel_is_caught_by_its_values(pair):
    report, arguments = launched(pair, pair.wrong, pair.wrong_launch)
    assert not report.findings, "\n".join(map(site, report.findings))
    assert any(not agrees(arguments[i], value, pair.rtol) for i, value in answers(pair).items())


@HOW
@pytest.mark.parametrize("pair", by_name(DEFECTS))
def test_right_twin_has_no_finding_and_numpys_answer(pair, wrap, options):
    report, arguments = launched(pair, wrap(pair.right), pair.right_launch, pair.right_producer, **options)
    assert not report.findings, "\n".join(map(site, report.findings))
    assert report.ok
    for i, value in answers(pair).items():
        if pair.rtol == 0:
            np.testing.assert_array_equal(arguments[i], value)
        else:
            np.testing.assert_allclose(arguments[i], value, rtol=pair.rtol)

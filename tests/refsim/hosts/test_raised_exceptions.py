"""Exceptions of kernels: raised on the host for debug=True, as numba.cuda does; a finding in any case."""

import numpy as np
import pytest
from numba import cuda

import refsim
from refsim.hosts import Session, run_script

SCRIPT = """
from numba import cuda

class MyError(Exception):
    pass

@cuda.jit(debug=DEBUG, opt=False)
def picky(x):
    if cuda.threadIdx.x == x:
        raise MyError("foo")
    assert x != 7, "not seven"

picky[2, 4](9)
for x in (2, 7):
    try:
        picky[2, 4](x)
    except (MyError, AssertionError) as error:
        print(type(error).__name__, str(error).split(", line ")[1])
"""


@pytest.mark.parametrize(
    ("debug", "lines"),
    [
        (
            True,
            [
                "MyError 10, tid=[2, 0, 0] ctaid=[0, 0, 0]: foo",
                "AssertionError 11, tid=[0, 0, 0] ctaid=[0, 0, 0]: not seven",
            ],
        ),
        (False, []),
    ],
)
def test_debug_kernels_raise_on_the_host(debug, lines, tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace("DEBUG", str(debug)), encoding="utf-8")
    session = Session()
    assert run_script(path, [], session) == 0
    assert not session.ok  # a finding either way
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if "tid=" in line] == lines


@cuda.jit
def picky(x):
    if x[0] > 1:
        raise ValueError("too large", 3)


def test_a_report_keeps_the_exception():
    report = refsim.launch(picky, 1, 2, np.array([5]))
    assert [f.kind for f in report.findings] == ["assertion"]
    assert (report.raised.kind, report.raised.args, report.raised.thread) == (ValueError, ("too large", 3), (0, 0, 0))
    assert refsim.launch(picky, 1, 2, np.array([1])).raised is None

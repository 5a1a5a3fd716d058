"""Witnesses: a schedule that changes the result of a racy launch, and can be replayed."""

import re

import numpy as np
from click.testing import CliRunner
from numba import cuda, float32, int32

import refsim
from refsim.cli import main


def rotated(x, out):
    cells = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cells[t] = x[t]
    cuda.syncthreads()
    right = cells[(t + 1) % 64]
    cells[t] = right
    cuda.syncthreads()
    out[t] = cells[t]


def added(total, x):
    total[0] += x[cuda.grid(1)]


def same_in_every_order(out):
    cells = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        cells[0] = 1
    cuda.syncthreads()
    if t == 0:
        cells[0] = 1
    if t == 33:
        out[0] = cells[0]


def replayed(witness):
    name, array, index, before, after = re.fullmatch(
        r"schedule (\S+) changes (\w+)\[(.*)\] from (\S+) to (\S+)", witness
    ).groups()
    return name, array, tuple(int(i) for i in index.split(", ")), float(before), float(after)


def test_the_witness_changes_what_it_says_and_can_be_replayed():
    x = np.arange(64, dtype=np.float32)
    out = np.zeros(64, np.float32)
    report = refsim.launch(rotated, 1, 64, x, out, witness=True)
    np.testing.assert_array_equal(out, np.roll(x, -1))  # the launch's own result stays
    (finding,) = report.errors
    assert finding.witness in str(finding)
    name, array, index, before, after = replayed(finding.witness)
    assert array == "out"
    assert out[index] == before
    again = np.zeros(64, np.float32)
    refsim.launch(rotated, 1, 64, x, again, schedule=name)
    assert again[index] == after != before


def test_between_blocks():
    total, x = np.zeros(1, np.int64), np.ones(128, np.int64)
    (finding,) = refsim.launch(added, 4, 32, total, x, witness=True).errors
    name, _, _, before, after = replayed(finding.witness)
    assert total[0] == before
    again = np.zeros(1, np.int64)
    refsim.launch(added, 4, 32, again, x, schedule=name)
    assert again[0] == after != before
    np.testing.assert_array_equal(x, np.ones(128))


def test_a_race_that_no_order_shows_says_so():
    (finding,) = refsim.launch(same_in_every_order, 1, 64, np.zeros(1), witness=True).errors
    assert finding.witness == "no schedule tried changed the result"


def test_nothing_is_run_again_unless_asked_for():
    (finding,) = refsim.launch(same_in_every_order, 1, 64, np.zeros(1)).errors
    assert finding.witness is None


def test_arguments_that_share_memory_share_it_in_the_witness_too():
    buffer = np.arange(65, dtype=np.int64)

    def shifted(source, target):
        i = cuda.threadIdx.x
        target[i] = source[i]

    report = refsim.launch(shifted, 1, 64, buffer[:-1], buffer[1:], witness=True)
    np.testing.assert_array_equal(buffer[1:], np.arange(64))
    name, array, index, before, after = replayed(report.errors[0].witness)
    again = np.arange(65, dtype=np.int64)
    views = {"source": again[:-1], "target": again[1:]}
    refsim.launch(shifted, 1, 64, *views.values(), schedule=name)
    assert views[array][index] == after != before


def test_on_the_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom numba import cuda\n\n\n@cuda.jit\ndef last(out):\n    out[0] = cuda.grid(1)\n\n\n"
        "last[2, 32](np.zeros(1, np.int64))\n"
    )
    result = CliRunner().invoke(main, ["run", "--witness", str(script)])
    assert result.exit_code == 1
    assert "schedule delay:" in result.output

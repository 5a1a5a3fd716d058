"""Scripts as people write them, run by ``refsim run`` in this process: what they assert holds, and exits are right."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from refsim.cli import main

SCRIPTS = Path(__file__).parent / "scripts"
ARGUMENTS = {"numba_pi.py": ["100"], "cupy_device.py": ["32", "90"]}
DEFECTS = ("numba_defects.py", "cupy_defects.py")
NOTES = ("numba_reduce.py",)
CLEAN = sorted(path.name for path in SCRIPTS.glob("*.py") if path.name not in DEFECTS + NOTES)


def run(script, *arguments, options=()):
    return CliRunner().invoke(main, ["run", *options, str(SCRIPTS / script), *arguments])


@pytest.mark.parametrize("script", CLEAN)
def test_script_runs_without_findings(script):
    result = run(script, *ARGUMENTS.get(script, []))
    assert result.exit_code == 0, result.output
    assert re.search(r"on sim:sm_90: no findings\n$|launched no kernel\n$", result.stderr), result.output


def line(script, text):
    """File and line of a text in a script, as a finding prints them."""
    lines = (SCRIPTS / script).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, content in enumerate(lines, 1) if text in content]
    return f"{SCRIPTS / script}:{number}"


def test_defects_of_numba_kernels_are_found_once():
    result = run("numba_defects.py")
    assert result.exit_code == 1
    assert result.stdout == "done\n"
    head, *rest = result.stderr.splitlines()
    assert head == "refsim: 4 launches of 2 kernels on sim:sm_90: 3 errors"
    found = [text for text in rest if text.startswith("error: ")]
    assert [text.split(": ")[1] for text in found] == ["race", "out of bounds", "uninitialized read"]
    assert [text for text in rest if re.fullmatch(r"    in \d launch(es)?", text)] == [
        "    in 3 launches", "    in 3 launches", "    in 1 launch",
    ]  # fmt: skip
    for mark in ("# race", "# out of bounds", "# uninitialised"):
        assert line("numba_defects.py", mark) in result.stderr


def test_defects_of_raw_kernels_are_found_in_lines_of_the_script():
    result = run("cupy_defects.py")
    assert result.exit_code == 1
    head, *rest = result.stderr.splitlines()
    assert head == "refsim: 5 launches of 4 kernels on sim:sm_90: 4 errors"
    found = [(kind.split(": ")[1], where.split(" in ")[0]) for kind, where in pairwise(rest) if "error: " in kind]
    assert found == [
        ("race", f"    at {line('cupy_defects.py', '// race')}"),
        ("uninitialized read", f"    at {line('cupy_defects.py', 'y = x + 1')}"),
        ("out of bounds", f"    at {line('cupy_defects.py', 'w[i + 1]')}"),
        ("out of bounds", "    at <operation of next>:1"),  # text that the script composed
    ]


def test_reduce_runs_numbas_kernels_and_what_is_wrong_in_them_is_a_note():
    result = run("numba_reduce.py", options=["--counters"])
    assert result.exit_code == 0, result.output
    assert "refsim: 90 launches of 1 kernel on sim:sm_90: 1 note\n" in result.stderr
    assert "note: warp divergence: the mask of syncwarp names lanes 2, 3" in result.stderr
    assert re.search(r"kernels/reduction\.py:\d+ in gpu_reduce_block_strided", result.stderr)
    assert "counters of gpu_reduce_block_strided on sim:sm_90" in result.stderr


def test_what_is_wrong_in_the_function_of_a_reduction_is_an_error_of_the_script(tmp_path):
    script = tmp_path / "script.py"
    text = "import numpy as np\nfrom numba import cuda\n\ntable = np.ones(3)\n"
    script.write_text(f"{text}print(cuda.reduce(lambda a, b: a + b * table[int(b)])(np.arange(4.0)))\n")
    result = CliRunner().invoke(main, ["run", str(script)])
    assert result.exit_code == 1, result.output
    assert "error: out of bounds" in result.stderr
    assert f"at {script}:5 in gpu_reduce_block_strided" in result.stderr


def test_checks_can_be_chosen():
    result = run("numba_defects.py", options=["--checks", "memcheck"])
    assert result.exit_code == 1
    assert [text.split(": ")[1] for text in result.stderr.splitlines()[1:] if text.startswith("error")] == [
        "out of bounds"
    ]
    assert run("numba_defects.py", options=["--checks", "none"]).exit_code == 0


def test_raise_stops_at_the_launch():
    result = run("numba_defects.py", options=["--raise"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f'File "{SCRIPTS / "numba_defects.py"}", line 25, in <module>\n    rotate[1, 64](x, out)' in result.stderr
    assert "FindingError" in result.stderr
    assert "in 1 launch\n" in result.stderr


@pytest.mark.parametrize(
    ("device", "arguments"),
    [("sim:gfx942", ["64", "94", "hip"]), ("sim:warp16", ["16", "90"]), ("sim:sm_120", ["32", "120"])],
)
def test_scripts_see_the_simulated_device(device, arguments):
    assert run("cupy_device.py", *arguments, options=["--device", device]).exit_code == 0


@pytest.mark.parametrize("script", ["cupy_raw.py", "numba_vector_add.py"])
def test_scripts_run_on_64_lanes(script):
    result = run(script, options=["--device", "sim:gfx942"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "cuda:0"], "device 'cuda:0' is not a simulated one"),
        (["--device", "sim:sm_91"], "unknown device 'sim:sm_91'"),
        (["--checks", "racechecks"], "unknown check 'racechecks'"),
    ],
)
def test_wrong_options_are_usage_errors(options, message):
    result = run("numba_pi.py", "1", options=options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_missing_script_is_a_usage_error():
    result = run("no_such_script.py")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_what_has_no_gpu_is_simulated_anyway():
    assert run("cupy_and_numba.py", options=["--no-simulate"]).exit_code == 0


def test_everything_is_as_before_afterwards():
    import sys

    import numba
    import numba.cuda

    before = numba.cuda, sys.argv, list(sys.path), sys.modules["__main__"], numba.vectorize, list(sys.meta_path)
    run("cupy_and_numba.py")
    after = numba.cuda, sys.argv, list(sys.path), sys.modules["__main__"], numba.vectorize, list(sys.meta_path)
    assert before == after
    assert sys.modules["numba.cuda"] is numba.cuda
    assert "cupy" not in sys.modules

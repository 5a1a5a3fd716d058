"""The command line: what it prints, what it writes, and how it leaves, on good input and on bad."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import pytest
from click.exceptions import Exit
from click.testing import CliRunner

from refsim.cli import main
from refsim.command_arguments import reported

MINE = """
import numpy as np
from numba import cuda, float64


def right(x, weight, eps=1e-6):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    y = x.astype(wide)
    rms = np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + wide(eps))
    return (y / rms * weight.astype(wide)).astype(x.dtype)

def outside_root(x, weight, eps=1e-6):
    y = x.astype(np.float64)
    return (y / (np.sqrt(np.mean(y * y, axis=-1, keepdims=True)) + eps) * weight).astype(x.dtype)

def raising(x, weight):
    raise RuntimeError("no\\nluck")

def other_shape(x, weight):
    return x.T.copy()

def other_dtype(x, weight):
    return x.astype(np.float64 if x.dtype == np.float32 else np.float32)

def nothing(x, weight):
    pass

def nans(x, weight):
    return np.full_like(x, np.nan)

def writes_input(x, weight, eps=1e-6):
    out = right(x, weight, eps)
    x[...] = 0
    return out

def never(x, weight, eps=1e-6):
    return x

@cuda.jit
def rmsnorm_kernel(x, weight, eps, out):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = 0.0
        for col in range(x.shape[1]):
            total += float64(x[row, col]) * float64(x[row, col])
        rms = (total / x.shape[1] + eps) ** 0.5
        for col in range(x.shape[1]):
            out[row, col] = float64(x[row, col]) / rms * float64(weight[col])

def launches(launcher, x, weight, eps=1e-6):
    out = launcher.empty(x.shape, x.dtype)
    if x.size:
        grid = (x.shape[0] + 31) // 32
        launcher.launch(rmsnorm_kernel, grid, 32, launcher.array(x), launcher.array(weight), eps, out)
    return out

@cuda.jit
def careless_kernel(x, out):
    row = cuda.grid(1)
    for col in range(x.shape[1]):
        out[row, col] = x[row, col]

def launches_carelessly(launcher, x, weight, eps=1e-6):
    out = launcher.empty(x.shape, x.dtype)
    if x.size:
        launcher.launch(careless_kernel, (x.shape[0] + 31) // 32, 32, launcher.array(x), out)
    return out
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def check(mine, name, *arguments):
    return run("check", "rmsnorm", "--backend", f"{mine}:{name}", "--cases", "20", *arguments)


def test_a_right_function_conforms(mine):
    result = check(mine, "right")
    assert result.exit_code == 0, result.output
    assert result.output.count("PASS") == 3
    assert "Traceback" not in result.output


def test_a_right_kernel_conforms(mine):
    result = check(mine, "launches")
    assert result.exit_code == 0, result.output
    assert "mine.py:launches on sim:sm_90" in result.output
    assert result.output.count("PASS") == 3


def test_a_kernel_out_of_bounds_is_a_finding(mine):
    result = check(mine, "launches_carelessly", "--dtype", "float32")
    assert result.exit_code == 1
    assert "simulator finding: out_of_bounds at " in result.output
    assert f"{mine}:{MINE[: MINE.index('out[row, col] = x[row, col]')].count(chr(10)) + 1}" in result.output
    assert "--device sim:sm_90" in result.output
    assert "        out[row, col] = x[row, col]" in result.output


@pytest.mark.parametrize(
    ("name", "verdict", "words"),
    [
        ("outside_root", "FAIL", "is accepted"),
        ("raising", "ERROR", "exception: raised RuntimeError: no luck"),
        ("other_shape", "FAIL", "shape: out: shape (129, 7) in place of (7, 129)"),
        ("other_dtype", "FAIL", "dtype: out: dtype float64 in place of float32"),
        ("nothing", "FAIL", "outputs: out: returned None in place of a NumPy array"),
        ("nans", "FAIL", "nan: out[0, 0] = nan"),
        ("writes_input", "FAIL", "mutated input: the input x was modified"),
        ("never", "FAIL", "is accepted"),
    ],
)
def test_what_does_not_conform_says_why(mine, name, verdict, words):
    result = check(mine, name, "--dtype", "float32")
    assert result.exit_code == 1
    assert verdict in result.output
    assert words in result.output
    assert "Traceback" not in result.output


def test_debug_shows_the_traceback(mine):
    result = check(mine, "raising", "--dtype", "float32", "--debug")
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.output
    assert "in raising" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "rmsnrom"], "unknown operator 'rmsnrom'; did you mean 'rmsnorm'?"),
        (["check", "--dtype", "float23"], "unknown dtype 'float23'; did you mean 'float32'?"),
        (["check", "RMSNORM"], "unknown operator 'RMSNORM'; did you mean 'rmsnorm'?"),
        (["check", "--dtype", "FLOAT32"], "unknown dtype 'FLOAT32'; did you mean 'float32'?"),
        (["check", "--dtype", "quux"], "unknown dtype 'quux'; known dtypes: float16"),
        (["check", "--device", "sim:sm_9"], "unknown device 'sim:sm_9'; simulated devices are sim:sm_90"),
        (["check", "--device", "cuda"], "unknown device 'cuda'; give sim:NAME or cuda:NUMBER"),
        (["check", "--device", "cuda:99"], "device cuda:99 cannot be used by backend numba"),
        (["check", "--backend", "tourch"], "unknown backend 'tourch'"),
        (["check", "sum", "--backend", "missing.py:f"], "no such file: missing.py"),
        (["check", "--cases", "0"], "0 is not in the range x>=1"),
        (["check", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["check", "--seconds", "3"], "--seconds does nothing without --isolated"),
        (["replay", "{{}}", "--memory", "512"], "--memory does nothing without --isolated"),
        (["fuzz", "--numerics", "foo"], "--numerics does nothing without --isolated"),
        (["check", "--nondeterministic"], "--nondeterministic does nothing without --isolated"),
        (["check", "--isolated", "--seconds", "nan"], "'--seconds': nan is not in the range 0.1<=x<=86400"),
        (["check", "--isolated", "--seconds", "inf"], "'--seconds': inf is not in the range 0.1<=x<=86400"),
        (["fuzz", "--isolated", "--seconds", "1e10"], "'--seconds': 10000000000.0 is not in the range 0.1<=x<=86400"),
        (["replay", "{{}}", "--isolated", "--memory", "9" * 15], "is not in the range 64<=x<=1048576"),
        (["fuzz", "--time", "9" * 400], "is no duration"),
        (["check", "--format", "yaml"], "'yaml' is not one of 'text', 'json'"),
        (["check", "--backend", "{mine}:right"], "name the one operator"),
        (["check", "rmsnorm", "--backend", "{mine}:rigth"], "did you mean 'right'?"),
        (["check", "rmsnorm", "--backend", "{mine}:rmsnorm_kernel"], "is a bare kernel"),
        (["check", "matmul", "--backend", "{mine}:raising", "--dtype", "float32", "-o", "{folder}"], "is a folder"),
        (["check", "-o", "{folder}/no/report.json"], "no such folder"),
        (["ops", "summ"], "did you mean 'sum'?"),
        (["replay", "{folder}/none.json"], "cannot be read: No such file"),
        (["replay", "{mine}"], "is not JSON"),
        (["replay", '{{"a":' + 100_000 * "["], "the text is nested too deeply to be read"),
        (["replay", '{{"operator": "sum"}}'], "the case has no field 'dtype'"),
        (["replay", '{{"operator": "zum", "dtype": "float32", "dims": {{}}}}'], "did you mean 'sum'?"),
        (
            ["replay", '{{"operator": ["sum"], "dtype": "float32", "dims": {{}}}}'],
            "'operator' of a case must be a name",
        ),
        (["replay", '{{"operator": "sum", "dtype": "float32", "dims": {{}}, "params": []}}'], "must be an object of"),
        (["replay", '{{"operator": "sum", "dtype": "float32", "dims": {{}}, "absent": 5}}'], "must be a list of names"),
        (["replay", '{{"operator": "sum", "dtype": "float32", "dims": {{"d0": true}}}}'], "must be an integer"),
        (["replay", '{{"results": 5}}'], "is not a report of refsim check"),
        (["replay", '{{"results": [{{}}]}}'], "is not a report of refsim check"),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_code_2(mine, arguments, words):
    result = run(*(argument.format(mine=mine, folder=mine.parent) for argument in arguments))
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_debug_of_wrong_usage_shows_the_traceback():
    result = run("check", "rmsnrom", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.output


def test_nothing_to_judge_is_exit_code_3(mine):
    launched_bfloat16 = check(mine, "launches", "--dtype", "bfloat16")
    assert launched_bfloat16.exit_code == 3
    assert "serves no rmsnorm in bfloat16" in launched_bfloat16.output


def test_json_to_a_file(mine, tmp_path):
    target = tmp_path / "report.json"
    target.write_text("old")
    result = check(mine, "outside_root", "--dtype", "float64", "--seed", 7, "--format", "json", "-o", target)
    assert (result.exit_code, result.output) == (1, "")
    data = json.loads(target.read_text())
    assert (data["schema"], data["seed"]) == ("refsim-check/3", 7)
    assert data["results"][0]["verdict"] == "FAIL"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".json") == ["report.json"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_replay_of_a_report_and_of_one_case(mine, tmp_path):
    target = tmp_path / "report.json"
    check(mine, "outside_root", "--dtype", "float32", "--format", "json", "-o", target)
    failures = json.loads(target.read_text())["results"][0]["failures"]
    again = run("replay", target, "--backend", f"{mine}:outside_root", "--format", "json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["results"][0]["failures"] == failures
    single = run("replay", json.dumps(failures[0]["case"]), "--backend", f"{mine}:outside_root")
    assert single.exit_code == 1
    assert "1 of 1 cases" in single.output
    fixed = run("replay", target, "--backend", f"{mine}:right")
    assert fixed.exit_code == 0, fixed.output
    own = run("replay", target, "--format", "json")
    assert json.loads(own.stdout)["results"][0]["failures"] == failures
    data = json.loads(target.read_text())
    data["results"][0]["again"].append("--isolated")
    target.write_text(json.dumps(data))
    assert "is of an isolated run" in run("replay", target).output
    target.write_text(json.dumps({**data, "schema": "refsim-check/2"}))
    old = run("replay", target, "--backend", f"{mine}:right")
    assert old.exit_code == 2
    assert "is of schema 'refsim-check/2'" in old.output
    target.write_text(json.dumps([failures[0]["case"], {"operator": "sum"}]))
    part = run("replay", target)
    assert part.exit_code == 2
    assert "report.json, case 2 of 2: the case has no field 'dtype'" in " ".join(part.output.split())


def test_replay_of_a_report_without_failures(mine, tmp_path):
    target = tmp_path / "report.json"
    check(mine, "right", "--format", "json", "-o", target)
    result = run("replay", target, "--backend", f"{mine}:right")
    assert result.exit_code == 2
    assert "holds no failing case" in result.output


def test_ops_lists_and_describes():
    listed = run("ops")
    assert listed.exit_code == 0
    names = [line.split()[0] for line in listed.output.splitlines() if line.startswith("  ")]
    assert {"attention", "matmul", "rmsnorm", "rope", "softmax", "sum"} <= set(names)
    one = run("ops", "matmul")
    assert one.exit_code == 0
    for words in ("a: the operator's dtype (m, k)", "transpose_a: bool; default False", "numba:matmul", "Rounding"):
        assert words in one.output


def test_ops_as_json_and_by_profile():
    listed = json.loads(run("ops", "--format", "json").stdout)["operators"]
    (rmsnorm,) = [entry for entry in listed if entry["name"] == "rmsnorm"]
    assert rmsnorm["family"] == "norm"
    assert "numba:rmsnorm" in rmsnorm["kernels"]
    core = json.loads(run("ops", "--profile", "core", "--format", "json").stdout)["operators"]
    assert "rmsnorm" in [entry["name"] for entry in core]


def test_mutants_prints_a_matrix():
    result = run("mutants", "rmsnorm", "--dtype", "float32", "--cases", "24")
    assert result.exit_code == 0, result.output
    assert re.search(r"(\d+) of \1 mutants refused, 0 false alarms on \d+ controls", result.output)
    assert re.search(r"^cosine +\d+ of \d+", result.output, re.MULTILINE)
    assert run("mutants", "rmsnorm", "--dtype", "int8").exit_code == 2
    assert "unknown operator 'nix'" in run("mutants", "nix").output


def test_mutants_as_json_in_a_file(tmp_path):
    path = tmp_path / "mutants.json"
    words = ("--dtype", "float32", "--cases", "2", "--format", "json", "-o", str(path))
    assert run("mutants", "copy_blocks", *words).exit_code in (0, 1)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert {entry["operator"] for entry in data["trials"]} == {"copy_blocks"}
    assert {score["rule"] for score in data["scores"]} > {"refsim", "allclose"}


def test_same_seed_same_report_other_seed_other_cases(mine):
    def report(seed):
        return json.loads(check(mine, "outside_root", "--format", "json", "--seed", seed).stdout)

    assert report(3) == report(3)
    assert report(3)["results"] != report(4)["results"]


def command(*arguments):
    """The command as a user's shell runs it."""
    words = [sys.executable, "-c", "from refsim.cli import main; main()", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["rmsnorm", "--backend", "{mine}:right"], 0),
        (["rmsnorm", "--backend", "{mine}:nans"], 1),
        (["rmsnorm", "--backend", "{mine}:absent"], 2),
        (["rmsnorm", "--backend", "{mine}:launches", "--dtype", "bfloat16"], 3),
    ],
)
def test_exit_codes_of_the_process(mine, arguments, code):
    done = command("check", "--cases", "12", *(argument.format(mine=mine) for argument in arguments))
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert bool(done.stdout) == (code != 2)
    assert bool(done.stderr) == (code == 2)


def test_standard_output_of_the_process_is_json_alone(mine, tmp_path):
    chatty = tmp_path / "chatty.py"
    chatty.write_text("import numpy as np\ndef f(x, axis=None):\n    print('hello')\n    return np.float32(0)\n")
    done = command("check", "sum", "--backend", f"{chatty}:f", "--dtype", "float32", "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["results"][0]["verdict"] == "FAIL"
    assert "hello" in done.stderr


def test_importing_the_command_line_leaves_the_heavy_packages_alone():
    code = "import sys, refsim.cli; print([name for name in ('numba', 'cupy', 'torch') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_read_only_arrays_and_scalars_are_answers_too(mine):
    mine.write_text(
        "import numpy as np\ndef f(x, axis=None):\n"
        "    out = np.asarray(np.sum(x.astype(np.float64), axis=axis)).astype(x.dtype)\n"
        "    out.setflags(write=False)\n    return out[()]\n"
    )
    result = run("check", "sum", "--backend", f"{mine}:f", "--dtype", "float32")
    assert result.exit_code == 0, result.output


def enter(*arguments, **options):
    """The command as the installed script enters it."""
    words = [sys.executable, "-c", "import sys; from refsim.entry import main; sys.exit(main())", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_ctrl_c_in_a_finaliser_is_not_lost(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import os, signal, time, weakref
import refsim.cli
from refsim import entry

class Something:
    pass

def command(prog_name):
    thing = Something()
    weakref.finalize(thing, lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(1)))
    del thing
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("came again")

refsim.cli.main = command
entry.main()
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "came again\n", "")


@pytest.mark.parametrize("moment", [0.2, 0.4, 0.8, 1.5])
def test_ctrl_c_at_any_moment(tmp_path, moment):
    process = enter("check", "-o", tmp_path / "report.json", "--format", "json")
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert err.strip() in ("", "interrupted")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_changes_nothing(mine):
    process = enter("check", "rmsnorm", "--backend", f"{mine}:nans", "--cases", "2", "--dtype", "float32")
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == ("", 1)
    process.stderr.close()


def test_what_the_judged_print_stays_out_of_the_report(tmp_path):
    path = tmp_path / "loud.py"
    path.write_text(
        "import os, subprocess\nprint('at import')\n"
        "def loud(x, weight):\n    print('by Python'); os.write(1, b'by descriptor')\n"
        "    subprocess.run(['echo', 'by subprocess'])\n    return x\n"
    )
    process = enter("check", "rmsnorm", "--backend", f"{path}:loud", "--cases", "1", "--format", "json")
    out, err = process.communicate(timeout=60)
    assert json.loads(out)["results"][0]["verdict"] == "FAIL"
    for words in ("at import", "by Python", "by descriptor", "by subprocess"):
        assert words in err


def test_the_report_is_written_where_the_command_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "moving.py"
    path.write_text("import os\ndef moving(x, weight):\n    os.chdir('/')\n    return x\n")
    result = run("check", "rmsnorm", "--backend", f"{path}:moving", "--cases", "1", "-o", "report.txt")
    assert result.exit_code == 1
    assert "FAIL" in (tmp_path / "report.txt").read_text()


def test_a_report_to_a_pipe_or_through_a_link(mine, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "behind")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for target in (pipe, link):
        assert check(mine, "right", "--dtype", "float32", "-o", target).exit_code == 0
    assert b"PASS" in os.read(reader, 10_000)
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    assert "PASS" in link.read_text()
    assert "PASS" in check(mine, "right", "--dtype", "float32", "-o", "-").output


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_said(mine):
    result = check(mine, "right", "--dtype", "float32", "-o", "/dev/full")
    assert result.exit_code == 2
    assert "cannot be written to /dev/full: No space left on device" in result.output


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["check", "--help"], ["ops"]])
def test_a_full_standard_output_is_said(arguments):
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "refsim", *arguments]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "standard output" in done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii", "utf-8"])
def test_every_encoding_of_standard_output_takes_a_report(mine, encoding):
    judged = ["check", "rmsnorm", "--backend", f"{mine}:nans", "--cases", "1", "--dtype", "float32"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for arguments, code, said in (
        (judged, 1, "FAIL"),
        ([*judged, "--format", "html"], 1, '<meta charset="utf-8">'),
        (["ops", "softmax"], 0, "softmax"),
    ):
        words = [sys.executable, "-m", "refsim", *arguments]
        done = subprocess.run(words, env=environment, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (code, b"")
        whole = "utf-8" if encoding == "ascii" or "html" in arguments else encoding
        assert said in done.stdout.decode(whole)


def test_errors_of_any_kind_are_the_judged_function_s_own(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text(
        "class Odd(BaseException): pass\n"
        "class Mute(Exception):\n    def __str__(self): raise ValueError\n"
        "def odd(x, weight): raise Odd('so')\n"
        "def mute(x, weight): raise Mute\n"
    )
    for name, words in (("odd", "raised Odd: so"), ("mute", "raised Mute: (its text cannot be had)")):
        result = run("check", "rmsnorm", "--backend", f"{path}:{name}", "--cases", "2", "--dtype", "float32")
        assert result.exit_code == 1, result.output
        assert words in result.output


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("leaving", 1, "raised SystemExit: os._exit(0) was called"),
        ("mute", 1, "raised Mute: (its text cannot be had)"),
        ("backend", 2, "capabilities() raised SystemExit: 0"),
        ("absent", 2, "asking for 'absent' raised SystemExit: 0"),
        ("at_import", 2, "cannot be imported: SystemExit: os._exit(0) was called"),
        ("Touchy", 2, "Touchy cannot be looked at: SystemExit: 0"),
    ],
)
def test_what_is_judged_cannot_leave_with_a_status_of_its_own(tmp_path, name, code, words):
    path = tmp_path / "leaving.py"
    path.write_text(
        "import os\n"
        "class Mute(Exception):\n    def __str__(self): raise SystemExit(0)\n"
        "def leaving(x, weight): os._exit(0)\n"
        "def mute(x, weight): raise Mute\n"
        "class Backend:\n    name = device = 'leaving'\n"
        "    def capabilities(self): raise SystemExit(0)\n    def numerics(self): pass\n    def run(self): pass\n"
        "backend = Backend()\n"
        "class Meta(type):\n    def __getattr__(self, name): raise SystemExit(0)\n"
        "class Touchy(metaclass=Meta): pass\n"
        "def __getattr__(name): raise SystemExit(0)\n" + ("os._exit(0)\n" if name == "at_import" else "")
    )
    leave = os._exit
    words_given = ["check", "rmsnorm", "--backend", f"{path}:{name}", "--cases", "2", "--dtype", "float32"]
    result = run(*words_given)
    assert (result.exit_code, os._exit) == (code, leave), result.output
    assert words in " ".join(result.output.split())


def test_a_status_of_an_exit_that_nobody_caught_is_no_verdict(capsys):
    with pytest.raises(Exit) as caught, reported(debug=False):
        raise SystemExit(0)
    assert caught.value.exit_code == 3
    assert "refsim itself failed: SystemExit: 0; run again with --debug" in capsys.readouterr().err


def test_a_text_without_measure_is_shortened(tmp_path):
    path = tmp_path / "wordy.py"
    path.write_text(
        "from refsim.conformance import Refused\n"
        "def raising(x, weight): raise ValueError('a' + 4_000_000 * 'b' + 'c')\n"
        "def refusing(x, weight): raise Refused('a' + 4_000_000 * 'b' + 'c')\n"
    )
    for name, code in (("raising", 1), ("refusing", 3)):
        words = ["check", "rmsnorm", "--backend", f"{path}:{name}", "--cases", "1", "--dtype", "float32"]
        for form in ("text", "json", "html"):
            result = run(*words, "--format", form)
            assert result.exit_code == code, result.output[:1000]
            assert len(result.output) < 200_000
        result = run(*words, "--debug")
        assert "ab" in result.output
        assert "bc" in result.output
        assert "(3998002 characters left out)" in result.output


def test_a_dtype_is_named_by_what_is_wrong_with_it(tmp_path):
    path = tmp_path / "dtypes.py"
    path.write_text(
        "def objects(x, weight): return x.astype(object)\n"
        "def swapped(x, weight): return x.astype(x.dtype.newbyteorder())\n"
    )
    for name, words in (("objects", "dtype object in"), ("swapped", "dtype float32 in the other byte order in")):
        result = run("check", "rmsnorm", "--backend", f"{path}:{name}", "--cases", "1", "--dtype", "float32")
        assert f"dtype: out: {words} place of float32" in result.output


@pytest.mark.parametrize("change", [{"params": {"axis": 9}}, {"dims": {"d0": 10**14, "d1": 129}}])
def test_replay_refuses_a_case_that_cannot_be_drawn(change):
    case = {
        "operator": "sum",
        "dtype": "float32",
        "dims": {"d0": 7, "d1": 129},
        "params": {"axis": 1},
        "value_class": "normal",
        "layout": "contiguous",
        "seed": 1,
    }
    result = CliRunner().invoke(main, ["replay", json.dumps(case | change)])
    assert result.exit_code == 2
    assert "cannot be made" in result.output

"""Code that is not trusted: known cheats never pass, and whatever it does to its process becomes a verdict."""

import contextlib
import inspect
import json
import os
import runpy
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import Case
from refsim.cli import main
from refsim.conformance import UsageError, Verdict, check
from refsim.conformance.isolation import IsolatedBackend, Limits, landlock
from refsim.conformance.reports import text

FILE = Path(__file__).with_name("cheats.py")
CATALOGUE = [
    name
    for name, found in runpy.run_path(str(FILE)).items()
    if inspect.isfunction(found) and found.__module__ != "builtins" and name not in ("honest", "others")
]
# Held off by the operating system, where it can.
BY_LANDLOCK = {
    "reads_the_judges_memory", "reads_memory_by_a_system_call", "traces_the_judge", "looks_for_the_seed",
    "asks_the_definition_past_the_guard", "asks_the_definition_elsewhere", "reads_the_definition",
    "patches_the_judge_on_disk", "plants_files", "kills_the_judge",
}  # fmt: skip
# What is noticed whatever the values are: by which verdict, and in which words.
NOTICED = {
    "input_itself": (Verdict.FAIL, "alias: output 0 lies in the memory of the input x"),
    "in_place": (Verdict.FAIL, "mutated input"),
    "writes_the_input": (Verdict.FAIL, "mutated input"),
    "writes_beyond": (Verdict.FAIL, "out of bounds: memory outside of the inputs was written to"),
    "different_each_time": (Verdict.FAIL, "nondeterministic"),
    "leaves": (Verdict.ERROR, "its process ended with exit status 0"),
    "leaves_politely": (Verdict.ERROR, "SystemExit"),
    "never_ends": (Verdict.ERROR, "it ran for more than 0.5 s and was stopped"),
    "eats_memory": (Verdict.ERROR, "allocate"),
    "refuses_what_is_hard": (Verdict.FAIL, "refusal: refused (not today), but not where"),
    "excuses_itself": (Verdict.FAIL, "nondeterministic"),
    "answers_twice": (Verdict.ERROR, "Misbehaved"),
    "answers_without_reading": (Verdict.ERROR, "what came is no answer to what was asked"),
    "answers_from_a_fork": (Verdict.ERROR, "its process ended with exit status 0"),
}


def judged(attribute, *, count=5, fresh=3, seconds=5.0, dtype="float32"):
    backend = IsolatedBackend(f"{FILE}:{attribute}", ["softmax"], "sim:sm_90", Limits(seconds, 256 << 20))
    try:
        (result,) = check(backend, ["softmax"], [dtype], seed=20, count=count, fresh=fresh).results
    finally:
        backend.close()
    return result


def test_an_honest_function_passes():
    result = judged("honest", count=30)
    assert (result.verdict, result.cases) == (Verdict.PASS, 33), result.reason


def test_the_catalogue_is_large_enough():
    assert len(CATALOGUE) >= 40


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_cheat_passes(name):
    if name in BY_LANDLOCK and not landlock.version():
        pytest.skip("this kernel has no Landlock")
    result = judged(name, seconds=0.5 if name == "never_ends" else 5.0)
    verdict, words = NOTICED.get(name, (None, ""))
    assert result.verdict in ((Verdict.FAIL, Verdict.ERROR, Verdict.SUSPECT) if verdict is None else (verdict,))
    assert words in result.reason, result.reason


def test_a_process_that_ended_is_started_again():
    backend = IsolatedBackend(f"{FILE}:leaves", ["softmax"], "sim:sm_90", Limits())
    case = Case("softmax", "float32", {"cols": 3})
    inputs = case.inputs()
    try:
        for wanted in ("ended with exit status 0",) * 3 + ("not run",):
            with pytest.raises(RuntimeError, match=wanted):
                backend.run("softmax", "leaves", inputs, {})
    finally:
        backend.close()


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "padded", "strided", "misaligned"])
def test_layouts_arrive_as_they_are(layout, tmp_path):
    path = tmp_path / "seen.py"
    path.write_text("def seen(x):\n    return (x.copy(), x.strides)\n", encoding="utf-8")
    from refsim.conformance.isolation.memory import SharedInputs, mapped

    inputs = Case("softmax", "bfloat16", {"d0": 3, "cols": 5}, layout=layout).inputs()
    shared = SharedInputs()
    places, content = shared.put(inputs)
    there = mapped(shared.descriptor, places)["x"]
    assert there.strides == inputs["x"].strides
    assert there.tobytes() == inputs["x"].tobytes()
    assert shared.changed(content, inputs) == (False, [])
    there[1, 2] = 7
    assert shared.changed(content, inputs) == (False, ["x"])
    assert np.float32(inputs["x"][1, 2]) == 7
    shared.close()


def test_what_cannot_be_loaded_is_wrong_usage(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import os\nos._exit(3)\n", encoding="utf-8")
    with pytest.raises(UsageError, match="its process ended with exit status 3"):
        IsolatedBackend(f"{path}:anything", ["softmax"], "sim:sm_90", Limits())


def test_a_backend_that_answers_with_the_wrong_thing_is_told_so(tmp_path):
    body = """
from refsim.conformance import Capability, promised
class Answering:
    name = device = "answering"
    def capabilities(self): return [Capability("softmax", "one", "float32")]
    def numerics(self, operator, kernel, dtype): return promised("float32") if PROMISES else "float32"
    def run(self, operator, kernel, inputs, params): return None
backend = Answering()
"""
    words = r"returned a value of type str; it must return a Numerics"
    with pytest.raises(UsageError, match=words), isolated(tmp_path, "PROMISES = False" + body, attribute="backend"):
        pass
    with isolated(tmp_path, "PROMISES = True" + body, attribute="backend") as backend:
        (row,) = check(backend, ["softmax"], ["float32"], count=2).results
    assert (row.verdict, "run() returned None; it must return" in row.reason) == (Verdict.ERROR, True)


def test_loading_has_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "slow.py"
    path.write_text("import time\ntime.sleep(100)\n", encoding="utf-8")
    monkeypatch.setattr("refsim.conformance.isolation.backend.LOADING", 1.5)
    words = "it ran for more than 2 s and was stopped; loading has 1.5 s on top of the 0.5 s of a run"
    with pytest.raises(UsageError, match=words):
        IsolatedBackend(f"{path}:anything", ["softmax"], "sim:sm_90", Limits(0.5))


def test_the_command_draws_a_secret_seed():
    words = ["check", "softmax", "--backend", f"{FILE}:honest", "--dtype", "float32", "--isolated", "--cases", "12"]
    first, second = CliRunner().invoke(main, words), CliRunner().invoke(main, [*words, "--seed", "7"])
    assert first.exit_code == 0, first.output
    assert "PASS" in first.stdout
    assert "seed 0" not in first.stdout
    assert "seed 7" in second.stdout


TRY_IN_THE_OPEN = """
import subprocess, sys
import numpy as np
sys.path.insert(0, {folder!r})
import refsim, cheats
victim = subprocess.Popen([sys.executable, "-c", "input()  # seed"], stdin=subprocess.PIPE)
cheats.others = lambda: [victim.pid]
x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
for name in {names!r}:
    if not np.allclose(getattr(cheats, name)(x), cheats.honest(x)):
        print(name)
victim.kill()
"""


def test_the_tricks_work_where_nothing_holds_them_off():
    program = TRY_IN_THE_OPEN.format(folder=str(FILE.parent), names=sorted(BY_LANDLOCK))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_without_landlock_memory_is_hidden_all_the_same():
    """By a flag of the judge and by giving up root's privileges."""
    program = """
import os
from refsim.conformance.isolation.privileges import drop_privileges, hide_memory
hide_memory()
judge = os.getpid()
if os.fork() == 0:
    drop_privileges()
    try:
        open(f"/proc/{judge}/mem", "rb")
    except OSError as error:
        print(type(error).__name__, flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "PermissionError\n", done.stderr


@contextlib.contextmanager
def isolated(tmp_path, body, limits=None, attribute="softmax"):
    path = tmp_path / "theirs.py"
    path.write_text("import os, time\nimport numpy as np\n" + body, encoding="utf-8")
    backend = IsolatedBackend(f"{path}:{attribute}", ["softmax"], "sim:sm_90", limits or Limits())
    try:
        yield backend
    finally:
        backend.close()


def alive(process):
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


DAEMONS = """
def softmax(x):
    pids = []
    for _ in range(2):
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:  # whose parent ends at once
                os.write(write, b"%d" % os.getpid())
                time.sleep(600)
            os._exit(0)
        pids.append(int(os.read(read, 20)))
    return np.array(pids, np.float64)
"""


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_nothing_is_left_of_what_it_started(tmp_path, how):
    with isolated(tmp_path, DAEMONS) as backend:
        (pids,) = backend.run("softmax", "softmax", Case("softmax", "float32", {"cols": 3}).inputs(), {}).outputs
        pids = [int(pid) for pid in pids]
        assert len(pids) == 2
        assert all(map(alive, pids))
        folder = Path(backend.folder.name)
        if how == "killed":
            os.kill(min(children_of(backend.process.pid)), signal.SIGKILL)  # the judged comes before its daemons
            with pytest.raises(RuntimeError, match="its process was ended by SIGKILL"):
                backend.run("softmax", "softmax", Case("softmax", "float32", {"cols": 3}).inputs(), {})
            assert not any(map(alive, pids))
    assert not any(map(alive, pids))
    assert not folder.exists()


def children_of(process):
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                    found.append(int(folder.name))
    return found


PROMISING = """
from refsim.conformance import Capability, RunResult, promised

def half(x):
    wide = x.astype(np.float16)
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)

class Theirs:
    name, device = "theirs", "host"
    def capabilities(self):
        return [Capability("softmax", "half", "float32")]
    def numerics(self, operator, kernel, dtype):
        return promised("float16")
    def run(self, operator, kernel, inputs, params):
        return RunResult((half(inputs["x"]),))

backend = Theirs()
"""


def test_whoever_is_not_trusted_does_not_choose_how_exact_it_has_to_be(tmp_path):
    with (
        pytest.raises(UsageError, match=r"'float16' for softmax in float32, and not 'float32'; .*--numerics float16"),
        isolated(tmp_path, PROMISING, attribute="backend"),
    ):
        pass
    with isolated(tmp_path, PROMISING, Limits(numerics=("float16",)), "backend") as backend:
        assert backend.numerics("softmax", "half", "float32").name == "float16"


def test_it_may_be_allowed_to_differ_from_run_to_run():
    allowed = Limits(nondeterministic=True)
    for limits in (allowed, Limits()):
        backend = IsolatedBackend(f"{FILE}:excuses_itself", ["softmax"], "sim:sm_90", limits)
        try:
            backend.run("softmax", "excuses_itself", {"x": np.ones(3, np.float32)}, {})
            result = backend.run("softmax", "excuses_itself", {"x": np.ones(3, np.float32)}, {})
            assert result.deterministic is (limits != allowed)
        finally:
            backend.close()


def test_it_writes_into_a_folder_of_its_own_and_not_too_much(tmp_path):
    body = """
import tempfile
def softmax(x):
    with tempfile.TemporaryFile() as file:
        file.write(bytes(int(x[0])))
        file.flush()
    return x
"""
    with isolated(tmp_path, body, Limits(memory=64 << 20)) as backend:
        result = backend.run("softmax", "softmax", {"x": np.full(1, 1 << 20, np.float32)}, {})
        assert result.misconduct[0] == "alias"
        with pytest.raises(RuntimeError, match=r"File too large|MemoryError"):
            backend.run("softmax", "softmax", {"x": np.full(1, 1 << 27, np.float32)}, {})


def test_what_it_says_can_pass_for_nothing_of_the_judges(capfd, tmp_path):
    backend = IsolatedBackend(f"{FILE}:says_something_else", ["softmax"], "sim:sm_90", Limits())
    try:
        report = check(backend, ["softmax"], ["float32"], seed=20, count=3)
    finally:
        backend.close()
    for shown in (text(report), text(report, debug=True, terminal=True)):
        assert "\x1b[2K" not in shown
        assert "\r" not in shown
        assert not [line for line in shown.splitlines() if line.startswith("softmax  mine")]
        assert "\\x1b[2K" in shown
    body = "print('\\x1b[2Ksoftmax  PASS')\ndef softmax(x):\n    return x\n"
    with isolated(tmp_path, body):
        pass
    assert "judged: \\x1b[2Ksoftmax  PASS\n" in capfd.readouterr().err


def test_running_a_case_again_is_as_isolated_as_the_first_time(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text("import os\n"
                    "def softmax(x):\n    os._exit(4)\n", encoding="utf-8")  # fmt: skip
    words = ["check", "softmax", "--backend", f"{path}:softmax", "--dtype", "float32", "--cases", "1", "--isolated"]
    result = CliRunner().invoke(main, [*words, "--format", "json"])
    assert result.exit_code == 1, result.output
    report = json.loads(result.stdout)
    assert report["environment"]["isolation"].startswith("a process of its own")
    (row,) = report["results"]
    again = shlex.split(row["failures"][0]["command"])
    assert again[-5:] == ["--isolated", "--seconds", "10", "--memory", "2048"]
    second = CliRunner().invoke(main, again[1:])
    assert second.exit_code == 1, second.output
    assert "its process ended with exit status 4" in second.stdout


def test_sparse_memory_is_not_copied_to_another_process():
    words = ["check", "softmax", "--backend", f"{FILE}:honest", "--isolated", "--far"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "--far and --isolated exclude each other" in result.output


def next_judged(judge):
    """The next line that the judged code prints, after what the judge itself may have to say."""
    return next(line for line in judge.stderr if line.startswith("judged: ")).removeprefix("judged: ")


def test_where_the_judge_is_killed_the_judged_ends_too(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(
        "import os, time\n"
        "def softmax(x):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "    os.write(1, b'pid %d\\n' % os.getpid())\n"
        "    time.sleep(600)\n",
        encoding="utf-8",
    )
    words = ["check", "softmax", "--backend", f"{path}:softmax", "--isolated", "--seconds", "300"]
    judge = subprocess.Popen([sys.executable, "-m", "refsim", *words], stderr=subprocess.PIPE, text=True)
    try:
        pids = [int(next_judged(judge).removeprefix("pid")) for _ in range(2)]
        assert all(map(alive, pids))
    finally:
        judge.kill()
        judge.wait()
        judge.stderr.close()
    until = time.monotonic() + 20
    while any(map(alive, pids)):
        assert time.monotonic() < until, pids
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_judge_that_is_ended_leaves_no_folder_behind(tmp_path, number):
    path = tmp_path / "theirs.py"
    path.write_text("import time\ndef softmax(x):\n    print('runs')\n    time.sleep(600)\n", encoding="utf-8")
    folders = tmp_path / "folders"
    folders.mkdir()
    words = ["check", "softmax", "--backend", f"{path}:softmax", "--isolated", "--seconds", "300"]
    judge = subprocess.Popen(
        [sys.executable, "-m", "refsim", *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folders)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert next_judged(judge) == "runs\n"
        assert [folder.name.startswith("refsim-judged-") for folder in folders.iterdir()] == [True]
        judge.send_signal(number)
        assert judge.wait(20) == (130 if number == signal.SIGINT else -number)
    finally:
        judge.kill()
        judge.wait()
        judge.stderr.close()
    until = time.monotonic() + 20
    while list(folders.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_kernels_name_is_one_line(tmp_path):
    body = PROMISING.replace('"half"', '"half\\nPASS"').replace('"float16"', '"float32"')
    with (
        pytest.raises(UsageError, match="a kernel's name must be a short text on one line"),
        isolated(tmp_path, body, attribute="backend"),
    ):
        pass


def test_an_arithmetic_without_a_preset_comes_back_as_it_was():
    from oracle.numerics import NUMERICS
    from refsim.conformance.isolation.backend import numerics_of
    from refsim.conformance.isolation.child import freedoms

    own = NUMERICS["float32_fast"].with_changes(name="mine", compute="bfloat16", probability_format="bfloat16")
    sent = json.loads(json.dumps(freedoms([own, NUMERICS["float32"]])))
    assert {name: numerics_of(one) for name, one in sent.items()} == {"mine": own}
    with pytest.raises(TypeError, match="anything"):
        numerics_of({**sent["mine"], "anything": 1})

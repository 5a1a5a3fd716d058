"""Code that is not trusted: known cheats never pass, and whatever it does to its process becomes a verdict."""

import inspect
import runpy
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import Case
from refsim.cli import main
from refsim.conformance import UsageError, Verdict, check
from refsim.conformance.isolation import IsolatedBackend, Limits

FILE = Path(__file__).with_name("cheats.py")
CATALOGUE = [
    name
    for name, found in runpy.run_path(str(FILE)).items()
    if inspect.isfunction(found) and found.__module__ != "builtins" and name != "honest"
]
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
    assert len(CATALOGUE) >= 15


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_cheat_passes(name):
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


def test_the_command_draws_a_secret_seed():
    words = ["check", "softmax", "--backend", f"{FILE}:honest", "--dtype", "float32", "--isolated", "--cases", "12"]
    first, second = CliRunner().invoke(main, words), CliRunner().invoke(main, [*words, "--seed", "7"])
    assert first.exit_code == 0, first.output
    assert "PASS" in first.stdout
    assert "seed 0" not in first.stdout
    assert "seed 7" in second.stdout

"""Finding backends: entry points, files, modules, and what is said of something that is none."""

import sys

import numpy as np
import pytest

from oracle.operator import find_operator
from refsim.conformance import (
    Capability,
    FunctionBackend,
    KernelBackend,
    Refused,
    RunResult,
    UsageError,
    Verdict,
    check,
    load_backend,
    promised,
)
from refsim.conformance.backends.functions import Call
from refsim.conformance.backends.loading import as_backend
from refsim.library import Kernel

RMSNORM = find_operator("rmsnorm")
MATMUL = find_operator("matmul")

SOURCE = """
import numpy as np
from numba import cuda
from refsim.library import Kernel

def plain(x, weight, eps=1e-6):
    return x

def entry(launcher, x, weight, eps=1e-6):
    return x

@cuda.jit
def bare(x):
    x[0] = 0

def _run(launcher, inputs, params):
    return (inputs["x"],)

one = Kernel("copy", ("rmsnorm",), ("float32",), _run)
many = [one, Kernel("copy_again", ("rmsnorm",), ("float32", "float64"), _run)]
number = 3
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def load(spec, *operators, device="sim:sm_90"):
    return load_backend(str(spec), operators or (RMSNORM,), device)


def test_a_plain_function(source):
    backend = load(f"{source}:plain")
    assert isinstance(backend, FunctionBackend)
    assert (backend.name, backend.kernel, backend.device) == (f"{source}:plain", "plain", "host")
    assert {capability.operator for capability in backend.capabilities()} == {"rmsnorm"}
    assert backend.numerics("rmsnorm", "plain", "float16").name == "float32"
    assert backend.numerics("rmsnorm", "plain", "float64").name == "float64"


def test_a_function_that_launches(source):
    backend = load(f"{source}:entry", device="sim:gfx942")
    assert isinstance(backend, KernelBackend)
    assert backend.device == "sim:gfx942"
    x = np.ones((2, 3), np.float32)
    result = backend.run("rmsnorm", "entry", {"x": x, "weight": x[0]}, {"eps": 1e-6})
    assert result.outputs[0] is not None
    assert result.findings == ()


def test_kernel_records(source):
    one, many = load(f"{source}:one"), load(f"{source}:many", RMSNORM, MATMUL)
    assert [capability.kernel for capability in one.capabilities()] == ["copy"]
    assert [(row.kernel, row.dtype) for row in many.capabilities()] == [
        ("copy", "float32"), ("copy_again", "float32"), ("copy_again", "float64"),
    ]  # fmt: skip


def test_a_module_in_the_working_directory(source, monkeypatch):
    monkeypatch.chdir(source.parent)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert load("mine:plain").name == "mine:plain"
    assert str(source.parent) not in sys.path


def test_kernels_move_to_the_device_that_was_asked_for():
    kernels = KernelBackend("mine", [Kernel("k", ("sum",), ("float32",), lambda *arguments: ())])
    moved = as_backend(kernels, "mine", [RMSNORM], "sim:gfx90a")
    assert (kernels.device, moved.device) == ("sim:sm_90", "sim:gfx90a")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nonsense", "unknown backend 'nonsense'"),
        ("{folder}/none.py:f", "no such file"),
        ("{folder}:f", "cannot be imported"),
        ("{source}:plane", "did you mean 'plain'"),
        ("{source}:number", "is of type int"),
        ("{source}:bare", "bare kernel"),
        ("{source}:", "name what to judge in it"),
        ("{source}", "name what to judge in it, too: "),
        ("no_such_module_at_all:f", "No module named"),
        ("{folder}/broken.py:f", "SyntaxError: invalid syntax (broken.py, line 2) (line 2)"),
        ("{folder}/raising.py:f", "ZeroDivisionError: division by zero"),
        ("{folder}/leaving.py:f", "SystemExit: 4"),
        ("{folder}/dir.py:f", "not a file"),
    ],
)
def test_what_cannot_be_loaded_says_why(source, spec, words):
    (source.parent / "broken.py").write_text("x = 1\nx x\n")
    (source.parent / "raising.py").write_text("1 / 0\n")
    (source.parent / "leaving.py").write_text("raise SystemExit(4)\n")
    (source.parent / "dir.py").mkdir()
    with pytest.raises(UsageError) as caught:
        load(spec.format(source=source, folder=source.parent))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_function_needs_one_operator(source):
    with pytest.raises(UsageError, match="name the one operator"):
        load(f"{source}:plain", RMSNORM, MATMUL)


def test_functions_that_cannot_take_the_inputs():
    for function in (lambda x: x, lambda: 0, lambda x, weight, third: x):
        with pytest.raises(UsageError, match="cannot be judged as rmsnorm: it must take x, weight"):
            FunctionBackend(function, RMSNORM, "test")


def test_call_passes_what_the_function_names():
    arrays = {"a": 1, "b": 2, "bias": None}
    params = {"transpose_a": False, "transpose_b": True}
    assert Call(lambda a, b: (a, b), MATMUL)(arrays, params) == (1, 2)
    assert Call(lambda a, b, bias: (a, b, bias), MATMUL)(arrays, params) == (1, 2, None)
    assert Call(lambda *arrays: arrays, MATMUL)(arrays, params) == (1, 2, None)
    assert Call(lambda a, b, transpose_b: transpose_b, MATMUL)(arrays, params) is True
    assert Call(lambda a, b, **params: params, MATMUL)(arrays, params) == params
    assert Call(lambda launcher, a, b: launcher, MATMUL, leading=1)(arrays, params, "device") == "device"


def test_call_refuses_what_the_function_does_not_name():
    call = Call(lambda a, b: None, MATMUL)
    off = {"transpose_a": False, "transpose_b": False}
    assert call.refuses({"a": 1, "b": 2, "bias": None}, off) is None
    assert "takes no bias" in call.refuses({"a": 1, "b": 2, "bias": 3}, off)
    assert "transpose_b=True" in call.refuses({"a": 1, "b": 2, "bias": None}, {**off, "transpose_b": True})


def test_a_kernel_that_does_not_accept_is_refused():
    kernel = Kernel("k", ("rmsnorm",), ("float32",), lambda *arguments: (), lambda inputs, params: "too wide")
    with pytest.raises(Refused, match="too wide"):
        KernelBackend("mine", [kernel]).run("rmsnorm", "k", {}, {})


def test_a_kernel_beyond_the_simulator_is_refused(source):
    unsupported = source.parent / "unsupported.py"
    unsupported.write_text(
        "from numba import cuda\n\n@cuda.jit\ndef kernel(x):\n    cuda.nothing_of_that_name(x)\n\n"
        "def entry(launcher, x, weight):\n    launcher.launch(kernel, 1, 32, x)\n    return x\n"
    )
    x = np.ones((2, 3), np.float32)
    with pytest.raises(Refused, match="nothing_of_that_name"):
        load(f"{unsupported}:entry").run("rmsnorm", "entry", {"x": x, "weight": x[0]}, {"eps": 1e-6})


def test_kernels_have_names_of_their_own():
    first, second = (Kernel("k", ("sum",), (dtype,), lambda *arguments: ()) for dtype in ("float32", "float64"))
    with pytest.raises(UsageError, match="two kernels called 'k'"):
        KernelBackend("mine", [first, second])


def test_a_function_is_judged_in_the_dtypes_of_its_operator():
    def product(a, b, a_scale, b_scale, bias=None):
        return a

    backend = FunctionBackend(product, find_operator("matmul_a8w8"), "here")
    assert [row.dtype for row in backend.capabilities()] == list(find_operator("matmul_a8w8").dtypes)
    weights = FunctionBackend(lambda a, b, scale: a, find_operator("matmul_w4a16"), "here")
    assert [row.dtype for row in weights.capabilities()] == ["float16", "bfloat16", "float32"]


def test_numerics_by_name():
    kernel = Kernel("k", ("sum",), ("float32", "float64"), lambda *arguments: (), numerics={"float32": "float32_fast"})
    backend = KernelBackend("mine", [kernel])
    assert backend.numerics("sum", "k", "float32").name == "float32_fast"
    assert backend.numerics("sum", "k", "float64").name == "float64"
    wrong = Kernel("k", ("sum",), ("float32",), lambda *arguments: (), numerics={"float32": "sloppy"})
    with pytest.raises(UsageError, match="unknown numerics 'sloppy'; known: float64"):
        KernelBackend("mine", [wrong]).numerics("sum", "k", "float32")


def test_a_name_of_a_file_is_suggested_with_what_is_in_it(source, monkeypatch):
    monkeypatch.chdir(source.parent)
    (source.parent / "served.py").write_text("backend = None\n")
    for spec, words in (
        (source.stem, f"name it, too: {source.name}:NAME"),
        ("served", "did you mean 'served.py:backend'?"),
        ("served.py:backend", "is of type NoneType"),
        ("TORCH", "did you mean 'torch'?"),
    ):
        with pytest.raises(UsageError) as caught:
            load(spec)
        assert words in str(caught.value)


class Mute:
    def __repr__(self):
        raise SystemExit(0)


class Answering:
    """A backend that answers as it is told to; what is an exception is raised."""

    def __init__(self, name="answering", device="host", rows=None, numerics=None, result=None, **others):
        self.name, self.device = name, device
        self.rows = [Capability("rmsnorm", "one", "float32")] if rows is None else rows
        self.promise = promised("float32") if numerics is None else numerics
        self.result = result
        vars(self).update(others)

    def capabilities(self):
        return said(self.rows)

    def numerics(self, operator, kernel, dtype):
        return said(self.promise)

    def run(self, operator, kernel, inputs, params):
        return said(self.result)


def said(answer):
    if isinstance(answer, BaseException):
        raise answer
    return answer


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"name": 5}, "name is 5, a value of type int; it must be a text"),
        ({"name": None}, "class Answering: name is None; it must be a text"),
        ({"device": None}, "device is None; it must be a text"),
        ({"facts": 5}, "facts is 5, a value of type int; it must be a dict of texts"),
        ({"layouts": "strided"}, "layouts is 'strided', a value of type str; it must be a list"),
        ({"options": [5]}, "options is [5], a value of type list; it must be a tuple of words"),
        ({"rows": ()}, None),
        ({"rows": "no"}, "capabilities() returned a value of type str; it must return a list of"),
        ({"rows": ["rmsnorm"]}, "capabilities() lists 'rmsnorm'; it must return a list of"),
        ({"rows": [Capability("rmsnorm", None, "float32")]}, "kernel=None, dtype='float32'); it must return"),
        ({"rows": [Mute()]}, "capabilities() lists a value of type Mute; it must return a list of"),
        ({"rows": RuntimeError("so")}, "capabilities() raised RuntimeError: so; it must return"),
        ({"rows": SystemExit(0)}, "capabilities() raised SystemExit: 0; it must return"),
        ({"capabilities": [1]}, "capabilities() raised TypeError: 'list' object is not callable; it must return"),
        ({"numerics": "float32"}, "numerics('rmsnorm', 'one', 'float32') returned a value of type str; it must return"),
        ({"numerics": KeyError("n")}, "numerics('rmsnorm', 'one', 'float32') raised KeyError: 'n'; it must return"),
    ],
)
def test_a_backend_that_says_of_itself_what_it_must_not_is_wrong_usage(answers, words):
    if words is None:
        assert check(Answering(**answers), ["rmsnorm"], ["float32"], count=1).results == ()
        return
    with pytest.raises(UsageError) as caught:
        check(Answering(**answers), ["rmsnorm"], ["float32"], count=1)
    assert words in str(caught.value)


def test_a_refusal_that_cannot_say_why_is_a_refusal():
    class MuteRefusal(Refused):
        def __str__(self):
            raise SystemExit(0)

    (row,) = check(Answering(result=MuteRefusal()), ["rmsnorm"], ["float32"], count=2).results
    assert (row.verdict, row.reason) == (Verdict.UNSUPPORTED, "every case was refused: (its text cannot be had)")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "run() returned None; it must return a refsim.conformance.RunResult"),
        ((), "run() returned a value of type tuple; it must return a refsim.conformance.RunResult"),
        ("x", "run() returned a value of type str; it must return a refsim.conformance.RunResult"),
        (RunResult(None), "run() returned outputs of type NoneType; give a list or tuple"),
        (RunResult((), findings=["odd"]), "run() returned findings ['odd']; give a list or tuple of refsim.Finding"),
        (RunResult((), deterministic=[]), "run() returned deterministic=[]; give True or False"),
        (RunResult((), misconduct=5), "run() returned misconduct 5; give None, or its reason and message"),
    ],
)
def test_a_run_that_returns_what_it_must_not_is_an_error_of_its_row(result, words):
    (row,) = check(Answering(result=result), ["rmsnorm"], ["float32"], count=2).results
    assert row.verdict is Verdict.ERROR
    assert words in row.reason

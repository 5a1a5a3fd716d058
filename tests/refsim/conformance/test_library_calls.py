"""Calls of libraries that need a GPU fit the signatures that these have, which no GPU is needed to see."""

import importlib
import inspect
import json
import sys
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

from library_calls import ADAPTERS, HANDED_ON, LIBRARIES, TABLE, calls, parsed, signature_text

from refsim.cli import main

SIGNATURES = json.loads(TABLE.read_text(encoding="utf-8"))
CALLED = [
    (adapter, called)
    for adapter, root in LIBRARIES.items()
    for called in calls((ADAPTERS / f"{adapter}.py").read_text(encoding="utf-8"), root)
]


@pytest.mark.parametrize(
    ("adapter", "called"), CALLED, ids=lambda value: value if isinstance(value, str) else value.name
)
def test_a_call_fits_the_signature(adapter, called):
    functions = SIGNATURES[adapter]["functions"]
    assert called.name in functions, f"{called.name} is not in the table; write it again with library_calls.py"
    assert called.problem(parsed(functions[called.name])) is None


def test_every_adapter_calls_its_library():
    assert {adapter for adapter, _ in CALLED} == set(LIBRARIES)
    assert len(CALLED) > 60


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("lib.norm(x, weight, 1e-6)", None),
        ("lib.norm(*heads, eps=1e-6)", None),
        ("lib.norm(x)", "missing a required argument"),
        ("lib.norm(x, weight, epsilon=1e-6)", "unexpected keyword argument 'epsilon'"),
        ("lib.norm(x, weight, 1e-6, 2)", "too many positional arguments"),
        ("lib.norm(*heads, epsilon=1e-6)", "unexpected keyword argument 'epsilon'"),
    ],
)
def test_a_call_that_does_not_fit_is_seen(call, words):
    (called,) = calls(f"import some.lib as lib\n{call}", "some")
    assert called.name == "some.lib.norm"
    problem = called.problem(parsed("input, weight, eps=..."))
    assert problem is None if words is None else words in problem


def test_methods_of_what_a_library_makes_are_seen():
    text = (
        "import lib\n"
        "def first():\n    wrapper = lib.Wrapper(buffer)\n    wrapper.plan(1, causal=True)\n"
        "def second():\n    wrapper = lib.Other()\n    wrapper.plan()\n"
    )
    assert {(called.name, called.positional, called.keywords) for called in calls(text, "lib")} == {
        ("lib.Wrapper", 1, ()),
        ("lib.Wrapper.plan", 1, ("causal",)),
        ("lib.Other", 0, ()),
        ("lib.Other.plan", 0, ()),
    }


def test_signatures_are_found_through_imports(tmp_path):
    package = tmp_path / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import norm as rmsnorm\nfrom .inner import Wrapper\n")
    (package / "inner.py").write_text(
        "def norm(x: int, *, eps: float = 1e-6) -> int: ...\nclass Wrapper:\n    def run(self, q, out=None): ...\n"
    )
    assert signature_text(tmp_path, "lib.rmsnorm") == "x, *, eps=..."
    assert signature_text(tmp_path, "lib.Wrapper.run") == "q, out=..."
    with pytest.raises(LookupError, match=r"lib\.other is not defined"):
        signature_text(tmp_path, "lib.other")


@pytest.mark.parametrize(
    ("adapter", "name"),
    [(adapter, name) for adapter, library in SIGNATURES.items() for name in library["functions"]],
)
def test_an_installed_library_has_the_signatures_of_the_table(adapter, name):
    pytest.importorskip("torch", reason="libraries of PyTorch are judged where it is installed")
    module_name, _, attribute = name.rpartition(".")
    owner = ""
    if module_name.rpartition(".")[2][:1].isupper():
        module_name, _, owner = module_name.rpartition(".")
        attribute = HANDED_ON.get(name, attribute)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(module_name)
    except Exception as error:  # whatever a library raises that finds no GPU
        pytest.skip(f"{SIGNATURES[adapter]['source']} cannot be imported here: {type(error).__name__}")
    function = getattr(getattr(module, owner) if owner else module, attribute)
    installed = [parameter.name for parameter in inspect.signature(function).parameters.values()]
    assert [one for one in installed if one != "self"] == list(
        parsed(SIGNATURES[adapter]["functions"][name]).parameters
    )


@pytest.mark.parametrize("adapter", LIBRARIES)
def test_a_library_that_is_absent_is_named_with_the_remedy(adapter, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == LIBRARIES[adapter]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"refsim.conformance.backends.{adapter}", raising=False)
    monkeypatch.setitem(sys.modules, LIBRARIES[adapter], None)
    result = CliRunner().invoke(
        main, ["check", "softmax", "--backend", f"refsim.conformance.backends.{adapter}:backend"]
    )
    assert result.exit_code == 2
    assert " is not installed, or not in full: " in result.output
    assert "; install it with: python -m pip install " in result.output

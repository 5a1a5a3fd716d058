"""A backend to begin with: an adapter with one operator filled in, and its test."""

from __future__ import annotations

import contextlib
import keyword
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

from refsim.conformance.backends.backend import UsageError
from refsim.conformance.backends.loading import GROUP

ADAPTER = '''"""Backend {name} for refsim: each operator as a user of {name} would write it."""

import numpy as np

from refsim.conformance import Capability, Refused, RunResult, promised, usual_numerics


def softmax(inputs, params):
    """Arrays by name and parameters by name in, a tuple of outputs out: call your library here."""
    x = inputs["x"]
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    with np.errstate(all="ignore"):
        weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
        return ((weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype),)


# What is served: operator -> function and dtypes. `refsim ops` lists the operators, `refsim ops NAME` prints one.
OPERATORS = {{
    "softmax": (softmax, ("float16", "float32", "float64")),
}}


class {title}Backend:
    """{name}, judged by refsim."""

    name = "{name}"
    device = "host"

    def capabilities(self):
        """Every operator in every dtype that is served."""
        served = OPERATORS.items()
        return [Capability(operator, "{name}", dtype) for operator, (_, dtypes) in served for dtype in dtypes]

    def numerics(self, operator, kernel, dtype):
        """The arithmetic that is promised: float64 in float64, float32 inside everywhere else."""
        return promised(usual_numerics(dtype))

    def run(self, operator, kernel, inputs, params):
        """Run one case; raise Refused for one that is not served, with the reason."""
        function, dtypes = OPERATORS[operator]
        if any(array is not None and array.size >= 2**31 for array in inputs.values()):
            raise Refused("arrays of 2**31 elements and more are not served")
        return RunResult(function(inputs, params))


backend = {title}Backend()
'''

TEST = '''"""Every operator that the backend serves conforms."""

import pytest
from {name} import OPERATORS, backend

from refsim.conformance import Verdict, check


@pytest.mark.parametrize("operator", OPERATORS)
def test_it_conforms(operator):
    _, dtypes = OPERATORS[operator]
    for result in check(backend, [operator], dtypes, required=True).results:
        assert result.verdict is Verdict.PASS, result.reason
'''


def write_skeleton(name: str, folder: Path) -> tuple[Path, Path]:
    """Write ``NAME.py`` and ``test_NAME.py`` into a folder and return their paths.

    Raises
    ------
    UsageError
        The name is none for a module of one's own, one of the files is there already, or they cannot be written; then
        nothing is written.
    """
    if not name.isidentifier():
        raise UsageError(f"backend name {name!r} must be a Python name, such as my_device")
    adapter, test = folder / f"{name}.py", folder / f"test_{name}.py"
    title = "".join(word.capitalize() for word in name.split("_"))
    written: list[Path] = []
    try:
        if not folder.is_dir():
            raise UsageError(f"no such folder: {folder}")
        for path in (adapter, test):
            if os.path.lexists(path):
                raise UsageError(f"{path} exists already and is not overwritten; choose another name or --folder")
        if taken := _taken(name):
            raise UsageError(f"backend name {name!r} is {taken}; choose another, such as my_{name.strip('_')}")
        for path, template in ((adapter, ADAPTER), (test, TEST)):
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(template.format(name=name, title=title))
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        text = f"{adapter.name} and {test.name} cannot be written to {folder.absolute()}: {error.strerror}"
        raise UsageError(f"{text}; choose another name or --folder") from error
    return adapter, test


def _taken(name: str) -> str:
    """What a name means already, to Python, pytest or refsim; empty if nothing."""
    if keyword.iskeyword(name):
        return "a keyword of Python"
    if name == "conftest" or name.startswith(("test_", "__")) or name.endswith("_test"):
        return "one that pytest or Python takes for a file of its own kind"
    if name in entry_points(group=GROUP).names:
        return "that of an installed backend"
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None)
        if spec is not None and spec.origin is not None:  # without, a folder that only could be a package
            return f"that of a module that Python finds already ({spec.origin})"
    return ""

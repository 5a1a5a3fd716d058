"""The import rules of docs/architecture.md, read from the source of every module."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNEL_PACKAGES = {path.name for path in ROOT.glob("kernels_*")}
PACKAGES = ("oracle", "refsim", *sorted(KERNEL_PACKAGES))
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
LOW = ("refsim/engine", "refsim/frontends", "refsim/checks")  # of oracle, these may only use the formats


def module_name(path):
    return path.relative_to(ROOT).as_posix()


def imported(path):
    """Full names of the modules that a file imports anywhere in its text; relative ones are resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level]) if node.level else ""
            base = ".".join(part for part in (start, node.module) if part)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def roots(path):
    return {name.split(".")[0] for name in imported(path)}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_module_keeps_the_import_rules(path):
    name = module_name(path)
    if name.startswith("oracle/"):
        assert not roots(path) & {"refsim", *KERNEL_PACKAGES}
        outside = roots(path) - {"oracle", "numpy", "ml_dtypes", "__future__"} - set(sys.stdlib_module_names)
        assert not outside, f"the oracle needs NumPy and ml_dtypes only, not {outside}"
    if name.startswith("refsim/"):
        assert not roots(path) & KERNEL_PACKAGES
    if name.startswith(LOW):
        of_oracle = {one for one in imported(path) if one.split(".")[0] == "oracle"}
        assert all(one == "oracle" or one.startswith("oracle.formats") for one in of_oracle), of_oracle
        assert not any(one.startswith(("refsim.conformance", "refsim.library", "refsim.cli")) for one in imported(path))
    if name.startswith("kernels_"):
        assert not roots(path) & (KERNEL_PACKAGES - {name.split("/")[0]})
        inner = [one for one in imported(path) if one.startswith("refsim.") and not one.startswith("refsim.library")]
        allowed = ("refsim.conformance.backends",)  # the backend that this package offers
        assert all(one.startswith(allowed) for one in inner), inner


@pytest.mark.parametrize("package", ["oracle", "refsim"])
def test_importing_loads_no_gpu_library(package):
    program = f"import sys, {package}; print(sorted({{'numba', 'cupy', 'torch'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

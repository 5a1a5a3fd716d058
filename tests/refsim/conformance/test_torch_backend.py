"""The PyTorch backend: judged where it is installed, a clear message where it is not."""

import importlib.util

import pytest
from click.testing import CliRunner

from refsim.cli import main

SPEC = "refsim.conformance.backends.torch:backend"
installed = importlib.util.find_spec("torch") is not None


@pytest.mark.skipif(installed, reason="PyTorch is installed here, so its absence cannot be seen")
def test_absent_torch_is_named_with_the_remedy():
    result = CliRunner().invoke(main, ["check", "sum", "--backend", SPEC])
    assert result.exit_code == 2
    assert "PyTorch is not installed" in result.output
    assert "pip install 'refsim[torch]'" in result.output


@pytest.mark.skipif(not installed, reason="PyTorch is an extra: python -m pip install 'refsim[torch]'")
def test_installed_torch_conforms():
    result = CliRunner().invoke(main, ["check", "--backend", SPEC, "--cases", "30"])
    assert result.exit_code == 0, result.output
    assert result.output.count("PASS") == 18

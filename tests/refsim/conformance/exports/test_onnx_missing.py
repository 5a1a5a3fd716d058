"""Without the package onnx an export says what to install."""

import sys

import pytest

from oracle.cases import make_cases
from refsim.conformance import UsageError
from refsim.conformance.exports.onnx_node_tests import export_node_tests


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match=r"install it with: python -m pip install 'refsim\[onnx\]'"):
        export_node_tests(make_cases("sum", "float32", 1, 0), tmp_path)

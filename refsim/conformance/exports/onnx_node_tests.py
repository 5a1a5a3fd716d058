"""Cases as ONNX node tests: a folder with a model of one node, its inputs and its expected outputs.

The layout is that of the tests of ONNX itself (``onnx/backend/test/data/node``), which every runtime's runner reads::

    test_softmax_float32_0/model.onnx
    test_softmax_float32_0/test_data_set_0/input_0.pb, output_0.pb
    test_softmax_float32_0/case.json        what refsim replay takes
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oracle.cases import Case
from oracle.formats import cast
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.conformance.backends.backend import Refused, UsageError, usual_numerics
from refsim.conformance.exports.onnx_forms import AS_IT_IS, ONNX_FORMS, OnnxNode


def export_node_tests(cases: Sequence[Case], folder: Path) -> tuple[list[Path], list[str]]:
    """Write each case as a node test.

    Returns
    -------
    written : list of Path
        The folders of the tests.
    refused : list of str
        The cases that one node cannot say, and why.

    Raises
    ------
    UsageError
        The package onnx is missing, an operator has no ONNX form, or the folder cannot be written.
    """
    written, refused = [], []
    numbers: dict[tuple[str, str], int] = {}
    for case in cases:
        number = numbers.setdefault((case.operator, case.dtype), 0)
        target = folder / f"test_{case.operator}_{case.dtype}_{number}"
        try:
            _write(case, target)
        except Refused as reason:
            refused.append(f"{case}: {reason}")
            continue
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}") from error
        numbers[case.operator, case.dtype] += 1
        written.append(target)
    return written, refused


def node_of(case: Case) -> OnnxNode:
    """The node that says the case.

    Raises
    ------
    UsageError
        The operator has no ONNX form.
    Refused
        This case of it cannot be said.
    """
    if case.operator not in ONNX_FORMS:
        raise UsageError(f"{case.operator} is no single ONNX node; those that are: {', '.join(ONNX_FORMS)}")
    arrays = {name: array for name, array in case.inputs().items() if array is not None}
    return ONNX_FORMS[case.operator](arrays, find_operator(case.operator).signature.complete(case.params))


def node_model(case: Case) -> Any:
    """The case as an ``onnx.ModelProto`` of one node; raises Refused and UsageError as `export_node_tests` does."""
    return _model(case.operator, node_of(case), expected_outputs(case))


def _model(operator: str, node: OnnxNode, expected: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    onnx = _onnx()
    helper = onnx.helper
    names = [name if array is not None else "" for name, array in node.inputs.items()]
    while not names[-1]:
        names.pop()
    names += node.constants
    attributes = {
        name: helper.np_dtype_to_tensor_dtype(value) if isinstance(value, np.dtype) else value
        for name, value in node.attributes.items()
    }
    graph = helper.make_graph(
        [helper.make_node(node.op_type, names, list(node.outputs), **attributes)],
        f"refsim_{operator}",
        [_described(name, array) for name, array in node.inputs.items() if array is not None],
        [_described(name, packing.pack(expected[name])) for name, packing in node.outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in node.constants.items()],
    )
    opset = helper.make_opsetid("", node.opset)
    # the oldest representation that has this operator set: more runtimes read it
    version = helper.find_min_ir_version_for([opset])
    return helper.make_model(graph, opset_imports=[opset], ir_version=version, producer_name="refsim")


def expected_outputs(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """The definition's value of each output, rounded once to the output's format."""
    record = find_operator(case.operator)
    numerics = NUMERICS[usual_numerics(case.dtype)]
    expected = record.expect(case.inputs(), record.signature.complete(case.params), numerics)
    return {part.name: cast(part.value, part.format) for part in expected}


def _write(case: Case, target: Path) -> None:
    numpy_helper = _onnx().numpy_helper
    node, expected = node_of(case), expected_outputs(case)
    model = _model(case.operator, node, expected)
    data = target / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    (target / "case.json").write_text(json.dumps(case.to_json(), indent=2) + "\n", encoding="utf-8")
    inputs = {name: AS_IT_IS.pack(array) for name, array in node.inputs.items() if array is not None}
    outputs = {name: packing.pack(expected[name]) for name, packing in node.outputs.items()}
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for number, (name, array) in enumerate(arrays.items()):
            tensor = numpy_helper.from_array(array, name)
            (data / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString(deterministic=True))


def _described(name: str, array: np.ndarray[Any, Any]) -> Any:
    helper = _onnx().helper
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise UsageError(
            "the package onnx is not installed; install it with: python -m pip install 'refsim[onnx]'"
        ) from error
    return onnx

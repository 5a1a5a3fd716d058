"""Cases as ONNX node tests: a folder with a model of one node, its inputs and its expected outputs.

The layout is that of the tests of ONNX itself (``onnx/backend/test/data/node``), which every runtime's runner reads::

    test_softmax_float32_0/model.onnx
    test_softmax_float32_0/test_data_set_0/input_0.pb, output_0.pb
    test_softmax_float32_0/case.json        what refsim replay takes
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oracle.cases import Case
from oracle.formats import cast
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.conformance.backends.backend import Refused, UsageError, usual_numerics
from refsim.conformance.exports.onnx_forms import ONNX_FORMS, OnnxForm

# The representation that a model declares: the oldest that a runtime needs for the operator sets of the table.
IR_VERSION = {13: 7, 23: 11}


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


def node_model(case: Case) -> Any:
    """The case as an ``onnx.ModelProto`` of one node; raises Refused and UsageError as `export_node_tests` does."""
    helper = _onnx().helper
    form, inputs, params = _form(case), case.inputs(), find_operator(case.operator).signature.complete(case.params)
    present = {name: _present(inputs[name]) for name in form.inputs if inputs.get(name) is not None}
    outputs = expected_outputs(case)
    axes = form.axes(params) if form.axes else None
    names = [name if name in present else "" for name in form.inputs]
    while names and not names[-1]:
        names.pop()
    constants = []
    if axes is not None:
        names.append("axes")
        constants.append(_onnx().numpy_helper.from_array(np.array(axes, np.int64), "axes"))
    node = helper.make_node(form.op_type, names, list(outputs), **form.attributes(params))
    graph = helper.make_graph(
        [node],
        f"refsim_{case.operator}",
        [_described(name, array) for name, array in present.items()],
        [_described(name, array) for name, array in outputs.items()],
        constants,
    )
    opset = helper.make_opsetid("", form.opset)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION[form.opset], producer_name="refsim")


def expected_outputs(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """The definition's value of each output, rounded once to the output's format."""
    record = find_operator(case.operator)
    numerics = NUMERICS[usual_numerics(case.dtype)]
    expected = record.expect(case.inputs(), record.signature.complete(case.params), numerics)
    return {part.name: cast(part.value, part.format) for part in expected}


def _write(case: Case, target: Path) -> None:
    numpy_helper = _onnx().numpy_helper
    model = node_model(case)
    data = target / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    (target / "case.json").write_text(json.dumps(case.to_json(), indent=2) + "\n", encoding="utf-8")
    inputs = case.inputs()
    for number, value in enumerate(model.graph.input):
        tensor = numpy_helper.from_array(_present(inputs[value.name]), value.name)
        (data / f"input_{number}.pb").write_bytes(tensor.SerializeToString(deterministic=True))
    for number, (name, array) in enumerate(expected_outputs(case).items()):
        tensor = numpy_helper.from_array(array, name)
        (data / f"output_{number}.pb").write_bytes(tensor.SerializeToString(deterministic=True))


def _form(case: Case) -> OnnxForm:
    if case.operator not in ONNX_FORMS:
        raise UsageError(f"{case.operator} is no single ONNX node; those that are: {', '.join(ONNX_FORMS)}")
    form = ONNX_FORMS[case.operator]
    if form.dtypes and case.dtype not in form.dtypes:
        raise Refused(f"{form.op_type} keeps epsilon and mean in float32, so {case.dtype} cannot be said")
    for name in form.refuses:
        if name not in case.absent:
            raise Refused(f"{form.op_type} has no place for {name}")
    return form


def _described(name: str, array: np.ndarray[Any, Any]) -> Any:
    helper = _onnx().helper
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _present(array: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    """A dense copy, whatever the case's layout: a tensor file has none."""
    assert array is not None
    return array.copy(order="C")


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

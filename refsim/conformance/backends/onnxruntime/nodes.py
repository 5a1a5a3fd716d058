"""ONNX nodes on NumPy arrays: each a model of one node, made with ``onnx``, kept, and run by ONNX Runtime on CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from refsim.conformance.backends.backend import Refused
from refsim.conformance.backends.library import not_installed

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
    from onnxruntime.capi import onnxruntime_pybind11_state as status
except ImportError as error:
    raise not_installed("ONNX Runtime", "python -m pip install 'refsim[onnxruntime]'", error) from error

# The newest operator set that ONNX Runtime 1.23 runs, and the version of the file format that it needs.
OPSET, IR_VERSION = 23, 11
CONTRIB = "com.microsoft"
TYPES: dict[str, int] = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}
NAMES = {code: name for name, code in TYPES.items()}
Array = np.ndarray[Any, Any]


def node(
    op_type: str,
    *inputs: Array | None,
    outputs: int | Sequence[bool] = 1,
    domain: str = "",
    static: bool = False,
    **attributes: Any,
) -> Any:
    """Run one node.

    Parameters
    ----------
    op_type, domain : str
        The operator; the domain is ONNX's own, or `CONTRIB`.
    inputs : array or None
        In the operator's order; None for one that is left out.
    outputs : int or sequence of bool
        How many outputs, or which of them are asked for.
    static : bool
        Whether the model names the sizes of its inputs, as some nodes need.
    attributes
        Of the node; None for one that is left out.

    Returns
    -------
    array, or tuple of them
        What was asked for.

    Raises
    ------
    Refused
        ONNX Runtime has no kernel for these types.
    """
    asked = (True,) * outputs if isinstance(outputs, int) else tuple(outputs)
    # An empty name at the end is legal, and ends the process in a LayerNormalization of ONNX Runtime 1.32.
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    given = {name: value for name, value in attributes.items() if value is not None}
    key = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in given.items())
    types = tuple(
        None if array is None else (array.dtype.name, array.shape if static else (None,) * array.ndim)
        for array in inputs
    )
    session = _session(op_type, domain, types, asked, key)
    values = {f"x{place}": _value(array) for place, array in enumerate(inputs) if array is not None}
    names = [f"y{place}" for place, wanted in enumerate(asked) if wanted]
    results = tuple(_array(value) for value in session.run_with_ort_values(names, values))
    return results if len(results) > 1 else results[0]


@cache
def _session(op_type: str, domain: str, types: tuple[Any, ...], asked: tuple[bool, ...], key: tuple[Any, ...]) -> Any:
    inputs = ["" if kind is None else f"x{place}" for place, kind in enumerate(types)]
    outputs = [f"y{place}" if wanted else "" for place, wanted in enumerate(asked)]
    attributes = {name: list(value) if isinstance(value, tuple) else value for name, value in key}
    graph = helper.make_graph(
        [helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)],
        op_type,
        [
            helper.make_tensor_value_info(f"x{place}", TYPES[kind[0]], kind[1])
            for place, kind in enumerate(types)
            if kind is not None
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
    )
    opsets = [helper.make_opsetid("", OPSET), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except (status.NotImplemented, status.InvalidGraph) as error:
        types_shown = ", ".join(kind[0] for kind in types if kind is not None)
        raise Refused(f"ONNX Runtime has no {op_type} on CPU for {types_shown}: {error}") from error


def _value(array: Array) -> Any:
    """A value of ONNX Runtime; formats that NumPy lacks go through their bits."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    bits = array.view(f"u{array.itemsize}") if array.dtype.kind == "V" else array
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TYPES[array.dtype.name])


def _array(value: Any) -> Array:
    """A copy of a value's bytes as the array that they are."""
    name = NAMES[value.element_type()]
    dtype = np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)
    shape = tuple(value.shape())
    size = value.tensor_size_in_bytes()
    content = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(bytearray(content), dtype).reshape(shape)

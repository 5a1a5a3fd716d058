"""Operators as definitions of flashinfer-bench, and cases as its workloads: a folder that its ``TraceSet`` loads.

The layout is that of its dataset (flashinfer-bench 0.1.2)::

    definitions/rmsnorm/rmsnorm_cols64_float16.json      axes, inputs, outputs, and a reference in Python
    workloads/rmsnorm/rmsnorm_cols64_float16.jsonl       a line per case
    blob/workloads/rmsnorm/…/….safetensors               the inputs of a case
    cases/rmsnorm_cols64_float16/….json                  what refsim replay takes
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oracle.cases import Case
from oracle.operator import Operator, find_operator
from oracle.signature import Input
from refsim.conformance.backends.backend import Refused, UsageError
from refsim.conformance.exports.flashinfer_forms import FLASHINFER_FORMS, VARIABLE, FlashinferForm
from refsim.conformance.exports.standalone import standalone_source

# The dtypes that a definition may name, and their names in a file of tensors.
SAFETENSORS = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
    "int32": "I32",
    "int8": "I8",
}

LONGEST_NAME = 200  # file systems take 255 bytes, and a suffix follows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Export:
    """A case as a definition and a workload of it, both as JSON values, and its inputs."""

    definition: dict[str, Any]
    workload: dict[str, Any]
    inputs: Mapping[str, Array]


def export_definitions(cases: Sequence[Case], folder: Path) -> tuple[list[str], list[str]]:
    """Write the definitions that cases belong to, and each case as a workload.

    Returns
    -------
    written : list of str
        The names of the definitions, one per case.
    refused : list of str
        The cases that no definition can say, and why.

    Raises
    ------
    UsageError
        An operator has no form, or the folder cannot be written.
    """
    written: list[str] = []
    refused: list[str] = []
    workloads: dict[Path, list[str]] = {}
    try:
        for case in cases:
            try:
                export = exported(case)
            except Refused as reason:
                refused.append(f"{case}: {reason}")
                continue
            name, kind = export.definition["name"], export.definition["op_type"]
            identity = export.workload["uuid"]
            _write(folder / "definitions" / kind / f"{name}.json", _text(export.definition, indent=2))
            _write(folder / "cases" / name / f"{identity}.json", _text(case.to_json(), indent=2))
            blob = folder / _blob(export.definition, identity)
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(safetensors(export.inputs))
            trace = {"definition": name, "workload": export.workload, "solution": None, "evaluation": None}
            lines = workloads.setdefault(folder / "workloads" / kind / f"{name}.jsonl", [])
            if (line := _text(trace)) not in lines:
                lines.append(line)
            written.append(name)
        for path, lines in workloads.items():
            _write(path, "".join(lines))
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error}") from error
    return written, refused


def exported(case: Case) -> Export:
    """The case's definition, workload and inputs.

    Raises
    ------
    UsageError
        The operator has no form.
    Refused
        A definition cannot say what the case is: a dtype that it has no name for, or an output whose length no axis of
        the inputs tells.
    """
    if case.operator not in FLASHINFER_FORMS:
        known = ", ".join(FLASHINFER_FORMS)
        raise UsageError(f"{case.operator} has no form as a definition of flashinfer-bench; those that have: {known}")
    form, record = FLASHINFER_FORMS[case.operator], find_operator(case.operator)
    params = record.signature.complete(case.params)
    inputs = {name: array.copy(order="C") for name, array in case.inputs().items() if array is not None}
    formats = {name: array.dtype.name for name, array in inputs.items()}
    formats |= {output.name: record.output_format(output, inputs, params).name for output in record.outputs}
    for name, dtype in formats.items():
        if dtype not in SAFETENSORS:
            raise Refused(f"{name} is {dtype}, which a definition has no name for")
    shapes = _shapes(case, form, record, params, inputs)
    sizes = _sizes(record, params, inputs, shapes)
    used = dict.fromkeys(axis for shape in shapes.values() for axis in shape)
    axes = {axis: {"type": "var"} if _varies(axis) else {"type": "const", "value": sizes[axis]} for axis in used}
    definition = {
        "name": _name(case, record, formats, axes, inputs),
        "op_type": form.op_type,
        "description": record.summary.replace("``", ""),
        "tags": [f"refsim:{case.operator}"],
        "axes": axes,
        "constraints": [f"{axis} == {value}" for axis, value in form.derived.items() if axis in axes],
        "inputs": {name: {"shape": list(shapes[name]), "dtype": formats[name]} for name in inputs},
        "outputs": {out.name: {"shape": list(shapes[out.name]), "dtype": formats[out.name]} for out in record.outputs},
        "reference": standalone_source(record, params, formats, list(inputs)),
    }
    identity = str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(case.to_json(), sort_keys=True)))
    path = _blob(definition, identity).as_posix()
    workload = {
        "axes": {axis: sizes[axis] for axis in axes if _varies(axis)},
        "inputs": {name: {"type": "safetensors", "path": path, "tensor_key": name} for name in inputs},
        "uuid": identity,
    }
    return Export(definition, workload, inputs)


def safetensors(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as a file of the format safetensors: the length of a header, the header in JSON, and all elements.

    Raises
    ------
    KeyError
        An array has a dtype that is not in `SAFETENSORS`.
    """
    header, end = {}, 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": SAFETENSORS[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values())


def _shapes(
    case: Case, form: FlashinferForm, record: Operator, params: Mapping[str, Any], inputs: Mapping[str, Array]
) -> dict[str, tuple[str, ...]]:
    """The axes of each input and output."""
    leading = tuple(axis for axis in case.dims if axis[0] == "d" and axis[1:].isdigit())
    shapes = {name: _expanded(record.inputs[name].order(params), leading) for name in inputs}
    named = form.outputs(params, leading) if callable(form.outputs) else form.outputs
    if named is None:
        raise Refused("no axis of the inputs says how many blocks of rows there are")
    for output in record.outputs:
        if output.name in named:
            shapes[output.name] = _expanded(tuple(named[output.name].split()), leading)
        else:
            assert output.like is not None
            shapes[output.name] = shapes[output.like]
    return shapes


def _expanded(dims: tuple[str, ...], leading: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(axis for dim in dims for axis in (leading if dim == "..." else (dim,)))


def _sizes(
    record: Operator,
    params: Mapping[str, Any],
    inputs: Mapping[str, Array],
    shapes: Mapping[str, tuple[str, ...]],
) -> dict[str, int]:
    """The size of each axis, by the inputs and by what the definition gives for them."""
    values = dict(zip((output.name for output in record.outputs), record.value(inputs, params), strict=True))
    sizes: dict[str, int] = {}
    for name, array in {**inputs, **values}.items():
        for axis, size in zip(shapes[name], array.shape, strict=True):
            assert sizes.setdefault(axis, size) == size, f"{record.name}: axis {axis} of {name} is {size}"
    return sizes


def _varies(axis: str) -> bool:
    return axis in VARIABLE or (axis[0] == "d" and axis[1:].isdigit())


def _name(
    case: Case, record: Operator, formats: Mapping[str, str], axes: Mapping[str, Any], inputs: Mapping[str, Array]
) -> str:
    """A name that says all that tells the definitions of an operator apart."""
    parts = [case.operator]
    rank = sum(axis[0] == "d" and axis[1:].isdigit() for axis in axes)
    parts += [f"{rank}d"] if rank else []
    parts += [f"{axis}{axes[axis]['value']}" for axis in axes if axes[axis]["type"] == "const"]
    parts.append(case.dtype)
    for name in inputs:
        if formats[name] != _usual_dtype(record.inputs[name], case.dtype):
            parts.append(f"{name}_{formats[name]}")
    parts += [f"{name}_{value}" for name, value in case.params.items() if value != record.params[name].default]
    parts += [f"no_{name}" for name in record.inputs if name not in inputs]
    name = "_".join(parts)
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 13]}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return name


def _usual_dtype(spec: Input, dtype: str) -> str:
    if spec.dtypes:
        return spec.dtypes[0]
    return dtype if spec.kind == "float" else "int32"


def _blob(definition: Mapping[str, Any], identity: str) -> Path:
    kind, name = definition["op_type"], definition["name"]
    return Path("blob", "workloads", kind, name, f"{identity}.safetensors")


def _text(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")

"""Definitions of flashinfer-bench: what their references compute is the oracle's value, and every case comes back."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import jsonschema
import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import Case, make_cases
from oracle.formats import round_to
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.cli import main
from refsim.conformance import Judge, UsageError, Verdict
from refsim.conformance.backends.backend import Refused, usual_numerics
from refsim.conformance.exports.flashinfer_bench import export_definitions, exported
from refsim.conformance.exports.flashinfer_forms import FLASHINFER_FORMS

SCHEMAS = json.loads((Path(__file__).parent / "data" / "flashinfer_bench_0_1_2.json").read_text())
DTYPES = {
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64,
    "I32": np.int32,
    "I8": np.int8,
}


def tensors(path):
    """The arrays of a file of the format safetensors."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    assert length % 8 == 0
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def run_reference(definition, arrays):
    """What the reference in a definition returns for arrays, as a tuple."""
    names = {}
    exec(definition["reference"], names)
    results = names["run"](*arrays)
    return results if isinstance(results, tuple) else (results,)


def dataset(folder):
    """The definitions by name, and the workloads, of a folder."""
    definitions = [json.loads(path.read_text()) for path in sorted((folder / "definitions").rglob("*.json"))]
    lines = [line for path in sorted((folder / "workloads").rglob("*.jsonl")) for line in path.read_text().splitlines()]
    return {definition["name"]: definition for definition in definitions}, [json.loads(line) for line in lines]


def dtypes_of(operator):
    return [dtype for dtype in ("bfloat16", "float32") if dtype in find_operator(operator).dtypes]


@pytest.mark.parametrize("operator", FLASHINFER_FORMS)
def test_the_reference_gives_the_oracles_value(operator, tmp_path):
    record = find_operator(operator)
    cases = [case for dtype in dtypes_of(operator) or record.dtypes for case in make_cases(operator, dtype, 2, 11)]
    written, refused = export_definitions(cases, tmp_path)
    assert len(written) + len(refused) == len(cases)
    definitions, traces = dataset(tmp_path)
    assert {trace["definition"] for trace in traces} == set(definitions) == set(written)
    verdicts = set()
    for trace in traces:
        definition, workload = definitions[trace["definition"]], trace["workload"]
        jsonschema.validate(definition, SCHEMAS["Definition"])
        jsonschema.validate(trace, SCHEMAS["Trace"])
        case = Case.from_json((tmp_path / "cases" / trace["definition"] / f"{workload['uuid']}.json").read_text())
        assert case in cases
        drawn = {name: array for name, array in case.inputs().items() if array is not None}
        assert list(drawn) == list(definition["inputs"])
        sizes = axes_of(definition, workload)
        arrays = []
        for name, entry in workload["inputs"].items():
            array = tensors(tmp_path / entry["path"])[entry["tensor_key"]]
            assert array.tobytes() == drawn[name].tobytes()
            assert array.dtype.name == definition["inputs"][name]["dtype"]
            assert array.shape == tuple(sizes[axis] for axis in definition["inputs"][name]["shape"])
            arrays.append(array)
        results = dict(zip(definition["outputs"], run_reference(definition, arrays), strict=True))
        values = record.value(case.inputs(), case.params)
        stored = {}
        for (name, result), value, spec in zip(results.items(), values, record.outputs, strict=True):
            assert result.shape == tuple(sizes[axis] for axis in definition["outputs"][name]["shape"])
            target = record.output_format(spec, case.inputs(), case.params)
            assert definition["outputs"][name]["dtype"] == target.name
            want = value if value.dtype.kind in "iu" else round_to(value, target)
            np.testing.assert_array_equal(result, want, strict=True)
            stored[name] = result.astype(target.dtype)
        numerics = NUMERICS[usual_numerics(case.dtype)]
        for part in record.expect(case.inputs(), record.signature.complete(case.params), numerics, stored):
            verdicts.add(Judge(part).judge(stored[part.name]).verdict)
    assert verdicts <= {Verdict.PASS, Verdict.INCONCLUSIVE}
    assert Verdict.PASS in verdicts


def axes_of(definition, workload):
    """Sizes of all axes: constants from the definition, the others from the workload; the constraints hold."""
    assert set(workload["axes"]) == {name for name, axis in definition["axes"].items() if axis["type"] == "var"}
    bound = {axis for spec in definition["inputs"].values() for axis in spec["shape"]}
    assert set(workload["axes"]) <= bound
    sizes = {name: axis["value"] for name, axis in definition["axes"].items() if axis["type"] == "const"}
    sizes |= workload["axes"]
    for constraint in definition["constraints"]:
        assert eval(constraint, {}, sizes), constraint
    return sizes


@pytest.mark.parametrize(
    ("operator", "constant", "one", "other"),
    [
        ("rmsnorm", {"cols": 24}, {"rows": 3}, {"rows": 8}),
        ("matmul", {"n": 5, "k": 16}, {"m": 2}, {"m": 7}),
        ("softmax", {"cols": 9}, {"d0": 2, "d1": 3}, {"d0": 5, "d1": 1}),
        ("silu_and_mul", {"width": 6}, {"rows": 2}, {"rows": 4}),
    ],
)
def test_a_definition_holds_whatever_its_variable_axes_are(operator, constant, one, other):
    first, second = (exported(Case(operator, "float32", {**sizes, **constant}, seed=4)) for sizes in (one, other))
    assert first.definition == second.definition
    assert {name for name, axis in first.definition["axes"].items() if axis["type"] == "var"} == set(one)
    assert second.workload["axes"] == other
    (result,) = run_reference(first.definition, second.inputs.values())
    optional = {name: None for name in find_operator(operator).inputs if name not in second.inputs}
    (value,) = find_operator(operator).value({**second.inputs, **optional}, {})
    assert np.array_equal(result, round_to(value, "float32"))


def test_one_name_means_one_definition():
    found = {}
    for operator in ("rmsnorm_dynamic_quant", "paged_attention_decode", "sum", "rope_qk", "moe_gate"):
        for dtype in dtypes_of(operator):
            for case in make_cases(operator, dtype, 8, 2):
                try:
                    definition = exported(case).definition
                except Refused:
                    continue
                assert found.setdefault(definition["name"], definition) == definition
    assert len(found) > 40


def test_a_reference_stands_alone(tmp_path):
    definition = exported(Case("gelu_and_mul", "float32", {"rows": 2, "width": 4}, absent=("bias",))).definition
    script = tmp_path / "reference.py"
    checks = (
        "import sys\nprint(run(np.ones((1, 4)))[0, 0])\nprint([m for m in sys.modules if m in ('refsim', 'oracle')])"
    )
    script.write_text(f"{definition['reference']}\n{checks}\n")
    command = [sys.executable, "-I", str(script)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.splitlines()
    assert float(answer[0]) == pytest.approx(0.8413447460685429, abs=1e-6)  # the normal distribution at 1
    assert answer[1] == "[]"


def test_what_a_definition_cannot_say_is_left_out(tmp_path):
    (case,) = make_cases("rmsnorm", "float64", 1, 0)
    assert export_definitions([case], tmp_path) == ([], [f"{case}: x is float64, which a definition has no name for"])
    blocks = Case("quantise", "float32", {"rows": 130, "cols": 4}, {"block": "128x128"}, absent=("smooth",))
    with pytest.raises(Refused, match="no axis of the inputs says how many blocks of rows there are"):
        exported(blocks)
    (case,) = make_cases("all_reduce", "float32", 1, 0)
    with pytest.raises(UsageError, match="all_reduce has no form as a definition of flashinfer-bench; those that have"):
        exported(case)


def test_the_command(tmp_path):
    arguments = ["export", "rmsnorm", "sum", "--format", "flashinfer-bench", "-o", str(tmp_path), "--cases", "4"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    definitions, traces = dataset(tmp_path)
    assert result.stdout == f"{len(traces)} workloads of {len(definitions)} definitions in {tmp_path}\n"
    assert {definition["op_type"] for definition in definitions.values()} == {"rmsnorm", "reduce"}
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 2
    assert "holds files already" in again.output
    added = CliRunner().invoke(main, [*arguments, "--add", "--dtype", "float16"])
    assert added.exit_code == 0, added.output
    assert dataset(tmp_path)[0].keys() > definitions.keys()


@pytest.mark.parametrize("folder", ["", "-"])
def test_what_names_no_folder(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["export", "rmsnorm", "--format", "flashinfer-bench", "-o", folder])
    assert result.exit_code == 2
    assert f"{folder!r} names no folder" in result.output
    assert not list(tmp_path.iterdir())


def test_where_nothing_could_be_written_the_command_says_so(tmp_path):
    words = ["export", "rmsnorm", "--format", "flashinfer-bench", "-o", str(tmp_path / "new"), "--dtype", "float64"]
    result = CliRunner().invoke(main, [*words, "--cases", "1"])
    assert result.exit_code == 3
    assert "nothing was written, as every case was left out" in result.stderr
    assert not result.stdout
    taken = tmp_path / "file"
    taken.write_text("", encoding="utf-8")
    words[words.index("-o") + 1] = str(taken)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "cannot be written to: Not a directory" in " ".join(result.output.split())

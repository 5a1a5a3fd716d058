"""ONNX node tests, read back by the onnx package: what its own reference implementation computes conforms."""

import contextlib
import json

import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import Case, make_cases
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.cli import main
from refsim.conformance import Judge, UsageError, Verdict
from refsim.conformance.backends.backend import Refused, usual_numerics
from refsim.conformance.exports.onnx_forms import ONNX_FORMS
from refsim.conformance.exports.onnx_node_tests import expected_outputs, export_node_tests, node_of

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed: pip install onnx")
reference = pytest.importorskip("onnx.reference", reason="the package onnx is not installed: pip install onnx")
from onnx import numpy_helper  # noqa: E402


def tensors(folder, kind):
    """The arrays of a data set, by name."""
    found = {}
    for path in sorted(
        (folder / "test_data_set_0").glob(f"{kind}_*.pb"), key=lambda path: int(path.stem[len(kind) + 1 :])
    ):
        tensor = onnx.TensorProto.FromString(path.read_bytes())
        found[tensor.name] = numpy_helper.to_array(tensor)
    return found


# What the evaluator of the package onnx gets wrong; its own specification says what we say.
LOST_BY_THE_EVALUATOR = {
    # It takes the logarithm of a softmax that has underflowed.
    "log_softmax": ("wide", "huge_exact", "spike", "sparse_integers", "far_below", "mixed"),
    # It takes the variance as mean(x²) - mean(x)².
    "groupnorm": ("offset", "all_below", "low_entropy", "mixed"),
    # It converts infinity to int32 before it saturates to int8.
    "quantise_static": ("infinities", "mixed"),
}


def runs(operator):
    """Dtypes in which the evaluator computes as precisely as they promise: it has no wider sums for narrow ones."""
    record = find_operator(operator)
    if operator == "dequantise":
        return ["int8", "uint4", "float8_e4m3fn"]
    return [dtype for dtype in ("float32", "float64") if dtype in record.dtypes]


@pytest.mark.parametrize(("operator", "dtype"), [(name, dtype) for name in ONNX_FORMS for dtype in runs(name)])
def test_the_reference_of_onnx_conforms(operator, dtype, tmp_path):
    record = find_operator(operator)
    cases = make_cases(operator, dtype, 12, 5)
    written, refused = export_node_tests(cases, tmp_path)
    assert len(written) + len(refused) == 12
    verdicts = []
    for folder in written:
        model = onnx.load(folder / "model.onnx")
        onnx.checker.check_model(model, full_check=True)
        case = Case.from_json((folder / "case.json").read_text())
        assert case in cases
        node, inputs, stored = node_of(case), tensors(folder, "input"), tensors(folder, "output")
        assert [name for name, array in node.inputs.items() if array is not None] == list(inputs)
        for name, tensor in inputs.items():
            assert tensor.dtype == node.inputs[name].dtype
            assert tensor.shape == node.inputs[name].shape
            assert tensor.tobytes() == node.inputs[name].tobytes()
        expected = expected_outputs(case)
        assert list(stored) == list(node.outputs)
        for name, packing in node.outputs.items():
            assert packing.unpack(stored[name], expected[name]).tobytes() == expected[name].tobytes()
        if case.value_class in LOST_BY_THE_EVALUATOR.get(operator, ()):
            continue
        with np.errstate(all="ignore"):
            answers = reference.ReferenceEvaluator(model).run(None, inputs)
        got = {
            name: packing.unpack(np.asarray(answer), expected[name])
            for (name, packing), answer in zip(node.outputs.items(), answers, strict=True)
        }
        numerics = NUMERICS[usual_numerics(dtype)]
        for part in record.expect(case.inputs(), record.signature.complete(case.params), numerics, got):
            if part.name in got:
                verdicts.append((Judge(part).judge(got[part.name]).verdict, str(case)))
    wrong = [entry for entry in verdicts if entry[0] in (Verdict.FAIL, Verdict.ERROR)]
    assert not wrong
    assert any(verdict is Verdict.PASS for verdict, _ in verdicts) or len(refused) == 12


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_formats_come_back_bit_for_bit(dtype, tmp_path):
    (case,) = make_cases("softmax", dtype, 1, 0)
    ((folder,), _) = export_node_tests([case], tmp_path)
    onnx.checker.check_model(onnx.load(folder / "model.onnx"), full_check=True)
    (x,) = tensors(folder, "input").values()
    assert x.dtype.name == dtype
    assert x.tobytes() == case.inputs()["x"].tobytes()
    (out,) = tensors(folder, "output").values()
    assert out.dtype.name == dtype
    assert np.abs(out.astype(np.float64).sum(axis=-1) - 1).max() < 0.02


def test_every_operator_of_the_table_has_cases_that_its_node_can_say():
    for operator in ONNX_FORMS:
        said = 0
        for dtype in runs(operator):
            for case in make_cases(operator, dtype, 24, 5):
                with contextlib.suppress(Refused):
                    node_of(case)
                    said += 1
        assert said >= 3, operator


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("rmsnorm", "float64", {"rows": 2, "cols": 3}), "keeps epsilon and mean in float32, so float64 cannot"),
        (Case("rope", "float64", {"tokens": 2, "heads": 1, "head_dim": 4, "max_position": 5, "half": 2}), "float64"),
        (Case("topk", "float32", {"rows": 2, "cols": 9}, {"k": 2, "ordered": False}), "leaves the order undefined"),
        (Case("layernorm", "float32", {"rows": 2, "cols": 3}, absent=("weight",)), "cannot be without weight"),
        (Case("batched_matmul", "float32", {"batch": 1, "m": 2, "k": 3, "n": 4}), "MatMul has no place for bias"),
        (
            Case("gemm_epilogue", "float64", {"m": 2, "k": 3, "n": 4}, {"alpha": 0.1}, absent=("c",)),
            "keeps alpha in float32, so 0.1 cannot be said for float64",
        ),
        (
            Case("quantise_static", "float32", {"rows": 2, "cols": 3, "scale_rows": 1, "scale_cols": 1},
                 {"block": "128x128"}),
            "has blocks along one axis, not 128x128",
        ),
    ],
)  # fmt: skip
def test_what_the_node_cannot_say_is_left_out(case, reason, tmp_path):
    written, refused = export_node_tests([case], tmp_path)
    assert written == []
    assert len(refused) == 1
    assert reason in refused[0]


def test_a_diagonal_that_ends_at_the_last_key_is_said_by_the_number_of_keys_in_use():
    dims = {"batch": 2, "heads": 1, "queries": 3, "head_dim": 4, "kv_heads": 1, "keys": 5, "v_dim": 2}
    node = node_of(Case("attention", "float32", dims, {"causal": "bottom_right"}))
    assert node.opset == 24
    assert node.inputs["keys_in_use"].tolist() == [5, 5]
    assert node.attributes == {"is_causal": 1}
    assert "keys_in_use" not in node_of(Case("attention", "float32", dims, {"causal": "top_left"})).inputs


def test_what_is_no_single_node_is_refused(tmp_path):
    (case,) = make_cases("rope_qk", "float32", 1, 0)
    with pytest.raises(UsageError, match="rope_qk is no single ONNX node; those that are: softmax, log_softmax, sum, "):
        export_node_tests([case], tmp_path)


def test_the_command(tmp_path):
    arguments = ["export", "softmax", "batched_matmul", "-o", str(tmp_path / "tests"), "--cases", "6"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    count = int(result.stdout.split()[0])
    left_out = result.stderr.count("left out: batched_matmul ")
    assert left_out == result.stderr.count("MatMul has no place for bias")
    assert count + left_out == 12
    folders = sorted(path.name for path in (tmp_path / "tests").iterdir())
    assert len(folders) == count
    assert "test_softmax_float32_5" in folders
    case = json.loads((tmp_path / "tests" / "test_softmax_float32_0" / "case.json").read_text())
    assert case["operator"] == "softmax"
    again = CliRunner().invoke(main, ["export", "softmax", "-o", str(tmp_path / "tests"), "--cases", "1"])
    assert again.exit_code == 2
    assert "holds files already" in again.output
    assert len(list((tmp_path / "tests").iterdir())) == count
    one = CliRunner().invoke(main, ["export", "softmax", "-o", str(tmp_path / "one"), "--cases", "1"])
    assert one.stdout == f"1 test in {tmp_path / 'one'}\n"
    wrong = CliRunner().invoke(main, ["export", "softmax", "--dtype", "int8", "-o", str(tmp_path / "x")])
    assert wrong.exit_code == 2
    assert "softmax has no dtype 'int8'" in wrong.output

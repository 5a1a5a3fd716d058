"""ONNX node tests, read back by the onnx package: what its own reference implementation computes conforms."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import Case, make_cases
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.cli import main
from refsim.conformance import Judge, UsageError, Verdict
from refsim.conformance.exports.onnx_forms import ONNX_FORMS
from refsim.conformance.exports.onnx_node_tests import export_node_tests

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


EXACT = [
    (name, dtype) for name in ONNX_FORMS for dtype in ("float32", "float64") if (name, dtype) != ("rmsnorm", "float64")
]


@pytest.mark.parametrize(("operator", "dtype"), EXACT)
def test_the_reference_of_onnx_conforms(operator, dtype, tmp_path):
    cases = make_cases(operator, dtype, 12, 5)
    written, refused = export_node_tests(cases, tmp_path)
    assert len(written) + len(refused) == 12
    assert len(written) >= 4
    record = find_operator(operator)
    verdicts = []
    for folder in written:
        model = onnx.load(folder / "model.onnx")
        onnx.checker.check_model(model, full_check=True)
        inputs = tensors(folder, "input")
        case = Case.from_json((folder / "case.json").read_text())
        assert case in cases
        for name, array in case.inputs().items():
            if array is not None:
                assert inputs[name].dtype == array.dtype
                assert inputs[name].tobytes() == array.tobytes()
        with np.errstate(all="ignore"):
            answers = reference.ReferenceEvaluator(model).run(None, inputs)
        expected = record.expect(case.inputs(), record.signature.complete(case.params), NUMERICS[dtype])
        stored = tensors(folder, "output")
        for part, answer in zip(expected, answers, strict=True):
            judge = Judge(part)
            assert judge.judge(stored[part.name]).verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
            verdicts.append((judge.judge(np.asarray(answer)).verdict, str(case)))
    wrong = [entry for entry in verdicts if entry[0] in (Verdict.FAIL, Verdict.ERROR)]
    assert not wrong
    assert any(verdict is Verdict.PASS for verdict, _ in verdicts)


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


def test_a_dtype_that_the_node_cannot_say_is_left_out(tmp_path):
    cases = make_cases("rmsnorm", "float64", 3, 0)
    written, refused = export_node_tests(cases, tmp_path)
    assert written == []
    assert len(refused) == 3
    assert refused[0].endswith("keeps epsilon and mean in float32, so float64 cannot be said")


def test_what_is_no_single_node_is_refused(tmp_path):
    (case,) = make_cases("rope", "float32", 1, 0)
    with pytest.raises(UsageError, match="rope is no single ONNX node; those that are: softmax, sum, "):
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
    wrong = CliRunner().invoke(main, ["export", "softmax", "--dtype", "int8", "-o", str(tmp_path / "x")])
    assert wrong.exit_code == 2
    assert "softmax has no dtype 'int8'" in wrong.output

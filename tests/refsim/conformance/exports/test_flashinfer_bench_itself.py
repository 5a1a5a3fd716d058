"""Exported definitions in flashinfer-bench itself: its models load them, it builds their references and feeds them."""

import pytest

from oracle.cases import Case, make_cases
from oracle.formats import cast
from oracle.operator import find_operator
from refsim.conformance.exports.flashinfer_bench import export_definitions
from refsim.conformance.exports.flashinfer_forms import FLASHINFER_FORMS

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
pytest.importorskip("safetensors", reason="safetensors is not installed: pip install safetensors")
data = pytest.importorskip(
    "flashinfer_bench.data", reason="not installed: pip install --no-deps flashinfer-bench, and pip install pydantic"
)
from flashinfer_bench.bench.evaluators.utils import normalize_result  # noqa: E402
from flashinfer_bench.bench.utils import gen_inputs, load_safetensors  # noqa: E402
from flashinfer_bench.compile import BuilderRegistry  # noqa: E402


@pytest.mark.parametrize("operator", FLASHINFER_FORMS)
def test_its_own_run_of_a_reference_gives_the_oracles_value(operator, tmp_path, monkeypatch):
    monkeypatch.setenv("FIB_CACHE_PATH", str(tmp_path / "cache"))
    record = find_operator(operator)
    cases = [case for dtype in record.dtypes for case in make_cases(operator, dtype, 2, 3)]
    written, _ = export_definitions(cases, tmp_path)
    traces = data.TraceSet.from_path(str(tmp_path))
    assert set(traces.definitions) == set(written)
    count = 0
    for name, definition in traces.definitions.items():
        reference = BuilderRegistry.get_instance().build_reference(definition)
        for trace in traces.workloads[name]:
            count += 1
            workload = trace.workload
            inputs = gen_inputs(definition, workload, "cpu", load_safetensors(definition, workload, tmp_path))
            assert definition.get_axes_values_from_inputs(inputs) == workload.axes
            results = normalize_result(definition, reference(*inputs), "cpu")
            shapes = definition.get_output_shapes(workload.axes)
            case = Case.from_json((tmp_path / "cases" / name / f"{workload.uuid}.json").read_text())
            values = record.value(case.inputs(), case.params)
            for result, dtype, shape, value, spec in zip(
                results, definition.torch_output_dtypes, shapes, values, record.outputs, strict=True
            ):
                assert result.dtype == dtype
                assert list(result.shape) == shape
                target = record.output_format(spec, case.inputs(), case.params)
                want = value if value.dtype.kind in "iu" else cast(value, target)
                assert torch.equal(
                    torch.nan_to_num(result.double(), nan=-1e300),
                    torch.nan_to_num(torch.from_numpy(want.astype("float64")), nan=-1e300),
                )
    assert count >= 2

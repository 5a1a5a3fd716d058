"""The PyTorch backend: judged where it is installed, a clear message where it is not."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import LAYOUTS, Case
from refsim.cli import main
from refsim.conformance import UsageError, Verdict, check, load_backend

SPEC = "refsim.conformance.backends.torch:backend"
installed = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not installed, reason="PyTorch is an extra: python -m pip install 'refsim[torch]'")


@pytest.mark.skipif(installed, reason="PyTorch is installed here, so its absence cannot be seen")
def test_absent_torch_is_named_with_the_remedy():
    result = CliRunner().invoke(main, ["check", "sum", "--backend", SPEC])
    assert result.exit_code == 2
    assert "PyTorch is not installed" in result.output
    assert "pip install 'refsim[torch]'" in result.output


@needs_torch
def test_installed_torch_conforms():
    operators = ["sum", "softmax", "matmul", "rmsnorm", "rope", "topk", "matmul_a8w8", "reshape_and_cache_asm"]
    result = CliRunner().invoke(main, ["check", *operators, "--backend", SPEC, "--cases", "12"])
    assert result.exit_code == 0, result.output
    for operator in operators:
        assert f"\n{operator} " in result.output
    assert "FAIL" not in result.output


@needs_torch
def test_the_end_of_a_single_group_may_have_any_stride():
    found = load_backend(SPEC, [], "sim:sm_90")
    dims = {"rows": 3, "groups": 1, "n": 2, "k": 4}
    case = Case("grouped_matmul", "float16", dims, {}, "normal", "strided", 0, ("bias",))
    (row,) = check(found, ["grouped_matmul"], ["float16"], cases={("grouped_matmul", "float16"): [case]}).results
    assert row.cases == 1
    assert not row.failures, row.reason


@needs_torch
def test_no_shape_too_many_falls_back_to_eager(monkeypatch):
    """Each rank is a graph of its own, and there are more than PyTorch's limit of them."""
    import torch

    from refsim.conformance.backends.torch.arrays import compiled

    found = load_backend(SPEC, [], "sim:sm_90")
    seen = []

    def counting(graph, example):
        seen.append(graph)
        return graph.forward

    plain = torch.compile
    monkeypatch.setattr(torch, "compile", lambda call, **options: plain(call, backend=counting, **options))
    ranks = torch._dynamo.config.recompile_limit + 2
    call = compiled(found.rows["cumsum", "torch.cumsum"])
    for rank in range(1, ranks + 1):
        call(torch.ones((1,) * (rank - 1) + (3,)), exclusive=False)
    assert len(seen) == ranks


@needs_torch
def test_a_compiled_function_conforms():
    found = load_backend(SPEC.replace(":backend", ":compiled_backend"), [], "sim:sm_90")
    assert all(row.kernel.startswith("compiled ") for row in found.capabilities())
    (result,) = check(found, ["cumsum"], ["float32"], count=2, required=True).results
    assert result.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), result.reason


@needs_torch
@pytest.mark.parametrize(
    "dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int64]
)
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_arrays_keep_values_and_place(dtype, layout):
    from refsim.conformance.backends.torch.arrays import ALIGNMENT, TorchArrays, placed

    array = LAYOUTS[layout](np.arange(6).reshape(2, 3).astype(dtype))
    tensor = TorchArrays().load(array)
    assert tensor.data_ptr() == array.ctypes.data
    there = placed(tensor, "cpu")
    assert there.stride() == tensor.stride()
    assert there.data_ptr() % ALIGNMENT == tensor.data_ptr() % ALIGNMENT
    assert there.data_ptr() != tensor.data_ptr()
    back = TorchArrays().store(there)
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()


@needs_torch
def test_a_gpu_that_is_not_there():
    import torch

    number = torch.cuda.device_count()
    with pytest.raises(UsageError, match=f"device cuda:{number} cannot be used by PyTorch, which sees {number} GPUs"):
        load_backend(SPEC, [], f"cuda:{number}")

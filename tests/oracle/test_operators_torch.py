"""Each operator in float64 against PyTorch, where that is installed."""

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import find_operator

pytest.importorskip("torch", reason="PyTorch is an extra: python -m pip install 'refsim[torch]'")

CLASSES = {"normal", "uniform", "peaky", "heavy_tail", "mixed", "quarter_turns"}


@pytest.mark.parametrize("name", ["sum", "softmax", "matmul", "rmsnorm", "attention", "rope"])
def test_float64_agrees_with_torch(name):
    from refsim.conformance.backends.torch import backend

    record = find_operator(name)
    cases = [case for case in make_cases(name, "float64", 60, seed=11) if case.value_class in CLASSES]
    assert len(cases) >= 8
    kernel = backend.capabilities()[0].kernel
    for case in cases:
        inputs = case.inputs()
        outputs = backend.run(name, kernel, inputs, record.signature.complete(case.params)).outputs
        for value, other in zip(record.value(inputs, case.params), outputs, strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-12, atol=1e-12, err_msg=str(case))

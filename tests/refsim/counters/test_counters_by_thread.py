"""Real kernels count the same whether their warps run in lockstep or their threads one at a time."""

import numpy as np
import pytest

import refsim
from oracle.cases import Case
from oracle.operator import find_operator
from refsim.conformance.backends import load_backend

CASES = {
    "softmax": Case("softmax", "float32", {"d0": 2, "cols": 65}),
    "rope": Case("rope", "float32", {"tokens": 3, "heads": 2, "head_dim": 8, "max_position": 7, "half": 4}),
    "rmsnorm": Case("rmsnorm", "float32", {"rows": 1, "cols": 33}),
}
KERNELS = [
    ("numba", "softmax", "softmax_online"),
    ("numba", "rmsnorm", "rmsnorm"),
    ("cupy", "softmax", "softmax_block"),
    ("cupy", "rope", "rope"),
]


@pytest.mark.parametrize(("name", "operator", "kernel"), KERNELS)
def test_lines_count_the_same(name, operator, kernel, monkeypatch):
    launch, compared = refsim.launch, []

    def both(launched, grid, block, *args, **options):
        options.pop("counters", None)
        lines = []
        for lanes in ("blocks", "thread"):
            copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
            report = launch(launched, grid, block, *copies, **options, counters=True, lanes=lanes)
            lines.append(report.counters.lines)
        assert lines[0] == lines[1]
        compared.append(sum(counts.instructions.total() for counts in lines[0].values()))
        return launch(launched, grid, block, *args, **options)

    monkeypatch.setattr(refsim, "launch", both)
    record, case = find_operator(operator), CASES[operator]
    backend = load_backend(name, [record], "sim:sm_90")
    backend.run(operator, kernel, case.inputs(), record.signature.complete(case.params))
    assert compared
    assert min(compared) > 1000

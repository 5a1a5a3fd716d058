"""The cache of what was used last, and those that are made of it."""

import numpy as np

import refsim
from refsim.frontends.cuda_cpp import translator
from refsim.recent import Recent


def test_the_entry_that_was_not_asked_for_goes_first():
    cache = Recent(2)
    cache["a"], cache["b"] = 1, 2
    assert cache["a"] == 1
    cache["c"] = 3
    assert dict(cache) == {"a": 1, "c": 3}


def test_many_sources_leave_few_syntax_trees(monkeypatch, tmp_path):
    monkeypatch.setenv("REFSIM_CACHE_DIR", str(tmp_path))
    for number in range(translator._units.most + 3):
        source = f'extern "C" __global__ void k(float* a) {{ a[threadIdx.x] += {number}.0f; }}'
        values = np.zeros(4, np.float32)
        refsim.launch(refsim.RawKernel(source, "k"), 1, 4, values)
        np.testing.assert_array_equal(values, number)
    assert len(translator._units) == translator._units.most

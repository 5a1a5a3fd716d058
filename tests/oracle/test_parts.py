"""Large inputs are analysed in parts: the same value and bound as in one piece."""

import numpy as np
import pytest

from oracle import parts
from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import OPERATORS, find_operator

find_operator("attention")  # registers every operator
SEPARABLE = sorted(name for name, record in OPERATORS.items() if record.separable)


@pytest.mark.parametrize("name", SEPARABLE)
def test_parts_are_the_whole(name, monkeypatch):
    record, numerics = find_operator(name), NUMERICS["float32"]
    pieces, dtype = [], "float32" if "float32" in record.dtypes else record.dtypes[0]
    for case in make_cases(name, dtype, 24, seed=5):
        inputs = case.inputs()
        whole = record.expect(inputs, case.params, numerics)
        with monkeypatch.context() as patched:
            patched.setattr(parts, "PART", 40)
            sizes, complete = record.validate(inputs, case.params), record.signature.complete(case.params)
            parted = parts.cut(record.signature, inputs, sizes, complete, record.separable)
            pieces.append(0 if parted is None else len(parted.parts))
            joined = record.expect(inputs, case.params, numerics)
        for one, other in zip(joined, whole, strict=True):
            assert np.array_equal(one.value, other.value, equal_nan=True), case
            # a score that may overflow leaves the other parts their bounds
            finite = np.isfinite(other.bound)
            assert np.array_equal(one.bound[finite], other.bound[finite]), case
            assert one.sigma.shape == other.sigma.shape
    assert max(pieces) > 1


def test_heads_that_share_a_key_head_stay_together():
    record = find_operator("attention")
    q, k = np.zeros((1, 6, 2, 8)), np.zeros((1, 3, 4, 8))
    inputs = {"q": q, "k": k, "v": k}
    sizes = record.validate(inputs, {})
    assert parts.cut(record.signature, inputs, sizes, {}, ("kv_heads heads",)) is None
    large = {name: np.repeat(array, 5_000, axis=2) for name, array in inputs.items()}
    parted = parts.cut(record.signature, large, record.validate(large, {}), {}, ("kv_heads heads",))
    assert parted.axis == 1
    assert [part["q"].shape[1] // part["k"].shape[1] for part in parted.parts] == [2] * len(parted.parts)
    assert np.concatenate([part["q"] for part in parted.parts], axis=1).shape == large["q"].shape

"""The power guard: weak cases are no evidence."""

import numpy as np
import pytest

from oracle.cases import Case, make_cases
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.conformance import FunctionBackend, Verdict, check
from refsim.conformance.power import accepted_cheats, cheats
from refsim.conformance.runner import prepare

NAMES = ("attention", "matmul", "rmsnorm", "rope", "softmax", "sum")


def total(x, axis=None):
    return np.asarray(np.sum(x.astype(np.float64), axis=axis)).astype(x.dtype)


def judged(*cases):
    backend = FunctionBackend(total, find_operator("sum"), "total")
    (result,) = check(backend, ["sum"], ["float32"], cases={("sum", "float32"): cases}).results
    return result


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("operator", NAMES)
def test_the_curated_cases_refuse_every_cheap_answer(operator, dtype):
    numerics = NUMERICS["float64" if dtype == "float64" else "float32"]
    prepared = list(prepare(make_cases(operator, dtype, 12, seed=0), numerics))
    seen = {cheat for item in prepared for _, cheat in item.refused_cheats}
    assert {"zeros", "ones", "constant", "previous output", "permuted rows"} <= seen
    assert any(cheat.startswith("copy of ") for cheat in seen)
    assert accepted_cheats(item.refused_cheats for item in prepared) == []


def test_a_right_answer_on_weak_cases_is_inconclusive():
    result = judged(Case("sum", "float32", {"d0": 0}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "zeros as out" in result.reason


def test_copy_of_the_input_is_seen_where_the_sum_has_one_term():
    result = judged(Case("sum", "float32", {"d0": 5, "d1": 1}, {"axis": 1}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "copy of x as out" in result.reason


def test_a_strong_case_makes_up_for_weak_ones():
    result = judged(
        Case("sum", "float32", {"d0": 0}),
        Case("sum", "float32", {"d0": 5, "d1": 9}, {"axis": 1}, seed=1),
        Case("sum", "float32", {"d0": 5, "d1": 9}, {"axis": 1}, seed=2),
    )
    assert result.verdict is Verdict.PASS


def test_cheap_answers_fit_the_output():
    (item,) = prepare([Case("rmsnorm", "float32", {"rows": 3, "cols": 4})], NUMERICS["float32"])
    made = cheats(item.judges[0].expected, item.case.inputs(), np.arange(5.0))
    assert set(made) == {
        "zeros", "ones", "constant", "copy of x", "copy of weight", "previous output", "permuted rows",
    }  # fmt: skip
    assert {answer.shape for answer in made.values()} == {(3, 4)}
    assert np.array_equal(made["copy of x"], item.case.inputs()["x"])
    assert np.array_equal(made["previous output"].ravel(), np.resize(np.arange(5.0), 12))


def test_what_is_the_value_itself_is_no_cheat():
    x = np.array([[1.0, 2.0], [10.0, 20.0]], np.float32)
    (item,) = prepare([Case("all_reduce", "float32", {"ranks": 2, "size": 3})], NUMERICS["float32"])
    assert "permuted rows" not in cheats(item.judges[0].expected, {"x": x}, None)
    (item,) = prepare([Case("sum", "float32", {"d0": 5})], NUMERICS["float32"])
    assert "constant" not in cheats(item.judges[0].expected, {"x": x}, None)
    names = ("all_reduce", "all_gather", "moe_align_block_size", "fused_experts", "sample_top_p", "selective_scan")
    for name in names:
        dtype = "int32" if name == "moe_align_block_size" else "float32"
        prepared = prepare(make_cases(name, dtype, 12, seed=0), NUMERICS["float32"])
        assert accepted_cheats(item.refused_cheats for item in prepared) == [], name

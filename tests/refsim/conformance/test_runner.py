"""The runner: conduct of an implementation beside its values, and how cases add up to rows and exit codes."""

from types import SimpleNamespace

import numpy as np
import pytest

from oracle.cases import Case, make_cases
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim import Finding
from refsim.conformance import Capability, FunctionBackend, Refused, Report, RunResult, Verdict, check

RMSNORM = find_operator("rmsnorm")


def right(x, weight, eps=1e-6):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    x_wide = x.astype(wide)
    rms = np.sqrt(np.mean(x_wide * x_wide, axis=-1, keepdims=True) + wide(eps))
    return (x_wide / rms * weight.astype(wide)).astype(x.dtype)


def row_of(function, dtype="float32", count=12):
    (result,) = check(FunctionBackend(function, RMSNORM, "test"), ["rmsnorm"], [dtype], count=count).results
    return result


class Scripted:
    """A backend that gives the right answer, with whatever else a test wants."""

    name, device = "scripted", "nowhere"

    def __init__(self, findings=(), refuses=lambda inputs, params: None, extra=()):
        self.findings, self.refuses, self.extra = findings, refuses, extra

    def capabilities(self):
        return [Capability("rmsnorm", "one", "float32")]

    def numerics(self, operator, kernel, dtype):
        return NUMERICS["float32"]

    def run(self, operator, kernel, inputs, params):
        reason = self.refuses(inputs, params)
        if reason:
            raise Refused(reason)
        return RunResult([right(**inputs, **params), *self.extra], self.findings)


def scripted(**script):
    report = check(Scripted(**script), ["rmsnorm"], ["float32"], count=12)
    return report.results[0], report.exit_code()


def finding(severity):
    return Finding("race", "scan", "two threads at out[3]", severity, "k.py", 7, "out[3] = lane")


def test_right_answers_pass():
    result = row_of(right)
    assert (result.verdict, result.cases, result.refused, result.failures) == (Verdict.PASS, 12, 0, ())
    assert 0 < result.worst_margin <= 1


def test_a_finding_of_the_simulator_fails_a_right_answer_and_a_note_does_not():
    result, code = scripted(findings=[finding("note"), finding("error"), finding("error")])
    assert result.verdict is Verdict.FAIL
    assert result.reason == "simulator finding: race at k.py:7: two threads at out[3] (1 more)"
    assert code == 1
    result, code = scripted(findings=[finding("note")])
    assert (result.verdict, code) == (Verdict.PASS, 0)


def test_too_many_outputs():
    result, code = scripted(extra=[np.zeros(1)])
    assert result.failures[0].reason == "outputs"
    assert "2 outputs in place of 1 (out)" in result.reason
    assert code == 1


def test_refusing_everything_is_unsupported_and_refusing_some_is_counted():
    result, code = scripted(refuses=lambda inputs, params: "only on Sundays")
    assert (result.verdict, result.cases, result.refused, code) == (Verdict.UNSUPPORTED, 0, 12, 3)
    assert "only on Sundays" in result.reason
    result, code = scripted(refuses=lambda inputs, params: "wide" if inputs["x"].shape[1] > 100 else None)
    assert result.verdict is Verdict.PASS
    assert result.refused > 0
    assert result.cases + result.refused == 12
    assert code == 0


def test_input_written_to():
    def careless(x, weight, eps=1e-6):
        out = right(x, weight, eps)
        weight *= 2
        return out

    result = row_of(careless)
    assert result.verdict is Verdict.FAIL
    assert result.reason.startswith("mutated input: the input weight was modified")


def test_memory_beside_an_input_written_to():
    def trespassing(x, weight, eps=1e-6):
        out = right(x, weight, eps)
        if x.base is not None and x.base.ndim == 1:
            x.base[-1] = 0
        return out

    result = row_of(trespassing, count=20)
    assert {failure.reason for failure in result.failures} == {"mutated input"}
    assert {failure.case.layout for failure in result.failures} == {"misaligned"}


def test_other_bits_on_a_second_run():
    calls = iter(range(10_000))

    def restless(x, weight, eps=1e-6):
        out = right(x, weight, eps)
        return np.nextafter(out, np.where(next(calls) % 2, np.inf, -np.inf).astype(x.dtype))

    result = row_of(restless)
    assert any(failure.reason == "nondeterministic" for failure in result.failures)
    assert result.verdict is Verdict.FAIL


def test_an_answer_that_shares_memory_with_an_earlier_one_is_caught():
    kept = {}

    def stale(x, weight, eps=1e-6):
        return kept.setdefault((x.shape, x.dtype), right(x, weight, eps))

    case = Case("rmsnorm", "float32", {"rows": 3, "cols": 5}, seed=1)
    other = Case("rmsnorm", "float32", {"rows": 3, "cols": 5}, seed=2)
    backend = FunctionBackend(stale, RMSNORM, "stale")
    (result,) = check(backend, ["rmsnorm"], ["float32"], cases={("rmsnorm", "float32"): [case, other]}).results
    # Already the first case runs on arrays that held other values before.
    assert [failure.case for failure in result.failures] == [case, other]


@pytest.mark.parametrize("error", [RuntimeError("no luck"), SystemExit(3), ZeroDivisionError()])
def test_raising_is_an_error_with_its_traceback(error):
    def raising(x, weight):
        raise error

    result = row_of(raising)
    assert result.verdict is Verdict.ERROR
    assert type(error).__name__ in result.reason
    assert "in raising" in result.failures[0].detail
    assert result.worst_margin is None


def test_printing_does_not_reach_stdout(capsys):
    def chatty(x, weight, eps=1e-6):
        print("hello")
        return right(x, weight, eps)

    assert row_of(chatty).verdict is Verdict.PASS
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err


def test_suspect_fails_in_strict_mode_only():
    def by_bfloat16_parts(a, b, bias=None, transpose_a=False, transpose_b=False):
        """Inputs as sums of three bfloat16 numbers each, smallest products left out."""
        import ml_dtypes

        def parts(x):
            first = x.astype(ml_dtypes.bfloat16).astype(np.float32)
            return first, x - first

        left = parts((a.T if transpose_a else a).astype(np.float32))
        right_ = parts((b.T if transpose_b else b).astype(np.float32))
        out = left[0] @ right_[0] + left[0] @ right_[1] + left[1] @ right_[0]
        return (out if bias is None else out + bias).astype(a.dtype)

    dims = {"m": 16, "n": 16, "k": 1024}
    cases = [Case("matmul", "float32", dims, seed=seed, absent=("bias",)) for seed in (3, 4)]
    backend = FunctionBackend(by_bfloat16_parts, find_operator("matmul"), "parts")
    report = check(backend, ["matmul"], ["float32"], cases={("matmul", "float32"): cases})
    assert report.results[0].verdict is Verdict.SUSPECT, report.results[0].reason
    assert "standard deviations" in report.results[0].reason
    assert report.exit_code() == 0
    assert report.exit_code(strict=True) == 1


def test_parameters_that_a_function_does_not_take():
    def without_eps(x, weight):
        return right(x, weight)

    result = row_of(without_eps, count=20)
    assert result.verdict is Verdict.PASS
    others = sum("eps" in case.params for case in make_cases("rmsnorm", "float32", 20, 0))
    assert result.refused == others > 0
    assert row_of(right, count=20).refused == 0


def test_optional_inputs_that_a_function_does_not_take():
    def without_bias(a, b, transpose_a=False, transpose_b=False):
        left, right_ = (a.T if transpose_a else a), (b.T if transpose_b else b)
        return (left.astype(np.float64) @ right_.astype(np.float64)).astype(a.dtype)

    backend = FunctionBackend(without_bias, find_operator("matmul"), "test")
    (result,) = check(backend, ["matmul"], ["float32"], count=24).results
    assert result.verdict is Verdict.PASS
    assert result.refused == 12


def test_no_row_at_all():
    report = check(Scripted(), ["sum"], ["float32"])
    assert (report.results, report.exit_code()) == ((), 3)
    report = check(Scripted(), ["sum", "rmsnorm"], ["float32"], count=12, required=True)
    assert [result.verdict for result in report.results] == [Verdict.UNSUPPORTED, Verdict.PASS]
    assert report.exit_code() == 3


def test_exit_code_of_the_worst_row():
    def code(*verdicts, strict=False):
        rows = tuple(SimpleNamespace(verdict=verdict) for verdict in verdicts)
        return Report("b", "d", 0, rows).exit_code(strict)

    assert code(Verdict.PASS, Verdict.SUSPECT) == 0
    assert code(Verdict.PASS, Verdict.INCONCLUSIVE) == 3
    assert code(Verdict.UNSUPPORTED, Verdict.ERROR) == 1
    assert code(Verdict.INCONCLUSIVE, Verdict.FAIL) == 1
    assert code(Verdict.SUSPECT, strict=True) == 1
    assert code() == 3


def test_progress_counts_every_case():
    seen = []
    check(Scripted(), ["rmsnorm"], ["float32"], count=7, progress=lambda row, done, total: seen.append((done, total)))
    assert seen == [(done, 7) for done in range(1, 8)]


@pytest.mark.parametrize(
    "key",
    [
        lambda x, weight: id(x),
        lambda x, weight: x.ctypes.data,
        lambda x, weight: (x.shape, weight.tobytes()),
        lambda x, weight: (x.shape, x.tobytes()),
    ],
    ids=["identity", "address", "weight only", "x only"],
)
def test_an_answer_kept_from_an_earlier_run_is_caught(key):
    kept = {}

    def remembers(x, weight, eps=1e-6):
        return kept.setdefault((key(x, weight), x.dtype), right(x, weight, eps)).copy()

    backend = FunctionBackend(remembers, RMSNORM, "remembers")
    (result,) = check(backend, ["rmsnorm"], ["float32"], count=48).results
    assert result.verdict is Verdict.FAIL
    # The case alone shows it too.
    case = result.failures[0].case
    kept.clear()
    (again,) = check(backend, ["rmsnorm"], ["float32"], cases={("rmsnorm", "float32"): [case]}).results
    assert again.verdict is Verdict.FAIL


@pytest.mark.parametrize("limit", ["rows", "cols"])
def test_a_limit_of_a_block_of_threads_is_caught(limit):
    def limited(x, weight, eps=1e-6):
        out = right(x, weight, eps).copy()
        out[(slice(256, None),) if limit == "rows" else (slice(None), slice(1024, None))] = 0
        return out

    (result,) = check(FunctionBackend(limited, RMSNORM, limit), ["rmsnorm"], ["float32"]).results
    assert result.verdict is Verdict.FAIL


def test_a_nan_that_is_swallowed_is_caught():
    def swallows(x, weight, eps=1e-6):
        return np.nan_to_num(right(x, weight, eps))

    (result,) = check(FunctionBackend(swallows, RMSNORM, "swallows"), ["rmsnorm"], ["float32"]).results
    assert result.verdict is Verdict.FAIL
    assert {failure.reason for failure in result.failures} == {"nan"}


def test_a_relation_compares_runs_on_arrays_that_lie_alike():
    def attention(q, k, v, causal="none", scale=None):
        order = slice(None, None, 1 if v.flags.c_contiguous else -1)  # sums may go by where the arrays lie
        hidden = np.triu(np.ones((q.shape[2], k.shape[2]), np.bool_), 1 + k.shape[2] - q.shape[2])
        score = np.where(hidden, -np.inf, q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5))
        weight = np.exp(score - score.max(axis=-1, keepdims=True))
        total = weight[..., order].cumsum(axis=-1)[..., -1:]
        return weight[..., order] @ v[..., order, :] / total, np.log(total)[..., 0] + score.max(axis=-1)

    dims = {"batch": 1, "heads": 2, "queries": 13, "head_dim": 16, "kv_heads": 2, "keys": 47, "v_dim": 16}
    case = Case("attention", "float64", dims, {"causal": "bottom_right"}, "normal", "padded", seed=1)
    backend = FunctionBackend(attention, find_operator("attention"), "by place")
    (result,) = check(backend, ["attention"], ["float64"], cases={("attention", "float64"): [case]}).results
    assert not result.failures


def test_no_relation_gives_a_backend_arrays_that_run_backwards():
    record = find_operator("rope_qk")

    def forwards(q, k, positions, cos, sin, offsets=None, pairing="neox", plain_first=False):
        inputs = {"q": q, "k": k, "positions": positions, "cos": cos, "sin": sin, "offsets": offsets}
        assert all(stride >= 0 for array in inputs.values() if array is not None for stride in array.strides)
        return record.value(inputs, {"pairing": pairing, "plain_first": plain_first})

    (result,) = check(FunctionBackend(forwards, record, "forwards"), ["rope_qk"], ["float64"]).results
    assert result.verdict is Verdict.PASS, result.reason


@pytest.mark.parametrize(
    ("case", "function"),
    [
        (
            Case("matmul", "float32", {"m": 4, "n": 4, "k": 8}, {}, "subnormals", "contiguous", 0, ("bias",)),
            lambda a, b: np.sum(a[:, None] * b.T[None], axis=-1),
        ),
        (Case("rmsnorm", "float32", {"rows": 0, "cols": 3}, {}, "normal", "contiguous", 0), right),
    ],
    ids=["products below the normal range", "no rows"],
)
def test_relations_that_say_nothing_of_a_case_hold(case, function):
    backend = FunctionBackend(function, find_operator(case.operator), "honest")
    key = (case.operator, case.dtype)
    (result,) = check(backend, [key[0]], [key[1]], cases={key: [case]}).results
    assert not result.failures

"""Answers that need no computing never pass, whatever the operator and dtype."""

import numpy as np
import pytest

from oracle.operator import find_operator
from refsim.conformance import FunctionBackend, Verdict, check

NAMES = ("attention", "matmul", "rmsnorm", "rope", "softmax", "sum")
DTYPES = ("float16", "bfloat16", "float32", "float64")


class Cheat:
    """Returns what ``fill`` makes of the right shape and dtype for each output; knows the shapes, not the values."""

    def __init__(self, operator, fill):
        self.operator = find_operator(operator)
        self.fill = fill
        self.previous = None

    def function(self):
        inputs = ", ".join(f"{name}=None" if spec.optional else name for name, spec in self.operator.inputs.items())
        params = "".join(f", {name}={spec.default!r}" for name, spec in self.operator.params.items())
        arrays = "".join(f"{name!r}: {name}, " for name in self.operator.inputs)
        chosen = "".join(f"{name!r}: {name}, " for name in self.operator.params)
        names = {"answer": self.answer}
        exec(f"def cheat({inputs}{params}):\n    return answer({{{arrays}}}, {{{chosen}}})", names)
        return names["cheat"]

    def answer(self, inputs, params):
        right = self.operator.value(inputs, params)
        formats = [self.operator.output_format(output, inputs) for output in self.operator.outputs]
        outputs = []
        for at, (value, number_format) in enumerate(zip(right, formats, strict=True)):
            previous = None if self.previous is None else self.previous[at]
            with np.errstate(all="ignore"):
                outputs.append(np.asarray(self.fill(value, inputs, previous)).astype(number_format.dtype))
        self.previous = right
        return tuple(outputs)


def copied(value, inputs, previous):
    first = next(array for array in inputs.values() if array is not None)
    return np.resize(first.astype(np.float64), value.shape) if first.size else np.zeros(value.shape)


def repeated(value, inputs, previous):
    if previous is None or previous.size == 0:
        return np.zeros(value.shape)
    return np.resize(previous, value.shape)


def permuted(value, inputs, previous):
    return np.roll(value, 1, axis=0) if value.ndim else value + 1


FILLS = {
    "zeros": lambda value, inputs, previous: np.zeros(value.shape),
    "ones": lambda value, inputs, previous: np.ones(value.shape),
    "mean": lambda value, inputs, previous: np.full(value.shape, np.mean(value) if value.size else 0.0),
    "nan": lambda value, inputs, previous: np.full(value.shape, np.nan),
    "copy_of_input": copied,
    "previous_output": repeated,
    "permuted_rows": permuted,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", NAMES)
def test_no_cheat_passes(operator, dtype):
    for name, fill in FILLS.items():
        function = Cheat(operator, fill).function()
        backend = FunctionBackend(function, find_operator(operator), name)
        report = check(backend, [operator], [dtype], count=10)
        (result,) = report.results
        assert result.verdict is Verdict.FAIL, f"{name}: {result.verdict} {result.reason}"
        assert report.exit_code() == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", NAMES)
def test_the_right_answer_passes(operator, dtype):
    """The same harness with the true value: what fails above fails for being wrong."""
    function = Cheat(operator, lambda value, inputs, previous: value).function()
    backend = FunctionBackend(function, find_operator(operator), "truth")
    (result,) = check(backend, [operator], [dtype], count=32).results
    assert result.verdict is Verdict.PASS, result.reason

"""Python in kernels beside numbers and arrays: functions within functions, enumerations, printing, refusals."""

import importlib.util
import operator
from enum import Enum, IntEnum

import numba
import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda

import refsim
from refsim.errors import UnsupportedError


class Color(Enum):
    RED = 1
    GREEN = 2


class Size(IntEnum):
    SMALL = 5
    LARGE = 50


@cuda.jit(device=True)
def color_of(flag):
    return Color.RED if flag else Color.GREEN


@cuda.jit
def enumerations(color, size, out):
    i = cuda.threadIdx.x
    out[i, 0] = Color["RED"] == Color.RED
    out[i, 1] = color is Color.GREEN
    out[i, 2] = color != Color.GREEN
    out[i, 3] = color_of(i == 0) == Color.RED
    out[i, 4] = Size.SMALL + 1 if i < Size.SMALL else 0
    out[i, 5] = size - Size.SMALL


def test_enumerations():
    out = np.zeros((2, 6))
    launch_clean(enumerations, 1, 2, Color.GREEN, Size.LARGE, out)
    assert out.tolist() == [[1, 1, 0, 1, 6, 45], [1, 1, 0, 0, 6, 45]]
    launch_clean(enumerations, 1, 2, Color.RED, Size.SMALL, out)
    assert out.tolist() == [[1, 0, 1, 1, 6, 0], [1, 0, 1, 0, 6, 0]]


@cuda.jit
def closures(out):
    i = cuda.threadIdx.x
    scale = 3

    def stepped(a, b=2):
        if a > 1:
            return a * scale + b
        return b

    shifted = lambda t: t + i  # noqa: E731
    scale = 4
    out[i] = stepped(i) * 100 + stepped(b=10, a=i) + shifted(5)


def test_functions_within_a_kernel_see_its_variables():
    out = np.zeros(4)
    launch_clean(closures, 1, 4, out)
    expected = [(4 * i + 2 if i > 1 else 2) * 100 + (4 * i + 10 if i > 1 else 10) + 5 + i for i in range(4)]
    assert out.tolist() == expected


@cuda.jit(device=True)
def applied(function, factor, *values):
    return function(*values) * factor


@cuda.jit
def any_number(out, *arrays):
    for array in arrays:
        out[0] += array[0]
    out[1] = len(arrays)


def test_a_kernel_of_any_number_of_arguments():
    out = np.zeros(2)
    launch_clean(any_number, 1, 1, out, np.array([1.0]), np.array([20]))
    assert out.tolist() == [21, 2]


@cuda.jit
def escaping(out):
    i = cuda.threadIdx.x
    offset = 100

    def both(a, b=5):
        return a + b + offset + i

    def every(*items):
        total = 0
        for item in items:
            total += item
        return total + len(items)

    out[i] = applied(both, 1, 1) + applied(both, 10, 1, 2) + every(1, 2, 3) + applied(every, 1, *(4, i))


def test_functions_are_handed_to_device_functions():
    out = np.zeros(3)
    launch_clean(escaping, 1, 3, out)
    assert out.tolist() == [106 + i + 10 * (103 + i) + 9 + 6 + i for i in range(3)]


class Declared:
    """A device function with one signature, as cuda.jit makes it where there is a device."""

    class Signature:
        args = (numba.int32, numba.float32)
        return_type = numba.float32

    device = True
    signatures = (Signature,)

    @staticmethod
    def py_func(a, b):
        return (a << 1) + b


declared = Declared()


@cuda.jit
def converting(x, out):
    out[0] = declared(x[0], x[1])


def test_a_signature_converts_arguments_and_result():
    out = np.zeros(1)
    launch_clean(converting, 1, 1, np.array([20000.9, 0.1]), out)
    assert out[0] == np.float32(40000 + np.float64(np.float32(0.1)))


@cuda.jit
def unbound(x, out):
    if x[0] > 0:
        if x[0] > 1:
            step = 5
        out[0] = step
    else:
        step += 1
        out[0] = step


def test_a_variable_that_was_never_assigned_is_a_finding_where_it_is_read():
    out = np.zeros(1)
    launch_clean(unbound, 1, 1, np.array([2]), out)
    assert out[0] == 5
    report = refsim.launch(unbound, 1, 1, np.array([0]), out)
    assert [f.kind for f in report.findings] == ["assertion"]
    assert "'step' is used before it is assigned" in str(report)


@cuda.jit(device=True)
def through_shared(x, shape, dtype, combine):
    cells = cuda.shared.array(shape, dtype)
    cells[cuda.threadIdx.x, 1] = x
    return combine(cells[cuda.threadIdx.x, 1], shape[0])


@cuda.jit
def constants(out):
    i = cuda.threadIdx.x
    out[i] = through_shared(i + 0.75, (4, 2), numba.int32, operator.add) + through_shared(i, (4, 3), numba.int32, max)
    if operator.lt(i, 2):
        out[i] = -out[i]


def test_constants_stay_constants_in_device_functions():
    out = np.zeros(4)
    launch_clean(constants, 1, 4, out)
    assert out.tolist() == [(i + 4 + max(i, 4)) * (-1 if i < 2 else 1) for i in range(4)]


@cuda.jit
def by_count(out, *values):
    if len(values) == 1:
        out[0] = values[0]
    elif len(values) == 2:
        out[0] = values[0] * values[1]


def test_branches_on_known_numbers_are_not_translated():
    out = np.zeros(1)
    launch_clean(by_count, 1, 1, out, 5)
    assert out[0] == 5
    launch_clean(by_count, 1, 1, out, 5, 6)
    assert out[0] == 30


@cuda.jit(device=True)
def same(x):
    return x


@cuda.jit
def effects(out):
    out[1] = same(cuda.atomic.add(out, 0, 1)) + 10


def test_an_argument_of_a_device_function_is_evaluated_once():
    out = np.zeros(2)
    launch_clean(effects, 1, 1, out)
    assert out.tolist() == [1, 10]


@cuda.jit
def unpacking(out):
    first, *rest, last = (1, 2, 3, 4)
    out[0] = first * 100 + sum(rest) * 10 + last
    out[1] = len("four") + ("a" == "a")
    out[2] = sum(out[:2])


def test_starred_names_and_sums():
    out = np.zeros(3)
    launch_clean(unpacking, 1, 1, out)
    assert out.tolist() == [154, 5, 159]


@cuda.jit
def prints(pair):
    print(pair, "100%", cuda.threadIdx.x)
    print(cuda.threadIdx, True)
    print()
    print((1,), 2.5)


def test_printing_of_tuples_and_indices(capsys):
    launch_clean(prints, 1, 1, (1, (2, 3.5)))
    assert capsys.readouterr().out.splitlines() == ["(1, (2, 3.5)) 100% 0", "(0, 0, 0) True", "", "(1,) 2.5"]


REFUSED = {
    "out[0] = cuda.threadIdx.w": r"cuda.threadIdx has x, y and z, not 'w'",
    "x = [i for i in range(3)]": "kernels have no list; use a tuple, or cuda.local.array",
    "x = {1: 2}": "kernels have no dict",
    "x = set()": "kernels have no set",
    "match out[0]:\n        case 1: pass": "match statement, which numba-cuda does not compile",
    "try:\n        pass\n    except ValueError:\n        pass": "try in a kernel",
    "with out:\n        pass": "with statement",
    "x = f'{out}'": "f-string",
    "x = (i for i in range(2))": "no generators",
    "print(out)": "numbers, strings and tuples of them are printed",
    "y = out.astype('f4')": "memory management",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused_by_name(body, tmp_path):
    path = tmp_path / "refused.py"
    path.write_text(f"from numba import cuda\n\n\n@cuda.jit\ndef kernel(out):\n    {body}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("refused", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(UnsupportedError, match=REFUSED[body]):
        refsim.launch(module.kernel, 1, 1, np.zeros(3))

"""Functions that a module gives to numba-cuda with overload, and NumPy functions on whole arrays with an output."""

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import overload, overload_attribute, overload_method, register_jitable

import refsim
from refsim.errors import UnsupportedError


def either(x, y=10):
    raise NotImplementedError


@overload(either, target="generic")
def _either_anywhere(x, y=10):
    return lambda x, y=10: -1


@overload(either)
def _either(x, y=10):
    if isinstance(x, types.Array):
        return lambda x, y=10: x[0] + y
    if isinstance(x, types.BaseTuple):
        return lambda x, y=10: x[1] * y
    return lambda x, y=10: x * 2 + y


@overload_method(types.Array, "middle")
def _middle(array, shift=0):
    def implementation(array, shift=0):
        return array[len(array) // 2 + shift]

    return implementation


@overload_attribute(types.Array, "last")
def _last(array):
    return lambda array: array[-1]


@register_jitable
def thrice(x):
    return 3 * x


@cuda.jit
def overloaded(x, out):
    out[0] = either(x)
    out[1] = either((1, 7), y=2)
    out[2] = either(4.5, 1)
    out[3] = x.middle() + x.middle(shift=1)
    out[4] = x.last
    out[5] = thrice(x[1])


def test_overloads_are_chosen_by_numba_types():
    x, out = np.arange(5.0) + 1, np.zeros(6)
    launch_clean(overloaded, 1, 1, x, out)
    assert out.tolist() == [11, 14, 10, 7, 5, 6]


BINARY = ("arctan2", "maximum", "fmin", "hypot", "less", "greater_equal", "logical_xor", "logical_and", "equal")
UNARY = ("sin", "arctan", "tanh", "logical_not", "deg2rad", "isnan")


def kernel_of(name):
    function = getattr(np, name)

    def one(a, b, out):
        function(a, out)

    def two(a, b, out):
        function(a, b, out)

    return one if function.nin == 1 else two


@pytest.mark.parametrize("name", BINARY + UNARY)
def test_numpy_functions_write_into_their_output(name):
    a, b = np.linspace(0, 2, 6).reshape(2, 3), np.array([1.0, 0.5, 2.0])
    function = getattr(np, name)
    expected = function(a, b) if function.nin == 2 else function(a)
    out = np.zeros((2, 3), expected.dtype)
    launch_clean(kernel_of(name), 1, 1, a, b, out)
    np.testing.assert_allclose(out, expected, rtol=1e-15)


@cuda.jit
def without_output(a):
    b = np.sin(a)
    a[0] = b[0]


def test_a_function_of_an_array_needs_an_output():
    with pytest.raises(UnsupportedError, match=r"memory management.*last argument"):
        refsim.launch(without_output, 1, 1, np.zeros(3))


@cuda.jit
def flags(flag, out):
    if flag is True:
        out[0] = 1
    if flag is not False:
        out[1] = 1


def test_a_flag_is_compared_with_is():
    out = np.zeros(2)
    launch_clean(flags, 1, 1, True, out)
    assert out.tolist() == [1, 1]
    launch_clean(flags, 1, 1, False, np.zeros(2))

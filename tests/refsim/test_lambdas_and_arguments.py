"""Device functions written as lambdas, and arguments that cannot be what the kernel makes of them."""

import numpy as np
import pytest
from numba import cuda

import refsim

square = cuda.jit(device=True)(lambda value: value * value)
both = [cuda.jit(device=True)(lambda x: x + 1), cuda.jit(device=True)(lambda x: x + 2)]


def test_a_lambda_is_a_device_function():
    factor = 3
    scaled = cuda.jit(device=True)(
        lambda value, by=2: (
            value * factor
            + by
        )
    )  # fmt: skip

    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        out[i] = square(i) + scaled(i)

    out = np.zeros(5, np.int64)
    assert refsim.launch(kernel, 1, 5, out).ok
    np.testing.assert_array_equal(out, np.arange(5) ** 2 + 3 * np.arange(5) + 2)


def test_a_lambda_as_the_operation_of_a_kernel():
    def kernel_of(operation):
        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            out[i] = operation(x[i], 2)

        return kernel

    x, out = np.arange(4.0), np.zeros(4)
    add = cuda.jit(device=True)(lambda a, b: a + b)
    assert refsim.launch(kernel_of(add), 1, 4, x, out).ok
    np.testing.assert_array_equal(out, x + 2)


def test_two_lambdas_in_a_line_are_refused_with_the_line():
    second = both[1]

    @cuda.jit
    def kernel(out):
        out[0] = second(1)

    with pytest.raises(
        refsim.UnsupportedError, match=r"test_lambdas_and_arguments.py:\d+: this lambda is not the only"
    ):
        refsim.launch(kernel, 1, 1, np.zeros(1))


def test_a_lambda_as_kernel_within_another_statement():
    for kernel in (lambda out: None,):
        assert refsim.launch(kernel, 1, 1, np.zeros(1)).ok


def test_a_deleted_variable():
    def kernel(out):
        value = 1
        out[0] = value
        del value

    out = np.zeros(1)
    assert refsim.launch(kernel, 1, 1, out).ok
    assert out[0] == 1


@cuda.jit
def stores(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1)]


@cuda.jit
def counts(x, out):
    cuda.atomic.add(out, 0, x[cuda.grid(1)])


@pytest.mark.parametrize("kernel", [stores, counts])
def test_a_read_only_output_is_named(kernel):
    out = np.zeros(4)
    out.flags.writeable = False
    with pytest.raises(TypeError, match=r"the array argument out is read-only, and \w+\(\) writes to it"):
        refsim.launch(kernel, 1, 4, np.ones(4), out)


def test_a_read_only_view_of_the_output_may_be_read():
    out = np.arange(4.0)
    view = out[::-1]
    view.flags.writeable = False
    assert refsim.launch(stores, 1, 1, view, out).ok
    np.testing.assert_array_equal(out, [3, 1, 2, 3])


def test_too_many_subscripts_of_an_element_that_is_written():
    def kernel(out):
        out[0, 0] = 1

    with pytest.raises(refsim.KernelTypeError, match=r"out\[0, 0\] has 2 subscripts, the array has 1 dimensions"):
        refsim.launch(kernel, 1, 1, np.zeros(1))


def test_checks_that_are_no_names():
    with pytest.raises(ValueError, match="checks must be names of check groups, not 5"):
        refsim.launch(stores, 1, 1, np.ones(1), np.zeros(1), checks=5)

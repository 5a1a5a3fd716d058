"""The tables of the stand-ins: every name is the library's, and every element-wise function is NumPy's bit for bit."""

import inspect

import numpy as np
import pytest

from refsim.hosts import Session
from refsim.hosts.cupy_host.array import ndarray
from refsim.hosts.cupy_host.functions import FUNCTIONS, LINALG, UFUNCS, linalg_functions, numpy_functions
from refsim.hosts.cupy_host.methods import METHODS
from refsim.hosts.session import activate

INTEGERS = {"bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift"}


@pytest.mark.parametrize("name", UFUNCS)
def test_ufunc_gives_numpys_numbers_on_the_device(name):
    wanted = getattr(np, name)
    dtype = np.int32 if name in INTEGERS else np.float32
    values = [np.arange(1, 10, dtype=dtype).reshape(3, 3) / dtype(1 if dtype == np.int32 else 10) for _ in range(2)]
    hosts = [value.astype(dtype) for value in values[: wanted.nin]]
    if name == "ldexp":
        hosts[1] = np.full((3, 3), 2, np.int32)
    with np.errstate(all="ignore"):
        expected = wanted(*hosts)
    results = numpy_functions()[name](*(ndarray.of(host.copy()) for host in hosts))
    for result, host in zip(
        results if wanted.nout > 1 else [results], expected if wanted.nout > 1 else [expected], strict=True
    ):
        assert isinstance(result, ndarray)
        assert result.dtype == host.dtype
        assert result.get().tobytes() == host.tobytes()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_takes_only_arguments_of_numpys(name):
    source = getattr(np, name)
    try:
        known = set(inspect.signature(source).parameters)
    except ValueError:  # NumPy's own functions in C
        known = set(FUNCTIONS[name])
    open_ended = {"concatenate", "einsum", "where", "result_type", "pad", "dot", "vdot"}
    assert name in open_ended or set(FUNCTIONS[name]) <= known | {"a_min", "a_max", "copy", "dtype"}, name
    assert callable(numpy_functions()[name])


def test_linear_algebra_is_on_the_device():
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]])
    vector = np.array([1.0, 2.0])
    linalg = linalg_functions()
    assert set(LINALG) < set(linalg)
    assert linalg["solve"](ndarray.of(matrix), ndarray.of(vector)).tolist() == np.linalg.solve(matrix, vector).tolist()
    values, vectors = linalg["eigh"](ndarray.of(matrix))
    assert isinstance(values, ndarray)
    np.testing.assert_allclose(matrix @ vectors.get(), vectors.get() * values.get())
    with pytest.raises(TypeError, match="nsupported type"):
        linalg["inv"](matrix)


@pytest.mark.parametrize("name", METHODS)
def test_method_takes_only_arguments_of_numpys(name):
    method = getattr(ndarray, name)
    assert method.__name__ == name
    assert hasattr(np.ndarray, name)
    with pytest.raises(AttributeError, match=f"argument 'nonsense' of cupy.ndarray.{name}"):
        method(ndarray.of(np.ones(3)), nonsense=1)


def test_names_of_the_numba_stand_in_are_numbas():
    from numba import cuda

    from refsim.hosts.numba_host import CudaModule

    stand_in = CudaModule(cuda)
    ours = {name for name in vars(stand_in) if not name.startswith("_")}
    assert {"detect", "device_array"} < ours
    assert not [name for name in ours if not hasattr(cuda, name)]
    for name in ("is_available", "is_supported_version", "cuda_error", "detect", "device_array"):
        mine, real = vars(stand_in)[name], getattr(cuda, name)
        assert list(inspect.signature(mine).parameters) == list(inspect.signature(real).parameters), name
    assert stand_in.threadIdx is cuda.threadIdx
    assert stand_in.float32 is cuda.float32


def test_the_simulated_driver_has_functions_of_the_driver():
    from cuda.bindings import driver as binding

    from refsim.hosts.numba_host.driver import SimulatedDriver

    assert not [name for name in dir(SimulatedDriver) if name.startswith("cu") and not hasattr(binding, name)]


def test_sessions_have_modules_of_their_own():
    from refsim.hosts.cupy_host import cupy_module

    seen = []
    for device in ("sim:sm_90", "sim:gfx942"):
        before = activate(Session(device))
        try:
            assert cupy_module() is cupy_module()
            seen.append(cupy_module().cuda.runtime.is_hip)
        finally:
            activate(before)
    assert seen == [False, True]

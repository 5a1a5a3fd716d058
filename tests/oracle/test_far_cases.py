"""Cases past element 2^31: kernels that count elements in 64 bits pass, those that count in 32 bits do not."""

import functools
import inspect

import numpy as np
import pytest

from oracle.cases import Case, far_cases
from oracle.cases.layouts import FAR
from oracle.operator import find_operator
from oracle.signature import InputError
from oracle.variants import variants_of
from refsim.conformance.backends.functions import FunctionBackend
from refsim.conformance.runner import check
from refsim.conformance.verdicts import Verdict

OPERATORS = (
    "gather_cache", "copy_blocks", "swap_blocks", "reshape_and_cache_flash", "reshape_and_cache", "matmul",
    "batched_matmul", "rope", "softmax", "sum", "causal_conv1d_update", "topk", "sample_top_k", "rmsnorm",
)  # fmt: skip


def fetched(array, integer):
    """An array's elements by address, as a kernel reads them from a pointer and strides; addresses are `integer`s."""
    if array is None or isinstance(array.base, np.ndarray) or array.base is None:
        return array
    steps = [stride // array.itemsize for stride in array.strides]
    size = 1 + sum((n - 1) * step for n, step in zip(array.shape, steps, strict=True))
    memory = np.ndarray((size,), array.dtype, array.base)
    address = np.zeros(array.shape, integer)
    with np.errstate(over="ignore"):
        for axis, step in enumerate(steps):
            place = np.arange(array.shape[axis]).astype(integer) * np.int64(step).astype(integer)
            address += place.reshape(-1, *[1] * (array.ndim - 1 - axis))
    return memory[address.astype(np.int64) % size]


def kernel(operator, integer):
    honest = next(variant.function for variant in variants_of(operator) if not variant.wrong)

    @functools.wraps(honest)
    def run(*arrays, **params):
        with np.errstate(all="ignore"):
            return honest(*(fetched(array, integer) for array in arrays), **params)

    record = find_operator(operator)
    run.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in record.inputs]
        + [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in record.params]
    )
    return run


def verdict(operator, integer):
    dtype = "float32"
    backend = FunctionBackend(kernel(operator, integer), find_operator(operator), "addressed")
    cases = {(operator, dtype): far_cases(operator, dtype, 4, seed=0)}
    (row,) = check(backend, [operator], [dtype], cases=cases).results
    return row.verdict


@pytest.mark.parametrize("operator", OPERATORS)
def test_addresses_of_64_bits_pass_and_those_of_32_bits_do_not(operator):
    assert verdict(operator, np.int64) is Verdict.PASS
    assert verdict(operator, np.int32) is Verdict.FAIL


def test_arrays_are_far_apart_and_take_little_memory():
    (case,) = far_cases("matmul", "float32", 1, seed=0)
    near = Case(**{**vars(case), "layout": "contiguous"}).inputs()
    for name, array in case.inputs().items():
        if array is None:
            continue
        low, high = np.lib.array_utils.byte_bounds(array)
        assert (high - low) // array.itemsize > FAR
        assert np.array_equal(array, near[name])
        assert not np.shares_memory(array[:1], array[-1:])


def test_far_cases_are_cases():
    for case in far_cases("gather_cache", "bfloat16", 6, seed=1):
        assert case.layout == "far"
        assert Case.from_json(case.to_json()) == case
    with pytest.raises(InputError, match="count=0"):
        far_cases("sum", "float32", 0, 0)

"""The arithmetic that kernels of GPU libraries promise."""

from __future__ import annotations

from oracle.numerics import NUMERICS, Numerics
from refsim.conformance.backends import library

HALVES = ("float16", "bfloat16")
SHORT = ("float16", "bfloat16", "float32")


def fast(dtype: str) -> Numerics:
    """float32 with the approximate instructions that Triton and ``-use_fast_math`` choose, subnormals flushed."""
    return NUMERICS["float32_fast"]


def on_tensor_cores(dtype: str) -> Numerics:
    """Products of 16-bit factors on tensor cores; of Ada and earlier, which cut off more than later ones."""
    return NUMERICS["tensor_core_sm80"] if dtype in HALVES else library.usual(dtype)


def on_fp8_tensor_cores(dtype: str) -> Numerics:
    """Products of 8-bit floats on Hopper's tensor cores, which cut off more than others; exact ones of integers."""
    return library.usual(dtype) if dtype == "int8" else NUMERICS["tensor_core_sm90_fp8"]


def attention_on_tensor_cores(dtype: str) -> Numerics:
    """As `on_tensor_cores`, with softmax weights rounded before they meet v, and fast exponentials."""
    return library.weights_in_dtype(dtype, _fast_tensor_cores)


def _fast_tensor_cores(dtype: str) -> Numerics:
    plain, exponential = on_tensor_cores(dtype), NUMERICS["float32_fast"]
    return plain.with_changes(
        name=f"{plain.name}, fast",
        flush_to_zero=True,
        exp_argument_ulps=exponential.exp_argument_ulps,
        exp_form=exponential.exp_form,
        log_ulps=exponential.log_ulps,
        log2_ulps=exponential.log2_ulps,
        absolute=exponential.absolute,
    )

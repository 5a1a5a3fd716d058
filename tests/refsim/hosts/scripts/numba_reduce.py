"""Reductions of fewer elements than a block has threads, of whole blocks, and of both."""

import numpy as np
from numba import cuda

total = cuda.reduce(lambda a, b: a + b)


@cuda.reduce
def largest(a, b):
    return a if a > b else b


for size in (1, 31, 33, 128, 300, 128 * 64 * 2 + 5):
    for dtype in (np.int32, np.float32, np.float64):
        numbers = (np.arange(size) * 7 % 101).astype(dtype)
        on_device = cuda.to_device(numbers)
        assert total(on_device) == numbers.sum()
        assert total(numbers, size=size // 2 + 1, init=3) == numbers[: size // 2 + 1].sum() + 3
        result = cuda.device_array(1, dtype)
        assert largest(on_device, res=result, init=-1) is None
        assert result.copy_to_host() == numbers.max()
assert total(np.zeros(0), init=5) == 5

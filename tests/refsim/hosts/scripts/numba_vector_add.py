"""Adding vectors: explicit transfers, a stream, events, and a launch configuration from the device."""

import math

import numpy as np
from numba import cuda


@cuda.jit
def add(x, y, out):
    start = cuda.grid(1)
    step = cuda.gridsize(1)
    for i in range(start, out.size, step):
        out[i] = x[i] + y[i]


def main():
    n = 5000
    x = np.arange(n, dtype=np.float32)
    y = 2 * x
    stream = cuda.stream()
    begin, end = cuda.event(), cuda.event()
    with stream.auto_synchronize(), cuda.defer_cleanup():
        d_x = cuda.to_device(x, stream=stream)
        d_y = cuda.to_device(y, stream)
        d_out = cuda.device_array_like(d_x, stream)
        device = cuda.get_current_device()
        threads = 4 * device.WARP_SIZE
        blocks = min(math.ceil(n / threads), 32 * device.MULTIPROCESSOR_COUNT)
        begin.record(stream)
        add[blocks, threads, stream](d_x, d_y, d_out)
        end.record(stream)
        out = d_out.copy_to_host(stream=stream)
    end.synchronize()
    assert begin.elapsed_time(end) > 0
    assert cuda.event_elapsed_time(begin, end) > 0
    np.testing.assert_array_equal(out, 3 * x)

    add.forall(n)(x, x, y)  # host arrays: copied both ways
    np.testing.assert_array_equal(y, 2 * x)
    print("added", n)


if __name__ == "__main__":
    assert cuda.is_available()
    assert len(cuda.gpus) == len(cuda.list_devices()) == 1
    main()

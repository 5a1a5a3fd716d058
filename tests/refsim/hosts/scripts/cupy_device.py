"""Devices, streams, events and the memory pool."""

import sys

import cupy as cp
from cupy.cuda import Device, Stream

assert cp.is_available()
assert cp.cuda.is_available()
assert cp.cuda.runtime.getDeviceCount() == 1
properties = cp.cuda.runtime.getDeviceProperties(0)
assert properties["warpSize"] == int(sys.argv[1])
assert Device().compute_capability == sys.argv[2]
assert cp.cuda.runtime.is_hip == sys.argv[3:].count("hip")
with Device(0) as device:
    assert device.id == 0
    assert device.attributes["WarpSize"] == int(sys.argv[1])
    device.synchronize()
try:
    Device(1)
except RuntimeError as error:
    assert "one device is simulated" in str(error)  # noqa: PT017  a script, not a test
else:
    raise AssertionError("a second device")

stream = Stream(non_blocking=True)
start, stop = cp.cuda.Event(), cp.cuda.Event()
called = []
with stream:
    assert cp.cuda.get_current_stream() is stream
    start.record()
    x = cp.ones(3)
    stop.record(stream)
    stream.add_callback(lambda _stream, _status, what: called.append(what), "called")
assert cp.cuda.get_current_stream() is Stream.null
stop.synchronize()
stream.wait_event(start)
stream.synchronize()
assert stop.done
assert stream.done
assert called == ["called"]
assert cp.cuda.get_elapsed_time(start, stop) >= 0
try:
    cp.cuda.get_elapsed_time(start, cp.cuda.Event())
except RuntimeError as error:
    assert "has not been recorded" in str(error)  # noqa: PT017  a script, not a test
else:
    raise AssertionError("time of an event that was not recorded")

pool = cp.get_default_memory_pool()
pool.free_all_blocks()
assert pool.used_bytes() == 0
assert pool.n_free_blocks() == 0

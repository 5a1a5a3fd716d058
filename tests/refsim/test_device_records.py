"""Records in kernels: fields of arguments, shared and local arrays, against NumPy on the same structured arrays."""

import numba
import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda

import refsim
from refsim.errors import KernelTypeError, UnsupportedError

ALIGNED = np.dtype([("a", np.float64), ("b", np.int32), ("d", (np.uint8, 5)), ("m", (np.float32, (3, 2)))], align=True)
PACKED = np.dtype([("value", np.float64), ("count", np.int32), ("flag", np.int8)])  # 13 bytes
MISALIGNED = np.dtype([("flag", np.int8), ("value", np.float64)])
POINT = np.dtype([("p", np.int16), ("q", np.float32)], align=True)
NESTED = np.dtype([("one", POINT), ("many", POINT, 3)], align=True)
SHARED = numba.from_dtype(POINT)


def filled(dtype, count):
    """Records with some number in every field."""
    rows = np.zeros(count, dtype)
    raw = np.random.default_rng(1).integers(1, 60, rows.nbytes).astype(np.uint8)
    rows.view(np.uint8)[:] = raw
    for name in dtype.names:
        if rows[name].dtype.kind == "f":
            rows[name] = np.arange(rows[name].size).reshape(rows[name].shape) * 0.5
    return rows


@cuda.jit
def every_way_to_a_field(rows, out):
    i = cuda.grid(1)
    rows[i].a = i * 1.5
    rows[i]["b"] += 10
    rows["d"][i, 2] = i
    rows.m[i, 1, 0] = rows[i].m[0, 1] + 4
    row = rows[i]
    out[i] = row.a + row["b"] + rows.d[i, 2] + row.m[1, 0]


def test_fields_of_an_array_of_records():
    rows, out = filled(ALIGNED, 8), np.zeros(8)
    expected, total = rows.copy(), np.zeros(8)
    for i in range(8):
        expected[i]["a"] = i * 1.5
        expected[i]["b"] += 10
        expected[i]["d"][2] = i
        expected[i]["m"][1, 0] = expected[i]["m"][0, 1] + 4
        total[i] = expected[i]["a"] + expected[i]["b"] + i + expected[i]["m"][1, 0]
    launch_clean(every_way_to_a_field, 2, 4, rows, out)
    assert rows.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(out, total)


@cuda.jit
def double(rows):
    i = cuda.grid(1)
    rows[i].value *= 2
    rows[i].count = rows[i].flag


@pytest.mark.parametrize("step", [1, 2, -1])
def test_packed_records_and_strided_arrays_of_them(step):
    whole = filled(PACKED, 10)
    rows = whole[::step]
    expected = whole.copy()
    part = expected[::step]
    part["value"] *= 2
    part["count"] = part["flag"]
    launch_clean(double, 1, len(rows), rows)
    assert whole.tobytes() == expected.tobytes()


@cuda.jit
def nested(rows, out):
    i = cuda.grid(1)
    rows[i].one.p = i
    rows[i].many[1].q = 7
    rows[i].many[2] = rows[i].one
    out[i] = rows[i].many[2].p + rows[i]["many"][1]["q"]


def test_nested_records():
    rows, out = np.zeros(4, NESTED), np.zeros(4)
    launch_clean(nested, 1, 4, rows, out)
    np.testing.assert_array_equal(rows["one"]["p"], np.arange(4))
    np.testing.assert_array_equal(rows["many"]["q"], [[0, 7, 0]] * 4)
    np.testing.assert_array_equal(rows["many"]["p"][:, 2], np.arange(4))
    np.testing.assert_array_equal(out, np.arange(4) + 7)


@cuda.jit
def copy_record(rows, source, target):
    rows[target] = rows[source]


def test_a_record_is_copied_field_by_field():
    rows = filled(ALIGNED, 3)
    expected = rows.copy()
    for name in ALIGNED.names:
        expected[2][name] = expected[0][name]
    launch_clean(copy_record, 1, 1, rows, 0, 2)
    for name in ALIGNED.names:
        np.testing.assert_array_equal(rows[name], expected[name])


@cuda.jit
def one_record(record, out):
    record.a = 2.5
    record.m[:, :] = 3
    out[0] = record.b


def test_a_record_as_argument_is_changed_in_place():
    rows, out = filled(ALIGNED, 2), np.zeros(1)
    launch_clean(one_record, 1, 1, rows[1], out)
    assert rows[1]["a"] == 2.5
    assert (rows[1]["m"] == 3).all()
    assert out[0] == rows[1]["b"]
    assert rows[0].tobytes() == filled(ALIGNED, 2)[0].tobytes()


@cuda.jit(device=True)
def move(point, distance):
    point.p += distance
    return point


@cuda.jit
def in_shared_and_local(out):
    i = cuda.threadIdx.x
    points = cuda.shared.array(32, dtype=SHARED)
    mine = cuda.local.array((2, 2), SHARED)
    points[i].p = i
    points[i].q = 0.5
    cuda.syncthreads()
    mine[1, 0] = points[(i + 1) % 32]
    moved = move(mine[1, 0], 100)
    out[i] = moved.p + mine[1, 0].q


def test_records_in_shared_and_local_memory():
    out = np.zeros(32)
    launch_clean(in_shared_and_local, 1, 32, out)
    np.testing.assert_array_equal(out, (np.arange(32) + 1) % 32 + 100.5)


@cuda.jit
def without_barrier(out):
    i = cuda.threadIdx.x
    points = cuda.shared.array(32, dtype=SHARED)
    points[i].p = i
    out[i] = points[(i + 1) % 32].p


def test_a_race_on_a_field_is_named_after_the_field():
    report = refsim.launch(without_barrier, 1, 32, np.zeros(32))
    assert [f.kind for f in report.findings if f.severity == "error"][:1] == ["race"]
    assert "points.p[" in str(report)


@cuda.jit
def same_field(rows):
    rows[0].value = cuda.threadIdx.x


def test_a_race_on_a_field_in_global_memory():
    report = refsim.launch(same_field, 1, 32, np.zeros(2, PACKED))
    assert [f.kind for f in report.findings] == ["race"]
    assert "rows.value[0]" in str(report)


@cuda.jit
def other_fields(rows):
    i = cuda.threadIdx.x
    if i % 2:
        rows[i // 2].flag = 1
    else:
        rows[i // 2].value = 2


def test_threads_may_write_different_fields_of_a_record():
    rows = np.zeros(16, PACKED)
    launch_clean(other_fields, 1, 32, rows)
    assert (rows["flag"] == 1).all()
    assert (rows["value"] == 2).all()


@cuda.jit
def count(rows):
    cuda.atomic.add(rows["count"], 0, 1)
    cuda.atomic.max(rows.value, 1, float(cuda.threadIdx.x))


def test_atomic_operations_on_fields():
    rows = np.zeros(2, PACKED)
    launch_clean(count, 2, 32, rows)
    assert rows["count"].tolist() == [64, 0]
    assert rows["value"].tolist() == [0, 31]


@cuda.jit
def outside(rows):
    rows[4].value = 1


def test_a_record_out_of_bounds():
    report = refsim.launch(outside, 1, 1, np.zeros(4, PACKED))
    assert [f.kind for f in report.findings] == ["out_of_bounds"]
    assert "rows.value[4]" in str(report)


@cuda.jit
def no_such_field(rows):
    rows[0].other = 1


@cuda.jit
def number_for_a_record(rows):
    rows[0] = 1


@cuda.jit
def misaligned(rows):
    rows[0].value = 1


def test_what_is_refused_is_named():
    with pytest.raises(KernelTypeError, match="'value' of type float64 lies at byte 1, which is not aligned"):
        refsim.launch(misaligned, 1, 1, np.zeros(1, MISALIGNED))
    with pytest.raises(UnsupportedError, match=r"assignment to rows\[0\].other"):
        refsim.launch(no_such_field, 1, 1, np.zeros(1, PACKED))
    with pytest.raises(KernelTypeError, match="assign its fields"):
        refsim.launch(number_for_a_record, 1, 1, np.zeros(1, PACKED))

"""`refsim.RawKernel` and `refsim.RawModule`: arguments, variables of a module, places of findings."""

from pathlib import Path

import numpy as np
import pytest

import refsim

SCALARS = """
struct Point { float x; short tag; };
extern "C" __global__ void f(float a, int n, unsigned u, bool flag, Point p, double* out, const int* nothing) {
  out[0] = a; out[1] = n; out[2] = u; out[3] = flag; out[4] = p.x; out[5] = p.tag; out[6] = nothing == nullptr;
}
"""
POINT = np.dtype({"names": ["x", "tag"], "formats": ["f4", "i2"], "offsets": [0, 4], "itemsize": 8})


def run(*changes: tuple[int, object]) -> np.ndarray:
    out = np.zeros(7)
    args: list[object] = [np.float32(1.5), -3, 4000000000, True, np.array((2.5, 7), POINT), out, None]
    for position, value in changes:
        args[position] = value
    assert refsim.RawKernel(SCALARS, "f")((1,), (1,), tuple(args)).ok
    return out


def test_numbers_structures_and_null() -> None:
    assert run().tolist() == [1.5, -3, 4e9, 1, 2.5, 7, 1]


@pytest.mark.parametrize("value", [np.array([(2.5, 7)], POINT), np.array((2.5, 7), POINT)[()], b"\0\0\x20\x40\7\0\0\0"])
def test_a_structure_as_an_array_of_one_a_scalar_or_bytes(value: object) -> None:
    assert run((4, value))[4:6].tolist() == [2.5, 7]


def test_an_integer_of_another_width_that_fits() -> None:
    assert run((1, np.int64(-3)), (2, np.int8(-1))).tolist()[1:3] == [-3, 2**32 - 1]


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, 1.5, r"'a' is float32: pass numpy\.float32\(1\.5\)"),
        (0, np.float64(1.5), r"numpy\.float32"),
        (0, 1, "'a' is float32"),
        (1, 2**31 + 2**32, "does not fit"),
        (1, np.float32(3), "pass an integer"),
        (4, 1.0, "structure of 8 bytes"),
        (4, b"123", "has 8 bytes, 3 were passed"),
        (5, 1.0, "'out' is a pointer"),
        (5, [0.0] * 7, "'out' is a pointer"),
        (5, np.zeros(7, ">f8"), "'out' has the other byte order"),
        (5, np.zeros(7, object), "'out' holds Python objects"),
        (5, np.ma.zeros(7), "'out' is a masked array"),
        (0, np.array([1.5]), "'a' is float32"),
        (0, np.array(1, np.int32), "'a' is float32"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(position: int, value: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        run((position, value))


def test_a_number_in_an_array_of_one_is_that_number() -> None:
    assert run((1, np.array(-3, np.int64)), (0, np.array([1.5], np.float32))).tolist()[:2] == [1.5, -3]


def test_options_in_one_string_are_refused() -> None:
    with pytest.raises(TypeError, match=r"tuple of strings, such as \('-DN=1',\)"):
        refsim.RawKernel(SCALARS, "f", "-DN=1")
    with pytest.raises(TypeError, match="tuple of strings"):
        refsim.RawModule(code=SCALARS, options="-DN=1")


def test_lines_that_end_in_carriage_return_and_newline() -> None:
    code = 'extern "C" __global__ void f(int* x) {\r\n  x[1] = 2;\r\n}\r\n'
    (finding,) = refsim.RawKernel(code, "f")((1,), (1,), (np.zeros(1, np.int32),)).findings
    assert (finding.line, finding.source) == (2, "  x[1] = 2;")


def test_the_number_of_arguments() -> None:
    with pytest.raises(TypeError, match=r"takes 7 arguments \(a, n, u, flag, p, out, nothing\), 1 were given"):
        refsim.RawKernel(SCALARS, "f")((1,), (1,), (1,))


def test_instantiations_of_a_module() -> None:
    code = "template <typename T, int N> __global__ void fill(T* x) { x[threadIdx.x] = T(N) / 2; }"
    module = refsim.RawModule(code=code, name_expressions=["fill<float, 3>", "fill<int, 7>"])
    real, whole = np.zeros(4, np.float32), np.zeros(4, np.int32)
    assert module.get_function("fill<float, 3>")((1,), (4,), (real,)).ok
    assert module.get_function("fill<int, 7>")((1,), (4,), (whole,)).ok
    assert real.tolist() == [1.5] * 4
    assert whole.tolist() == [3] * 4


def test_variables_of_a_module_keep_their_values() -> None:
    code = """
    __device__ int calls = 5;
    __constant__ float scale[2];
    extern "C" __global__ void f(float* x) { if (threadIdx.x == 0) calls += 1; x[threadIdx.x] *= scale[1]; }
    """
    module = refsim.RawModule(code=code)
    module.get_global("scale")[:] = [0, 3]
    x = np.ones(4, np.float32)
    for _ in range(2):
        assert module.get_function("f")((1,), (4,), (x,)).ok
    assert x.tolist() == [9] * 4
    assert module.get_global("calls").tolist() == [7]
    with pytest.raises(KeyError, match="nothing"):
        module.get_global("nothing")


def test_a_finding_shows_the_line_as_it_was_written(tmp_path: Path) -> None:
    source = "#define STEP 4  // a macro\n__global__ void f(float* x) {\n  x[STEP * threadIdx.x] = 1;  // here\n}\n"
    path = tmp_path / "wrong.cu"
    path.write_text(source)
    for file in (None, str(path)):
        report = refsim.RawKernel(source, "f", file=file)((1,), (4,), (np.zeros(8, np.float32),))
        (finding,) = report.findings
        assert (finding.kind, finding.line, finding.array) == ("out_of_bounds", 3, "x")
        assert finding.file == (file or "<kernel>")
        assert finding.source.strip() == "x[STEP * threadIdx.x] = 1;  // here"


def test_the_same_source_for_hip_and_another_warp_size() -> None:
    code = """
    extern "C" __global__ void f(int* x) {
      int v = 1;
      for (int d = warpSize / 2; d > 0; d /= 2)
    #ifdef __HIP__
        v += __shfl_xor(v, d);
    #else
        v += __shfl_xor_sync(0xffffffffu >> (32 - warpSize), v, d);
    #endif
      x[threadIdx.x] = v;
    }
    """
    for device, size in (("sim:sm_90", 32), ("sim:gfx942", 64), ("sim:gfx1100", 32), ("sim:warp16", 16)):
        x = np.zeros(64, np.int32)
        assert refsim.RawKernel(code, "f")((1,), (64,), (x,), device=device).ok
        assert x.tolist() == [size] * 64


VIEWS = """
struct View { float* data; int shape[2]; struct { short step; const float* scale; } more; };
extern "C" __global__ void f(View v, float* other, View* out) {
  int i = threadIdx.x;
  v.data[i] = v.data[i] * v.shape[1] + (v.more.scale ? v.more.scale[0] : v.more.step) + (v.data == other ? 100 : 0);
  if (i == 0 && out) { out->data = v.data; out->shape[0] = 7; }
}
"""
VIEW = np.dtype(
    {"names": ["data", "shape", "step", "scale"], "formats": ["u8", ("i4", 2), "i2", "u8"], "offsets": [0, 8, 16, 24],
     "itemsize": 32}
)  # fmt: skip


def launched_view(view: object, other: object = None) -> None:
    assert refsim.RawKernel(VIEWS, "f")((1,), (4,), (view, other, None)).ok


def test_a_structure_with_pointers_by_its_members() -> None:
    x, scale = np.arange(4, dtype=np.float32), np.full(1, 0.5, np.float32)
    launched_view({"data": x, "shape": (1, 3), "more": {"step": 2, "scale": None}})
    assert x.tolist() == [2, 5, 8, 11]
    launched_view((x, [1, 2], (2, scale)), x)
    assert x.tolist() == [104.5, 110.5, 116.5, 122.5]


def test_a_structure_with_addresses_of_the_launchs_arrays() -> None:
    x = np.arange(8, dtype=np.float32)
    view = np.array((x[2:].ctypes.data, (1, 10), 3, 0), VIEW)[()]
    launched_view(view, x)
    assert x.tolist() == [0, 1, 23, 33, 43, 53, 6, 7]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ({"data": None}, "has members data, shape, more; those given are data"),
        ((None, (1, 2)), "one value for each"),
        ((None, (1, 2), (1.5, None)), "'v.more.step' is int16: pass an integer"),
        ((3, (1, 2), (1, None)), "'v.data' is a pointer"),
        (np.array((12345, (1, 10), 3, 0), VIEW)[()], "the address 0x3039 in 'v.data'"),
    ],
)
def test_members_that_do_not_fit_are_named(view: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        launched_view(view)


def test_an_address_of_the_host_in_memory_points_to_nothing() -> None:
    code = 'extern "C" __global__ void f(float** p, float* q) { float* mine[1] = {q}; mine[0][0] = 1; p[0][0] = 2; }'
    x = np.zeros(4, np.float32)
    report = refsim.RawKernel(code, "f")((1,), (1,), (np.array([x.ctypes.data], np.uint64), x))
    assert [finding.kind for finding in report.findings] == ["out_of_bounds"]
    assert "null pointer" in report.findings[0].message
    assert x.tolist() == [1, 0, 0, 0]


def test_findings_name_arrays_as_the_source_does() -> None:
    code = """extern "C" __global__ void f(const unsigned char* x, int pitch, unsigned char* out) {
      extern __shared__ float tile[];
      const int row = threadIdx.x, k = row * pitch;
      if (threadIdx.x == 0) out[0] = tile[40];
      if (threadIdx.x == 2) out[2] = x[k];
      if (threadIdx.x == 3) out[3] = out[row * pitch];
    }"""
    args = (np.zeros(64, np.uint8), np.int32(2**30), np.zeros(4, np.uint8))
    report = refsim.RawKernel(code, "f")((1,), (4,), args, shared_mem=64)
    found = [(f.line, f.array) for f in report.findings if f.kind == "out_of_bounds" and "32-bit" in f.message]
    assert sorted(found) == [(3, "x"), (6, "out")]
    assert [f.array for f in report.findings if "byte 160 of shared memory 'tile'" in f.message] == ["tile"]


def test_an_index_converted_to_an_unsigned_type() -> None:
    code = """extern "C" __global__ void f(const int* a, const int* table, int* out) {
      int i = threadIdx.x;
      out[i] = table[(unsigned)(a[i] + a[i + 1]) % 5u] + 10 * table[(unsigned char)(a[i] - a[i + 1]) % 5];
    }"""
    a = np.random.default_rng(1).integers(-(2**30), 2**30, 65).astype(np.int32)
    table, out = np.array([3, 1, 4, 1, 5], np.int32), np.zeros(64, np.int32)
    assert refsim.RawKernel(code, "f")((1,), (64,), (a, table, out)).ok
    sums, differences = (a[:-1] + a[1:]).astype(np.uint32), (a[:-1] - a[1:]).astype(np.uint8)
    assert out.tolist() == (table[sums % 5] + 10 * table[differences % 5]).tolist()

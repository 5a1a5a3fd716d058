"""``refsim translate``: a kernel in the dialect, readable."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from refsim.cli import main

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
EXPECTED = """kernel saxpy(a: float32, x: float32*, y: float32*, n: int32):
    var i: int32
    i = int32(((blockIdx.x * blockDim.x) + threadIdx.x))
    if (i < n):
        store float32 (y + (int64(i) * 4) bytes) = \
((a * load float32 (x + (int64(i) * 4) bytes)) + load float32 (y + (int64(i) * 4) bytes))
"""
PARTS = """
template <int N> __global__ void parts(int* x, int mode) {
  __shared__ int cells[4][N];
  extern __shared__ double more[];
  switch (mode) {
    case 1: cells[1][threadIdx.x % N] = 3; break;
    default: more[0] = 2;
  }
  __syncthreads();
  while (x[0] > 0) { if (atomicAdd(x, -1) == 5) break; }
  x[threadIdx.x] = __shfl_xor_sync(0xffffffff, cells[1][0], 1);
}
"""


def translate(code: str, folder: Path, *arguments: str) -> Result:
    path = folder / "kernel.cu"
    path.write_text(code)
    return CliRunner().invoke(main, ["translate", str(path), *arguments])


def test_a_kernel_as_text(tmp_path: Path) -> None:
    result = translate(SAXPY, tmp_path)
    assert result.exit_code == 0, result.output
    assert result.output.strip() == EXPECTED.strip()


def test_an_instantiation_with_every_kind_of_statement(tmp_path: Path) -> None:
    result = translate(PARTS, tmp_path, "parts<8>")
    assert result.exit_code == 0, result.output
    for line in (
        "shared cells: int32[4, 8]", "shared more: float64[dynamic]", "barrier block", "if (mode == 1):", "else:",
        "loop loop while (load int32 x > 0):", "break loop", "atomic add int32 x (-1) scope device",
        "warp shfl_xor_sync(",
    ):  # fmt: skip
        assert line in result.output


def test_lane_code(tmp_path: Path) -> None:
    result = translate(SAXPY, tmp_path, "--lane-code", "--device", "sim:gfx942")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("def lane_code(B, S, ")


def test_errors_name_file_and_line(tmp_path: Path) -> None:
    result = translate(SAXPY.replace("float a", "flot a"), tmp_path)
    assert result.exit_code == 2
    assert "kernel.cu:2:" in result.output
    assert "flot" in result.output


def test_templates_need_a_name(tmp_path: Path) -> None:
    result = translate(PARTS, tmp_path)
    assert result.exit_code == 2
    assert "name instantiations" in result.output


@pytest.mark.parametrize(
    ("content", "words"), [(b"int x;", "has no kernels"), (b"\xff\xfe", "is not UTF-8"), (b"", "has no kernels")]
)
def test_a_file_without_kernels_is_named(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "file.cu"
    file.write_bytes(content)
    result = CliRunner().invoke(main, ["translate", str(file)])
    assert result.exit_code == 2
    assert "file.cu" in result.output
    assert words in result.output


def test_copies_matrices_and_barrier_objects_as_text(tmp_path: Path) -> None:
    code = """
    extern "C" __global__ void kernel(const float* x, float* y) {
        __shared__ unsigned long long bar;
        __shared__ float cells[32];
        float d[4] = {0, 0, 0, 0};
        unsigned to = (unsigned)__cvta_generic_to_shared(&cells[threadIdx.x]);
        unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + threadIdx.x));
        asm volatile("cp.async.commit_group; cp.async.wait_group 0; mbarrier.arrive.shared.b64 _, [%0];" :: "r"(b));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(0));
        y[threadIdx.x] = d[0];
    }"""
    result = translate(code, tmp_path, "kernel")
    assert result.exit_code == 0, result.output
    for part in (
        "copies begin", "copies wait 0", "shared address (cells", "shared pointer", "barrier object arrive",
        "= mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32(",
    ):  # fmt: skip
        assert part in result.output, result.output

"""Tables, annotated source and pictures of counters, from the command line and from Python."""

import re
import textwrap
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from numba import complex128, cuda, float32, int8

import refsim
from refsim.cli import main
from refsim.counters.picture import bank_colour, degree_colour
from refsim.counters.table import per_line, table

SCRIPT = """
import numpy as np
from numba import complex128, cuda, float32, int8

@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((32, 32), float32)
    column, first = cuda.threadIdx.x, cuda.threadIdx.y
    for row in range(first, 32, 8):
        tile[row, column] = x[row, column]
    cuda.syncthreads()
    for row in range(first, 32, 8):
        out[row, column] = tile[column, row]

x = np.arange(1024, dtype=np.float32).reshape(32, 32)
for _ in range(3):
    transpose[1, (32, 8)](x, np.zeros_like(x))
"""

CUPY_SCRIPT = r'''
import cupy

kernel = cupy.RawKernel(r"""
extern "C" __global__ void rows(const float* x, float* out) {
    __shared__ float tile[8][32];
    for (int row = 0; row < 8; row++) {
        tile[row][threadIdx.x] = x[row * 32 + threadIdx.x];
    }
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x % 8][threadIdx.x / 8];
}
""", "rows")
kernel((1,), (32,), (cupy.zeros(256, cupy.float32), cupy.zeros(32, cupy.float32)))
'''


@pytest.fixture
def run(tmp_path):
    def run(script, *options):
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        return CliRunner().invoke(main, ["run", *options, str(tmp_path / "script.py")])

    return run


def test_table_of_all_launches(run):
    result = run(SCRIPT, "--counters")
    assert result.exit_code == 0, result.output
    assert "counters of transpose on sim:sm_90, 3 launches" in result.output
    rows = [line.split() for line in result.output.splitlines()]
    assert ["global", "load", "96", "384", "12,288", "12,288", "100%"] in rows
    assert ["shared", "load", "96", "3,072", "2,976", "12,288"] in rows
    assert ["shared", "store", "96", "96", "0", "12,288"] in rows
    assert ["barrier", "768", "24"] in rows
    assert "refsim: 3 launches of 1 kernel on sim:sm_90: no findings" in result.output


def test_no_counters_unless_asked_for(run):
    assert "counters" not in run(SCRIPT).output


def test_annotated_source(run):
    output = run(SCRIPT, "--per-line").output
    assert "│         out[row, column] = tile[column, row]" in output
    (row,) = [line for line in output.splitlines() if line.endswith("tile[column, row]")]
    # line, instructions, sectors, efficiency, wavefronts, conflicts
    assert row.split("│")[0].split()[2:] == ["384", "100%", "3,072", "2,976"]
    assert "flops" not in output  # an empty column
    assert re.search(r"^ *11 .*│     cuda.syncthreads\(\)$", output, re.MULTILINE)


def test_annotated_source_of_cupy(run):
    output = run(CUPY_SCRIPT, "--per-line").output
    (row,) = [line for line in output.splitlines() if line.endswith("tile[threadIdx.x % 8][threadIdx.x / 8];")]
    # lanes 0 to 7 meet bank 0 in eight rows, lanes 8 to 15 bank 1, …
    assert row.split("│")[0].split()[2:] == ["4", "100%", "8", "7"]


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_picture_file(run, tmp_path, suffix):
    result = run(SCRIPT, "--picture", str(tmp_path / f"tile.{suffix}"))
    assert result.exit_code == 0, result.output
    text = (tmp_path / f"tile.{suffix}").read_text()
    assert text.startswith("<svg" if suffix == "svg" else "<!doctype html>")
    assert "tile in transpose: float32 [32][32]" in text


def test_picture_needs_a_known_suffix(run):
    result = run(SCRIPT, "--picture", "tile.png")
    assert result.exit_code == 2
    assert ".svg or .html" in result.output


def test_no_picture_without_shared_memory(run, tmp_path):
    script = (
        "import numpy as np\nfrom numba import cuda\n\n@cuda.jit\ndef k(x):\n    x[0] = 1\n\nk[1, 1](np.zeros(1))\n"
    )
    result = run(script, "--picture", str(tmp_path / "tile.svg"))
    assert "no kernel accessed shared memory" in result.output
    assert not (tmp_path / "tile.svg").exists()


def _tile(pad):
    shape = (32, 32 + pad)

    def transpose(x, out):
        tile = cuda.shared.array(shape, float32)
        column, first = cuda.threadIdx.x, cuda.threadIdx.y
        for row in range(first, 32, 8):
            tile[row, column] = x[row, column]
        cuda.syncthreads()
        for row in range(first, 32, 8):
            out[row, column] = tile[column, row]

    x = np.zeros((32, 32), np.float32)
    return refsim.launch(transpose, 1, (32, 8), x, x.copy(), counters=True)


def test_picture_of_a_tile():
    """Cells, colours and the outlined column of the plain tile, read back from the SVG."""
    tree = ElementTree.fromstring(refsim.picture_of_shared(_tile(0), "tile"))
    space = "{http://www.w3.org/2000/svg}"
    paths = {p.get("fill"): p.get("d") for p in tree.iter(f"{space}path") if p.get("fill")}
    assert paths[bank_colour(5, 32)].count("z") == 32
    assert paths[degree_colour(32)].count("z") == 1024  # every load of the tile meets 32 ways
    assert paths[degree_colour(1)].count("z") == 1024  # no store does
    texts = [t.text for t in tree.iter(f"{space}text") if t.text]
    assert "tile in transpose: float32 [32][32]" in texts
    assert any(text.startswith("outlined: 32 wavefronts for one warp") for text in texts)


def test_padding_removes_the_conflicts():
    plain, padded = _tile(0), _tile(1)
    assert plain.counters.bank_conflicts == 32 * 31
    assert padded.counters.bank_conflicts == 0
    assert degree_colour(32) not in refsim.picture_of_shared(padded, "tile")
    assert padded.counters.shared_arrays["tile"].degrees["load"].max() == 1
    assert (padded.counters.shared_arrays["tile"].degrees["load"].reshape(32, 33)[:, 32] == 0).all()


def test_picture_of_what_is_not_there():
    report = _tile(0)
    with pytest.raises(ValueError, match="no shared array 'tiles'; it has tile"):
        refsim.picture_of_shared(report, "tiles")
    with pytest.raises(ValueError, match="counters=True"):
        refsim.picture_of_shared(refsim.launch(lambda: None, 1, 1), "tile")


def test_dynamic_shared_memory_is_drawn_in_lines_of_all_banks():
    def kernel(out):
        cells = cuda.shared.array(0, float32)
        i = cuda.threadIdx.x
        cells[2 * i] = i
        out[i] = cells[2 * i]

    report = refsim.launch(kernel, 1, 64, np.zeros(64), shared_bytes=512, counters=True)
    (name,) = report.counters.shared_arrays
    assert report.counters.shared_store.conflicts == 2
    assert "float32 [128]" in refsim.picture_of_shared(report, name)


def test_check_counts_kernels():
    options = ["check", "rmsnorm", "--dtype", "float32", "--cases", "2"]
    result = CliRunner().invoke(main, [*options, "--counters"])
    assert result.exit_code == 0, result.output
    assert "counters of rmsnorm on sim:sm_90" in result.output
    assert "global load" in result.output
    assert "counters" not in CliRunner().invoke(main, options).output


def test_check_counts_simulated_kernels_only(tmp_path):
    (tmp_path / "mine.py").write_text("def mine(x):\n    return x.sum(axis=-1)\n")
    result = CliRunner().invoke(main, ["check", "sum", "--backend", f"{tmp_path / 'mine.py'}:mine", "--counters"])
    assert result.exit_code == 2
    assert "--counters counts kernels on a simulated device" in result.output


def test_uncounted_launches_are_named(run):
    result = run(
        """
        import numpy as np
        from numba import cuda

        @cuda.jit
        def store(out):
            out[0] = 1

        store[1, 2048](np.zeros(1, np.int32))
        """,
        "--counters",
    )
    assert "no counters of store: 1 launch beyond the limits\n" in result.output


def test_texts_are_those_of_the_report():
    counters = _tile(0).counters
    assert "bank conflicts" in table(counters)
    assert "tile[column, row]" in per_line(counters)


def test_picture_of_complex_and_narrow_elements():
    def kernel(out):
        wide = cuda.shared.array(40, complex128)
        narrow = cuda.shared.array((4, 64), int8)
        i = cuda.threadIdx.x
        wide[i] = i
        narrow[i % 4, i] = i
        cuda.syncthreads()
        out[i] = wide[31 - i].real + narrow[i % 4, i]

    report = refsim.launch(kernel, 1, 32, np.zeros(32), counters=True)
    assert "complex128 [40]" in refsim.picture_of_shared(report, "wide")
    assert "int8 [4][64]" in refsim.picture_of_shared(report, "narrow")
    # 16 bytes a lane: four wavefronts; bytes of one word are one access
    (wide,) = [c.shared_store for line, c in report.counters.lines.items() if line.text.strip().startswith("wide")]
    assert (wide.wavefronts, wide.conflicts) == (4, 0)

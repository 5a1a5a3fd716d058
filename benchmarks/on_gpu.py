"""Judge the kernels of kernels_numba and kernels_cupy on a real CUDA GPU, next to the simulated device.

``python benchmarks/on_gpu.py FOLDER`` writes ``numba.json``, ``cupy.json`` and ``report.md`` into a folder: what
``refsim check --backend numba --device cuda:0`` and ``--backend cupy --device cuda:0`` report, and on what.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 still asks NumPy for a name that NumPy 2.5 dropped
    np.row_stack = np.vstack

from click.testing import CliRunner

from refsim.cli import main

BACKENDS = {"numba": "kernels_numba:backend", "cupy": "kernels_cupy:backend"}
DTYPES = {"numba": ("float16", "float32", "float64"), "cupy": ("float16", "bfloat16", "float32", "float64")}


def machine() -> list[str]:
    """GPU, driver and library versions."""
    from numba import cuda

    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    lines = [f"{name}, compute capability {'.'.join(map(str, device.compute_capability))}"]
    for package in ("numpy", "numba-cuda", "cupy-cuda13x", "cupy-cuda12x"):
        try:
            lines.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return lines


def judge(name: str, folder: Path) -> tuple[str, float]:
    """Run one check; its rows as a Markdown table, and the seconds it took."""
    target = folder / f"{name}.json"
    arguments = ["check", "--backend", BACKENDS[name], "--device", "cuda:0", "--format", "json", "-o", str(target)]
    for dtype in DTYPES[name]:
        arguments += ["--dtype", dtype]
    start = time.perf_counter()
    result = CliRunner().invoke(main, arguments)
    seconds = time.perf_counter() - start
    if not target.exists():
        return f"no report: exit status {result.exit_code}\n\n```\n{result.output}\n```", seconds
    rows = json.loads(target.read_text())["results"]
    lines = ["| operator | kernel | dtype | cases | worst margin | verdict |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        margin = f"{row['worst_margin']:.3g}" if isinstance(row["worst_margin"], float) else row["worst_margin"] or ""
        lines.append(
            f"| {row['operator']} | {row['kernel']} | {row['dtype']} | {row['cases']} | {margin} | {row['verdict']} |"
        )
    return "\n".join(lines), seconds


def write(folder: Path) -> None:
    """Write all reports."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["# The kernels on a GPU", "", "Measured on " + "; ".join(machine()) + ".", ""]
    for name in BACKENDS:
        table, seconds = judge(name, folder)
        parts += [f"## `refsim check --backend {name} --device cuda:0`", "", f"{seconds:.0f} s.", "", table, ""]
    (folder / "report.md").write_text("\n".join(parts))
    print("\n".join(parts))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())

"""Measure memory counters on a GPU with Nsight Compute: what refsim's counters are compared with.

``python benchmarks/nsight.py --output FOLDER`` writes ``nsight.json`` into a folder: for every launch of
`measured_launches` its kernel, grid, block and the metrics that the hardware counted. Beside it lie the listing of the
source page (``SUITE_source.csv.gz``: one row per machine instruction) and the profiler's messages.
``--dry-run`` lists the launches and needs no GPU; ``--only REGEX`` takes the jobs whose names match. A launch that
fails is recorded with its error.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 still asks NumPy for a name that NumPy 2.5 dropped
    np.row_stack = np.vstack

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from measured_launches import SUITES, Job  # noqa: E402

HERE = Path(__file__).resolve()
SPACES = ("global_op_ld", "global_op_st", "global_op_red", "global_op_atom", "local_op_ld", "local_op_st")
SHARED = ("shared_op_ld", "shared_op_st", "shared_op_atom")
METRICS = [
    *(f"l1tex__t_{what}_pipe_lsu_mem_{space}.sum" for space in SPACES for what in ("requests", "sectors")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_{space}.sum" for space in SHARED),
    *(f"l1tex__data_bank_conflicts_pipe_lsu_mem_{space}.sum" for space in SHARED),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    *(
        f"smsp__inst_executed_op_{op}.sum"
        for op in (
            "shared_ld", "shared_st", "shared_atom", "global_ld", "global_st", "global_atom", "global_red",
            "local_ld", "local_st", "branch", "generic_ld", "generic_st",
        )
    ),
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__branch_targets_threads_divergent.sum",
    "smsp__branch_targets_threads_uniform.sum",
]  # fmt: skip
PATCHED = [
    *(
        f"smsp__sass_{what}_mem_{space}.sum"
        for space in ("shared_op_ld", "shared_op_st")
        for what in ("l1tex_data_bank_conflicts_pipe_lsu", "l1tex_data_pipe_lsu_wavefronts", "data_bytes")
    ),
    *(f"smsp__sass_data_bytes_mem_{space}.sum" for space in ("global_op_ld", "global_op_st")),
    *(f"smsp__sass_l1tex_t_{what}_pipe_lsu_mem_{space}.sum" for space in ("global_op_ld", "global_op_st")
      for what in ("requests", "sectors")),
    *(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in (
        "fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hadd", "hmul", "hfma", "integer", "conversion", "control",
        "memory", "fp32", "fp64", "bit", "inter_thread_communication",
    )),
]  # fmt: skip
"""Metrics for which the profiler instruments the program: for kernels_cupy alone, as each costs time."""

SECONDS = {"kernels_cupy": 100, "patterns": 150}
"""How long a suite may launch before it stops."""


# ------------------------------------------------------------------------------------------------- launching


class Listing:
    """A launcher that launches nothing and lists what it was asked for."""

    def __init__(self) -> None:
        self.launches: list[tuple[Any, Any, Any]] = []

    def launch(self, kernel: Any, grid: Any, block: Any, *args: Any, shared_bytes: int = 0) -> None:
        """Note a launch."""
        self.launches.append((kernel, _triple(grid), _triple(block)))

    def empty(self, shape: Any, dtype: Any) -> Any:
        """A host array."""
        return np.zeros(shape, dtype)

    zeros = empty

    def array(self, host_array: Any) -> Any:
        """The array itself."""
        return host_array


def _triple(size: Any) -> list[int]:
    parts = list(size) if isinstance(size, tuple | list) else [size]
    return [int(part) for part in (*parts, 1, 1)][:3]


def jobs_of(suite: str) -> list[Job]:
    """The jobs of a suite that are wanted."""
    wanted = re.compile(os.environ.get("NSIGHT_ONLY", ""))
    return [job for job in SUITES[suite]() if wanted.search(job.name)]


def listed(job: Job) -> list[tuple[Any, list[int], list[int]]]:
    """Kernel, grid and block of each launch of a job."""
    listing = Listing()
    job.run(listing)
    return listing.launches


def function_name(expression: str) -> str:
    """``rmsnorm`` of ``rmsnorm<float>``."""
    return expression.split("<")[0]


def launch_all(suite: str, log: Path, seconds: float, passes: str) -> None:
    """Run the jobs of a suite on the GPU, and log each launch in order."""
    from kernels_cupy.cupy_launcher import CupyLauncher, _compiled

    started = time.monotonic()
    jobs = jobs_of(suite)
    launcher = CupyLauncher()
    kernels = {launch[0].name: launch[0] for job in jobs for launch in listed(job)}

    def compile_one(kernel: Any) -> str | None:
        try:
            with launcher._device:
                _compiled(kernel.code, (*kernel.options, *launcher._include), kernel.name, launcher._device.id)
        except Exception as error:  # recorded: the launches of this kernel will say the same
            return f"{kernel.name}: {error}"[:300]
        return None

    with ThreadPoolExecutor(8) as pool:
        errors = [error for error in pool.map(compile_one, kernels.values()) if error]
    print(f"compiled {len(kernels)} kernels in {time.monotonic() - started:.0f} s; {len(errors)} errors", flush=True)
    for error in errors:
        print(error, flush=True)
    if passes == "compile":
        return
    begun = time.monotonic()
    with log.open("w") as lines:
        for number, job in enumerate(jobs):
            if time.monotonic() - begun > seconds:
                print(f"out of time after {number} of {len(jobs)} jobs of {suite}", flush=True)
                break
            launches = [
                {"job": job.name, "kernel": kernel.name, "grid": grid, "block": block}
                for kernel, grid, block in listed(job)
            ]
            error = None
            try:
                job.run(launcher)
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"[:300]
                print(f"{job.name}: {error}", flush=True)
            for launch in launches:
                print(json.dumps({**launch, "error": error}), file=lines, flush=True)
            if number % 50 == 0:
                print(f"{suite}: {number} of {len(jobs)} jobs, {time.monotonic() - begun:.0f} s", flush=True)


# ------------------------------------------------------------------------------------------------- profiling


def profiler() -> str:
    """Path of ncu."""
    found = shutil.which("ncu")
    folders = [*Path("/opt/nvidia/nsight-compute").glob("*"), *Path("/usr/local").glob("cuda*/bin")]
    candidates = [str(folder / "ncu") for folder in folders if (folder / "ncu").exists()]
    if found is None and not candidates:
        raise SystemExit("ncu is neither on PATH nor in /opt/nvidia/nsight-compute nor in /usr/local/cuda*/bin")
    return found or candidates[-1]


def known_metrics(ncu: str, folder: Path) -> tuple[list[str], list[str]]:
    """Of METRICS and PATCHED those that this profiler has; all of them if it does not say."""
    result = subprocess.run(
        [ncu, "--query-metrics", "--chips", "gh100"], capture_output=True, text=True, timeout=60, check=False
    )
    names = set(re.findall(r"^\s*(\w+__\w+)", result.stdout, re.MULTILINE))
    (folder / "known_metrics.txt").write_text("\n".join(sorted(names)) or result.stdout + result.stderr)
    if not names:
        return METRICS, PATCHED
    missing = [metric for metric in METRICS + PATCHED if metric.split(".")[0] not in names]
    print(f"{len(names)} metrics known; not among them: {', '.join(missing) or 'none'}", flush=True)
    return tuple([m for m in wanted if m not in missing] for wanted in (METRICS, PATCHED))  # type: ignore[return-value]


def child(suite: str, log: Path, passes: str = "all") -> list[str]:
    """The command that launches a suite."""
    return [sys.executable, str(HERE), "--suite", suite, "--log", str(log), "--passes", passes]


def profile(ncu: str, suite: str, options: list[str], report: Path, log: Path, seconds: float) -> str:
    """Run a suite under the profiler; what both printed."""
    names = "|".join(sorted({function_name(launch[0].name) for job in jobs_of(suite) for launch in listed(job)}))
    command = [
        ncu, "--force-overwrite", "--export", str(report), "--clock-control", "none", "--cache-control", "none",
        "--kernel-name", f"regex:^({names})$", *options, *child(suite, log),
    ]  # fmt: skip
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        return result.stdout
    except subprocess.TimeoutExpired as error:
        return f"timed out after {seconds:.0f} s\n{(error.stdout or b'').decode(errors='replace')}"


def page(ncu: str, report: Path, name: str) -> list[dict[str, str]]:
    """A page of a report as rows."""
    result = subprocess.run(
        [ncu, "--import", str(report), "--page", name, "--csv", "--print-units", "base"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    start = result.stdout.find('"ID"')
    if start < 0:
        raise RuntimeError(f"no table in page {name} of {report}: {(result.stdout + result.stderr)[-500:]}")
    return list(csv.DictReader(io.StringIO(result.stdout[start:])))


def number(text: str) -> float | int | str:
    """A cell of a report."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def joined(rows: list[dict[str, str]], log: Path) -> list[dict[str, Any]]:
    """The log's launches with the metrics of the profiler's rows, which are in the same order."""
    launches = [json.loads(line) for line in log.read_text().splitlines()]
    rows = [row for row in rows if row.get("ID", "").isdigit()]
    position = 0
    for launch in launches:
        if position >= len(rows):
            break
        row = rows[position]
        grid, block = (re.findall(r"\d+", row.get(key, "")) for key in ("Grid Size", "Block Size"))
        same = (
            re.split(r"[<(]", row["Kernel Name"].removeprefix("void "))[0].strip() == function_name(launch["kernel"])
            and (not grid or [int(n) for n in grid] == launch["grid"])
            and (not block or [int(n) for n in block] == launch["block"])
        )
        if not same:  # a launch that failed leaves no row
            launch["error"] = launch["error"] or f"the profiler has no row for it, but {row['Kernel Name']}"
            continue
        position += 1
        launch["metrics"] = {
            name: number(text) for name, text in row.items() if name in METRICS + PATCHED and text not in ("", "0")
        }
    print(f"{position} of {len(rows)} rows of the profiler belong to {len(launches)} launches", flush=True)
    return launches


def record(folder: Path) -> None:
    """Measure everything and write it down."""
    folder.mkdir(parents=True, exist_ok=True)
    ncu = profiler()
    began = time.monotonic()
    plain, patched = known_metrics(ncu, folder)
    result: dict[str, Any] = {"machine": machine(ncu), "suites": {}}
    print(json.dumps(result["machine"]), flush=True)
    work = Path(os.environ.get("TMPDIR", "/tmp")) / "nsight"
    work.mkdir(exist_ok=True)
    for suite, seconds in SECONDS.items():
        if not jobs_of(suite):
            continue
        metrics = plain + (patched if suite == "kernels_cupy" else [])
        report, log = work / f"{suite}.ncu-rep", work / f"{suite}.jsonl"
        text = profile(ncu, suite, ["--metrics", ",".join(metrics)], report, log, seconds + 40)
        (folder / f"{suite}_messages.txt").write_text(text[:200000])
        print("\n".join(line for line in text.splitlines() if "==PROF==" not in line)[-3000:], flush=True)
        try:
            result["suites"][suite] = joined(page(ncu, report, "raw"), log)
        except Exception as error:
            result["suites"][suite] = []
            print(f"{suite}: {type(error).__name__}: {error}", flush=True)
        (folder / "nsight.json").write_text(json.dumps(result, indent=0))
        print(f"{suite} done after {time.monotonic() - began:.0f} s", flush=True)
    if jobs_of("kernels_cupy"):
        sources(ncu, folder, work, 270 - (time.monotonic() - began))


def sources(ncu: str, folder: Path, work: Path, seconds: float) -> None:
    """Counters per machine instruction of kernels_cupy, as far as time allows."""
    if seconds < 30:
        print("no time left for the source page", flush=True)
        return
    report, log = work / "source.ncu-rep", work / "source.jsonl"
    os.environ["NSIGHT_SECONDS"] = str(max(10.0, seconds - 60))
    text = profile(ncu, "kernels_cupy", ["--section", "SourceCounters"], report, log, seconds)
    (folder / "source_messages.txt").write_text(text[:200000])
    command = [ncu, "--import", str(report), "--page", "source", "--csv", "--print-units", "base"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except subprocess.TimeoutExpired:
        print("the source page took too long", flush=True)
        return
    keep = re.compile(r'Kernel Name|"ID"|"#"|\b(LD|ST|LDG|STG|LDS|STS|LDL|STL|ATOM|ATOMG|ATOMS|RED|REDG|LDSM)\b')
    lines = [line for line in listing.splitlines() if keep.search(line) or not re.match(r'"?\d+"?,', line)]
    with gzip.open(folder / "kernels_cupy_source.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    shutil.copy(log, folder / "source.jsonl")
    print(f"source page: {len(lines)} of {len(listing.splitlines())} lines kept", flush=True)


def machine(ncu: str) -> dict[str, str]:
    """GPU, driver and versions."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    found = {"gpu": "", "ncu": "", "nvrtc": "", "cupy": ""}
    try:
        found["gpu"] = subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip()
        found["ncu"] = (
            subprocess.run([ncu, "--version"], capture_output=True, text=True).stdout.strip().splitlines()[-1]
        )
        import cupy

        found["cupy"] = cupy.__version__
        found["nvrtc"] = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    except Exception as error:
        print(f"machine: {type(error).__name__}: {error}", flush=True)
    return found


def dry_run() -> None:
    """List the launches."""
    total = 0
    for suite in SUITES:
        for job in jobs_of(suite):
            for kernel, grid, block in listed(job):
                total += 1
                print(f"{suite}: {job.name}: {kernel.name} grid {grid} block {block}")
    print(f"{total} launches, {len(METRICS)} metrics, {len(PATCHED)} more for kernels_cupy")


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder for the results")
    parser.add_argument("--dry-run", action="store_true", help="list the launches; needs no GPU")
    parser.add_argument("--only", default="", metavar="REGEX", help="take only jobs whose names match")
    parser.add_argument("--suite", choices=list(SUITES), help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--passes", default="all", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        os.environ["NSIGHT_ONLY"] = options.only
    if options.dry_run:
        dry_run()
    elif options.suite:
        seconds = float(os.environ.get("NSIGHT_SECONDS", SECONDS[options.suite]))
        launch_all(options.suite, options.log, seconds, options.passes)
    elif options.output:
        for suite in filter(
            jobs_of, SUITES
        ):  # fills CuPy's cache of compiled kernels, so that profiling begins at once
            subprocess.run(child(suite, Path(os.devnull), "compile"), check=False, timeout=90)
        record(options.output)
    else:
        parser.error("give --output FOLDER, or --dry-run")


if __name__ == "__main__":
    main()

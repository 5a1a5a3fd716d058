"""Turn what `nsight.py` measured into test data: one line per launch, and the reasons for differences.

``python benchmarks/nsight_data.py FOLDER...`` reads folders that `nsight.py` wrote, the first one that of all
launches, and writes tests/refsim/data/nsight_h200.json. A difference between hardware and simulator for which
`reason_for` knows no reason stops it.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from measured_launches import SUITES, Counting
from nsight_compare import reasons_for

TARGET = Path(__file__).resolve().parents[1] / "tests" / "refsim" / "data" / "nsight_h200.json"

L1 = "l1tex__{}_pipe_lsu_mem_{}.sum"
EXECUTED = "smsp__inst_executed_op_{}.sum"
FLOPS = {f"{kind}{op}": f"smsp__sass_thread_inst_executed_op_{kind}{op}_pred_on.sum"
         for kind in ("f", "d") for op in ("add", "mul", "fma")}  # fmt: skip


def metrics_of(metrics: dict[str, Any]) -> dict[str, list[int]]:
    """Requests and sectors of global and local memory; requests, wavefronts and conflicts of shared memory."""

    def value(name: str) -> int:
        return int(metrics.get(name, 0))

    found: dict[str, list[int]] = {}
    for space in ("global", "local"):
        for kind, operations in (("load", ["ld"]), ("store", ["st"]), ("atomic", ["red", "atom"])):
            parts = [f"{space}_op_{op}" for op in operations]
            found[f"{space} {kind}"] = [
                sum(value(L1.format(what, part)) for part in parts) for what in ("t_requests", "t_sectors")
            ]
    for kind, op in (("load", "ld"), ("store", "st"), ("atomic", "atom")):
        part = f"shared_op_{op}"
        found[f"shared {kind}"] = [
            value(EXECUTED.format(f"shared_{op}")),
            value(f"l1tex__data_pipe_lsu_wavefronts_mem_{part}.sum"),
            value(f"l1tex__data_bank_conflicts_pipe_lsu_mem_{part}.sum"),
        ]
    return {name: numbers for name, numbers in found.items() if any(numbers)}


def instructions_of(folder: Path) -> list[dict[str, list[int]]]:
    """For each launch of the source page, by space, kind and width: executions by warps and threads, wavefronts."""
    launches: list[dict[str, list[int]]] = []
    columns: dict[str, int] = {}
    with gzip.open(folder / "kernels_cupy_source.csv.gz", "rt") as file:
        for row in csv.reader(file):
            if row[:1] == ["Kernel Name"]:
                launches.append(defaultdict(lambda: [0, 0, 0]))
            elif row[:1] == ["Address"]:
                columns = {title: number for number, title in enumerate(row)}
            elif row and row[columns["Address Space"]] in ("Global", "Shared", "Local"):
                space, kind = row[columns["Address Space"]].lower(), row[columns["Access Operation"]].lower()
                kind = "atomic" if kind == "-" else kind
                total = launches[-1][f"{space} {kind} {row[columns['Access Size']]}"]
                total[0] += int(row[columns["Instructions Executed"]])
                total[1] += int(row[columns["Predicated-On Thread Instructions Executed"]])
                if "L1 Wavefronts Shared" in columns:
                    total[2] += int(row[columns["L1 Wavefronts Shared"]])
    return launches


def main(folders: list[Path]) -> None:
    """Write the data."""
    measured = [json.loads((folder / "nsight.json").read_text()) for folder in folders]
    by_job: dict[str, list[dict[str, Any]]] = {}
    for part in measured:
        for suite, launches in part["suites"].items():
            instructions = instructions_of(folders[0]) if suite == "kernels_cupy" and part is measured[0] else None
            for number, launch in enumerate(launches):
                if "metrics" not in launch:
                    raise ValueError(f"{launch['job']}: {launch['error']}")
                entry = {key: launch[key] for key in ("kernel", "grid", "block")}
                entry["counted"] = metrics_of(launch["metrics"])
                if instructions is not None:
                    entry["instructions"] = {k: v for k, v in instructions[number].items() if any(v)}
                    flops = {name: launch["metrics"].get(metric, 0) for name, metric in FLOPS.items()}
                    entry["flops"] = {name: value for name, value in flops.items() if value}
                if suite != "kernels_cupy" or instructions is not None:
                    by_job.setdefault(launch["job"], []).append(entry)
    lines = []
    for suite, jobs in SUITES.items():
        for job in jobs():
            launcher = Counting()
            job.run(launcher)
            known = by_job.get(job.name)
            if known is None:
                print(f"not measured: {job.name}")
                continue
            for counters, entry in zip(launcher.counters, known[: len(launcher.counters)], strict=True):
                entry = {**entry, "suite": suite, "job": job.name}
                reasons = reasons_for(counters, entry)
                if reasons:
                    entry["differs"] = reasons
                lines.append(json.dumps(entry, ensure_ascii=False))
    text = ",\n".join(lines)
    TARGET.write_text(
        f'{{"machine": {json.dumps(measured[0]["machine"])},\n"launches": [\n{text}\n]}}\n', encoding="utf-8"
    )
    print(f"{len(lines)} launches, {TARGET.stat().st_size} bytes in {TARGET}")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])

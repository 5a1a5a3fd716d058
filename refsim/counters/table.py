"""Counters as a table of text, and as the source with counters beside each line."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from pathlib import Path

from refsim.counters.record import CLASSES, Counters, Counts, Line

GAP = 6  # uncounted lines between two counted ones that are still printed

Column = tuple[str, Callable[[Counts], str]]


def number(value: int) -> str:
    """A count for people."""
    return f"{value:,}"


def share(value: float | None) -> str:
    """A ratio in percent; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.0f}%"


def table(counters: Counters) -> str:
    """All counters of a kernel."""
    launches = "1 launch" if counters.launches == 1 else f"{counters.launches} launches"
    blocks = [[f"counters of {counters.kernel} on {counters.device}, {launches}"]]
    blocks.append(_memory(counters))
    blocks.append(_shared(counters))
    blocks.append(_atomics(counters))
    blocks.append(_instructions(counters))
    blocks.append(_summary(counters))
    return "\n".join(line for block in blocks for line in block)


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
        for row in rows
    ]


def _memory(counters: Counters) -> list[str]:
    rows: list[tuple[str, ...]] = [("memory", "requests", "sectors", "bytes asked for", "bytes moved", "efficiency")]
    for space in ("global", "local", "constant"):
        for kind in ("load", "store"):
            t = counters.of(space, kind)
            if t.requests:
                counts = (t.requests, t.sectors, t.bytes, t.moved)
                rows.append((f"{space} {kind}", *map(number, counts), share(t.efficiency)))
    return _aligned(rows) if len(rows) > 1 else []


def _shared(counters: Counters) -> list[str]:
    rows: list[tuple[str, ...]] = [("shared memory", "requests", "wavefronts", "bank conflicts", "bytes asked for")]
    for kind in ("load", "store", "atomic"):
        t = counters.of("shared", kind)
        if t.requests:
            rows.append((f"shared {kind}", *map(number, (t.requests, t.wavefronts, t.conflicts, t.bytes))))
    return _aligned(rows) if len(rows) > 1 else []


def _atomics(counters: Counters) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("atomics", "requests", "sectors", "lanes", "lanes per address", "most lanes on one address")
    ]
    for space in ("global", "shared"):
        t = counters.of(space, "atomic")
        if t.requests:
            each = f"{t.multiplicity:.2f}"
            counts = map(number, (t.requests, t.sectors, t.lanes))
            rows.append((f"{space} atomic", *counts, each, number(t.most_on_one_address)))
    return _aligned(rows) if len(rows) > 1 else []


def _instructions(counters: Counters) -> list[str]:
    rows: list[tuple[str, ...]] = [("instructions", "of threads", "of warps")]
    for kind in CLASSES:
        if counters.instructions[kind]:
            counts = (counters.instructions[kind], counters.warp_instructions[kind])
            rows.append((kind.replace("_", " "), *map(number, counts)))
    total = (sum(counters.instructions.values()), sum(counters.warp_instructions.values()))
    return _aligned([*rows, ("all", *map(number, total))])


def _summary(counters: Counters) -> list[str]:
    divided = share(counters.divergent_branches / counters.branches) if counters.branches else "-"
    lines = [
        f"  warp efficiency {share(counters.warp_efficiency)}; {number(counters.branches)} branches by warps, "
        f"{number(counters.divergent_branches)} divided a warp ({divided})"
    ]
    if counters.flops:
        kinds = ", ".join(f"{number(n)} {kind}" for kind, n in sorted(counters.operations.items()))
        intensity = counters.arithmetic_intensity
        per_byte = "" if intensity is None else f"; {intensity:.2f} per byte of global memory moved"
        lines.append(f"  floating-point operations: {kinds}{per_byte}")
    return lines


# ----------------------------------------------------------------------------------------------- line by line


def _positive(value: int) -> str:
    return number(value) if value else ""


COLUMNS: tuple[Column, ...] = (
    ("instructions", lambda c: _positive(sum(c.instructions.values()))),
    ("global sectors", lambda c: _positive(sum(c.of("global", k).sectors for k in ("load", "store", "atomic")))),
    ("efficiency", lambda c: share(c.global_bytes / c.moved_bytes) if c.moved_bytes else ""),
    ("shared wavefronts", lambda c: _positive(sum(c.of("shared", k).wavefronts for k in ("load", "store", "atomic")))),
    ("conflicts", lambda c: _positive(c.bank_conflicts)),
    ("divided warps", lambda c: _positive(c.divergent_branches)),
    ("flops", lambda c: _positive(c.flops)),
)


def per_line(counters: Counters) -> str:
    """The source of a kernel, with counters before each line; a column that is empty throughout is left out."""
    parts = []
    for file in dict.fromkeys(line.file for line in sorted(counters.lines)):
        lines = {line.line: (line, counts) for line, counts in counters.lines.items() if line.file == file}
        parts.append(_annotated(file, lines))
    return "\n".join(parts)


def _annotated(file: str, lines: dict[int, tuple[Line, Counts]]) -> str:
    columns = [(title, show) for title, show in COLUMNS if any(show(counts) for _, counts in lines.values())]
    rows: list[tuple[str, ...]] = [("line", *(title for title, _ in columns), "")]
    before = None
    for here in sorted(lines):
        line, counts = lines[here]
        if before is not None and here - before - 1 > GAP:
            rows.append(("⋮", *("" for _ in columns), ""))
        elif before is not None:
            for between in range(before + 1, here):
                text = _source(file, between, line)
                rows.append((str(between), *("" for _ in columns), text))
        rows.append((str(here), *(show(counts) for _, show in columns), line.text))
        before = here
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
    shown = [
        ("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) + f" │ {row[-1]}").rstrip() for row in rows
    ]
    return "\n".join([f"{file}", *shown])


def _source(file: str, number_: int, known: Line) -> str:
    """A line that was not counted, if the file still has the one that was."""
    if not Path(file).exists() or linecache.getline(file, known.line).rstrip("\n") != known.text:
        return ""
    return linecache.getline(file, number_).rstrip("\n")

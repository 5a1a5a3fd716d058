"""Compare what the simulator counts with what hardware counted, and name the reason where they differ."""

from __future__ import annotations

from typing import Any

from refsim.counters import Counters

REASONS = {
    "wider": "the compiler moves neighbouring words of an unrolled loop at once: fewer requests of more bytes each",
    "narrower": "the compiler moves a vector word by word: more requests of fewer bytes",
    "apart": "pieces of a divided warp execute the instruction one after another, or with every lane of a warp "
    "switched off: more requests by the same lanes",
    "reused": "the compiler keeps a value that it has, or loads it only where it is needed: fewer bytes",
    "stack": "the compiler keeps a local array, or registers that it has too few of, in local memory",
    "unknown": "not explained",
    "arbitration": "the hardware's counters include wavefronts lost to other traffic; by instruction they are equal",
}

UNEXPLAINED = {f"{kernel} random 256 0": "global atomic" for kernel in ("add_global", "fetch_and_add_global")}
"""Jobs and what of them differs for no known reason: 32 scattered atomics take one sector more than they touch."""


def counts_of(counters: Counters) -> dict[str, list[int]]:
    """The simulator's counts in the form of the data: by space and kind, empty ones left out."""
    found = {}
    for space in ("global", "local"):
        for kind in ("load", "store", "atomic"):
            t = counters.of(space, kind)
            found[f"{space} {kind}"] = [t.requests, t.sectors]
    for kind in ("load", "store", "atomic"):
        t = counters.of("shared", kind)
        found[f"shared {kind}"] = [t.requests, t.wavefronts, t.conflicts]
    return {name: numbers for name, numbers in found.items() if any(numbers)}


def reasons_for(counters: Counters, measured: dict[str, Any]) -> dict[str, str]:
    """By space and kind, why the counts of a launch differ from those measured; nothing where they are equal.

    ``measured["counted"]`` has the hardware's counts, ``measured["instructions"]`` for each space, kind and width in
    bits how many warps and threads executed instructions, and their wavefronts.

    Raises
    ------
    ValueError
        For a difference that no reason fits.
    """
    ours, theirs = counts_of(counters), measured["counted"]
    found = {}
    for name in sorted({*ours, *theirs}):
        if UNEXPLAINED.get(measured["job"]) == name:
            found[name] = "unknown"
        elif ours.get(name) != theirs.get(name):
            found[name] = _reason(counters, name, ours.get(name), theirs.get(name), measured.get("instructions", {}))
    return found


def _reason(
    counters: Counters, name: str, ours: list[int] | None, theirs: list[int] | None, instructions: dict[str, list[int]]
) -> str:
    space, kind = name.split()
    traffic = counters.of(space, kind)
    if space == "local" and ours is None:
        return "stack"
    rows = {int(key.split()[2]): row for key, row in instructions.items() if key.startswith(f"{name} ")}
    warps = sum(row[0] for row in rows.values())
    lanes = sum(row[1] for row in rows.values())
    moved = sum(bits // 8 * row[1] for bits, row in rows.items())
    if space == "shared" and (warps, sum(row[2] for row in rows.values())) == (traffic.requests, traffic.wavefronts):
        return "arbitration"
    if moved == traffic.bytes and lanes < traffic.lanes:
        return "wider"
    if moved == traffic.bytes and lanes > traffic.lanes:
        return "narrower"
    if moved == traffic.bytes and warps > traffic.requests:
        return "apart"
    if kind == "load" and moved < traffic.bytes:
        return "reused"
    raise ValueError(
        f"{counters.kernel}, {name}: counted {ours}, measured {theirs}, {traffic.bytes} bytes against {moved}: no "
        "reason is known"
    )

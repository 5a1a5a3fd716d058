"""The records that counters come in: traffic of one kind, counts of a line or of a kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SECTOR_BYTES = 32

CLASSES = (
    "integer", "float_add", "float_mul", "float_fma", "float_div", "matrix", "special", "conversion", "compare",
    "global_load", "global_store", "shared_load", "shared_store", "local_load", "local_store", "constant_load",
    "atomic", "control", "warp", "barrier",
)  # fmt: skip
"""Classes of the instruction mix."""

SPACES = ("global", "shared", "local", "constant")
KINDS = ("load", "store", "atomic")


@dataclass
class Traffic:
    """Accesses of one kind to one memory space.

    Attributes
    ----------
    requests
        Warp instructions.
    lanes
        Accesses of single threads.
    bytes
        Bytes that the lanes asked for.
    sectors
        Sectors of 32 bytes that the requests touched, each once per request; global and local memory.
    wavefronts
        Passes through shared memory, one per request without conflicts (two of 8 bytes a lane, four of 16 bytes).
    conflicts
        Wavefronts beyond those that the requests would take without bank conflicts.
    addresses
        Different addresses, summed over requests; atomics.
    most_on_one_address
        Most lanes of one warp instruction on one address; atomics.
    """

    requests: int = 0
    lanes: int = 0
    bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    conflicts: int = 0
    addresses: int = 0
    most_on_one_address: int = 0

    def add(self, other: Traffic) -> None:
        """Add the counts of other accesses."""
        self.requests += other.requests
        self.lanes += other.lanes
        self.bytes += other.bytes
        self.sectors += other.sectors
        self.wavefronts += other.wavefronts
        self.conflicts += other.conflicts
        self.addresses += other.addresses
        self.most_on_one_address = max(self.most_on_one_address, other.most_on_one_address)

    @property
    def moved(self) -> int:
        """Bytes of the sectors."""
        return self.sectors * SECTOR_BYTES

    @property
    def efficiency(self) -> float | None:
        """Bytes asked for over bytes of the sectors: 1 if every byte that moved was asked for once; None without any.

        It exceeds 1 where lanes ask for the same bytes.
        """
        return self.bytes / self.moved if self.sectors else None

    @property
    def multiplicity(self) -> float | None:
        """Lanes per address within a warp instruction, on average; None without atomics."""
        return self.lanes / self.addresses if self.addresses else None


@dataclass
class Counts:
    """What was counted, of one line or of all.

    Attributes
    ----------
    instructions, warp_instructions
        Instruction mix by class (`CLASSES`): executions by threads, and by warps.
    operations
        Floating-point operations by type: an addition, multiplication or division is one, an fma two, a product of
        matrices m × k and k × n by a warp 2·m·n·k.
    traffic
        `Traffic` by space (``global``, ``shared``, ``local``, ``constant``) and kind (``load``, ``store``, ``atomic``).
    branches, divergent_branches
        Branches that warps executed, and how many of them sent lanes of the warp both ways.
    """

    instructions: Counter[str] = field(default_factory=Counter)
    warp_instructions: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    traffic: dict[tuple[str, str], Traffic] = field(default_factory=dict)
    branches: int = 0
    divergent_branches: int = 0

    def add(self, other: Counts) -> None:
        """Add other counts."""
        self.instructions.update(other.instructions)
        self.warp_instructions.update(other.warp_instructions)
        self.operations.update(other.operations)
        for key, traffic in other.traffic.items():
            self.traffic.setdefault(key, Traffic()).add(traffic)
        self.branches += other.branches
        self.divergent_branches += other.divergent_branches

    def of(self, space: str, kind: str) -> Traffic:
        """Traffic of a space and kind; all zeros if there was none."""
        if space not in SPACES or kind not in KINDS:
            raise ValueError(
                f"no traffic {space!r}, {kind!r}: spaces are {', '.join(SPACES)}; kinds {', '.join(KINDS)}"
            )
        return self.traffic.get((space, kind), Traffic())

    @property
    def global_load(self) -> Traffic:
        """Loads from global memory."""
        return self.of("global", "load")

    @property
    def global_store(self) -> Traffic:
        """Stores to global memory."""
        return self.of("global", "store")

    @property
    def global_atomic(self) -> Traffic:
        """Atomic operations on global memory."""
        return self.of("global", "atomic")

    @property
    def shared_load(self) -> Traffic:
        """Loads from shared memory."""
        return self.of("shared", "load")

    @property
    def shared_store(self) -> Traffic:
        """Stores to shared memory."""
        return self.of("shared", "store")

    @property
    def shared_atomic(self) -> Traffic:
        """Atomic operations on shared memory."""
        return self.of("shared", "atomic")

    @property
    def local_load(self) -> Traffic:
        """Loads from local memory."""
        return self.of("local", "load")

    @property
    def local_store(self) -> Traffic:
        """Stores to local memory."""
        return self.of("local", "store")

    @property
    def barriers(self) -> int:
        """Barriers of a block, executions by warps."""
        return self.warp_instructions["barrier"]

    @property
    def flops(self) -> int:
        """Floating-point operations of all types."""
        return sum(self.operations.values())

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of shared memory that bank conflicts cost."""
        return sum(self.of("shared", kind).conflicts for kind in KINDS)

    @property
    def global_bytes(self) -> int:
        """Bytes that lanes asked for of global memory, atomics included."""
        return sum(self.of("global", kind).bytes for kind in KINDS)

    @property
    def moved_bytes(self) -> int:
        """Bytes of all global sectors."""
        return sum(self.of("global", kind).moved for kind in KINDS)

    @property
    def shared_bytes(self) -> int:
        """Bytes that lanes asked for of shared memory."""
        return sum(self.of("shared", kind).bytes for kind in KINDS)

    @property
    def arithmetic_intensity(self) -> float | None:
        """Floating-point operations per byte of global sectors; None if there are none."""
        return self.flops / self.moved_bytes if self.moved_bytes else None


@dataclass(frozen=True, order=True)
class Line:
    """A line of source."""

    file: str
    line: int
    text: str = field(compare=False)


@dataclass
class SharedArray:
    """How the elements of a shared array were accessed.

    Attributes
    ----------
    name, dtype, shape
        As declared.
    banks
        Number of banks of the device.
    degrees
        For ``load`` and ``store``, per word of four bytes: the most ways in which a warp instruction that touched it
        conflicted in its bank; 1 without a conflict, 0 for a word that was not touched.
    worst
        For ``load`` and ``store``, of the warp instruction with the most wavefronts: how many those are, the words that
        its lanes touch in order of lanes, and its line.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    banks: int
    degrees: dict[str, Any] = field(default_factory=dict)
    worst: dict[str, tuple[int, Any, Line]] = field(default_factory=dict)

    def add(self, other: SharedArray) -> None:
        """Add what other launches or blocks did."""
        for kind, degree in other.degrees.items():
            known = self.degrees.get(kind)
            if known is not None and len(known) == len(degree):  # dynamic arrays may differ in size
                degree = known.clip(min=degree)
            self.degrees[kind] = degree
        for kind, worst in other.worst.items():
            if kind not in self.worst or worst[0] > self.worst[kind][0]:
                self.worst[kind] = worst


@dataclass
class Counters(Counts):
    """Counters of a kernel: of one launch, or of several added up.

    Attributes
    ----------
    kernel, device
        Names.
    warp_size
        Lanes of a warp.
    launches
        How many launches were added up.
    lines
        `Counts` by source line.
    shared_arrays
        `SharedArray` by name.
    """

    kernel: str = ""
    device: str = ""
    warp_size: int = 32
    launches: int = 1
    lines: dict[Line, Counts] = field(default_factory=dict)
    shared_arrays: dict[str, SharedArray] = field(default_factory=dict)

    def add_launch(self, other: Counters) -> None:
        """Add the counters of other launches of the kernel."""
        self.add(other)
        self.launches += other.launches
        for line, counts in other.lines.items():
            self.lines.setdefault(line, Counts()).add(counts)
        for name, array in other.shared_arrays.items():
            if name in self.shared_arrays:
                self.shared_arrays[name].add(array)
            else:
                self.shared_arrays[name] = array

    @property
    def warp_efficiency(self) -> float | None:
        """Active lanes per warp instruction over the warp size; None if nothing was executed."""
        executed = sum(self.warp_instructions.values())
        return sum(self.instructions.values()) / (executed * self.warp_size) if executed else None

    def per_line(self) -> str:
        """The kernel's source with counters beside each line, as text."""
        from refsim.counters.table import per_line

        return per_line(self)

    def __str__(self) -> str:
        from refsim.counters.table import table

        return table(self)

"""Lane code that counts: the same statements, with a call before each straight run of them and at each split."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from refsim.counters.mix import Mix, mix_of
from refsim.dialect import (
    ITEM_BYTES,
    Align,
    Asynchronous,
    Barrier,
    Block,
    Break,
    Const,
    Expr,
    Fence,
    If,
    LoadAt,
    Loop,
    MatrixMultiply,
    Place,
    PointerAdd,
    Stmt,
    StoreAt,
    WarpBarrier,
)
from refsim.engine.codegen import CodeGenerator, LaneCode

Piece = dict[Place | None, Mix]


@dataclass
class Tables:
    """What the numbers in counting lane code stand for.

    Attributes
    ----------
    pieces
        For each straight run of statements its instruction mix by line.
    splits
        Lines of branches, by number.
    widths
        Bytes of one access, by site of a pointer access; accesses of a vector are all as wide as the vector.
    stepwise
        Whether the code is one of groups that take turns. Then, too:
    inside
        For each loop the loops in it.
    waiting
        Loops that may wait for another thread.
    trips
        Loops by the piece that is the beginning of a trip.
    tests
        Those pieces by the number of the branch that the loop's test is.
    loops_of_pieces, loops_of_splits, loops_of_sites
        The loops around each, from the outermost.
    """

    pieces: list[Piece] = field(default_factory=list)
    splits: list[Place | None] = field(default_factory=list)
    widths: dict[int, int] = field(default_factory=dict)
    stepwise: bool = False
    inside: list[list[int]] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    trips: dict[int, int] = field(default_factory=dict)
    tests: dict[int, int] = field(default_factory=dict)
    loops_of_pieces: list[tuple[int, ...]] = field(default_factory=list)
    loops_of_splits: list[tuple[int, ...]] = field(default_factory=list)
    loops_of_sites: dict[int, tuple[int, ...]] = field(default_factory=dict)


class CountingCode(LaneCode):
    """Lane code that counts, as its variants for groups that take turns do."""

    @cached_property
    def stepwise(self) -> LaneCode:
        """See `LaneCode.stepwise`."""
        return CountingGenerator(self.program, self.types, stepwise=True).generate()

    @cached_property
    def at_accesses(self) -> LaneCode:
        """See `LaneCode.at_accesses`."""
        return CountingGenerator(self.program, self.types, stepwise=True, at_accesses=True).generate()


class CountingGenerator(CodeGenerator):
    """Writes lane code that counts. ``B.counts.run`` counts a piece, ``B.counts.split`` a branch that divides lanes."""

    counting = True

    def generate(self) -> CountingCode:
        """Produce the function, with its tables."""
        self.tables = Tables(stepwise=self.stepwise)
        self.loops: tuple[int, ...] = ()  # around the statement at hand
        self.piece: Piece | None = None
        self.line: Place | None = self.program.place
        self.vectors: dict[Expr, tuple[int, set[int]]] = {}
        made = super().generate()
        code = CountingCode(**{part.name: getattr(made, part.name) for part in fields(LaneCode)})
        code.tables = self.tables
        return code

    def count(self, mix: Mix) -> None:
        """Count instructions in the run of statements at hand."""
        if not mix:
            return
        if self.piece is None:
            self.piece = {}
            self.emit(f"B.counts.run(S, {len(self.tables.pieces)})")
            self.tables.pieces.append(self.piece)
            self.tables.loops_of_pieces.append(self.loops)
        self.piece.setdefault(self.line, Counter()).update(mix)

    def block(self, body: list[Stmt]) -> None:
        """Statements in order; a run of them begins and ends here."""
        self.piece = None
        super().block(body)
        self.piece = None

    def statement(self, statement: Stmt) -> None:
        """Emit one statement, counted."""
        self.line = getattr(statement, "place", None) or getattr(statement, "line", None) or self.line
        if isinstance(statement, (Block, Loop)):
            self.vectors.clear()
        else:
            mix = mix_of(statement)
            extra = _statement_class(statement)
            if extra is not None:
                mix[extra, ""] += 1
            if isinstance(statement, MatrixMultiply):
                a, b = statement.fragments[:2]
                mix["matrix", a.dtype] += 1
                mix["operations of a warp", a.dtype] += 2 * a.rows * a.columns * b.columns
            self.count(mix)
        super().statement(statement)
        if isinstance(statement, (If, Block, Loop)):
            self.piece = None
            self.vectors.clear()

    def trip(self, loop: Loop) -> None:
        """Count the test of a loop, once per trip."""
        self.piece = None
        self.line = loop.place
        mix: Mix = Counter() if loop.condition is None else mix_of(loop.condition)
        mix["branch", ""] += 1
        self.count(mix)
        self.tables.trips[len(self.tables.pieces) - 1] = self.loops[-1]
        self.piece = None

    def _loop(self, s: Loop) -> None:
        number = len(self.tables.inside)
        for outer in self.loops:
            self.tables.inside[outer].append(number)
        self.tables.inside.append([])
        if not s.step:
            self.tables.waiting.add(number)
        self.loops += (number,)
        super()._loop(s)
        self.loops = self.loops[:-1]

    def site(
        self, place: Place, action: str, noun: str, array: Expr | None = None, atomic: bool = False, **more: Any
    ) -> int:
        """Number of a new site."""
        number = super().site(place, action, noun, array, atomic, **more)
        self.tables.loops_of_sites[number] = self.loops
        return number

    def decided(self, yes: str) -> None:
        """Tell which way a thread goes that runs alone: `split` is called where a set is divided only."""
        if self.stepwise:
            self.emit(f"B.counts.decides(S, {yes}, {len(self.tables.splits)})")

    def entered(self) -> None:
        """Tell that a thread goes into a loop."""
        branch = len(self.tables.splits) - 1
        self.tables.tests[branch] = next(p for p, loop in self.tables.trips.items() if loop == self.loops[-1])
        if self.stepwise:
            self.emit(f"B.counts.enters(S, {branch})")

    def split(self, yes: str, no: str) -> None:
        """Count the warps that a branch divides."""
        self.emit(f"B.counts.split(S, {yes}, {no}, {len(self.tables.splits)})")
        self.tables.splits.append(self.line)
        self.tables.loops_of_splits.append(self.loops)

    # ------------------------------------------------------------------------------- widths of pointer accesses

    def _align(self, s: Align) -> None:
        self.vectors[s.pointer] = (s.bytes, set())
        super()._align(s)

    def _storeat(self, s: StoreAt) -> None:
        self.tables.widths[len(self.sites)] = self._width(s.pointer, str(s.value.type))
        super()._storeat(s)

    def _e_loadat(self, e: LoadAt) -> str:
        self.tables.widths[len(self.sites)] = self._width(e.pointer, str(e.type))
        return super()._e_loadat(e)

    def _width(self, pointer: Expr, dtype: str) -> int:
        """Bytes of the access: those of the vector that a number is part of, until one of its numbers comes again."""
        size = ITEM_BYTES[dtype]
        base, offset = pointer, 0
        if isinstance(pointer, PointerAdd) and isinstance(pointer.offset, Const) and pointer not in self.vectors:
            base, offset = pointer.pointer, int(pointer.offset.value)
        if base not in self.vectors:
            return size
        width, seen = self.vectors[base]
        if offset in seen:
            del self.vectors[base]
            return size
        seen.add(offset)
        return max(width, size)


def _statement_class(statement: Stmt) -> str | None:
    if isinstance(statement, If):
        return "branch"
    if isinstance(statement, Break):
        return "control"
    if isinstance(statement, (Barrier, Fence)):
        return "barrier"
    if isinstance(statement, WarpBarrier):
        return "warp"
    if isinstance(statement, Asynchronous):
        return None if statement.action in ("begin", "end") else "control"
    return None


def counting_code(code: LaneCode) -> LaneCode:
    """The variant of lane code that counts: made of the program as it was written, before the engine improved it."""
    if code.counting is None:
        code.counting = CountingGenerator(*(code.original or (code.program, code.types))).generate()
    return code.counting

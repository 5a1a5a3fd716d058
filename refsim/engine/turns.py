"""Schedules by name: in which order groups of lanes take turns, drawn from a seed or directed at two accesses.

``seed:17`` draws the order of blocks, warps and threads, and how far each goes at a turn. ``delay:B/T@L<B/T@L`` holds
one thread (block B, thread T, both linear) at its first access in line L until another has made its first in another
line.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refsim.checks.spots import Spot

if TYPE_CHECKING:
    from refsim.engine.stepwise import Group

LANES = ("blocks", "block", "warp", "thread")
SEED = re.compile(r"seed:(\d+)")
DELAY = re.compile(r"delay:(\d+)/(\d+)@(\d+)<(\d+)/(\d+)@(\d+)")
BURSTS = (1, 1, 4, 16, 1 << 30)
FOREVER = 1 << 30
FEW_THREADS = 2048
MANY_THREADS = 65536


class Turns:
    """The plain order: block after block, thread after thread, each as far as it can go alone."""

    name = ""
    at_accesses = False  # whether groups stop at every access to shared and global memory

    def again(self) -> Turns:
        """The same turns from their beginning."""
        return self

    def lanes(self, threads: int) -> str:
        """The groups that take turns in a launch of so many threads, where nobody said."""
        return "blocks"

    def blocks(self, count: int) -> Sequence[int]:
        """The order in which blocks start."""
        return range(count)

    def order(self, groups: list[Group]) -> list[Group]:
        """The order of one round of turns."""
        return groups

    def burst(self) -> int:
        """How many stops a group passes at one turn."""
        return 1

    def holds(self, group: Group) -> bool:
        """True if a group must not go on yet."""
        return False

    def passed(self, group: Group) -> None:
        """A group is about to pass its stop."""

    def let_go(self) -> bool:
        """Nobody else can go on: let the held group go; True if one was held."""
        return False

    def alone(self, block: int) -> bool:
        """True for a block whose threads must take turns one by one."""
        return False


class Seeded(Turns):
    """Everything drawn from a seed."""

    at_accesses = True

    def __init__(self, seed: int) -> None:
        self.name = f"seed:{seed}"
        self._seed = seed
        self._random = random.Random(seed)
        self._bursts = self._random.sample(BURSTS, 2)

    def lanes(self, threads: int) -> str:
        """Single threads where they are few."""
        return "thread" if threads <= FEW_THREADS else "warp" if threads <= MANY_THREADS else "block"

    def again(self) -> Turns:
        """The same turns from their beginning."""
        return Seeded(self._seed)

    def blocks(self, count: int) -> Sequence[int]:
        """The order in which blocks start."""
        numbers = list(range(count))
        self._random.shuffle(numbers)
        return numbers

    def order(self, groups: list[Group]) -> list[Group]:
        """The order of one round of turns; some groups miss a round."""
        shuffled = groups.copy()
        self._random.shuffle(shuffled)
        if len(shuffled) > 1 and self._random.random() < 0.5:
            shuffled = shuffled[: self._random.randint(1, len(shuffled))]
        return shuffled

    def burst(self) -> int:
        """How many stops a group passes at one turn."""
        return self._random.choice(self._bursts)


class Delayed(Turns):
    """Holds one thread at an access until another thread has made one."""

    at_accesses = True

    def __init__(self, held: Spot, until: Spot) -> None:
        self.name = f"delay:{held}<{until}"
        self.held, self.until = held, until
        self._open = False

    def lanes(self, threads: int) -> str:
        """Blocks; those of the two threads are taken apart."""
        return "block"

    def again(self) -> Turns:
        """The same turns from their beginning."""
        return Delayed(self.held, self.until)

    @staticmethod
    def _at(group: Group, spot: Spot) -> bool:
        here = group.size == 1 and group.block == spot.block and group.number == spot.thread
        return here and group.kind == "access" and group.line == spot.line

    def order(self, groups: list[Group]) -> list[Group]:
        """The other thread first, the held one last."""
        held, until = (self.held.block, self.held.thread), (self.until.block, self.until.thread)
        return sorted(groups, key=lambda g: ((g.block, g.number) == held, (g.block, g.number) != until))

    def burst(self) -> int:
        """How many stops a group passes at one turn."""
        return FOREVER

    def holds(self, group: Group) -> bool:
        """True if a group must not go on yet."""
        return not self._open and self._at(group, self.held)

    def passed(self, group: Group) -> None:
        """A group is about to pass its stop."""
        self._open = self._open or self._at(group, self.until)

    def let_go(self) -> bool:
        """Nobody else can go on: let the held thread go."""
        was, self._open = self._open, True
        return not was

    def alone(self, block: int) -> bool:
        """True for a block whose threads must take turns one by one."""
        return block in (self.held.block, self.until.block)


def turns_named(name: str | None) -> Turns | None:
    """The turns of a schedule by name; None for no name.

    Raises
    ------
    ValueError
        For a name that is no schedule.
    """
    if name is None:
        return None
    seeded, delayed = SEED.fullmatch(str(name)), DELAY.fullmatch(str(name))
    if seeded:
        return Seeded(int(seeded[1]))
    if delayed:
        numbers = [int(part) for part in delayed.groups()]
        return Delayed(Spot(*numbers[:3]), Spot(*numbers[3:]))
    raise ValueError(f"unknown schedule {name!r}; give seed:NUMBER, or a schedule that a finding names as its witness")

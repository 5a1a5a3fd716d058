"""Options of commands that say how launches run: groups of lanes, the schedule, processes, machine code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import click

from refsim.engine.options import NATIVE, launch_options
from refsim.engine.turns import LANES


def lane_options(command: Any) -> Any:
    """Add the options to a command."""
    options = (
        click.option(
            "--lanes",
            type=click.Choice(["auto", *LANES]),
            default="auto",
            show_default=True,
            help="What runs in lockstep at first: many blocks, a block, a warp or a thread.",
        ),
        click.option(
            "--schedule", metavar="seed:NUMBER", help="Draw the order of blocks, warps and threads from a seed."
        ),
        click.option("--witness", is_flag=True, help="Look for a schedule by which a race changes the result."),
        click.option(
            "--processes",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Spread the blocks of a launch over so many processes.",
        ),
        click.option(
            "--native",
            type=click.Choice(NATIVE),
            default="auto",
            show_default=True,
            help="When loops run as machine code, with the same bits.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextlib.contextmanager
def chosen_lanes(lanes: str, schedule: str | None, witness: bool, processes: int, native: str) -> Iterator[None]:
    """Have all launches within run as the options say."""
    with contextlib.ExitStack() as stack:
        try:
            options = launch_options(
                lanes=lanes, schedule=schedule, witness=witness, processes=processes, native=native
            )
            stack.enter_context(options)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        yield

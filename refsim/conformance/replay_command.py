"""The command that runs one case of a report again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from oracle.cases import Case
from refsim.conformance.backends.backend import Backend
from refsim.engine.options import LaunchOptions, current_options

CASE = "{case}"


def words_for(backend: Backend, spec: str | None = None) -> tuple[str, ...]:
    """The words of ``refsim replay`` for a backend as it runs now; `CASE` stands for the case.

    The backend is named by ``spec``, as on the command line, or else by its name.
    """
    words = ["refsim", "replay", CASE, "--backend", spec or backend.name]
    if backend.device.startswith(("sim:", "cuda:")):
        words += ["--device", backend.device]
    options, usual = current_options(), LaunchOptions()
    if options.lanes != usual.lanes:
        words += ["--lanes", options.lanes]
    if options.schedule is not None:
        words += ["--schedule", options.schedule]
    if options.witness:
        words.append("--witness")
    return (*words, *getattr(backend, "options", ()))


def command(words: Sequence[str], case: Case) -> str:
    """The command as a shell reads it."""
    return shlex.join(json.dumps(case.to_json()) if word == CASE else word for word in words)

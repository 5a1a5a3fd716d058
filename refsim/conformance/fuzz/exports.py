"""Failing cases on paper: JSON that ``refsim replay`` reads, and a pytest file that stands alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from refsim.conformance.verdicts import Failure

TEST = '''"""Cases that failed under ``refsim fuzz``: run with ``python -m pytest {name}``."""

import json

import pytest

from oracle.cases import Case
from oracle.operator import find_operator
from refsim.conformance import Verdict, check, load_backend

BACKEND = {backend!r}
DEVICE = {device!r}
CASES = {{
{cases}}}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    case = Case.from_json(json.loads(CASES[name]))
    backend = load_backend(BACKEND, [find_operator(case.operator)], DEVICE)
    report = check(
        backend, [case.operator], [case.dtype], required=True, cases={{(case.operator, case.dtype): [case]}}
    )
    for result in report.results:
        assert result.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), result.reason
'''


def cases_text(failures: Sequence[Failure]) -> str:
    """The cases of failures as a JSON list, one a line."""
    lines = ",\n".join(json.dumps(failure.case.to_json()) for failure in failures)
    return f"[\n{lines}\n]\n"


def test_text(failures: Sequence[Failure], path: Path, backend: str, device: str) -> str:
    """A pytest module with one test per failure; a backend in a file is named by its whole path."""
    named: dict[str, str] = {}
    for failure in failures:
        stem = f"{failure.case.operator}-{failure.case.dtype}-{failure.reason}".replace(" ", "_")
        number = sum(name.partition("#")[0] == stem for name in named)
        named[stem if not number else f"{stem}#{number}"] = json.dumps(failure.case.to_json())
    module, colon, attribute = backend.rpartition(":")
    if module.endswith(".py"):
        backend = f"{Path(module).resolve()}{colon}{attribute}"
    rows = "".join(f"    {name!r}: {text!r},\n" for name, text in named.items())
    return TEST.format(name=path.name, backend=backend, device=device, cases=rows)

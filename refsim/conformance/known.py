"""Known deviations: a list, checked into the judged project, of cases that are not right and why that is so for now.

The shape is that of expected-failure lists elsewhere: patterns, an expected kind of failure, a reason and a link (the
waivers of Khronos' conformance tests, Chromium's test expectations), strict like pytest's ``xfail_strict``, and with a
day on which each entry ends.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from oracle.cases import LAYOUTS, Case
from oracle.cases.recipes import recipe_of
from oracle.operator import OPERATORS, find_operator
from oracle.suggestions import suggestion
from refsim.conformance.backends.backend import Capability, UsageError
from refsim.conformance.reading import read_text
from refsim.conformance.verdicts import Deviation, Verdict

# What each kind excuses, in the words of `Failure.reason`. A value wrong in one case is only suspect in another.
KINDS: dict[str, tuple[str, ...]] = {
    "value": ("value", "exact value", "choice", "nan", "statistics"),
    "statistics": ("statistics",),
    "form": ("shape", "dtype", "outputs"),
    "crash": ("exception",),
    "finding": ("simulator finding",),
    "memory": ("mutated input", "out of bounds", "alias"),
    "nondeterministic": ("nondeterministic",),
    "relation": ("relation",),
    "unsupported": ("refusal",),
}
PATTERNS = ("operator", "kernel", "dtype", "value_class", "layout", "case")
REQUIRED = ("operator", "kind", "reason", "link", "expires")
KEYS = tuple(dict.fromkeys((*PATTERNS, *REQUIRED)))
TABLE = "deviation"


class KnownDeviations:
    """The list during a run: says which failures are known, and counts what became of each entry.

    Parameters
    ----------
    entries : sequence of Deviation
        As `read_known` gave them.
    complete : bool
        Whether the run is one that every entry of its operators has to occur in. Cases that chance draws, or a single
        case, are not: there an entry that occurs in none is set aside.
    shown : function, optional
        What the report calls a kernel, where that is not the kernel's own name.
    """

    def __init__(
        self, entries: Sequence[Deviation], *, complete: bool = True, shown: Callable[[str], str] = str
    ) -> None:
        self.complete = complete
        self.shown = shown
        self.counted = list(entries)

    @property
    def entries(self) -> tuple[Deviation, ...]:
        """The entries with their counts so far."""
        if self.complete:
            return tuple(self.counted)
        return tuple(
            replace(entry, asked=entry.asked and (entry.expired or entry.deviating > 0)) for entry in self.counted
        )

    def ask(self, operator: str, dtypes: Sequence[str]) -> None:
        """Note that an operator is judged in some dtypes."""
        for at, entry in enumerate(self.counted):
            if fits(entry.operator, operator) and any(fits(entry.dtype, dtype) for dtype in dtypes):
                self.counted[at] = replace(entry, asked=True)

    def recognise(self, row: Capability, case: Case, verdict: Verdict, reason: str) -> Deviation | None:
        """Count a case that was run, and return the entry that excuses its failure, if one does."""
        found = None
        names = (row.operator, self.shown(row.kernel), row.dtype, case.value_class, case.layout, str(case))
        for at, entry in enumerate(self.counted):
            if not all(fits(getattr(entry, key), name) for key, name in zip(PATTERNS, names, strict=True)):
                continue
            if entry.kind == "unsupported":
                deviates = verdict is Verdict.UNSUPPORTED or reason in KINDS["unsupported"]
            elif verdict in (Verdict.UNSUPPORTED, Verdict.INCONCLUSIVE):
                continue  # such a case tells neither that it deviates nor that it does not
            else:
                deviates = reason in KINDS[entry.kind]
            found = self._count(at, deviates) or found
        return found

    def recognise_absence(self, operator: str, dtypes: Sequence[str]) -> Deviation | None:
        """The same for an operator that is not served at all; only an entry for every kernel and case says so."""
        found = None
        for at, entry in enumerate(self.counted):
            whole = all(getattr(entry, key) == ("*",) for key in PATTERNS if key not in ("operator", "dtype"))
            everywhere = whole and fits(entry.operator, operator) and all(fits(entry.dtype, name) for name in dtypes)
            if everywhere and entry.kind == "unsupported":
                found = self._count(at, True) or found
        return found

    def _count(self, at: int, deviates: bool) -> Deviation | None:
        entry = self.counted[at]
        entry = replace(entry, cases=entry.cases + 1, deviating=entry.deviating + deviates)
        self.counted[at] = entry
        return entry if deviates and not entry.expired else None


def fits(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the patterns is the name; ``*`` stands for any text."""
    return any(re.fullmatch(".*".join(map(re.escape, one.split("*"))), name, re.DOTALL) for one in patterns)


def merged(lists: Iterable[Sequence[Deviation]]) -> tuple[Deviation, ...]:
    """One list of what several runs made of it, each of a part of the cases."""
    whole: dict[str, Deviation] = {}
    for one in lists:
        for entry in one:
            known = whole.setdefault(entry.where, entry)
            if known is not entry:
                whole[entry.where] = replace(
                    known,
                    asked=known.asked or entry.asked,
                    cases=known.cases + entry.cases,
                    deviating=known.deviating + entry.deviating,
                )
    return tuple(whole.values())


def read_lists(paths: Iterable[Path]) -> tuple[Deviation, ...]:
    """The entries of several lists, one after the other; a list that is named twice counts once. See `read_known`."""
    return tuple(entry for path in dict.fromkeys(paths) for entry in read_known(path))


def read_known(path: Path, today: date | None = None) -> tuple[Deviation, ...]:
    """The entries of a list of known deviations.

    Parameters
    ----------
    path : Path
        A TOML file of tables ``[[deviation]]``.
    today : date, optional
        By which entries expire; by default the day that it is.

    Raises
    ------
    UsageError
        It cannot be read, or an entry is not what one has to be; the message names the entry, the key and the value.
    """
    text = read_text(path, "TOML")
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # a line and a column are in its text
        raise UsageError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply to be read") from error
    tables = data.pop(TABLE, [])
    if data or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        named = f"holds {next(iter(data))!r}" if data else f"holds a {TABLE!r} that is no list of tables"
        raise UsageError(f"{path} {named}; every entry starts with a line [[{TABLE}]], and there is nothing else")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(rf"\s*\[\[\s*{TABLE}\s*\]\]", line)]
    entries = []
    for number, table in enumerate(tables, 1):
        line = f" (line {lines[number - 1]})" if len(lines) == len(tables) else ""
        entries.append(_entry(table, f"{path}, entry {number}{line}", today or date.today()))
    return tuple(entries)


def _entry(table: Mapping[str, Any], where: str, today: date) -> Deviation:
    for key in table:
        if key not in KEYS:
            raise UsageError(f"{where}: unknown key {key!r}; {_near(key, KEYS)}")
    for key in REQUIRED:
        if key not in table:
            raise UsageError(f"{where}: {key!r} is missing; every entry has {', '.join(REQUIRED)}")
    for key in ("kind", "reason", "link"):
        if not isinstance(table[key], str) or not table[key].strip():
            raise UsageError(f"{where}: {key} = {table[key]!r} must be a text")
    if table["kind"] not in KINDS:
        raise UsageError(f"{where}: kind = {table['kind']!r} is unknown; {_near(table['kind'], tuple(KINDS))}")
    if not re.match(r"https?://\S+$", table["link"]):
        raise UsageError(f"{where}: link = {table['link']!r} must be an address, such as https://example.org/issues/7")
    expires = table["expires"]
    if not isinstance(expires, date) or isinstance(expires, datetime):
        raise UsageError(
            f"{where}: expires = {expires!r} must be a day, without quotes and hours: expires = 2030-12-31"
        )
    patterns: dict[str, Any] = {key: _patterns(table[key], key, where) for key in PATTERNS if key in table}
    _require_known(patterns, where)
    return Deviation(
        where,
        kind=table["kind"],
        reason=table["reason"],
        link=table["link"],
        expires=expires.isoformat(),
        expired=expires < today,
        **patterns,
    )


def _patterns(value: Any, key: str, where: str) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    if not given or not all(isinstance(one, str) and one for one in given):
        raise UsageError(f"{where}: {key} = {value!r} must be a name, a pattern such as 'sum*', or a list of them")
    return tuple(given)


def _require_known(patterns: Mapping[str, Sequence[str]], where: str) -> None:
    """Each pattern fits something that there is: a misspelt one would excuse nothing, and be noticed late."""
    import oracle.ops  # noqa: F401  registers every family

    operators = [name for name in OPERATORS if fits(patterns["operator"], name)]
    there_are: dict[str, Iterable[str]] = {
        "operator": OPERATORS,
        "dtype": (name for operator in operators for name in find_operator(operator).dtypes),
        "value_class": (name for operator in operators for name in recipe_of(operator).classes),
        "layout": LAYOUTS,
    }
    for key, names in there_are.items():
        known = tuple(dict.fromkeys(names))
        for one in patterns.get(key, ()):
            if not any(fits([one], name) for name in known):
                raise UsageError(f"{where}: no {key.replace('_', ' ')} is {one!r}; {_near(one, known)}")


def _near(word: str, known: Sequence[str]) -> str:
    return suggestion(word, known, "known")

"""A report as JSON values, and back; `check.schema.json` says what there is."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from oracle.cases import Case
from oracle.operator import UnknownOperatorError
from oracle.signature import InputError
from refsim.conformance.backends.backend import UsageError
from refsim.conformance.replay_command import command
from refsim.conformance.reports.schema import problem, report_schema
from refsim.conformance.verdicts import (
    Cost,
    Deviation,
    Element,
    Failure,
    Found,
    Neighbourhood,
    Place,
    Report,
    Result,
    Tried,
    Verdict,
)

SCHEMA = "refsim-check/3"
WIDTH = 120

Values = Mapping[str, Any]


def to_json(report: Report) -> dict[str, Any]:
    """A report as JSON values.

    ``schema`` names the version; a NaN or an infinity is the string "nan", "inf" or "-inf". Each entry of
    ``failures`` holds the case, which `oracle.cases.Case.from_json` reads, and what went wrong.
    """
    return {
        "schema": SCHEMA,
        "backend": report.backend,
        "device": report.device,
        "seed": report.seed,
        "environment": dict(report.environment),
        "results": [_result(result) for result in report.results],
        "counters": [{"kernel": one.kernel, "table": one.table, "lines": one.lines} for one in report.costs],
        "known": [_deviation(entry) for entry in report.known],
    }


def json_text(report: Report) -> str:
    """A report as JSON text, ending in a newline."""
    return _laid_out(to_json(report), "") + "\n"


def from_json(data: Any, what: str) -> Report:
    """The report that ``to_json`` described; ``what`` says in errors where it comes from.

    Raises
    ------
    UsageError
        It is no report, one of another version, or not what the schema says; the message names the key.
    """
    if not isinstance(data, Mapping) or "schema" not in data:
        raise UsageError(f"{what} is not a report of refsim check --format json")
    if data["schema"] != SCHEMA:
        raise UsageError(
            f"{what} is of schema {reprlib.repr(data['schema'])}, this refsim reads {SCHEMA!r}; make the report again"
        )
    damage = problem(data, report_schema())
    if damage:
        raise UsageError(f"{what} is damaged: {damage}")
    for number, entry in enumerate(data["results"]):
        if entry["verdict"] == Verdict.PASS.value and entry["failures"]:
            raise UsageError(f"{what} is damaged: results[{number}].verdict is 'PASS', and there are failures")
    try:
        return Report(
            data["backend"],
            data["device"],
            data["seed"],
            tuple(_read_result(entry) for entry in data["results"]),
            dict(data["environment"]),
            tuple(Cost(**entry) for entry in data["counters"]),
            tuple(_read_deviation(entry) for entry in data["known"]),
        )
    except (UnknownOperatorError, InputError) as error:
        raise UsageError(f"{what} holds a case that this refsim does not know: {error}") from error
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} is damaged: {type(error).__name__}: {error}") from error


def _result(result: Result) -> dict[str, Any]:
    return {
        "operator": result.operator,
        "kernel": result.kernel,
        "dtype": result.dtype,
        "numerics": result.numerics,
        "cases": result.cases,
        "refused": result.refused,
        "inconclusive": result.inconclusive,
        "worst_margin": _number(result.worst_margin),
        "verdict": result.verdict.value,
        "reason": result.reason,
        "again": list(result.again),
        "failures": [_failure(failure, result.again) for failure in result.failures],
        "tried": [_tried(tried) for tried in result.tried],
    }


def _tried(tried: Tried) -> dict[str, Any]:
    return {
        "case": tried.case.to_json(),
        "verdict": tried.verdict.value,
        "margin": _number(tried.margin),
        "note": tried.note,
    }


def _failure(failure: Failure, again: Sequence[str]) -> dict[str, Any]:
    return {
        "case": failure.case.to_json(),
        "verdict": failure.verdict.value,
        "reason": failure.reason,
        "message": failure.message,
        "wrong": failure.wrong,
        "total": failure.total,
        "element": None if failure.element is None else _element(failure.element),
        "detail": failure.detail,
        "findings": [_found(one) for one in failure.findings],
        "known": failure.known,
        "command": command(again, failure.case),
    }


def _element(element: Element) -> dict[str, Any]:
    near = element.around
    return {
        "output": element.output,
        "index": list(element.index),
        "low": _number(element.low),
        "high": _number(element.high),
        "got": _number(element.got),
        "rule": element.rule,
        "around": {
            "start": list(near.start),
            "got": [[_number(cell) for cell in row] for row in near.got],
            "low": [[_number(cell) for cell in row] for row in near.low],
            "high": [[_number(cell) for cell in row] for row in near.high],
            "outside": [list(row) for row in near.outside],
        },
    }


def _found(found: Found) -> dict[str, Any]:
    places = [
        {
            "file": place.file,
            "line": place.line,
            "what": place.what,
            "lines": [{"number": number, "text": text} for number, text in place.lines],
        }
        for place in found.places
    ]
    return {"kind": found.kind, "severity": found.severity, "message": found.message, "places": places}


def _deviation(entry: Deviation) -> dict[str, Any]:
    return {
        **{field.name: _listed(getattr(entry, field.name)) for field in fields(entry)},
        "problem": entry.problem,
    }


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _read_deviation(data: Values) -> Deviation:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    del values["problem"]  # follows from the rest
    return Deviation(**values)


def _read_result(data: Values) -> Result:
    return Result(
        **{name: data[name] for name in ("operator", "kernel", "dtype", "numerics", "cases", "refused")},
        inconclusive=data["inconclusive"],
        worst_margin=_read_number(data["worst_margin"]),
        verdict=Verdict(data["verdict"]),
        reason=data["reason"],
        failures=tuple(_read_failure(entry) for entry in data["failures"]),
        tried=tuple(_read_tried(entry) for entry in data["tried"]),
        again=tuple(data["again"]),
    )


def _read_tried(data: Values) -> Tried:
    margin = _read_number(data["margin"])
    return Tried(Case.from_json(data["case"]), Verdict(data["verdict"]), margin, data["note"])


def _read_failure(data: Values) -> Failure:
    return Failure(
        case=Case.from_json(data["case"]),
        verdict=Verdict(data["verdict"]),
        element=None if data["element"] is None else _read_element(data["element"]),
        findings=tuple(_read_found(entry) for entry in data["findings"]),
        **{name: data[name] for name in ("reason", "message", "wrong", "total", "detail", "known")},
    )


def _read_element(data: Values) -> Element:
    near = data["around"]
    got, low, high = (tuple(tuple(map(float, row)) for row in near[name]) for name in ("got", "low", "high"))
    outside = tuple(tuple(row) for row in near["outside"])
    around = Neighbourhood(tuple(near["start"]), got, low, high, outside)
    low_end, high_end, was = (float(data[name]) for name in ("low", "high", "got"))
    return Element(data["output"], tuple(data["index"]), low_end, high_end, was, data["rule"], around)


def _read_found(data: Values) -> Found:
    places = tuple(
        Place(
            place["file"], place["line"], place["what"], tuple((one["number"], one["text"]) for one in place["lines"])
        )
        for place in data["places"]
    )
    return Found(data["kind"], data["severity"], data["message"], places)


def _number(value: float | None) -> float | str | None:
    """A number that JSON can hold; others by name."""
    return value if value is None or math.isfinite(value) else str(value)


def _read_number(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def _laid_out(value: Any, indent: str) -> str:
    """JSON text in which what fits on a line stands on one."""
    line = json.dumps(value, allow_nan=False)
    if len(indent) + len(line) <= WIDTH or not value or not isinstance(value, dict | list):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        parts = [_laid_out(entry, deeper) for entry in value]
        start, end = "[]"
    else:
        parts = [f"{json.dumps(name)}: {_laid_out(entry, deeper)}" for name, entry in value.items()]
        start, end = "{}"
    inner = f",\n{deeper}".join(parts)
    return f"{start}\n{deeper}{inner}\n{indent}{end}"

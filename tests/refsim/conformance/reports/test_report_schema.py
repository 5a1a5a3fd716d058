"""The JSON form keeps its schema, loses nothing on the way back, and is refused by name where it is not a report."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from example_reports import all_kinds

from refsim.conformance import UsageError, reports
from refsim.conformance.reports import from_json, json_text, to_json
from refsim.conformance.verdicts import Cost

SCHEMA = json.loads((Path(reports.__file__).parent / "check.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(6))
def test_reports_keep_the_schema_and_come_back_as_they_were(number):
    report = replace(all_kinds()[number], costs=(Cost("k", "a table", "its lines"),))
    data = json.loads(json_text(report))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(data, SCHEMA, cls=jsonschema.Draft202012Validator)
    again = from_json(data, "report.json")
    assert to_json(again) == data == to_json(report)
    # NaN is not equal to itself: what is compared are its repr.
    assert repr(again) == repr(report)


def test_the_schema_refuses_what_is_no_report():
    data = to_json(all_kinds()[0])
    for name in SCHEMA["required"]:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({key: value for key, value in data.items() if key != name}, SCHEMA)
    data["results"][0]["verdict"] = "FINE"
    with pytest.raises(jsonschema.ValidationError, match="'FINE' is not one of"):
        jsonschema.validate(data, SCHEMA)


def test_every_case_is_in_the_report_with_its_margin():
    right, wrong = all_kinds()[:2]
    for result in right.results:
        assert len(result.tried) == result.cases == 8
        assert max(tried.margin for tried in result.tried) == result.worst_margin
    for result in wrong.results:
        failed = [tried.case for tried in result.tried if tried.verdict.value in ("FAIL", "SUSPECT")]
        assert failed == [failure.case for failure in result.failures]
    (refused,) = all_kinds()[3].results
    assert {tried.note for tried in refused.tried} == {"never on a Monday"}
    assert {tried.margin for tried in refused.tried} == {None}


def test_the_environment_names_versions():
    environment = all_kinds()[0].environment
    assert {"python", "numpy", "ml_dtypes", "system", "processors"} <= set(environment)
    import numpy

    assert environment["numpy"] == numpy.__version__


def test_a_finding_brings_the_source_around_it():
    (result,) = all_kinds()[4].results
    found = result.failures[0].findings[0]
    assert found.kind == "race"
    source = (Path(__file__).parent / "example_reports.py").read_text(encoding="utf-8").splitlines()
    assert found.places
    for place in found.places:
        assert source[place.line - 1] == dict(place.lines)[place.line]
        assert "total[0] += x[" in dict(place.lines)[place.line]
        assert "thread (" in place.what
        assert [number for number, _ in place.lines] == list(range(place.line - 4, place.line + 5))


def row(data, **changes):
    first, *others = data["results"]
    return {**data, "results": [{**first, **changes}, *others]}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: [], "is not a report"),
        (lambda data: {**data, "schema": "refsim-check/1"}, "is of schema 'refsim-check/1', this refsim reads"),
        (lambda data: {**data, "results": [{}]}, r"is damaged: results\[0\].operator is missing"),
        (lambda data: {**data, "results": 7}, "is damaged: results is 7, and has to be array"),
        (lambda data: {**data, "seed": "abc"}, "is damaged: seed is 'abc', and has to be integer of at least 0"),
        (lambda data: {**data, "seed": True}, "is damaged: seed is True"),
        (lambda data: {**data, "more": 1}, "is damaged: more is unknown; known: schema, backend"),
        (lambda data: row(data, cases="many"), r"is damaged: results\[0\].cases is 'many'"),
        (lambda data: row(data, verdict="FINE"), r"is damaged: results\[0\].verdict is 'FINE', and has to be \"PASS\""),
        (lambda data: row(data, worst_margin=float("nan")), r"is damaged: results\[0\].worst_margin is nan"),
        (
            lambda data: row(data, failures=to_json(all_kinds()[1])["results"][0]["failures"]),
            r"is damaged: results\[0\].verdict is 'PASS', and there are failures",
        ),
    ],
)
def test_what_is_no_report_is_refused(damage, words):
    with pytest.raises(UsageError, match=f"^old.json {words}"):
        from_json(damage(to_json(all_kinds()[0])), "old.json")


def test_a_case_of_an_operator_that_is_gone_is_named():
    data = to_json(all_kinds()[0])
    data["results"][0]["tried"][0]["case"]["operator"] = "rmsnrm"
    with pytest.raises(UsageError, match="holds a case that this refsim does not know: unknown operator 'rmsnrm'"):
        from_json(data, "old.json")

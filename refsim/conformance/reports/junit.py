"""A report as JUnit XML, as CI systems read it: one test case per row, one suite per backend."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from refsim.conformance.replay_command import command
from refsim.conformance.verdicts import Report, Result, Verdict

SHOWN = 20  # failing cases that are written out per row
# What XML 1.0 cannot hold, not even escaped.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What a verdict is in JUnit's words; the rest are passed tests.
TAGS = {
    Verdict.FAIL: "failure",
    Verdict.ERROR: "error",
    Verdict.INCONCLUSIVE: "skipped",
    Verdict.UNSUPPORTED: "skipped",
    Verdict.KNOWN: "skipped",
}
# The same for entries of the list of known deviations that have a problem.
PROBLEM_TAGS = {"expired": "failure", "passes again": "failure", "matches nothing": "error"}


def junit_text(reports: Sequence[Report], *, strict: bool = False) -> str:
    """The reports as JUnit XML; where ``strict``, SUSPECT is a failure. Rows that are no evidence are skipped tests."""
    root = ElementTree.Element("testsuites", name="refsim")
    for report in reports:
        suite = ElementTree.SubElement(root, "testsuite", name=_clean(f"refsim {report.backend} on {report.device}"))
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in (("seed", str(report.seed)), *report.environment.items()):
            ElementTree.SubElement(properties, "property", name=_clean(name), value=_clean(value))
        counts = dict.fromkeys(("failure", "error", "skipped"), 0)
        for result in report.results:
            tag = _test(suite, result, strict)
            if tag:
                counts[tag] += 1
        for entry in report.outdated:
            tag = PROBLEM_TAGS[entry.problem]
            test = ElementTree.SubElement(suite, "testcase", classname="known deviations", name=_clean(entry.where))
            ElementTree.SubElement(test, tag, message=_clean(entry.advice), type=entry.problem)
            counts[tag] += 1
        suite.set("tests", str(len(report.results) + len(report.outdated)))
        suite.set("failures", str(counts["failure"]))
        suite.set("errors", str(counts["error"]))
        suite.set("skipped", str(counts["skipped"]))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _test(suite: ElementTree.Element, result: Result, strict: bool) -> str | None:
    """Add the row, and say what JUnit calls it."""
    where = _clean(f"{result.operator}.{result.kernel}")
    test = ElementTree.SubElement(suite, "testcase", classname=where, name=_clean(result.dtype))
    tag = "failure" if strict and result.verdict is Verdict.SUSPECT else TAGS.get(result.verdict)
    told = f"{result.verdict.value}: {result.reason}"
    if tag:
        note = ElementTree.SubElement(test, tag, message=_clean(told))
        if tag != "skipped":
            note.set("type", result.failures[0].reason if result.failures else result.verdict.value)
        note.text = _clean(_cases(result))
    elif result.verdict is not Verdict.PASS:
        ElementTree.SubElement(test, "system-out").text = _clean(f"{told}\n{_cases(result)}")
    return tag


def _cases(result: Result) -> str:
    """A paragraph for each failing case: what went wrong, and how to run it again."""
    parts = []
    for failure in result.failures[:SHOWN]:
        known = [f"known: {failure.known}"] if failure.known else []
        lines = [
            str(failure.case),
            *known,
            failure.message,
            *failure.detail.splitlines(),
            command(result.again, failure.case),
        ]
        parts.append("\n".join(lines))
    if len(result.failures) > SHOWN:
        parts.append(f"and {len(result.failures) - SHOWN} more")
    return "\n\n".join(parts)


def _clean(text: str) -> str:
    return FORBIDDEN.sub("�", text)

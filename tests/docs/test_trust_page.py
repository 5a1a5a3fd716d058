"""docs/trust.md says what the judge does: it names every operator, and a cheap part of it is worked out again."""

import importlib.util
from pathlib import Path

import pytest

from oracle.operator import OPERATORS, find_operator
from oracle.variants import variants_of
from oracle.variants.slack import SLACK
from refsim.conformance.rules import RULES

ROOT = Path(__file__).parent.parent.parent
SPEC = importlib.util.spec_from_file_location("trust", ROOT / "benchmarks" / "trust.py")
trust = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(trust)

find_operator("softmax")  # registers every operator
LINES = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8").splitlines()
AGAIN = "run: python benchmarks/trust.py"


def section(title):
    """The rows of the table under a heading, as lists of cells."""
    start = LINES.index(title)
    rows = []
    for line in LINES[start + 1 :]:
        if line.startswith("## "):
            break
        if line.startswith("| ") and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[1:]


def test_the_page_names_every_operator():
    with_variants = {name for name in OPERATORS if variants_of(name)}
    assert {row[0] for row in section("## By operator")} == with_variants, AGAIN
    assert {row[0] for row in section("## How slack the bounds are")} == with_variants, AGAIN


def test_every_mutant_is_refused_and_no_control_accused():
    judge, *others = section("## What the judge and other rules make of the same answers")[: 1 + len(RULES)]
    assert judge[0] == "refsim"
    assert judge[2] == "0"
    assert judge[3] == "100.0 %"
    assert judge[4].startswith("0 of ")
    assert [row[0] for row in others] == list(RULES)
    for name, mutants, _, refused, *_ in section("## By operator"):
        assert refused == mutants, name


def test_no_false_alarm_in_ten_thousand_control_runs():
    (counted,) = (line for line in LINES if "control runs." in line and "it saw" in line)
    runs = int(counted.partition("it saw ")[2].partition(" ")[0].replace(",", ""))
    assert runs >= 10_000


def test_slack_is_explained_where_it_is_there_and_nowhere_else():
    loose = {name for name, _, sigma in section("## How slack the bounds are") if sigma.endswith("*")}
    assert loose == set(SLACK), AGAIN
    for name in loose:
        assert f"- **{name}**: {SLACK[name]}" in LINES, AGAIN


@pytest.mark.parametrize("operator", ["max", "copy_blocks"])
def test_the_row_of_an_operator_is_what_comes_out(operator):
    found = [trial for seed in range(trust.SEEDS) for trial in trust.fresh(operator, seed)]
    (row,) = list(trust.operators_table({operator: found}))[2:]
    assert row in LINES, AGAIN

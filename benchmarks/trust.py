"""Writes docs/trust.md: the judge, and what others accept results by, on every variant of every operator.

``python benchmarks/trust.py`` tries all variants on the default cases and keeps what came out, one file per operator
and seed, in ``build/trust``: a second call tries only operators that have other variants since. ``--again`` tries all,
``--seeds N`` on the cases of more seeds. It takes ten minutes or so per seed. The exit status is 1 where the judge was
wrong about a variant.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import inf, isinf
from pathlib import Path

from oracle.operator import OPERATORS, find_operator
from oracle.variants import variants_of
from oracle.variants.bugs import BUGS
from oracle.variants.slack import SLACK
from refsim.conformance.environment import environment
from refsim.conformance.mutation import Trial, trials
from refsim.conformance.rules import RULES
from refsim.conformance.trust import TIGHTENED, Score, as_json, killed_by, scores, slacks, trials_from

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "trust.md"
KEPT = ROOT / "build" / "trust"
CASES = 48
SEEDS = 1
COMMON_CLASS = 10
RANDOM = "normal"

Table = Iterator[str]


def fresh(operator: str, seed: int) -> list[Trial]:
    """The trials of one operator and seed."""
    return list(trials([operator], find_operator(operator).dtypes, seed=seed, count=CASES))


def tried(operator: str, seed: int, again: bool) -> list[Trial]:
    """The trials of one operator and seed: those that are kept, if its variants have not changed."""
    path = KEPT / f"{operator}.{seed}.json"
    dtypes = find_operator(operator).dtypes
    due = {(v.name, dtype) for v in variants_of(operator) for dtype in v.dtypes or dtypes if dtype in dtypes}
    if path.exists() and not again:
        data = json.loads(path.read_text(encoding="utf-8"))
        if {(entry["variant"], entry["dtype"]) for entry in data["trials"]} == due:
            return trials_from(data)
    found = fresh(operator, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_json(found, seed, CASES)), encoding="utf-8")
    return found


def by_operator(found: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Trials by operator, families together."""
    ordered = sorted(found, key=lambda trial: (OPERATORS[trial.variant.operator].family, trial.variant.operator))
    return {name: list(members) for name, members in groupby(ordered, key=lambda trial: trial.variant.operator)}


def row(cells: Iterable[object]) -> str:
    """A line of a table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def table(head: Sequence[str]) -> Table:
    """The head of a table: the first column is text, the others are numbers."""
    yield row(head)
    yield row(["---", *["---:" for _ in head[1:]]])


def share(part: int, whole: int) -> str:
    """A share in percent, never rounded to all or nothing."""
    if not whole:
        return "–"
    percent = 100.0 * part / whole
    digits = 1 if 0.05 <= percent < 99.95 or part in (0, whole) else 3
    return f"{percent:.{digits}f} %"


def rules_table(rows: Sequence[Score]) -> Table:
    """Every rule with its kills and false alarms."""
    yield from table(["rule", "mutants refused", "accepted", "", "controls accused", "control runs accused", ""])
    for score in rows:
        yield row(
            [
                score.rule,
                f"{score.killed:,}",
                f"{score.mutants - score.killed:,}",
                share(score.killed, score.mutants),
                f"{score.accused:,} of {score.controls:,}",
                f"{score.alarms:,}",
                share(score.alarms, score.runs),
            ]
        )


def operators_table(found: dict[str, list[Trial]]) -> Table:
    """Each operator: mutants that each rule refuses, and controls that it accuses."""
    yield from table(["operator", "mutants", "controls", "refsim", *RULES])
    for name, members in found.items():
        rows = scores(members)
        cells = [f"{score.killed}" + (f" ({score.accused})" if score.accused else "") for score in rows]
        yield row([name, rows[0].mutants, rows[0].controls, *cells])


def classes_table(found: dict[str, list[Trial]]) -> Table:
    """Each common value class: mutants that each rule refuses on it, and those that nothing else refuses."""
    mutants = [trial for members in found.values() for trial in members if trial.variant.wrong]
    operators: dict[str, set[str]] = {}
    for trial in mutants:
        for name in trial.classes:
            operators.setdefault(name, set()).add(trial.variant.operator)
    yield from table(["value class", "operators", "mutants", "refsim", *RULES, "refsim, here only"])
    for name in sorted(operators, key=lambda name: (-len(operators[name]), name)):
        if len(operators[name]) < COMMON_CLASS:
            continue
        here = [trial for trial in mutants if name in trial.classes]
        rows = scores(here, (name,))
        alone = sum(_refusing(trial) == [name] for trial in here)
        yield row([name, len(operators[name]), rows[0].mutants, *(score.killed for score in rows), alone])


def _refusing(trial: Trial) -> list[str]:
    columns = {**trial.classes, **trial.relations}
    return [name for name, column in columns.items() if column.refused]


def bugs_table(found: dict[str, list[Trial]]) -> Table:
    """Each bug that shipped, its mutants, and in how many of their dtypes each rule refuses them."""
    yield from table(["bug", "operator: what is wrong", "tried", "refsim", *RULES])
    for bug, mutants in BUGS.items():
        for operator, name in mutants:
            mine = [trial for trial in found.get(operator, ()) if trial.variant.name == name]
            if mine:
                what = f"{operator}: {mine[0].variant.flaw}"
                yield row([bug, what, len(mine), *(score.killed for score in scores(mine))])


def slack_table(found: dict[str, list[Trial]]) -> Table:
    """Each operator and dtype: how far controls stay inside the bound, and inside the statistical tier."""
    yield from table(["operator", "dtypes: bound ÷ worst error", "sigma can be divided by"])
    for name, members in found.items():
        entries = slacks(sorted(members, key=lambda trial: OPERATORS[name].dtypes.index(trial.dtype)))
        bounds = ", ".join(f"{entry.dtype} {number(entry.bound)}" for entry in entries)
        least = min(entry.sigma for entry in entries)
        yield row([name, bounds, number(least) + ("*" if is_loose(members) else "")])


def is_loose(members: Sequence[Trial]) -> bool:
    """Whether no control of an operator would be SUSPECT with a quarter of sigma, though there is one."""
    return TIGHTENED < min(entry.sigma for entry in slacks(members)) < inf


def number(ratio: float) -> str:
    """A ratio with two digits, a dash where there is none."""
    return "–" if isinf(ratio) else f"{ratio:.2g}" if ratio < 100 else f"{ratio:,.0f}"


def page(found: dict[str, list[Trial]], seeds: int) -> Iterator[str]:
    """docs/trust.md, line by line."""
    every = [trial for members in found.values() for trial in members]
    judge, *_ = rows = scores(every)
    tiers = [killed_by(trial) for trial in every if trial.variant.wrong]
    versions = [f"{name} {environment()[name]}" for name in ("refsim", "numpy", "python") if name in environment()]
    drawn = f"seeds 0 to {seeds - 1}" if seeds > 1 else "seed 0"
    loose = [name for name, members in found.items() if is_loose(members)]
    yield from f"""\
# Can the judge be trusted?

A judge is right about a kernel only if it accepts every honest one and refuses every wrong one. So it is tried on
implementations of which that is known: **controls**, which compute as honest kernels do, each in an order or form of
its own, and **mutants**, which have one fault each (an index, a mask, a formula, a rounding, a special value). They are
in `oracle/variants`, and `refsim mutants OP` tries those of one operator.

This page is written by `python benchmarks/trust.py` ({", ".join(versions)}): {len(found)} operators, each in all of
its dtypes, on what `refsim check` runs by default: {CASES} cases and the relations, {drawn}. A variant counts once per
dtype and seed. Mutants claim to keep float32 arithmetic (float64 for float64), and so do controls, but for those of
tensor cores, of split products and of recurrences in chunks, which keep numerics of their own.

## What the judge and other rules make of the same answers
""".splitlines()
    yield ""
    yield from rules_table(rows)
    yield from f"""
A mutant is refused if any case refuses it. A control is accused if any case refuses it: a false alarm. The judge
refused {tiers.count("bound"):,} of the mutants as outside of the guaranteed bound, {tiers.count("statistics"):,} by
statistics alone (SUSPECT), and {tiers.count("relation"):,} by a relation alone; it saw {judge.runs:,} control runs.

The other rules:
""".splitlines()
    yield ""
    for name, rule in RULES.items():
        yield f"- **{name}**: {rule.statement}"
    yield from """
They compare with the definition's value in float64, rounded to the output's dtype, which is more than most test suites
have, and they are read kindly: NaN is equal to NaN, elements that the definition leaves open are not compared, and
outputs of the wrong shape or dtype are refused. Their false alarms are honest answers to hard inputs (sums that cancel,
gradients that are zero but for roundings, a narrow format between split products that the numerics allow), codes and
indices of which several are right, and outputs that depend on another output (codes on a scale, weights on a choice)
and are here compared with the definition's own.

Test suites draw random normals and little else. On the cases of that class alone, without relations:
""".splitlines()
    yield ""
    yield from rules_table(scores(every, (RANDOM,)))
    yield from """
## By operator

Mutants that each rule refuses; in brackets the controls that it accuses.
""".splitlines()
    yield ""
    yield from operators_table(found)
    yield from """
## Bugs that shipped

Faults that were found in libraries after they had shipped, and mutants with a fault of the same kind: in how many of
the dtypes each rule refuses them.
""".splitlines()
    yield ""
    yield from bugs_table(found)
    yield from f"""
## By value class

Mutants that are refused on each class that at least {COMMON_CLASS} operators have, whatever refuses them elsewhere.
The last column counts those that no other class and no relation refuses.
""".splitlines()
    yield ""
    yield from classes_table(found)
    yield from f"""
## How slack the bounds are

The guaranteed bound holds for every order and form that the numerics allow, and no control uses all of them against
itself: so it is wider than the worst error of a control, by the factor in the second column. A dash means that no error
shows before the last rounding: the output is exact, or its dtype so coarse that one value only is accepted. For that
reason there is a second tier, whose sigma is meant to be what errors are; the third column says by how much it could
be divided until some control, in some dtype, were SUSPECT. Where that is more than {TIGHTENED:.0f}, marked *, the
reason stands below.
""".splitlines()
    yield ""
    yield from slack_table(found)
    yield ""
    for name in loose:
        yield f"- **{name}**: {SLACK.get(name, 'not explained.')}"
    wrong = [trial for trial in every if not trial.right]
    if wrong:
        yield from ["", "## Where the judge was wrong", ""]
        for trial in wrong:
            what = "accepted" if trial.variant.wrong else "refused"
            yield f"- {what}: {trial.variant.operator} {trial.dtype} {trial.variant.name}: {trial.variant.flaw}"


def main() -> int:
    """Try what has to be tried and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds, from 0")
    parser.add_argument("--again", action="store_true", help="try all, whatever is kept")
    parser.add_argument("-o", "--output", type=Path, default=PAGE, help="the page")
    arguments = parser.parse_args()
    find_operator("softmax")  # registers every operator
    found: list[Trial] = []
    for seed in range(arguments.seeds):
        for name in sorted(OPERATORS):
            found += tried(name, seed, arguments.again)
            print(f"seed {seed} {name}", file=sys.stderr, flush=True)
    arguments.output.write_text("\n".join(page(by_operator(found), arguments.seeds)) + "\n", encoding="utf-8")
    return 0 if all(trial.right for trial in found) else 1


if __name__ == "__main__":
    sys.exit(main())

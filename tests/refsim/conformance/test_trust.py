"""What trials come to: scores of every rule, tiers of the judge, and the slack of its bounds."""

import functools
import json

from oracle.variants import variants_of
from refsim.conformance.mutation import Column, Trial, trials
from refsim.conformance.rules import RULES
from refsim.conformance.trust import as_json, killed_by, scores, slacks, trials_from
from refsim.conformance.verdicts import Verdict


@functools.cache
def tried():
    return tuple(trials(["rmsnorm"], ["float16", "float32"], count=24))


def test_scores_count_mutants_controls_and_runs():
    judge, *others = scores(tried())
    assert [score.rule for score in (judge, *others)] == ["refsim", *RULES]
    mutants = sum(trial.variant.wrong for trial in tried())
    for score in (judge, *others):
        assert (score.mutants, score.controls) == (mutants, len(tried()) - mutants)
        assert score.runs == 24 * score.controls
        assert score.killed <= score.mutants
        assert score.accused <= score.alarms
    assert (judge.killed, judge.alarms) == (mutants, 0)


def test_common_rules_let_mutants_of_rmsnorm_live():
    killed = {score.rule: score.killed for score in scores(tried())}
    assert all(killed[name] < killed["refsim"] for name in RULES)


def test_scores_of_one_class_know_nothing_of_the_others():
    judge = scores(tried(), ("normal",))[0]
    column = [trial.classes["normal"] for trial in tried() if not trial.variant.wrong]
    assert judge.runs == sum(one.cases for one in column)
    assert judge.killed < scores(tried())[0].killed


def test_killed_by_names_the_strongest_tier():
    (control, *_) = variants_of("rmsnorm")
    assert killed_by(Trial(control, "float32", {"normal": Column()})) == ""
    suspect, wrong = Column(Verdict.SUSPECT, rule="sigma"), Column(Verdict.FAIL, rule="bound")
    assert killed_by(Trial(control, "float32", {"normal": suspect})) == "statistics"
    assert killed_by(Trial(control, "float32", {"normal": suspect, "uniform": wrong})) == "bound"
    assert killed_by(Trial(control, "float32", {"normal": Column()}, {"rerun": wrong})) == "relation"


def test_slack_is_what_the_worst_control_leaves():
    (control, *_) = variants_of("rmsnorm")
    (mutant,) = [variant for variant in variants_of("rmsnorm") if variant.name == "no_eps"]
    columns = {"normal": Column(reach=0.25, strain=0.2), "uniform": Column(reach=0.5, strain=0.1)}
    (slack,) = slacks([Trial(control, "float32", columns), Trial(mutant, "float32", {"normal": Column(reach=1.0)})])
    assert (slack.operator, slack.dtype, slack.bound, slack.sigma) == ("rmsnorm", "float32", 2.0, 5.0)
    (none,) = slacks([Trial(control, "float32", {"normal": Column()})])
    assert none.bound == none.sigma == float("inf")


def test_the_bound_of_rmsnorm_is_used_and_not_exceeded():
    for slack in slacks(tried()):
        assert slack.bound >= 1.0
        assert slack.sigma > 1.0
    assert next(slack for slack in slacks(tried()) if slack.dtype == "float32").bound < 20.0


def test_json_holds_every_trial_and_is_read_back():
    data = json.loads(json.dumps(as_json(tried(), 0, 24), allow_nan=False))
    assert trials_from(data) == list(tried())
    assert data["schema"] == "refsim-mutants/1"
    assert list(data["rules"]) == list(RULES)
    assert len(data["trials"]) == len(tried())
    for entry, trial in zip(data["trials"], tried(), strict=True):
        assert entry["variant"] == trial.variant.name
        assert entry["refused"] == trial.refused == bool(entry["by"])
        assert sum(column["cases"] for column in entry["classes"].values()) == 24

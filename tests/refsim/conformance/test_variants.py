"""The judge on implementations that are known to be right or wrong: every control passes, every mutant is refused."""

import functools

import pytest

from oracle.operator import OPERATORS, find_operator
from oracle.relations import relations_of
from oracle.variants import variants_of
from refsim.conformance.mutation import trials

find_operator("softmax")  # registers every operator
NAMED = sorted(name for name in OPERATORS if variants_of(name))


def dtypes_of(operator):
    """Two of the operator's dtypes, or its only one."""
    dtypes = find_operator(operator).dtypes
    return dtypes[1:3] if len(dtypes) > 2 else dtypes


@functools.cache
def tried(operator):
    """Every variant in those dtypes."""
    return tuple(trials([operator], dtypes_of(operator), count=32, quick=True))


@pytest.mark.parametrize("operator", NAMED)
def test_controls_pass_and_mutants_are_refused(operator):
    found = tried(operator)
    wrong = [f"{trial.dtype} {trial.variant.name}: {trial.variant.flaw}" for trial in found if not trial.right]
    assert not wrong
    assert sum(not variant.wrong for variant in variants_of(operator)) >= 6
    assert sum(variant.wrong for variant in variants_of(operator)) >= 6


@pytest.mark.parametrize("operator", NAMED)
def test_relations_hold_for_controls(operator):
    for trial in tried(operator):
        if not trial.variant.wrong:
            assert not [name for name, column in trial.relations.items() if column.refused], trial.variant.name


@pytest.mark.parametrize("operator", NAMED)
def test_mutants_for_a_relation_die_by_it_alone(operator):
    names = {found.name for found in relations_of(operator)}
    dtypes = dtypes_of(operator)
    own = [variant.dtypes or dtypes for variant in variants_of(operator) if variant.relation]
    meant = {next(name for name in dtypes if name in allowed) for allowed in own}
    for trial in tried(operator):
        if trial.variant.relation and trial.dtype in meant:
            assert trial.variant.relation in names
            assert not any(column.refused for column in trial.classes.values()), trial.variant.name
            assert trial.relations[trial.variant.relation].refused, trial.variant.name

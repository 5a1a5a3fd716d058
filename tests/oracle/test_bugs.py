"""Bugs that shipped are replayed by mutants that are there."""

import re

from oracle.variants import VARIANTS, variants_of
from oracle.variants.bugs import BUGS


def test_every_bug_names_mutants():
    for bug, mutants in BUGS.items():
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", bug)
        for operator, name in mutants:
            assert variants_of(operator)
            assert VARIANTS[operator, name].wrong, f"{bug}: {operator} {name}"

"""Drawing a run's cases: first the curated ones, then random structure, the same ones for the same seed."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from oracle.cases.case import Case
from oracle.cases.layouts import LAYOUTS
from oracle.cases.recipes import recipe_of
from oracle.cases.recipes.recipe import pick
from oracle.signature import InputError


def curated_count(operator: str) -> int:
    """How many cases every full run of an operator holds before random ones begin."""
    return len(recipe_of(operator).curated)


def make_cases(operator: str, dtype: str, count: int, seed: int) -> list[Case]:
    """Cases of one operator and dtype.

    Parameters
    ----------
    operator, dtype : str
        What to draw for.
    count : int
        How many; at least 1. The curated cases come first, random ones fill the rest.
    seed : int
        Seed of the whole run, at least 0; equal arguments give equal cases.

    Raises
    ------
    InputError
        ``count`` or ``seed`` is out of range.
    """
    if count < 1:
        raise InputError(f"count={count} must be at least 1")
    if seed < 0:
        raise InputError(f"seed={seed} must be at least 0")
    recipe = recipe_of(operator)
    rng = np.random.default_rng([seed, zlib.crc32(f"{operator} {dtype}".encode())])
    cases = []
    for number in range(count):
        if number < len(recipe.curated):
            structure = recipe.curated[number]
        else:
            drawn = recipe.random(rng)
            value_class, layout = pick(rng, tuple(recipe.classes)), pick(rng, tuple(LAYOUTS))
            structure = replace(drawn, value_class=value_class, layout=layout)
        cases.append(Case(operator, dtype, **vars(structure), seed=int(rng.integers(2**31))))
    return cases


def far_cases(operator: str, dtype: str, count: int, seed: int) -> list[Case]:
    """Cases whose arrays' last rows begin past element 2^31, so that an index of 32 bits does not reach them.

    They lie in sparse memory: each row takes a page or so, whatever lies between the rows. Only what runs on
    the memory that it is given can be judged by them; a copy row after row knows nothing of them.

    Parameters
    ----------
    operator, dtype, count, seed
        As for `make_cases`; at most the curated cases with several rows.

    Raises
    ------
    InputError
        ``count`` or ``seed`` is out of range.
    """
    drawn = make_cases(operator, dtype, curated_count(operator), seed)
    if count < 1:
        raise InputError(f"count={count} must be at least 1")
    there = [case for case in drawn if case.dims and min(case.dims.values()) > 0 and max(case.dims.values()) > 1]
    return [replace(case, layout="far") for case in there[:count]]

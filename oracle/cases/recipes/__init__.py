"""Recipes: for each operator, which cases are worth drawing and how its inputs go together. One file per family."""

from importlib import import_module
from pkgutil import iter_modules

from oracle.cases.recipes.recipe import Recipe, Structure

RECIPES: dict[str, Recipe] = {}
"""The recipe of each operator: what the files of this package hold in their own RECIPES."""

for _module in iter_modules(__path__):
    RECIPES.update(getattr(import_module(f"{__name__}.{_module.name}"), "RECIPES", {}))

__all__ = ["RECIPES", "Recipe", "Structure", "recipe_of"]


def recipe_of(operator: str) -> Recipe:
    """The recipe of an operator.

    Raises
    ------
    LookupError
        No cases can be drawn for it.
    """
    if operator not in RECIPES:
        raise LookupError(f"operator {operator!r} has no recipe for cases; add one to oracle.cases.recipes")
    return RECIPES[operator]

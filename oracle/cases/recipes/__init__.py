"""Recipes: for each operator, which cases are worth drawing and how its inputs go together."""

from oracle.cases.recipes import (
    activation,
    attention,
    attention_backward,
    attention_flash,
    attention_mla,
    attention_paged,
    attention_paged_quantised,
    collective,
    dynamic_quant,
    gemm,
    gemm_batched,
    gemm_epilogue,
    gemm_packed,
    gemm_quantised,
    kv_cache,
    kv_cache_quantised,
    moe,
    norm,
    quant,
    quant_short,
    recurrent,
    recurrent_states,
    reduce,
    reduce_top,
    rope,
    rope_forms,
    rope_table,
    sampling,
    sampling_chain,
    shuffles,
)
from oracle.cases.recipes.recipe import Recipe, Structure

RECIPES: dict[str, Recipe] = {}
for _family in (
    activation,
    attention,
    attention_backward,
    attention_flash,
    attention_mla,
    attention_paged,
    attention_paged_quantised,
    collective,
    dynamic_quant,
    gemm,
    gemm_batched,
    gemm_epilogue,
    gemm_packed,
    gemm_quantised,
    kv_cache,
    kv_cache_quantised,
    moe,
    norm,
    quant,
    quant_short,
    recurrent,
    recurrent_states,
    reduce,
    reduce_top,
    rope,
    rope_forms,
    rope_table,
    sampling,
    sampling_chain,
    shuffles,
):
    RECIPES.update(_family.RECIPES)

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

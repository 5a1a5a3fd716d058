"""Cases of the mixture of experts: gating, sorting into blocks, experts and their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, full_significand, hot_mask, normal
from oracle.formats import Format
from oracle.signature import Array

ROUTER = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "heavy_tail", "zeros", "wide", "huge_exact", "spike", "masked",
)  # fmt: skip


def _near_ties(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Logits a few steps of the dtype apart: which expert wins is for the rounding to say, its weight is not."""
    values: Array = 1.0 + rng.integers(0, 4, shape) * 2.0 ** (1 - number_format.precision)
    return values


def _few_values(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Small integers, so that most experts are tied with others."""
    values: Array = rng.integers(-2, 3, shape).astype(np.float64)
    return values


def _gate_draw(rows: Callable[[np.random.Generator, Shape, Format], Array]) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        inputs = {"logits": rows(rng, shapes["logits"], number_format)}
        if "bias" in shapes:
            inputs["bias"] = normal(rng, shapes["bias"], number_format)
            reach = np.ptp(np.clip(inputs["logits"], -1e30, 1e30), axis=-1).max(initial=0.0)
            if params["scoring"] == "softmax" and reach > 64.0:
                # a bias that lets only experts whose share underflows be chosen leaves 0 / 0 of their weights
                inputs["bias"] *= 0.2 / shapes["bias"][0]
        return inputs

    return draw


def _negative(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """A bias that takes most scores below 0, where what is masked with 0 beats them."""
    inputs = _gate_draw(normal)(rng, shapes, params, number_format)
    if "bias" in shapes:
        inputs["bias"] = -3.0 * rng.random(shapes["bias"])
    return inputs


def _router(name: str) -> Callable[[np.random.Generator, Shape, Format], Array]:
    return lambda rng, shape, number_format: draw_rows(name, rng, shape, number_format, ROUTER)


def _gate(tokens: int, experts: int) -> dict[str, int]:
    return {"tokens": tokens, "experts": experts}


def _grouped(groups: int, top_groups: int, top_k: int, score: str = "top_two", **more: Any) -> dict[str, Any]:
    return {"groups": groups, "top_groups": top_groups, "top_k": top_k, "group_score": score, **more}


SIGMOID, ROOT = {"scoring": "sigmoid"}, {"scoring": "sqrt_softplus"}
ZERO = {"masked": "zero"}
BARE = ("bias",)


def _random_gate(rng: np.random.Generator) -> Structure:
    per_group, groups = int(pick(rng, (2, 3, 4, 8, 16))), int(pick(rng, (1, 1, 2, 4, 8)))
    kept = int(rng.integers(1, groups + 1))
    params: dict[str, Any] = {
        "scoring": pick(rng, ("softmax", "sigmoid", "sqrt_softplus")),
        "top_k": int(rng.integers(1, min(8, kept * per_group) + 1)),
        "renormalise": bool(rng.random() < 0.6),
    }
    if groups > 1:
        params |= {"groups": groups, "top_groups": kept, "group_score": pick(rng, ("max", "top_two"))}
        params["masked"] = pick(rng, ("excluded", "zero"))
    if rng.random() < 0.3:
        params["scaling"] = 2.5
    dims = _gate(int(pick(rng, (1, 3, 7, 16, 17))), per_group * groups)
    return Structure(dims, params=params, absent=BARE if rng.random() < 0.5 else ())


MOE_GATE = Recipe(
    classes={
        **{name: _gate_draw(_router(name)) for name in (*ROUTER, "mixed")},
        "near_ties": _gate_draw(_near_ties),
        "few_values": _gate_draw(_few_values),
        "negative_bias": _negative,
    },
    curated=(
        Structure(_gate(17, 64), "normal", params={"top_k": 6}, absent=BARE),
        Structure(_gate(16, 64), "normal", "padded", SIGMOID | _grouped(8, 4, 8, scaling=2.5)),
        Structure(_gate(9, 33), "normal", params=ROOT | {"top_k": 4}),
        Structure(_gate(13, 48), "normal", "strided", _grouped(6, 2, 5, "max", renormalise=False), BARE),
        Structure(_gate(7, 32), "normal", "transposed", SIGMOID | ZERO | _grouped(4, 1, 3)),
        Structure(_gate(9, 24), "negative_bias", params=SIGMOID | ZERO | _grouped(4, 2, 5)),
        Structure(_gate(9, 24), "negative_bias", "padded", SIGMOID | _grouped(4, 2, 5)),
        Structure(_gate(16, 17), "few_values", absent=BARE),
        Structure(_gate(9, 16), "near_ties", "misaligned", SIGMOID | {"top_k": 3}, BARE),
        Structure(_gate(5, 31), "wide", params={"top_k": 3}, absent=BARE),
        Structure(_gate(6, 16), "huge_exact", params={"renormalise": False}, absent=BARE),
        Structure(_gate(6, 47), "masked", "padded", {"top_k": 3}, BARE),
        Structure(_gate(5, 24), "zeros", params=SIGMOID | {"top_k": 4}),
        Structure(_gate(5, 63), "uniform", "transposed", ROOT | {"renormalise": False}, BARE),
        Structure(_gate(4, 65), "full_significand", params=SIGMOID | {"top_k": 7, "scaling": 2.5}, absent=BARE),
        Structure(_gate(7, 15), "one_hot", params=ROOT | {"top_k": 1}, absent=BARE),
        Structure(_gate(5, 33), "sparse_integers", "strided", SIGMOID),
        Structure(_gate(6, 20), "low_entropy", params=ROOT | _grouped(5, 3, 4)),
        Structure(_gate(4, 127), "rising", "misaligned", {"top_k": 8}, BARE),
        Structure(_gate(4, 128), "falling", params=SIGMOID | {"top_k": 8, "renormalise": False}),
        Structure(_gate(3, 16), "all_below", params=ROOT, absent=BARE),
        Structure(_gate(5, 16), "offset", "padded", {"top_k": 3}, BARE),
        Structure(_gate(4, 16), "subnormals", params=SIGMOID | {"renormalise": False}),
        Structure(_gate(8, 40), "heavy_tail", params=SIGMOID | ZERO | _grouped(4, 2, 5, "max")),
        Structure(_gate(6, 31), "spike", params=ROOT | {"top_k": 3}),
        Structure(_gate(13, 32), "mixed", "transposed", SIGMOID | _grouped(8, 3, 6)),
        Structure(_gate(1, 1), "normal", params={"top_k": 1}, absent=BARE),
        Structure(_gate(3, 2), "normal", params=SIGMOID),
        Structure(_gate(0, 8)),
        Structure(_gate(3, 256), "normal", params=SIGMOID | _grouped(8, 4, 8, scaling=2.5)),
    ),
    random=_random_gate,
)


# Ids of experts.


def _spread_ids(rng: np.random.Generator, shape: Shape, experts: int) -> Array:
    """Different experts for each token where there are enough."""
    order = np.argsort(rng.random((shape[0], max(experts, shape[1]))), axis=-1)
    ids: Array = order[:, : shape[1]] % max(experts, 1)
    return ids


def _one_expert(rng: np.random.Generator, shape: Shape, experts: int) -> Array:
    """Every slot goes to the last expert: the others have nothing."""
    return np.full(shape, experts - 1)


def _some_elsewhere(rng: np.random.Generator, shape: Shape, experts: int) -> Array:
    """About a third of the slots belong to other ranks."""
    return np.where(rng.random(shape) < 0.35, -1, rng.integers(0, experts, shape))


def _all_elsewhere(rng: np.random.Generator, shape: Shape, experts: int) -> Array:
    """No slot belongs here."""
    return np.full(shape, -1)


def _every_other(rng: np.random.Generator, shape: Shape, experts: int) -> Array:
    """Experts of even index only: empty ones between full ones."""
    return 2 * rng.integers(0, -(-experts // 2), shape)


def _first_few(rng: np.random.Generator, shape: Shape, experts: int) -> Array:
    """Mostly the first expert, seldom another: ragged blocks."""
    return np.where(rng.random(shape) < 0.8, 0, rng.integers(0, experts, shape))


def _sorted_ids(rng: np.random.Generator, shape: Shape, experts: int) -> Array:
    """Ids that rise with the slot."""
    rising: Array = np.sort(rng.integers(0, experts, shape).reshape(-1)).reshape(shape)
    return rising


IDS: dict[str, Callable[[np.random.Generator, Shape, int], Array]] = {
    "spread": _spread_ids,
    "one_expert": _one_expert,
    "some_elsewhere": _some_elsewhere,
    "all_elsewhere": _all_elsewhere,
    "every_other": _every_other,
    "first_few": _first_few,
    "sorted": _sorted_ids,
}


def _align_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        return {"topk_ids": IDS[name](rng, shapes["topk_ids"], params["experts"])}

    return draw


def _align(tokens: int, k: int) -> dict[str, int]:
    return {"tokens": tokens, "k": k}


def _sizes(experts: int, block_size: int) -> dict[str, int]:
    return {"experts": experts, "block_size": block_size}


def _random_align(rng: np.random.Generator) -> Structure:
    dims = _align(int(pick(rng, (1, 3, 16, 33, 97))), int(pick(rng, (1, 2, 5, 8))))
    return Structure(dims, params=_sizes(int(pick(rng, (1, 3, 8, 33, 64))), int(pick(rng, (1, 4, 16, 17, 64)))))


MOE_ALIGN = Recipe(
    classes={name: _align_draw(name) for name in IDS},
    curated=(
        Structure(_align(33, 2), "spread"),
        Structure(_align(17, 3), "some_elsewhere", "padded", _sizes(5, 4)),
        Structure(_align(64, 1), "one_expert", "misaligned", _sizes(4, 16)),
        Structure(_align(20, 4), "every_other", "strided", _sizes(7, 8)),
        Structure(_align(65, 2), "first_few", "transposed", _sizes(16, 32)),
        Structure(_align(31, 2), "sorted", params=_sizes(8, 16)),
        Structure(_align(4, 3), "all_elsewhere", params=_sizes(3, 5)),
        Structure(_align(0, 2), params={"experts": 3}, value_class="spread"),
        Structure(_align(5, 0), params={"block_size": 4}, value_class="spread"),
        Structure(_align(1, 1), "spread", params=_sizes(1, 1)),
        Structure(_align(3, 2), "spread", params=_sizes(2, 1)),
        Structure(_align(13, 8), "spread", "transposed", _sizes(64, 16)),
        Structure(_align(128, 8), "spread", params=_sizes(33, 64)),
        Structure(_align(127, 2), "some_elsewhere", "strided", _sizes(9, 17)),
        Structure(_align(129, 1), "sorted", "padded", _sizes(3, 128)),
        Structure(_align(16, 1), "one_expert", params=_sizes(1, 16)),
        Structure(_align(17, 1), "one_expert", params=_sizes(2, 16)),
        Structure(_align(15, 1), "one_expert", params=_sizes(2, 16)),
        Structure(_align(257, 4), "first_few", params=_sizes(8, 64)),
        Structure(_align(7, 6), "every_other", "misaligned", _sizes(12, 3)),
        Structure(_align(47, 5), "spread", params=_sizes(6, 1)),
    ),
    random=_random_align,
)


# Experts.

HIDDEN = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "offset", "subnormals", "cancelling", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip


def _experts_draw(x_class: str, ids: str = "spread", poisoned: bool = False, weights: str = "uniform") -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        experts, _, width = shapes["w_gate_up"]
        inner = shapes["w_down"][-1]
        first = normal(rng, shapes["w_gate_up"], number_format) / np.sqrt(max(width, 1))
        second = normal(rng, shapes["w_down"], number_format) / np.sqrt(max(inner, 1))
        chosen = IDS[ids](rng, shapes["topk_ids"], experts)
        factor = draw_rows(weights, rng, shapes["topk_weights"], number_format)
        if poisoned:
            used = np.isin(np.arange(experts), chosen)[:, np.newaxis, np.newaxis]
            first, second = np.where(used, first, np.nan), np.where(used, second, np.nan)
            factor = np.where(chosen < 0, np.nan, factor)
        inputs = {
            "hidden": draw_rows(x_class, rng, shapes["hidden"], number_format, HIDDEN),
            "w_gate_up": first,
            "w_down": second,
            "topk_ids": chosen,
            "topk_weights": factor,
        }
        if "shared" in shapes:
            inputs["shared"] = normal(rng, shapes["shared"], number_format)
        for label in ("shared_gate_up", "shared_down", "shared_gate"):
            if label in shapes:
                inputs[label] = normal(rng, shapes[label], number_format) / np.sqrt(max(shapes[label][-1], 1))
        return inputs

    return draw


def _selecting(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """The up half and the down product pick one element each, a power of two wide: only the activation rounds."""
    inputs = _experts_draw("full_significand")(rng, shapes, params, number_format)
    inner = shapes["w_down"][-1]
    inputs["w_gate_up"] = hot_mask(rng, shapes["w_gate_up"])
    inputs["w_gate_up"][:, :inner] *= 2.0
    inputs["w_down"] = hot_mask(rng, shapes["w_down"])
    inputs["topk_weights"] = np.full(shapes["topk_weights"], 0.5)
    return inputs


def _saturated(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Gates far above 1 and far below -1: the activation is the gate itself, or nothing; clamps bite."""
    inputs = _experts_draw("normal")(rng, shapes, params, number_format)
    inputs["hidden"] = 16.0 * inputs["hidden"]
    return inputs


def expert_dims(tokens: int, width: int, inner: int, experts: int, k: int) -> dict[str, int]:
    return {"tokens": tokens, "width": width, "two_inner": 2 * inner, "inner": inner, "experts": experts, "k": k}


ALONE = ("shared",)
GELU, OAI = {"activation": "gelu"}, {"activation": "swiglu_oai"}
INPUT = {"weighted": "input"}
IN_BF16, IN_F16 = {"intermediate": "bfloat16"}, {"intermediate": "float16"}


def _random_experts(rng: np.random.Generator) -> Structure:
    dims = expert_dims(
        int(pick(rng, (1, 3, 8, 17))), int(pick(rng, (1, 7, 16, 31, 33))), int(pick(rng, (1, 5, 16, 17))),
        int(pick(rng, (1, 2, 4, 7))), int(pick(rng, (1, 2, 3))),
    )  # fmt: skip
    params: dict[str, Any] = {}
    for name, choices in (
        ("activation", ("silu", "gelu", "swiglu_oai")),
        ("weighted", ("output", "output", "input")),
        ("intermediate", ("compute", "bfloat16", "float16")),
    ):
        value = pick(rng, choices)
        if value != choices[0]:
            params[name] = value
    return Structure(dims, params=params, absent=ALONE if rng.random() < 0.6 else ())


FUSED_EXPERTS = Recipe(
    classes={
        **{name: _experts_draw(name) for name in (*HIDDEN, "mixed")},
        "one_expert": _experts_draw("normal", "one_expert"),
        "some_elsewhere": _experts_draw("normal", "some_elsewhere"),
        "nan_unused": _experts_draw("normal", "every_other", poisoned=True),
        "nan_elsewhere": _experts_draw("normal", "some_elsewhere", poisoned=True),
        "negative_weights": _experts_draw("normal", weights="normal"),
        "selecting": _selecting,
        "saturated": _saturated,
    },
    curated=(
        Structure(expert_dims(17, 33, 17, 4, 2), "normal", absent=ALONE),
        Structure(expert_dims(8, 32, 16, 6, 3), "nan_unused", "padded"),
        Structure(expert_dims(9, 31, 15, 5, 2), "nan_elsewhere", params=GELU, absent=ALONE),
        Structure(expert_dims(7, 16, 33, 3, 2), "normal", "strided", INPUT),
        Structure(expert_dims(7, 24, 16, 3, 2), "saturated", params=OAI, absent=ALONE),
        Structure(expert_dims(6, 17, 16, 4, 2), "normal", "transposed", IN_BF16),
        Structure(expert_dims(6, 17, 16, 4, 2), "normal", "misaligned", IN_F16 | GELU, ALONE),
        Structure(expert_dims(5, 16, 8, 3, 1), "selecting", absent=ALONE),
        Structure(expert_dims(33, 7, 5, 2, 1), "one_expert", "padded", absent=ALONE),
        Structure(expert_dims(16, 8, 8, 4, 3), "some_elsewhere"),
        Structure(expert_dims(5, 15, 7, 4, 4), "negative_weights", "strided", absent=ALONE),
        Structure(expert_dims(4, 65, 9, 2, 2), "uniform", "transposed", OAI),
        Structure(expert_dims(4, 63, 9, 3, 2), "full_significand", absent=ALONE),
        Structure(expert_dims(5, 31, 8, 3, 2), "one_hot"),
        Structure(expert_dims(5, 16, 9, 3, 2), "sparse_integers", absent=ALONE),
        Structure(expert_dims(4, 32, 8, 2, 2), "low_entropy", "misaligned"),
        Structure(expert_dims(4, 47, 8, 2, 1), "rising", absent=ALONE),
        Structure(expert_dims(4, 47, 8, 2, 2), "falling", params=INPUT | IN_BF16),
        Structure(expert_dims(3, 16, 8, 2, 2), "offset", "padded", absent=ALONE),
        Structure(expert_dims(3, 16, 8, 2, 2), "subnormals", absent=ALONE),
        Structure(expert_dims(3, 33, 8, 2, 2), "cancelling"),
        Structure(expert_dims(5, 17, 8, 3, 2), "heavy_tail", params=GELU, absent=ALONE),
        Structure(expert_dims(3, 8, 8, 2, 2), "zeros"),
        Structure(expert_dims(7, 16, 8, 3, 2), "not_a_number", params=OAI, absent=ALONE),
        Structure(expert_dims(7, 16, 8, 3, 2), "infinities", absent=ALONE),
        Structure(expert_dims(11, 16, 8, 3, 2), "mixed", "transposed"),
        Structure(expert_dims(1, 1, 1, 1, 1), "normal", absent=ALONE),
        Structure(expert_dims(0, 8, 4, 2, 2)),
        Structure(expert_dims(3, 5, 0, 2, 1), absent=ALONE),
        Structure(expert_dims(2, 5, 3, 8, 0)),
    ),
    random=_random_experts,
)


# The weighted sum.


def _sum_draw(name: str, ids: str = "spread", poisoned: bool = False) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        tokens, k, width = shapes["x"]
        # the class runs along k, the axis that is summed
        x = np.moveaxis(draw_rows(name, rng, (tokens, width, k), number_format, HIDDEN), -1, 1)
        inputs: dict[str, Array] = {}
        chosen = IDS[ids](rng, (tokens, k), 4)
        if poisoned:
            x = np.where((chosen < 0)[:, :, np.newaxis], np.nan, x)
        if "topk_ids" in shapes:
            inputs["topk_ids"] = chosen
        if "topk_weights" in shapes:
            kind = full_significand if name == "one_hot" else normal
            inputs["topk_weights"] = kind(rng, (tokens, k), number_format)
            if poisoned:
                inputs["topk_weights"] = np.where(chosen < 0, np.nan, inputs["topk_weights"])
        return {"x": x, **inputs}

    return draw


def _sum_dims(tokens: int, k: int, width: int) -> dict[str, int]:
    return {"tokens": tokens, "k": k, "width": width}


IDS_ALONE, WEIGHTS_ALONE, NOTHING = ("topk_weights",), ("topk_ids",), ("topk_ids", "topk_weights")


def _random_sum(rng: np.random.Generator) -> Structure:
    dims = _sum_dims(int(pick(rng, (1, 3, 16, 33))), int(pick(rng, (1, 2, 6, 8, 9))), int(pick(rng, (1, 7, 31, 64))))
    return Structure(dims, absent=pick(rng, (IDS_ALONE, WEIGHTS_ALONE, NOTHING, ())))


MOE_SUM = Recipe(
    classes={
        **{name: _sum_draw(name) for name in (*HIDDEN, "mixed")},
        "some_elsewhere": _sum_draw("normal", "some_elsewhere"),
        "nan_elsewhere": _sum_draw("normal", "some_elsewhere", poisoned=True),
    },
    curated=(
        Structure(_sum_dims(17, 8, 33), "normal", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(16, 6, 31), "nan_elsewhere", "padded"),
        Structure(_sum_dims(5, 9, 64), "normal", "strided", absent=NOTHING),
        Structure(_sum_dims(7, 8, 16), "some_elsewhere", "transposed", absent=IDS_ALONE),
        Structure(_sum_dims(7, 3, 16), "some_elsewhere"),
        Structure(_sum_dims(4, 8, 15), "uniform", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(4, 8, 17), "full_significand", "misaligned", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(4, 7, 17), "one_hot", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(4, 8, 17), "sparse_integers", absent=NOTHING),
        Structure(_sum_dims(4, 16, 17), "low_entropy", "padded", absent=NOTHING),
        Structure(_sum_dims(4, 16, 17), "rising", absent=NOTHING),
        Structure(_sum_dims(4, 16, 17), "falling", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(4, 8, 9), "offset", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(4, 8, 9), "subnormals", absent=NOTHING),
        Structure(_sum_dims(4, 8, 33), "cancelling", "strided", absent=NOTHING),
        Structure(_sum_dims(4, 8, 33), "heavy_tail"),
        Structure(_sum_dims(3, 8, 5), "zeros", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(7, 4, 5), "not_a_number", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(7, 4, 5), "infinities", absent=NOTHING),
        Structure(_sum_dims(9, 5, 16), "mixed", "transposed"),
        Structure(_sum_dims(1, 1, 1), "normal", absent=WEIGHTS_ALONE),
        Structure(_sum_dims(3, 0, 2)),
        Structure(_sum_dims(0, 2, 7), absent=NOTHING),
        Structure(_sum_dims(2, 3, 257), "normal", absent=WEIGHTS_ALONE),
    ),
    random=_random_sum,
)

RECIPES = {
    "moe_gate": MOE_GATE,
    "moe_align_block_size": MOE_ALIGN,
    "fused_experts": FUSED_EXPERTS,
    "moe_sum": MOE_SUM,
}

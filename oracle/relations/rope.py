"""Relations of rotary position embedding.

Not among them: a turn by 0 is the vector itself, which the definition demands bit for bit already (its products and
sums are exact there); turns one after the other are one turn, lengths stay, and the turn back undoes it: only within
bounds, which are the judge's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation

TURNED = ("rope", "rope_qk", "mrope", "rope_2d", "rope_backward")
HEADS = ("x", "q", "k", "grad")  # inputs (tokens, heads, head_dim) that are turned
PLACES = ("positions", "offsets", "rows", "columns")  # inputs with a number per token, on their last axis


@relation(*TURNED)
def tokens_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A token's result is the same bits when each token takes the next one's place."""
    heads = {name: inputs[name] for name in HEADS if name in inputs}
    places = {name: inputs[name] for name in PLACES if inputs.get(name) is not None}
    if len(next(iter(heads.values()))) < 2:
        return None
    straight = run(inputs, params)
    moved = {name: np.roll(array, 1, axis=0) for name, array in heads.items()}
    moved |= {name: np.roll(array, 1, axis=-1) for name, array in places.items()}
    for one, other in zip(run({**inputs, **moved}, params), straight, strict=True):
        broken = difference(np.roll(one, -1, axis=0), other, "tokens in each other's places")
        if broken:
            return broken
    return None


@relation(*TURNED)
def heads_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A head's result is the same bits when the heads come in reverse order."""
    heads = {name: inputs[name] for name in HEADS if name in inputs}
    if next(iter(heads.values())).shape[1] < 2:
        return None
    straight = run(inputs, params)
    turned = run({**inputs, **{name: np.ascontiguousarray(array[:, ::-1]) for name, array in heads.items()}}, params)
    for one, other in zip(turned, straight, strict=True):
        broken = difference(one[:, ::-1], other, "heads in reverse order")
        if broken:
            return broken
    return None


@relation(*TURNED)
def signs_turn_along(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """The opposite vectors have the opposite results."""
    heads = {name: -inputs[name] for name in HEADS if name in inputs}
    for one, other in zip(run({**inputs, **heads}, params), run(inputs, params), strict=True):
        broken = difference(one, -other, "opposite vectors")
        if broken:
            return broken
    return None


@relation("rope_qk")
def keys_are_turned_as_queries(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """Keys that are the queries have the same results, bit for bit."""
    turned_q, turned_k = run({**inputs, "q": np.array(inputs["q"]), "k": np.array(inputs["q"])}, params)
    return difference(turned_k, turned_q, "queries as keys")


@relation("rope_table")
def entries_of_a_table_are_independent(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """An angle's cosine and sine are the same bits when positions and frequencies each take the next one's place."""
    straight = run({name: np.array(array) for name, array in inputs.items()}, params)
    turned = run({name: np.roll(array, 1) for name, array in inputs.items()}, params)
    for name, one, other in zip(("cos", "sin"), turned, straight, strict=True):
        broken = difference(np.roll(one, -1, axis=(0, 1)), other, f"{name} with entries in each other's places")
        if broken:
            return broken
    return None


@relation("rope_frequencies", "llama3_frequencies", "longrope_frequencies")
def pairs_in_any_place(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A pair's frequency is the same bits when each pair takes the next one's place."""
    (straight, *_) = run({name: np.array(array) for name, array in inputs.items()}, params)
    (turned, *_) = run({name: np.roll(array, 1) for name, array in inputs.items()}, params)
    return difference(np.roll(turned, -1), straight, "pairs in each other's places")


@relation("yarn_frequencies", "longrope_frequencies")
def frequencies_double(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Frequencies that are 16 times as large have results that are 16 times as large, and the same magnitude."""
    straight, magnitude = run(inputs, params)
    kind = inputs["frequencies"].dtype.type
    larger, other = run({**inputs, "frequencies": inputs["frequencies"] * kind(16)}, params)
    return difference(larger, straight * kind(16), "16 times the frequencies") or difference(
        other, magnitude, "magnitude of 16 times the frequencies"
    )

"""Relations of the attentions."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation

VECTOR = 16  # rows of a multiple of this many elements all begin at a multiple of a vector, or none does
PACKED = ("q", "k", "v", "k_nope", "k_rope")  # inputs that hold one row per token


@relation("attention", "flash_attention", "attention_backward", "attention_bias_backward", "attention_quantised")
def batches_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A sequence's result is the same bits when the batch comes in reverse order, where rows are whole vectors.

    A kernel that reads a row of any length in vectors adds it up by where in memory the row begins.
    """
    sizes = (inputs["q"].shape[3], *inputs["v"].shape[2:])
    if len(inputs["q"]) < 2 or any(size % VECTOR for size in sizes):
        return None
    straight = run(inputs, params)
    by_batch = {name: np.ascontiguousarray(x[::-1]) for name, x in inputs.items() if x is not None and x.ndim > 1}
    turned = run({**inputs, **by_batch}, params)
    for number, (one, other) in enumerate(zip(turned, straight, strict=True)):
        broken = difference(one[::-1], other, f"output {number} with the batch in reverse order")
        if broken:
            return broken
    return None


@relation("attention", "flash_attention")
def hidden_keys_do_not_matter(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """Under a causal mask, the queries that do not see the last key have the same bits when it is another one."""
    queries, keys = inputs["q"].shape[2], inputs["k"].shape[2]
    sees_last = {"none": 0, "top_left": keys - 1, "bottom_right": queries - 1}[params["causal"]]
    if not keys or not inputs["k"].size or sees_last <= 0:
        return None
    straight = run(inputs, params)
    other = {**inputs, "k": np.array(inputs["k"]), "v": np.array(inputs["v"])}
    other["k"][:, :, -1], other["v"][:, :, -1] = 8192, -8192
    changed = run(other, params)
    for name, one, two in zip(("out", "lse"), changed, straight, strict=True):
        broken = difference(one[:, :, :sees_last], two[:, :, :sees_last], f"{name} with another last key")
        if broken:
            return broken
    return None


@relation("attention_varlen", "mla_prefill")
def sequences_are_independent(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """A packed sequence's result is the same bits as that of the sequence alone."""
    out, lse = run(inputs, params)
    edges_q, edges_k = inputs["cu_seqlens_q"], inputs["cu_seqlens_k"]
    for at in range(1, len(edges_q) - 1):
        queries, keys = slice(*edges_q[at : at + 2]), slice(*edges_k[at : at + 2])
        own = {name: queries if name == "q" else keys for name in inputs if name in PACKED}
        if inputs.get("bias") is not None:
            own["bias"] = queries
        alone: dict[str, Any] = {name: np.array(inputs[name][rows]) for name, rows in own.items()}
        alone |= {
            "cu_seqlens_q": edges_q[at : at + 2] - edges_q[at],
            "cu_seqlens_k": edges_k[at : at + 2] - edges_k[at],
        }
        if inputs.get("seqused_k") is not None:
            alone["seqused_k"] = inputs["seqused_k"][at : at + 1]
        alone = {**inputs, **alone}
        own_out, own_lse = run(alone, params)
        broken = difference(out[queries], own_out, f"out of sequence {at}")
        broken = broken or difference(lse[:, queries], own_lse, f"lse of sequence {at}")
        if broken:
            return broken
    return None


@relation(
    "paged_attention_decode",
    "paged_attention_decode_quantised",
    "paged_attention_prefill",
    "paged_attention_prefill_quantised",
    "mla_decode",
    "mla_decode_quantised",
)
def pages_may_be_moved(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """The result is the same bits when every page lies one place further on, the last one first."""
    by_page = ["key_cache", "value_cache", "cache", "latent_cache", "rope_cache"]
    by_page += ["k_scale", "v_scale"] * (params.get("scales") == "token")
    by_page += ["latent_scale"] * (params.get("scales") == "tile")
    caches = {name: inputs[name] for name in by_page if name in inputs}
    pages = len(next(iter(caches.values())))
    if not pages:
        return None
    table = inputs["page_table"]
    moved = np.where((table >= 0) & (table < pages), (table + 1) % pages, table).astype(table.dtype)
    straight = run(inputs, params)
    turned = run(
        {**inputs, **{name: np.roll(cache, 1, axis=0) for name, cache in caches.items()}, "page_table": moved}, params
    )
    for name, one, other in zip(("out", "lse"), turned, straight, strict=True):
        broken = difference(one, other, f"{name} with the pages elsewhere")
        if broken:
            return broken
    return None


@relation("merge_attention_states")
def merged_tokens_are_independent(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """A token's result is the same bits when the tokens come in reverse order."""
    straight = run(inputs, params)
    turned = run({name: np.ascontiguousarray(array[:, ::-1]) for name, array in inputs.items()}, params)
    for name, one, other in zip(("out", "lse"), turned, straight, strict=True):
        broken = difference(one[::-1], other, f"{name} with the tokens in reverse order")
        if broken:
            return broken
    return None

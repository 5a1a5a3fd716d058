"""Sampling where each row has filters of its own, as a batch of requests has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.sampling import PROBABILITIES, Ties, among_top_k, drawn_among, has_tokens, mass_before
from oracle.signature import Array, Floats, InputError, Integers, Output
from oracle.vocabulary import exact_value

LEAST = 2.0**-100  # a mass that is above 0 and below that of any token


def _vocab(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return has_tokens(sizes, {})


@operator(family="sampling", check=_vocab, dtypes=PROBABILITIES)
def sample_by_row(
    probs: Annotated[Array, Floats("rows vocab")],
    uniform: Annotated[Array, Floats("rows", dtype="float32")],
    top_k: Annotated[Array, Integers("rows")] | None = None,
    top_p: Annotated[Array, Floats("rows", dtype="float32")] | None = None,
    min_p: Annotated[Array, Floats("rows", dtype="float32")] | None = None,
    *,
    order: Literal["joint", "in_turn"] = "in_turn",
    ties: Ties = "all",
) -> Annotated[Array, Output("tokens", dtype="int32")]:
    """Draw among what a row's own filters keep: ``kept = top_k(p) ∩ top_p(p) ∩ min_p(p)``; by inverse transform.

    Parameters
    ----------
    probs : array (rows, vocab)
        Probabilities, at least 0 and not all 0; float16, bfloat16 or float32. Their sum is taken to be 1. With
        `temperature_softmax` before it this is a batch of requests, each with a temperature of its own.
    uniform : float32 array (rows,)
        A uniform random number in 0 … 1, below 1, for each row.
    top_k : int32 or int64 array (rows,), optional
        How many tokens each row keeps; 0, or vocab and more, for all (what a request with -1 means in vLLM and SGLang).
    top_p : float32 array (rows,), optional
        Mass of the nucleus; 1 and more keeps all, 0 only what is most probable.
    min_p : float32 array (rows,), optional
        Share of the row's largest probability below which a token is dropped; 0 keeps all, at most 1.
    order : "joint" or "in_turn"
        Whether the nucleus is one of all tokens (FlashInfer's ``joint``, AITER), or one of what top_k and min_p keep,
        after their mass is made 1 (vLLM's processors of logits; FlashInfer's ``top_k_first``).
    ties : "all" or "lowest"
        What top_k and top_p do with equally probable tokens: keep them together, or those with lower indices first.

    Returns
    -------
    tokens : int32 array (rows,)
        The token in whose part of the kept tokens' cumulative distribution ``uniform`` lies.

    Notes
    -----
    Rounding points: the product min_p · max p, each addition of masses and of the cumulative sum, the mass of what is
    kept and the divisions by it, in the compute type. Where u or a token lies closer to an edge than that can tell,
    both answers are right.

    Raises
    ------
    InputError
        No tokens, a negative top_k, a min_p above 1, or shapes and dtypes that disagree.

    Source: FlashInfer, ``top_k_top_p_sampling_from_probs`` with tensors of parameters; vLLM, ``TopKTopPSampler``.

    Examples
    --------
    >>> probs, uniform = np.array([[0.5, 0.125, 0.25, 0.125]] * 3, np.float32), np.full(3, 0.9, np.float32)
    >>> sample_by_row(probs, uniform, np.array([1, 2, 0]), np.array([1.0, 0.6, 1.0], np.float32))
    array([0, 0, 3])
    >>> sample_by_row(probs, uniform, np.array([1, 2, 0]), np.array([1.0, 0.6, 1.0], np.float32), order="joint")
    array([0, 2, 3])
    """
    keep: Any = np.ones(probs.shape, np.bool_)
    if min_p is not None:
        if (exact_value(min_p) > 1).any():
            raise InputError(f"sample_by_row: min_p = {exact_value(min_p).max():g} must be at most 1")
        keep = keep & (probs >= np.max(probs, axis=-1, keepdims=True) * min_p[:, np.newaxis])
    if top_k is not None:
        count = np.where(top_k == 0, probs.shape[-1], np.minimum(top_k, probs.shape[-1]))
        keep = keep & among_top_k(probs, count, ties)
    if top_p is not None:
        mass = probs
        if order == "in_turn":
            mass = np.where(keep, probs, 0.0)
            mass = mass / np.sum(mass, axis=-1, keepdims=True)
        limit = np.maximum(top_p, LEAST)[:, np.newaxis]
        keep = keep & ((exact_value(limit) >= 1.0) | (mass_before(probs, mass, ties) < limit))
    tokens: Array = drawn_among(probs, keep, uniform)
    return tokens

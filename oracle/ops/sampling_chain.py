"""Speculative sampling along a chain of drafted tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Integers, Output
from oracle.vocabulary import located


def _one_more(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if not sizes["vocab"]:
        return "vocab = 0, and there is no token to choose; give at least one"
    if sizes["places"] != sizes["drafted"] + 1:
        return f"target_probs has {sizes['places']} places; {sizes['drafted']} drafted tokens need one more than that"
    return None


@operator(family="sampling", check=_one_more, dtypes=("float16", "bfloat16", "float32"))
def speculative_chain(
    draft_probs: Annotated[Array, Floats("batch drafted vocab")],
    draft_ids: Annotated[Array, Integers("batch drafted", below="vocab")],
    target_probs: Annotated[Array, Floats("batch places vocab")],
    uniform: Annotated[Array, Floats("batch places", dtype="float32")],
) -> Annotated[Array, Output("emitted", dtype="int32")]:
    """Speculative sampling: drafted token t is kept if ``u · draft[t] < target[t]``; the first that is not is redrawn.

    Parameters
    ----------
    draft_probs : array (batch, drafted, vocab)
        Distribution that each drafted token was drawn from; float16, bfloat16 or float32.
    draft_ids : int32 or int64 array (batch, drafted)
        The drafted tokens.
    target_probs : array (batch, places, vocab)
        Distribution of the model at each place, places = drafted + 1; draft_probs' dtype.
    uniform : float32 array (batch, places)
        Uniform random numbers in 0 … 1, below 1: one for each decision, the last one for the token that is drawn.

    Returns
    -------
    emitted : int32 array (batch,)
        How many drafted tokens are kept, up to the first that is not.
    next_token : int32 array (batch,)
        The token after them: drawn from ``max(target - draft, 0)`` at the place of the first that was not kept, or
        from the target at the last place if all were.
    tokens : int32 array (batch, places)
        The kept tokens, the one after them, then -1.

    Notes
    -----
    Rounding points: the product u · draft, the differences, each addition and the division by the total, in the
    compute type. Where a decision or an edge cannot be told, both answers are right.

    Raises
    ------
    InputError
        Not one more place than drafted tokens, a token outside the vocabulary, or shapes and dtypes that disagree.

    Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (2023), algorithm 1;
    FlashInfer, ``chain_speculative_sampling``.

    Examples
    --------
    >>> draft, target = np.array([[[0.5, 0.5]]], np.float32), np.array([[[0.25, 0.75], [0.5, 0.5]]], np.float32)
    >>> speculative_chain(draft, np.array([[0]]), target, np.array([[0.8, 0.1]], np.float32))
    (array([0]), array([1]), array([[ 1, -1]]))
    """
    drafted = draft_ids.shape[1]
    place = draft_ids[:, :, np.newaxis]
    drawn_with = np.take_along_axis(draft_probs, place, axis=-1)[..., 0]
    wanted = np.take_along_axis(target_probs[:, :drafted], place, axis=-1)[..., 0]
    excess = uniform[:, :drafted] * drawn_with - wanted  # a token is kept while this is below 0
    highest = [excess[:, t : t + 1] for t in range(drafted)]
    for t in range(1, drafted):
        highest[t] = np.maximum(highest[t - 1], highest[t])
    rising = np.concatenate([*highest, np.ones_like(uniform[:, -1:])], axis=-1)
    emitted: Array = located(rising, np.full(len(draft_ids), -1e-300))
    return emitted


@speculative_chain.stage
def _next(
    draft_probs: Array, target_probs: Array, uniform: Array, emitted: Array
) -> Annotated[Array, Output("next_token", dtype="int32")]:
    """The token after those that were kept."""
    rows = np.arange(len(emitted))
    draft = np.concatenate([draft_probs, np.zeros_like(target_probs[:, -1:])], axis=1)[rows, emitted]
    left = np.maximum(target_probs[rows, emitted] - draft, 0.0)
    share = left / np.sum(left, axis=-1, keepdims=True)
    token: Array = located(np.cumsum(share, axis=-1), uniform[:, -1], weight=share)
    return token


@speculative_chain.stage
def _tokens(draft_ids: Array, emitted: Array, next_token: Array) -> Annotated[Array, Output("tokens", dtype="int32")]:
    """The kept tokens, the one after them, and -1 for the rest."""
    place, last = np.arange(draft_ids.shape[1] + 1), emitted[:, np.newaxis]
    kept = np.concatenate([draft_ids, np.full_like(draft_ids[:, :1], -1, shape=(len(draft_ids), 1))], axis=1)
    return np.where(place < last, kept, np.where(place == last, next_token[:, np.newaxis], -1))

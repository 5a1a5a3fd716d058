"""Sampling of tokens: temperature, the greedy choice, and filtered draws by inverse transform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import exact_value, hull, located, pivot, rescaled

PROBABILITIES = ("float16", "bfloat16", "float32")

Ties = Literal["all", "lowest"]


def has_tokens(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if not sizes["vocab"]:
        return "vocab = 0, and there is no token to choose; give at least one"
    if params.get("top_k", 0) > sizes["vocab"]:
        return f"top_k = {params['top_k']} exceeds vocab = {sizes['vocab']}"
    for name in ("top_p", "min_p"):
        if params.get(name, 0.0) > 1.0:
            return f"{name} = {params[name]} must be at most 1"
    return None


@operator(family="sampling", check=has_tokens)
def temperature_softmax(
    logits: Annotated[Array, Floats("rows vocab")],
    temperature: Annotated[Array, Floats("rows", dtype="float32")],
) -> Annotated[Array, Output("out", like="logits", statistic=True)]:
    """Softmax at a temperature: ``out = exp(x / T - max x / T) / Σ exp(x / T - max x / T)``.

    Parameters
    ----------
    logits : array (rows, vocab)
        float16, bfloat16, float32 or float64. -inf excludes a token.
    temperature : float32 array (rows,)
        T of each row, at least 0. At 0 the first of the largest logits has probability 1.

    Returns
    -------
    out : array (rows, vocab)
        Probabilities, float32 (float64 for float64 logits).

    Notes
    -----
    Rounding points: the quotient (or the product with 1 / T), the difference, the exponential, each addition and the
    share, in the compute type. The convention for T = 0 is vLLM's and AITER's (mixed_sample); FlashInfer's softmax
    leaves it to the caller.

    Raises
    ------
    InputError
        No tokens, or shapes and dtypes that disagree.

    Source: Hinton et al., "Distilling the Knowledge in a Neural Network" (2015), equation 1.

    Examples
    --------
    >>> logits = np.log(np.array([[1.0, 2.0, 2.0]]))
    >>> temperature_softmax(np.repeat(logits, 2, axis=0), np.array([0.5, 0.0], np.float32)).round(3)
    array([[0.111, 0.444, 0.444],
           [0.   , 1.   , 0.   ]])
    """
    greedy = exact_value(temperature) == 0
    divisor = np.where(greedy, 1.0, temperature)[:, np.newaxis]
    x = logits / divisor
    weight = rescaled(np.exp(x - pivot(np.max(x, axis=-1, keepdims=True))))
    share = hull(weight / np.sum(weight, axis=-1, keepdims=True), 0.0, 1.0, terms=logits.shape[-1])
    winner = np.arange(logits.shape[-1]) == np.argmax(exact_value(logits, unflushed=True), axis=-1)[:, np.newaxis]
    out: Array = np.where(greedy[:, np.newaxis], np.where(winner, 1.0, 0.0), share)
    return out


@operator(family="sampling", check=has_tokens)
def greedy(logits: Annotated[Array, Floats("rows vocab")]) -> Annotated[Array, Output("tokens", dtype="int32")]:
    """The most probable token: ``tokens = argmax logits``, of equal ones the first.

    Parameters
    ----------
    logits : array (rows, vocab)
        float16, bfloat16, float32 or float64. NaN counts as larger than every number, as in NumPy and PyTorch.

    Returns
    -------
    tokens : int32 array (rows,)
        Index of the first of the largest logits.

    Notes
    -----
    Rounding points: none; the comparison is exact, of subnormal numbers too, also where arithmetic flushes.

    Raises
    ------
    InputError
        No tokens.

    Source: NumPy and the array API standard, ``argmax``.

    Examples
    --------
    >>> greedy(np.array([[1.0, 3.0, 3.0], [0.0, -1.0, -2.0]]))
    array([1, 0])
    """
    tokens: Array = np.argmax(exact_value(logits, unflushed=True), axis=-1)
    return tokens


def drawn_among(probs: Any, keep: Any, uniform: Any) -> Any:
    """Inverse-transform sampling among the kept tokens, in the order of their indices."""
    kept = np.where(keep, probs, 0.0)
    share = kept / np.sum(kept, axis=-1, keepdims=True)
    return located(np.cumsum(share, axis=-1), uniform, weight=share)


def among_top_k(probs: Any, top_k: Any, ties: str) -> Any:
    """Which tokens are among the ``top_k`` most probable; one number, or one for each row."""
    known = exact_value(probs, unflushed=True)
    order = np.argsort(-known, axis=-1, kind="stable")
    count = np.broadcast_to(top_k, len(known))[:, np.newaxis]
    if ties == "lowest":
        return np.argsort(order, axis=-1, kind="stable") < count
    return known >= np.take_along_axis(known, np.take_along_axis(order, count - 1, axis=-1), axis=-1)


def mass_before(probs: Any, mass: Any, ties: str) -> Any:
    """For each token the mass of those that go before it: more probable ones, and equal ones if ties have an order."""
    known = exact_value(probs, unflushed=True)
    order = np.argsort(-known, axis=-1, kind="stable")
    falling, sums = np.take_along_axis(known, order, axis=-1), np.take_along_axis(mass, order, axis=-1)
    sums = np.cumsum(sums, axis=-1)
    before = np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], axis=-1)
    if ties == "all":
        place = np.arange(known.shape[-1])
        fresh = np.concatenate([np.ones_like(falling[:, :1]), falling[:, 1:] != falling[:, :-1]], axis=-1) != 0
        before = np.take_along_axis(before, np.maximum.accumulate(np.where(fresh, place, 0), axis=-1), axis=-1)
    return np.take_along_axis(before, np.argsort(order, axis=-1, kind="stable"), axis=-1)


@operator(family="sampling", check=has_tokens, dtypes=PROBABILITIES)
def sample_top_k(
    probs: Annotated[Array, Floats("rows vocab")],
    uniform: Annotated[Array, Floats("rows", dtype="float32")],
    *,
    top_k: Annotated[int, Range(1)] = 8,
    ties: Ties = "all",
) -> Annotated[Array, Output("tokens", dtype="int32")]:
    """Draw among the k most probable: ``tokens = min {t: Σ_{s ≤ t, kept} p_s > u · Σ_kept p}``.

    Parameters
    ----------
    probs : array (rows, vocab)
        Probabilities, at least 0 and not all 0; float16, bfloat16 or float32.
    uniform : float32 array (rows,)
        A uniform random number in 0 … 1, below 1, for each row.
    top_k : int
        How many tokens are kept; at most vocab.
    ties : "all" or "lowest"
        Whether all tokens as probable as the k-th are kept, so that there may be more than k (FlashInfer, AITER,
        vLLM's PyTorch path), or exactly k, those with lower indices first (vLLM's Triton path).

    Returns
    -------
    tokens : int32 array (rows,)
        The token in whose part of the cumulative distribution ``uniform`` lies; never one of probability 0.

    Notes
    -----
    Rounding points: each addition of the cumulative sum and of the total, and the division by the total (or the
    product of it with u), in the compute type. Where u lies closer to an edge than that can tell, both neighbours are
    right.

    Raises
    ------
    InputError
        top_k above vocab, or shapes and dtypes that disagree.

    Source: Fan et al., "Hierarchical Neural Story Generation" (2018), section 5.4; Devroye, "Non-Uniform Random
    Variate Generation" (1986), chapter III, for the inverse transform.

    Examples
    --------
    >>> probs, uniform = np.array([[0.5, 0.125, 0.25, 0.125]], np.float32), np.array([0.7], np.float32)
    >>> sample_top_k(probs, uniform, top_k=2)
    array([2])
    """
    tokens: Array = drawn_among(probs, among_top_k(probs, top_k, ties), uniform)
    return tokens


@operator(family="sampling", check=has_tokens, dtypes=PROBABILITIES)
def sample_top_p(
    probs: Annotated[Array, Floats("rows vocab")],
    uniform: Annotated[Array, Floats("rows", dtype="float32")],
    *,
    top_p: Annotated[float, Range(0.0, open=True)] = 0.9,
    ties: Ties = "all",
) -> Annotated[Array, Output("tokens", dtype="int32")]:
    """Draw from the nucleus: token t is kept if ``Σ_{p_s > p_t} p_s < top_p``; ``tokens`` by inverse transform.

    Parameters
    ----------
    probs : array (rows, vocab)
        Probabilities, at least 0 and not all 0; float16, bfloat16 or float32. Their sum is taken to be 1.
    uniform : float32 array (rows,)
        A uniform random number in 0 … 1, below 1, for each row.
    top_p : float
        Mass of the nucleus, above 0 and at most 1.
    ties : "all" or "lowest"
        Whether equally probable tokens are kept together (FlashInfer's pivot), or one after the other by index (a
        stable sort, as vLLM's PyTorch path has it).

    Returns
    -------
    tokens : int32 array (rows,)
        The token in whose part of the kept tokens' cumulative distribution ``uniform`` lies.

    Notes
    -----
    Rounding points: each addition of the masses and of the cumulative sum, and the division by the kept mass, in
    the compute type. A token at the edge of the nucleus may be kept or not, if that cannot be told.

    Raises
    ------
    InputError
        top_p above 1, or shapes and dtypes that disagree.

    Source: Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020), equation 2.

    Examples
    --------
    >>> probs, uniform = np.array([[0.5, 0.125, 0.25, 0.125]], np.float32), np.array([0.7], np.float32)
    >>> sample_top_p(probs, uniform, top_p=0.6)
    array([2])
    """
    tokens: Array = drawn_among(probs, mass_before(probs, probs, ties) < top_p, uniform)
    return tokens


@operator(family="sampling", check=has_tokens, dtypes=PROBABILITIES)
def sample_min_p(
    probs: Annotated[Array, Floats("rows vocab")],
    uniform: Annotated[Array, Floats("rows", dtype="float32")],
    *,
    min_p: Annotated[float, Range(0.0)] = 0.1,
) -> Annotated[Array, Output("tokens", dtype="int32")]:
    """Draw among tokens not much less probable than the best: ``p_t ≥ min_p · max p``; ``tokens`` by inverse transform.

    Parameters
    ----------
    probs : array (rows, vocab)
        Probabilities, at least 0 and not all 0; float16, bfloat16 or float32.
    uniform : float32 array (rows,)
        A uniform random number in 0 … 1, below 1, for each row.
    min_p : float
        Share of the largest probability below which a token is dropped; 0 … 1.

    Returns
    -------
    tokens : int32 array (rows,)
        The token in whose part of the kept tokens' cumulative distribution ``uniform`` lies.

    Notes
    -----
    Rounding points: the product min_p · max p, each addition, and the division by the kept mass, in the compute type.

    Raises
    ------
    InputError
        min_p above 1, or shapes and dtypes that disagree.

    Source: Nguyen et al., "Turning Up the Heat: Min-p Sampling" (2024), equation 1; FlashInfer,
    ``min_p_sampling_from_probs``.

    Examples
    --------
    >>> probs, uniform = np.array([[0.5, 0.125, 0.25, 0.125]], np.float32), np.array([0.7], np.float32)
    >>> sample_min_p(probs, uniform, min_p=0.5)
    array([2])
    """
    keep = probs >= np.max(probs, axis=-1, keepdims=True) * min_p
    tokens: Array = drawn_among(probs, keep, uniform)
    return tokens


@operator(family="sampling", check=has_tokens, dtypes=PROBABILITIES)
def sample_top_k_top_p(
    probs: Annotated[Array, Floats("rows vocab")],
    uniform: Annotated[Array, Floats("rows", dtype="float32")],
    *,
    top_k: Annotated[int, Range(1)] = 8,
    top_p: Annotated[float, Range(0.0, open=True)] = 0.9,
    order: Literal["joint", "top_k_first"] = "joint",
    ties: Ties = "all",
) -> Annotated[Array, Output("tokens", dtype="int32")]:
    """Draw from what both filters keep: ``kept = top_k(p) ∩ top_p(p)``, or ``top_p(top_k(p) renormalised)``.

    Parameters
    ----------
    probs : array (rows, vocab)
        Probabilities, at least 0 and not all 0; float16, bfloat16 or float32. Their sum is taken to be 1.
    uniform : float32 array (rows,)
        A uniform random number in 0 … 1, below 1, for each row.
    top_k, top_p : int, float
        See `sample_top_k` and `sample_top_p`.
    order : "joint" or "top_k_first"
        Whether the nucleus is one of all tokens (AITER; FlashInfer's ``joint``), or one of the k most probable after
        their mass is made 1 (FlashInfer's default; vLLM's order of its logits processors).
    ties : "all" or "lowest"
        What is done with equally probable tokens, by both filters.

    Returns
    -------
    tokens : int32 array (rows,)
        The token in whose part of the kept tokens' cumulative distribution ``uniform`` lies.

    Notes
    -----
    Rounding points: as of the two filters; the mass of the k most probable and the division by it.

    Raises
    ------
    InputError
        top_k above vocab, top_p above 1, or shapes and dtypes that disagree.

    Source: FlashInfer, ``top_k_top_p_sampling_from_probs``; AITER, ``top_k_top_p_sampling_from_probs``.

    Examples
    --------
    >>> probs, uniform = np.array([[0.5, 0.125, 0.25, 0.125]], np.float32), np.array([0.9], np.float32)
    >>> [int(sample_top_k_top_p(probs, uniform, top_k=2, top_p=0.6, order=o)[0]) for o in ("joint", "top_k_first")]
    [2, 0]
    """
    keep = among_top_k(probs, top_k, ties)
    mass = probs
    if order == "top_k_first":
        mass = np.where(keep, probs, 0.0)
        mass = mass / np.sum(mass, axis=-1, keepdims=True)
    tokens: Array = drawn_among(probs, keep & (mass_before(probs, mass, ties) < top_p), uniform)
    return tokens

"""What is done to logits before a token is sampled: penalties, bias, and the mask of a grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, InputError, Integers, Output
from oracle.vocabulary import either

DTYPES = ("float16", "bfloat16", "float32")
WORD = 32


@operator(family="sampling", dtypes=DTYPES)
def apply_penalties(
    logits: Annotated[Array, Floats("rows vocab")],
    prompt_counts: Annotated[Array, Integers("rows vocab")],
    output_counts: Annotated[Array, Integers("rows vocab")],
    repetition: Annotated[Array, Floats("rows", dtype="float32")],
    frequency: Annotated[Array, Floats("rows", dtype="float32")],
    presence: Annotated[Array, Floats("rows", dtype="float32")],
) -> Annotated[Array, Output("out", like="logits")]:
    """Penalties of repeated tokens: ``out = (x / r if x > 0 else x · r) - frequency · count - presence · (count > 0)``.

    Parameters
    ----------
    logits : array (rows, vocab)
        x; float16, bfloat16 or float32. -inf excludes a token.
    prompt_counts : int32 or int64 array (rows, vocab)
        How often each token is in the row's prompt; only whether it is there matters.
    output_counts : int32 or int64 array (rows, vocab)
        How often each token was generated: count.
    repetition : float32 array (rows,)
        r of tokens in the prompt or the output, above 0; 1 for all others, which it does not change.
    frequency, presence : float32 array (rows,)
        Taken off for each time, and once, that a token was generated; the prompt does not count (OpenAI, vLLM, SGLang).

    Returns
    -------
    out : array (rows, vocab)
        logits' dtype. Tokens that were not seen keep theirs, bit for bit.

    Notes
    -----
    Rounding points: the quotient or product, the product frequency · count, and two differences in either order, in the
    compute type; the result once to logits' dtype. Libraries that store 16-bit logits after each penalty round more
    often.

    Raises
    ------
    InputError
        A negative count, or shapes and dtypes that disagree.

    Source: Keskar et al., "CTRL" (2019), section 4.1, for repetition (by division for positive logits only, as
    Transformers, vLLM and SGLang have it); OpenAI's API for the others; vLLM, ``apply_penalties``.

    Examples
    --------
    >>> seen = np.array([[1, 0, 0, 0]]), np.array([[0, 2, 1, 0]])
    >>> strength = (np.array([value], np.float32) for value in (2.0, 0.5, 0.25))
    >>> apply_penalties(np.array([[4.0, -1.0, 1.0, 7.0]], np.float32), *seen, *strength)
    array([[ 2.  , -3.25, -0.25,  7.  ]])
    """
    generated = np.where(output_counts > 0, 1.0, 0.0)
    factor = np.where((prompt_counts > 0) | (output_counts > 0), repetition[:, np.newaxis], 1.0)
    scaled = np.where(logits > 0, logits / factor, logits * factor)
    often = frequency[:, np.newaxis] * output_counts.astype(np.float64)
    once = presence[:, np.newaxis] * generated
    out: Array = either(scaled - often - once, scaled - once - often, scaled - (often + once))
    return out


@operator(family="sampling", dtypes=DTYPES)
def apply_logit_bias(
    logits: Annotated[Array, Floats("rows vocab")],
    bias_rows: Annotated[Array, Integers("entries", below="rows")],
    bias_tokens: Annotated[Array, Integers("entries", below="vocab")],
    bias: Annotated[Array, Floats("entries", dtype="float32")],
) -> Annotated[Array, Output("out", like="logits")]:
    """Bias of chosen tokens: ``out[row, token] = logits[row, token] + bias`` for each entry (row, token, bias).

    Parameters
    ----------
    logits : array (rows, vocab)
        float16, bfloat16 or float32.
    bias_rows, bias_tokens : int32 or int64 array (entries,)
        Where each bias goes; no place twice, for which libraries differ.
    bias : float32 array (entries,)
        What is added; -inf forbids a token.

    Returns
    -------
    out : array (rows, vocab)
        logits' dtype; all other logits as they were, bit for bit.

    Notes
    -----
    Rounding points: the sum, once to logits' dtype.

    Raises
    ------
    InputError
        A place outside the logits or named twice, or shapes and dtypes that disagree.

    Source: OpenAI's API, ``logit_bias``; vLLM, ``LogitBiasLogitsProcessor``.

    Examples
    --------
    >>> logits, at = np.zeros((2, 3), np.float32), (np.array([0, 1]), np.array([2, 0]))
    >>> apply_logit_bias(logits, *at, np.array([1.5, -np.inf], np.float32))
    array([[ 0. ,  0. ,  1.5],
           [-inf,  0. ,  0. ]])
    """
    place = bias_rows.astype(np.int64) * logits.shape[-1] + bias_tokens
    if len(np.unique(place)) < len(place):
        raise InputError("apply_logit_bias: bias_rows and bias_tokens name a place twice; add its biases up first")
    out: Any = logits.copy()
    out[bias_rows, bias_tokens] = logits[bias_rows, bias_tokens] + bias
    return out  # type: ignore[no-any-return]


def _holds_all(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    words, needed = sizes["words"], -(-sizes["vocab"] // WORD)
    return None if words >= needed else f"words = {words} hold {WORD * words} bits; vocab = {sizes['vocab']} tokens"


@operator(family="sampling", check=_holds_all, dtypes=DTYPES)
def apply_token_bitmask(
    logits: Annotated[Array, Floats("rows vocab")],
    bitmask: Annotated[Array, Integers("masks words", low=-(2**31), dtype="int32")],
    mask_of_row: Annotated[Array, Integers("rows", below="masks", low=-1)],
) -> Annotated[Array, Output("out", like="logits")]:
    """Mask of a grammar: ``out[row, t] = logits[row, t]`` if bit t % 32 of word t // 32 is 1, else -inf.

    Parameters
    ----------
    logits : array (rows, vocab)
        float16, bfloat16 or float32.
    bitmask : int32 array (masks, words)
        32 tokens a word, the lowest bit first; 32 · words >= vocab. Bits past the vocabulary mean nothing.
    mask_of_row : int32 or int64 array (rows,)
        Which mask a row has; -1 for none (vLLM's mapping; xgrammar lists the rows that have one instead).

    Returns
    -------
    out : array (rows, vocab)
        logits' dtype; what is allowed as it was, bit for bit.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        Too few words for the vocabulary, a mask that is not there, or shapes and dtypes that disagree.

    Source: xgrammar, ``apply_token_bitmask_inplace``; vLLM, ``apply_grammar_bitmask``.

    Examples
    --------
    >>> logits = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    >>> apply_token_bitmask(logits, np.array([[0b101]], np.int32), np.array([0, -1]))
    array([[  1., -inf,   3.],
           [  4.,   5.,   6.]])
    """
    token = np.arange(logits.shape[-1])
    bit = bitmask[:, token // WORD] >> (token % WORD) & 1
    allowed = np.ones(logits.shape, np.bool_)
    masked = mask_of_row >= 0
    allowed[masked] = bit[mask_of_row[masked]] == 1
    out: Array = np.where(allowed, logits, -np.inf)
    return out

"""Merging what attention gave for parts of the keys."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import softmax_mean
from oracle.signature import Array, Floats, Output


@operator(family="attention")
def merge_attention_states(
    outs: Annotated[Array, Floats("splits tokens heads v_dim")],
    lses: Annotated[Array, Floats("splits tokens heads", dtype="float32")],
    *,
    base: Literal["e", "2"] = "e",
) -> tuple[Annotated[Array, Output("out", like="outs")], Annotated[Array, Output("lse", like="outs", statistic=True)]]:
    """Merge of split attention: ``out = Σ exp(lses[s]) outs[s] / Σ exp(lses[s])`` over the splits s.

    Parameters
    ----------
    outs : array (splits, tokens, heads, v_dim)
        Results of attention over each part of the keys; float16, bfloat16, float32 or float64.
    lses : float32 array (splits, tokens, heads)
        Their log-sum-exps; -inf for a part in which a token saw no key.
    base : "e" or "2"
        Base of the logarithm in ``lses`` and ``lse``: e in vLLM, FlashAttention and AITER, 2 in FlashInfer.

    Returns
    -------
    out : array (tokens, heads, v_dim)
        outs' dtype. A token that saw no key in any part has 0.
    lse : array (tokens, heads)
        Log of the sum of all exponentials; float32, for float64 outs float64; -inf for such a token.

    Notes
    -----
    Rounding points: differences of the log-sum-exps, exponentials, sums and quotient, in the compute type; ``out`` and
    ``lse`` once each to their dtype.

    Raises
    ------
    InputError
        Shapes and dtypes that disagree, or another base.

    Source: Ye et al., "Cascade Inference" (FlashInfer, 2024); merge_attn_states of vLLM.

    Examples
    --------
    >>> outs, lses = np.array([1.0, 4.0]).reshape(2, 1, 1, 1), np.log2([2.0, 1.0]).astype(np.float32).reshape(2, 1, 1)
    >>> out, lse = merge_attention_states(outs, lses, base="2")
    >>> out.item(), round(2 ** lse.item(), 12)
    (2.0, 3.0)
    """
    # To merge is to attend to the parts, with log-sum-exps for scores and one query per token and head.
    score = np.moveaxis(lses, 0, -1)[..., np.newaxis, :]
    visible = score > -np.inf
    score = score if base == "e" else score * math.log(2.0)
    out, lse = softmax_mean(score, visible, np.moveaxis(outs, 0, -2))
    lse = lse[..., 0] if base == "e" else lse[..., 0] / math.log(2.0)
    return out[..., 0, :], lse

"""Absorbed latent attention over a quantised cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_paged import UNUSED, cells_of
from oracle.ops.attention_parts import attended, by_head
from oracle.signature import Array, Floats, Integers, Output, Range
from oracle.vocabulary import round_to_format

CODES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "int8")
ROTATED = ("bfloat16", "float16", *CODES)
SCALES = {"tensor": "groups", "tile": "pages page_size tiles"}
"""Dimensions of scales by granularity; there is one group."""


def _latent_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    latent, rope = sizes["latent_dim"], sizes["rope_dim"]
    if sizes["page_size"] < 1:
        return "page_size = 0; a page holds at least one token"
    if latent + rope != sizes["qk_dim"]:
        return f"latent_dim = {latent} and rope_dim = {rope} must add up to qk_dim = {sizes['qk_dim']}"
    if sizes["qk_dim"] == 0 and params["scale"] is None:
        return "qk_dim = 0 has no default scale; pass scale"
    if params["scales"] == "tensor" and sizes["groups"] != 1:
        return f"latent_scale has {sizes['groups']} numbers; a scale per tensor is one"
    if params["scales"] == "tile" and (sizes["tiles"] < 1 or latent % sizes["tiles"]):
        return f"tiles = {sizes['tiles']} must divide latent_dim = {latent}"
    return None


@operator(family="attention", check=_latent_fits)
def mla_decode_quantised(
    q: Annotated[Array, Floats("sequences queries heads qk_dim")],
    latent_cache: Annotated[Array, Floats("pages page_size latent_dim", dtype=CODES)],
    rope_cache: Annotated[Array, Floats("pages page_size rope_dim", dtype=ROTATED)],
    latent_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    page_table: Annotated[Array, Integers("sequences max_pages", low=UNUSED, dtype="int32")],
    lengths: Annotated[Array, Integers("sequences", dtype="int32")],
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    scales: Literal["tensor", "tile"] = "tile",
    dequantised: Literal["compute", "bfloat16", "float16"] = "compute",
    window_left: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Absorbed latent attention over codes: ``out = softmax(scale · q [s · c, r]ᵀ + mask) (s · c)``.

    c is a token's quantised latent vector with its scale s, r its rotated key.

    Parameters
    ----------
    q : array (sequences, queries, heads, qk_dim)
        As in `mla_decode`: the part that meets the latent vector, then the rotated one. It is not quantised.
    latent_cache : array (pages, page_size, latent_dim) of float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8
        Codes of the latent vectors.
    rope_cache : array (pages, page_size, rope_dim)
        Rotated keys. bfloat16 or float16 for scales per tile; codes as well for a scale per tensor, which is theirs
        too.
    latent_scale : float32 array
        What a code is multiplied by. (pages, page_size, tiles) per tile of latent_dim / tiles columns, as in FlashMLA's
        rows of 656 bytes (vLLM's fp8_ds_mla): four tiles of 128 columns; powers of two in DeepSeek's later models. (1,)
        per tensor, as in vLLM's fp8 and AITER's, which quantise all of a row.
    page_table, lengths, sinks, window_left, softcap, scale, sink_in_lse
        As in `mla_decode`. Scales of cells that are not read are not read.
    scales : "tensor" or "tile"
        Granularity of the scales.
    dequantised : "compute", "bfloat16" or "float16"
        What a code times its scale is rounded to before it meets q or a weight: nothing narrower than the compute type,
        or a 16-bit type (FlashMLA: bfloat16).

    Returns
    -------
    out : array (sequences, queries, heads, latent_dim)
        q's dtype. Query i of n sees keys up to i + length - n; one that sees no key has 0.
    lse : array (sequences, queries, heads)
        Natural log of Σ exp(score); float32, for float64 inputs float64; -inf where no key is seen and no sink counts.

    Notes
    -----
    Rounding points: as in `flash_attention`, and what ``dequantised`` says. For "compute", scales may be multiplied to
    the codes, to the sums of products that the codes enter, or to the weights; weights are not quantised.

    Raises
    ------
    InputError
        Parts that do not add up to qk_dim, tiles that do not divide the latent vector, more than one scale per tensor,
        and as in `mla_decode`.

    Source: as for `mla_decode`; FlashMLA's and vLLM's quantised caches.

    Examples
    --------
    >>> codes, rope = np.array([[[1], [3]]], np.int8), np.zeros((1, 2, 1), np.float16)
    >>> table, lengths = np.array([[0]], np.int32), np.array([2], np.int32)
    >>> mla_decode_quantised(np.zeros((1, 1, 1, 2)), codes, rope, np.full((1, 2, 1), 0.5, np.float32), table, lengths)
    (array([[[[1.]]]]), array([[[0.69314718]]]))
    """
    sequences, queries, heads, _ = q.shape
    latent_dim = latent_cache.shape[2]
    options = {
        "causal": "bottom_right", "window_left": window_left, "softcap": softcap, "scale": scale,
        "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    out = np.zeros_like(q, shape=(sequences, queries, heads, latent_dim))
    lse = np.zeros_like(q, shape=(sequences, queries, heads))
    for sequence in range(sequences):
        cells = cells_of(page_table, lengths, sequence, *latent_cache.shape[:2])
        codes, rotated = latent_cache[cells], rope_cache[cells]
        if scales == "tensor":
            factor = whole = latent_scale[np.newaxis]
        else:
            factor = np.repeat(latent_scale[cells], latent_dim // latent_scale.shape[2], axis=1)
            whole = np.concatenate([factor, np.ones_like(factor, shape=rotated.shape)], axis=1)
        keys, values = np.concatenate([codes, rotated], axis=1), codes
        factors: dict[str, Any] = {"k_scale": whole[np.newaxis], "v_scale": factor[np.newaxis]}
        if dequantised != "compute":
            values = round_to_format(codes * factor, dequantised)
            rotated = round_to_format(rotated * factor, dequantised) if scales == "tensor" else rotated
            keys, factors = np.concatenate([values, rotated], axis=1), {}
        parts = by_head(q[sequence]), by_head(keys[:, np.newaxis]), by_head(values[:, np.newaxis])
        mean, log_sum = attended(*parts, options, sinks=sinks, **factors)
        out[sequence], lse[sequence] = np.swapaxes(mean[0], 0, 1), np.swapaxes(log_sum[0], 0, 1)
    return out, lse

"""Frequencies of rotary position embedding, made from a model's hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output, Range

DTYPES = ("float32", "float64")
Positive = Range(0.0, open=True)


def _stretches(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if params["rotary_dim"] % 2:
        return f"rotary_dim = {params['rotary_dim']} must be even"
    if params["scaling"] in ("ntk", "dynamic_ntk") and params["rotary_dim"] == 2:
        return f"scaling={params['scaling']!r} needs rotary_dim above 2, whose last pair has no frequency of its own"
    return None


@operator(family="rope", check=_stretches, dtypes=DTYPES)
def rope_frequencies(
    pairs: Annotated[Array, Floats("half")],
    *,
    rotary_dim: Annotated[int, Range(2)] = 128,
    base: Annotated[float, Range(1.0, open=True)] = 10_000.0,
    scaling: Literal["none", "linear", "ntk", "shifted_ntk", "dynamic_ntk"] = "none",
    factor: Annotated[float, Range(1.0)] = 1.0,
    original_length: Annotated[int, Range(1)] = 2048,
    length: Annotated[int, Range(1)] = 2048,
) -> Annotated[Array, Output("frequencies", like="pairs")]:
    """Angle per position of each pair: ``frequencies = 1 / base^(2 · pair / rotary_dim)``, and four scalings of it.

    Parameters
    ----------
    pairs : array (half,)
        Numbers of the pairs: 0, 1, …, rotary_dim / 2 - 1, or some of them; float32 or float64.
    rotary_dim : int
        How many elements of a head are turned; even.
    base : float
        Above 1 (``rope_theta``).
    scaling : "none", "linear", "ntk", "shifted_ntk" or "dynamic_ntk"
        For s = factor and d = rotary_dim: linear divides all frequencies by s; ntk has the base base · s^(d / (d - 2)),
        so that the first frequency stays and the last is divided by s (bloc97; Transformers);
        shifted_ntk has the base base · s and divides by s^(2 / d), so that pair i is where ntk would have pair i + 1 of
        one more (Su; vLLM's ``NTKScalingRotaryEmbedding``); dynamic_ntk is ntk for
        s = factor · length / original_length - (factor - 1), and none up to original_length.
    factor : float
        How many times longer sequences become; at least 1.
    original_length, length : int
        Longest sequence of the training, and the one at hand; only dynamic_ntk reads them. For length, Transformers
        takes the longest position so far, vLLM factor · original_length once and for all.

    Returns
    -------
    frequencies : array (half,)
        pairs' dtype.

    Notes
    -----
    Rounding points: the exponent, log base, their product, the exponential and each quotient, in the compute type; so a
    power of the base within that is right as well. Numbers that are made of parameters alone are made in float64.

    Raises
    ------
    InputError
        rotary_dim odd, or 2 under ntk; base, factor or lengths out of range.

    Source: Su et al., "RoFormer" (2021), section 3.2.2; Chen et al., "Extending Context Window" (2023) for linear;
    Peng et al., "YaRN" (2023), definition 1 and section 3.3 for ntk and dynamic_ntk; Transformers,
    ``modeling_rope_utils``.

    Examples
    --------
    >>> rope_frequencies(np.array([0.0, 1.0]), rotary_dim=4, base=100.0, scaling="ntk", factor=3.0).round(6)
    array([1.      , 0.033333])
    """
    stretch, divisor = 1.0, 1.0
    if scaling == "linear":
        divisor = factor
    elif scaling == "ntk":
        stretch = factor ** (rotary_dim / (rotary_dim - 2))
    elif scaling == "shifted_ntk":
        stretch, divisor = factor, factor ** (2 / rotary_dim)
    elif scaling == "dynamic_ntk":
        longer = factor * max(length, original_length) / original_length - (factor - 1)
        stretch = longer ** (rotary_dim / (rotary_dim - 2))
    exponent = 2.0 * pairs / rotary_dim
    frequencies: Array = 1.0 / (np.exp(exponent * np.log(np.full_like(pairs, base * stretch))) * divisor)
    return frequencies


def _rises(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    fast, slow = params["beta_fast"], params["beta_slow"]
    return None if fast >= slow else f"beta_fast = {fast} must be at least beta_slow = {slow}"


def ramp_ends(half: int, base: float, length: int, fast: float, slow: float, whole: bool) -> tuple[float, float]:
    """Pairs between which YaRN's ramp rises: those that turn `fast` and `slow` times over the original length."""
    ends = [half * math.log(length / (turns * 2 * math.pi)) / math.log(base) for turns in (fast, slow)]
    low, high = (math.floor(ends[0]), math.ceil(ends[1])) if whole else ends
    low, high = max(low, 0), min(high, 2 * half - 1)
    return low, high + 0.001 if low == high else high


@operator(family="rope", check=_rises, dtypes=DTYPES)
def yarn_frequencies(
    frequencies: Annotated[Array, Floats("half")],
    *,
    base: Annotated[float, Range(1.0, open=True)] = 10_000.0,
    factor: Annotated[float, Range(1.0)] = 4.0,
    original_length: Annotated[int, Range(1)] = 4096,
    beta_fast: Annotated[float, Positive] = 32.0,
    beta_slow: Annotated[float, Positive] = 1.0,
    whole_ends: bool = True,
    mscale: Annotated[float, Range(0.0)] = 1.0,
    mscale_all_dim: Annotated[float, Range(0.0)] = 0.0,
) -> tuple[
    Annotated[Array, Output("scaled", like="frequencies")], Annotated[Array, Output("magnitude", like="frequencies")]
]:
    """YaRN's frequencies: ``scaled = f / factor · ramp + f · (1 - ramp)``, with ramp from 0 to 1 along the pairs.

    Parameters
    ----------
    frequencies : array (half,)
        Those without scaling (see `rope_frequencies`), one per pair in their order; float32 or float64.
    base : float
        Above 1; the one that the frequencies were made with.
    factor : float
        How many times longer sequences become; at least 1.
    original_length : int
        Longest sequence of the training.
    beta_fast, beta_slow : float
        How often the pairs at the ramp's ends turn over original_length: pair
        half · ln(original_length / (2π · beta)) / ln(base).
    whole_ends : bool
        Whether the ends are rounded outwards to whole pairs (the paper, Transformers' and vLLM's default; gpt-oss has
        ``truncate`` False).
    mscale, mscale_all_dim : float
        magnitude = (0.1 · mscale · ln(factor) + 1) / (0.1 · mscale_all_dim · ln(factor) + 1): the paper's with 1 and
        0; DeepSeek has its own, and folds its square into the scale of the scores instead where they are equal.

    Returns
    -------
    scaled : array (half,)
        frequencies' dtype.
    magnitude : array (1,)
        Factor of the cosines and sines (``attention_factor``, vLLM: ``mscale``); frequencies' dtype.

    Notes
    -----
    Rounding points: the ramp, its complement, the quotient by factor, both products and their sum, in the compute type;
    the logarithm, products, sums and the quotient of magnitude. The ramp's ends are made in float64. Ends that meet
    are 0.001 apart.

    Raises
    ------
    InputError
        beta_fast below beta_slow, or a parameter out of range.

    Source: Peng et al., "YaRN" (2023), definitions 2 and 3, section 3.4; Transformers, ``modeling_rope_utils``; vLLM,
    ``DeepseekScalingRotaryEmbedding``.

    Examples
    --------
    >>> ramp = {"base": np.e, "original_length": 6, "beta_fast": 0.9, "beta_slow": 0.6}
    >>> yarn_frequencies(np.array([1.0, 0.5, 0.25]), factor=2.0, mscale=0.0, **ramp)
    (array([1.   , 0.375, 0.125]), array([1.]))
    """
    half = frequencies.shape[-1]
    low, high = ramp_ends(half, base, original_length, beta_fast, beta_slow, whole_ends)
    ramp = np.clip((np.full_like(frequencies, 0.0) + np.arange(half) - low) / (high - low), 0.0, 1.0)
    kept = 1.0 - ramp
    scaled = frequencies / factor * (1.0 - kept) + frequencies * kept
    stretch = np.log(np.full_like(frequencies, factor, shape=(1,)))
    return scaled, (0.1 * mscale * stretch + 1.0) / (0.1 * mscale_all_dim * stretch + 1.0)


def _apart(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    low, high = params["low_turns"], params["high_turns"]
    return None if low < high else f"low_turns = {low} must be below high_turns = {high}"


@operator(family="rope", check=_apart, dtypes=DTYPES)
def llama3_frequencies(
    frequencies: Annotated[Array, Floats("half")],
    *,
    factor: Annotated[float, Range(1.0)] = 8.0,
    low_turns: Annotated[float, Positive] = 1.0,
    high_turns: Annotated[float, Positive] = 4.0,
    original_length: Annotated[int, Range(1)] = 8192,
) -> Annotated[Array, Output("scaled", like="frequencies")]:
    """Llama 3's frequencies: ``scaled = (1 - s) · f / factor + s · f``, where ``s`` rises with turns over the length.

    Parameters
    ----------
    frequencies : array (half,)
        Those without scaling (see `rope_frequencies`), at least 0, in any order; float32 or float64.
    factor : float
        How many times longer sequences become; at least 1.
    low_turns, high_turns : float
        Of t = original_length · f / 2π turns: up to low_turns the frequency is divided by factor, from high_turns on it
        stays, and in between s = (t - low_turns) / (high_turns - low_turns) (``low_freq_factor``,
        ``high_freq_factor``).
    original_length : int
        Longest sequence of the training.

    Returns
    -------
    scaled : array (half,)
        frequencies' dtype.

    Notes
    -----
    Rounding points: the turns, or the wavelength and quotients by it; s and its complement; the quotient by factor,
    both products and their sum, in the compute type.

    Raises
    ------
    InputError
        low_turns not below high_turns (where vLLM takes s = 0), or a parameter out of range.

    Source: Meta, ``llama-models`` (2024), ``apply_scaling``; Transformers, ``modeling_rope_utils``; vLLM,
    ``Llama3RotaryEmbedding``.

    Examples
    --------
    >>> turns = 2 * np.pi / 64 * np.array([5.0, 2.5, 0.5])
    >>> (llama3_frequencies(turns, factor=4.0, original_length=64) / turns).round(6)
    array([1.   , 0.625, 0.25 ])
    """
    wavelength = 2.0 * np.pi / frequencies
    share = np.clip((original_length / wavelength - low_turns) / (high_turns - low_turns), 0.0, 1.0)
    scaled: Array = (1.0 - share) * frequencies / factor + share * frequencies
    return scaled


@operator(family="rope", dtypes=DTYPES)
def longrope_frequencies(
    frequencies: Annotated[Array, Floats("half")],
    short_factors: Annotated[Array, Floats("half")],
    long_factors: Annotated[Array, Floats("half")],
    *,
    original_length: Annotated[int, Range(2)] = 4096,
    longest: Annotated[int, Range(1)] = 131_072,
    length: Annotated[int, Range(1)] = 131_072,
) -> tuple[
    Annotated[Array, Output("scaled", like="frequencies")], Annotated[Array, Output("magnitude", like="frequencies")]
]:
    """LongRoPE's frequencies: ``scaled = f / long_factors`` beyond the original length, ``f / short_factors`` up to it.

    Parameters
    ----------
    frequencies : array (half,)
        Those without scaling (see `rope_frequencies`); float32 or float64.
    short_factors, long_factors : array (half,)
        What each frequency is divided by, above 0.
    original_length : int
        Longest sequence of the training; at least 2.
    longest : int
        Longest sequence that the model is for; magnitude = √(1 + ln(longest / original_length) / ln(original_length)),
        and 1 if it is not longer.
    length : int
        Length that decides which factors are taken: the sequence's own (Phi-3's first code), or the longest that is
        served (vLLM), so that a cache stays valid.

    Returns
    -------
    scaled : array (half,)
        frequencies' dtype.
    magnitude : array (1,)
        Factor of the cosines and sines; frequencies' dtype.

    Notes
    -----
    Rounding points: the quotient (or the product of the factor with the power of the base, and a reciprocal); both
    logarithms, their quotient, the sum and the root, in the compute type.

    Raises
    ------
    InputError
        A length out of range, or shapes and dtypes that disagree.

    Source: Ding et al., "LongRoPE" (2024), section 3; Abdin et al., "Phi-3" (2024); Transformers,
    ``modeling_rope_utils``; vLLM, ``Phi3LongRoPEScaledRotaryEmbedding``.

    Examples
    --------
    >>> f, short, long = np.array([1.0, 0.1]), np.array([1.0, 1.0]), np.array([1.0, 4.0])
    >>> longrope_frequencies(f, short, long, original_length=16, longest=4096, length=17)[0]
    array([1.   , 0.025])
    >>> longrope_frequencies(f, short, long, original_length=16, longest=256, length=16)[1].round(6)
    array([1.414214])
    """
    scaled = frequencies / (long_factors if length > original_length else short_factors)
    stretch = max(longest / original_length, 1.0)
    logarithm = np.log(np.full_like(frequencies, stretch, shape=(1,)))
    over = np.log(np.full_like(frequencies, float(original_length), shape=(1,)))
    return scaled, np.sqrt(1.0 + logarithm / over)

"""Normalisations by mean and variance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from oracle.operator import operator
from oracle.ops.norm import Eps, has_columns
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import chain, moments, rsqrt


def standardised(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The last axis less its mean, over its standard deviation, times weight, plus bias."""
    mean, variance = moments(x)
    factors = (x - mean, rsqrt(variance + eps))
    out = chain(*factors) if weight is None else chain(*factors, weight)
    return out if bias is None else out + bias


@operator(family="norm", check=has_columns)
def layernorm(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")] | None = None,
    bias: Annotated[Array, Floats("cols")] | None = None,
    *,
    eps: Eps = 1e-5,
) -> Annotated[Array, Output("out", like="x")]:
    """Layer normalisation over the last axis: ``out = (x - mean) / sqrt(variance + eps) · weight + bias``.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16, float32 or float64; at least one column.
    weight : array (cols,), optional
        Gain per column, 1 without it; x's dtype.
    bias : array (cols,), optional
        Added to each row, 0 without it; x's dtype.
    eps : float
        Added to the variance, under the root; above 0.

    Returns
    -------
    out : array (rows, cols)
        x's dtype.

    Notes
    -----
    The variance is the mean of the squared deviations, over cols, not cols - 1. Rounding points: the mean, the
    deviations from it, their squares and sum, the root, and the products in any order, in the compute type; the result
    once to x's dtype. mean(x²) - mean(x)² loses what this keeps where the mean is far above the deviations;
    Welford's updates are a freedom that a kernel must declare (``float32_welford``).

    Raises
    ------
    InputError
        No columns, eps not above 0, or shapes and dtypes that disagree.

    Source: Ba, Kiros and Hinton, "Layer Normalization" (2016), with eps.

    Examples
    --------
    >>> layernorm(np.array([[1.0, 3.0]]), np.array([2.0, 10.0]), np.array([0.0, 100.0]), eps=3.0)
    array([[ -1., 105.]])
    """
    out: Array = standardised(x, weight, bias, eps)
    return out


def _groups_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    channels, groups = sizes["channels"], params["groups"]
    if channels % groups:
        return f"channels = {channels} must be a multiple of groups = {groups}"
    if not channels or not sizes["positions"]:
        return "a group holds no elements, and the mean of none is undefined; give at least one channel and position"
    return None


@operator(family="norm", check=_groups_fit)
def groupnorm(
    x: Annotated[Array, Floats("batch channels positions")],
    weight: Annotated[Array, Floats("channels")] | None = None,
    bias: Annotated[Array, Floats("channels")] | None = None,
    *,
    groups: Annotated[int, Range(1)] = 1,
    eps: Eps = 1e-5,
) -> Annotated[Array, Output("out", like="x")]:
    """Group normalisation: each group of channels less its mean, over its standard deviation; then weight and bias.

    ``out = (x - mean) / sqrt(variance + eps) · weight + bias``, mean and variance over the channels of a group and all
    positions of one image.

    Parameters
    ----------
    x : array (batch, channels, positions)
        float16, bfloat16, float32 or float64; images with their rows and columns as one axis.
    weight : array (channels,), optional
        Gain per channel, 1 without it; x's dtype.
    bias : array (channels,), optional
        Added to each channel, 0 without it; x's dtype.
    groups : int
        How many groups of adjacent channels; divides channels. As many as channels is instance normalisation.
    eps : float
        Added to the variance, under the root; above 0.

    Returns
    -------
    out : array (batch, channels, positions)
        x's dtype.

    Notes
    -----
    Rounding points: as in ``layernorm``. Folding the mean into the bias, ``x · a + (bias - mean · a)``, is not among
    them.

    Raises
    ------
    InputError
        channels that are no multiple of groups, an empty group, eps not above 0, or shapes and dtypes that disagree.

    Source: Wu and He, "Group Normalization" (2018).

    Examples
    --------
    >>> groupnorm(np.array([[[1.0], [3.0], [5.0], [5.0]]]), groups=2, eps=3.0)[0, :, 0]
    array([-0.5,  0.5,  0. ,  0. ])
    """
    batch, channels, positions = x.shape
    grouped = x.reshape(batch, groups, channels // groups, positions)
    mean, variance = moments(grouped, axis=(2, 3))
    factors = [grouped - mean, rsqrt(variance + eps)]
    if weight is not None:
        factors.append(weight.reshape(1, groups, channels // groups, 1))
    out = chain(*factors)
    out = out if bias is None else out + bias.reshape(1, groups, channels // groups, 1)
    result: Array = out.reshape(batch, channels, positions)
    return result

"""Rotary position embedding, honest and wrong."""

import numpy as np

from implementations.arithmetic import narrow, truncated, wide


def _over(turn, read=lambda positions: positions, tables=lambda table: table, swap=False, keep_tail=True):
    """An implementation from the turn of one pair: (first, second, cos, sin) to the turned two, in the compute type."""

    def implementation(x, positions, cos, sin, pairing="neox"):
        compute = wide(x.dtype)
        half = cos.shape[1]
        rows = read(positions)
        c = tables(cos.astype(compute))[rows][:, np.newaxis]
        s = tables(sin.astype(compute))[rows][:, np.newaxis]
        out = x.copy() if keep_tail else np.zeros_like(x)
        neox = (pairing == "neox") != swap
        first = np.s_[..., :half] if neox else np.s_[..., 0 : 2 * half : 2]
        second = np.s_[..., half : 2 * half] if neox else np.s_[..., 1 : 2 * half : 2]
        a, b = turn(x[first].astype(compute), x[second].astype(compute), c, s)
        out[first], out[second] = a.astype(x.dtype), b.astype(x.dtype)
        return out

    return implementation


def _plain(a, b, c, s):
    return a * c - b * s, b * c + a * s


def _fused(a, b, c, s):
    """One product of each pair without a rounding of its own, as an FMA has it."""
    one, two = (a * c).astype(np.longdouble), (b * c).astype(np.longdouble)
    return (one - b.astype(np.longdouble) * s).astype(a.dtype), (two + a.astype(np.longdouble) * s).astype(a.dtype)


def _fused_other(a, b, c, s):
    one, two = (b * s).astype(np.longdouble), (a * s).astype(np.longdouble)
    return (a.astype(np.longdouble) * c - one).astype(a.dtype), (b.astype(np.longdouble) * c + two).astype(a.dtype)


def _float64(a, b, c, s):
    a, b, c, s = (value.astype(np.float64) for value in (a, b, c, s))
    return _plain(a, b, c, s)


def _complex(a, b, c, s):
    turned = (a + 1j * b) * (c + 1j * s)
    return turned.real, turned.imag


HONEST = {
    "plain": _over(_plain),
    "fused": _over(_fused),
    "fused_other": _over(_fused_other),
    "float64_inside": _over(_float64),
    "complex": _over(_complex),
    "negated_sine": _over(lambda a, b, c, s: (a * c + b * -s, b * c - a * -s)),
    "second_first": _over(lambda a, b, c, s: (-(b * s) + a * c, a * s + b * c)),
}


def _truncating_store(x, positions, cos, sin, pairing="neox"):
    exact = HONEST["plain"](x.astype(np.float64), positions, cos.astype(np.float64), sin.astype(np.float64), pairing)
    return truncated(exact, x.dtype)


WRONG = {
    "turns_back": _over(lambda a, b, c, s: _plain(a, b, c, -s)),
    "sine_for_cosine": _over(lambda a, b, c, s: _plain(a, b, s, c)),
    "second_from_turned_first": _over(lambda a, b, c, s: (a * c - b * s, b * c + (a * c - b * s) * s)),
    "other_pairing": _over(_plain, swap=True),
    "tail_lost": _over(_plain, keep_tail=False),
    "positions_ignored": _over(_plain, read=np.zeros_like),
    "position_of_neighbour": _over(_plain, read=lambda positions: np.roll(positions, 1)),
    "narrow_tables": _over(_plain, tables=narrow),
    "narrow_products": _over(lambda a, b, c, s: (narrow(a * c) - narrow(b * s), narrow(b * c) + narrow(a * s))),
    "magnitudes": _over(lambda a, b, c, s: _plain(np.abs(a), b, c, s)),
    "truncating_store": _truncating_store,
}
# float64 has no wider type here from which a store could cut anything off.
UNSEEN = {("truncating_store", "float64")}

"""Other forms of rotary position embedding against products of complex numbers, and what they refuse."""

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator


def head(x, turns, pairing):
    """One head, a list of numbers, with pair j multiplied by the complex number turns[j]."""
    out, half = [float(element) for element in x], len(turns)
    for j, turn in enumerate(turns):
        a, b = (j, j + half) if pairing == "neox" else (2 * j, 2 * j + 1)
        pair = complex(out[a], out[b]) * turn
        out[a], out[b] = pair.real, pair.imag
    return out


def turns_of(cos, sin, row):
    return [complex(c, s) for c, s in zip(cos[row].tolist(), sin[row].tolist(), strict=True)]


def each_head(x, turns, pairing):
    """`turns` gives the complex numbers of a token."""
    return np.array([[head(x[t, h], turns(t), pairing) for h in range(x.shape[1])] for t in range(x.shape[0])]).reshape(
        x.shape
    )


def rope_qk(q, k, positions, cos, sin, offsets, pairing="neox", plain_first=False):
    def turns(token):
        return turns_of(cos, sin, positions[token] + (0 if offsets is None else offsets[token]))

    start = q.shape[-1] - 2 * cos.shape[1] if plain_first else 0
    parts = [np.concatenate([x[..., :start], each_head(x[..., start:], turns, pairing)], axis=-1) for x in (q, k)]
    return tuple(parts)


def mrope(x, positions, cos, sin, temporal=0, height=0, width=0, interleaved=False, pairing="neox"):
    def turns(token):
        found = []
        for column in range(cos.shape[1]):
            if interleaved:
                kind = (
                    1 if column % 3 == 1 and column < 3 * height else 2 if column % 3 == 2 and column < 3 * width else 0
                )
            else:
                kind = 0 if column < temporal else 1 if column < temporal + height else 2
            row = positions[kind, token]
            found.append(complex(cos[row, column], sin[row, column]))
        return found

    return (each_head(x, turns, pairing),)


def rope_2d(x, rows, columns, cos_rows, sin_rows, cos_columns, sin_columns, pairing="neox"):
    half = x.shape[-1] // 2
    first = each_head(x[..., :half], lambda t: turns_of(cos_rows, sin_rows, rows[t]), pairing)
    second = each_head(x[..., half:], lambda t: turns_of(cos_columns, sin_columns, columns[t]), pairing)
    return (np.concatenate([first, second], axis=-1),)


def rope_backward(grad, positions, cos, sin, pairing="neox"):
    return (each_head(grad, lambda t: [z.conjugate() for z in turns_of(cos, sin, positions[t])], pairing),)


LOOPS = {"rope_qk": rope_qk, "mrope": mrope, "rope_2d": rope_2d, "rope_backward": rope_backward}


@pytest.mark.parametrize("name", LOOPS)
def test_products_of_complex_numbers_give_the_same(name):
    for case in make_cases(name, "float64", 30, seed=2):
        inputs = case.inputs()
        values = find_operator(name).value(inputs, case.params)
        for value, other in zip(values, LOOPS[name](*inputs.values(), **case.params), strict=True):
            size = np.abs(value[np.isfinite(value)]).max(initial=1e-30)
            assert (np.isnan(value) == np.isnan(other)).all() or case.value_class in ("not_a_number", "mixed")
            known = np.isfinite(value) & np.isfinite(other)
            np.testing.assert_allclose(value[known], other[known], rtol=1e-12, atol=1e-15 * size, err_msg=str(case))


def test_backward_turns_back():
    rng = np.random.default_rng(0)
    x, positions, angles = rng.standard_normal((5, 2, 8)), np.arange(5), rng.standard_normal((5, 3))
    out = find_operator("rope")(x, positions, np.cos(angles), np.sin(angles))
    back = find_operator("rope_backward")(out, positions, np.cos(angles), np.sin(angles))
    np.testing.assert_allclose(back, x, rtol=1e-14, atol=1e-14)


def test_refusals():
    x, table, at = np.zeros((1, 1, 8)), np.zeros((4, 4)), np.array([3])
    with pytest.raises(InputError, match=r"position \+ offset = 5 must be below max_position = 4"):
        find_operator("rope_qk")(x, x, at, table, table, np.array([2]))
    with pytest.raises(InputError, match=r"temporal \+ height \+ width = 1 \+ 1 \+ 1 must make up half = 4"):
        find_operator("mrope")(x, np.zeros((3, 1), int), table, table, temporal=1, height=1, width=1)
    with pytest.raises(InputError, match="need each third of half = 4 columns"):
        find_operator("mrope")(x, np.zeros((3, 1), int), table, table, height=2, width=2, interleaved=True)
    with pytest.raises(InputError, match="positions has 2 rows"):
        find_operator("mrope")(x, np.zeros((2, 1), int), table, table, temporal=4)
    with pytest.raises(InputError, match="tables of 4 columns turn 16 elements, but head_dim is 8"):
        find_operator("rope_2d")(x, at, at, table, table, table, table)

"""Speculative sampling along a chain against whole numbers, and what it refuses."""

import numpy as np
import pytest
from test_sampling_definitions import ONE, Undecided, below, whole

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator


def chain_of(draft, ids, target, uniform):
    """Kept tokens and the one after them, of one sequence in lists of whole numbers."""
    count = 0
    for t, token in enumerate(ids):
        if not below(uniform[t] * draft[t][token], target[t][token] * ONE, False):
            break
        count += 1
    left = target[count]
    if count < len(ids):
        left = [max(a - b, 0) for a, b in zip(target[count], draft[count], strict=True)]
    running = 0
    for token, mass in enumerate(left):
        running += mass
        if mass and below(uniform[-1] * sum(left), running * ONE, False):
            return ids[:count], token
    raise Undecided


def test_chains_against_whole_numbers():
    record, compared = find_operator("speculative_chain"), 0
    for case in make_cases("speculative_chain", "float32", 40, seed=2):
        if case.dims["vocab"] > 100:
            continue
        draft, ids, target, uniform = case.inputs().values()
        emitted, following, tokens = record.value(case.inputs(), {})
        for b in range(len(ids)):
            rows = [[list(map(whole, row)) for row in array[b].tolist()] for array in (draft, target)]
            try:
                kept, token = chain_of(rows[0], ids[b].tolist(), rows[1], list(map(whole, uniform[b].tolist())))
            except Undecided:
                continue
            assert (emitted[b], following[b]) == (len(kept), token), str(case)
            assert tokens[b].tolist() == [*kept, token] + [-1] * (ids.shape[1] - len(kept))
            compared += 1
    assert compared > 100


P = np.full((1, 2, 4), 0.25, np.float32)
U = np.zeros((1, 3), np.float32)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ((P, np.array([[0, 1]]), P, U[:, :2]), "target_probs has 2 places; 2 drafted tokens need one more"),
        ((P, np.array([[0, 4]]), np.repeat(P[:, :1], 3, axis=1), U), "draft_ids[0, 1] = 4"),
        ((P, np.array([[0, 1]]), np.repeat(P[:, :1], 3, axis=1), U.astype(np.float64)), "uniform has dtype float64"),
        ((P[..., :0], np.zeros((1, 2), int)[:, :0], P[..., :0], U), "drafted"),
    ],
)
def test_refuses(arrays, words):
    with pytest.raises(InputError) as caught:
        find_operator("speculative_chain")(*arrays)
    assert words in str(caught.value)

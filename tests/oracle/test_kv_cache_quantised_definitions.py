"""The paged cache in 8 bits against loops over elements with ml_dtypes' conversions, and what it refuses."""

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict


def code(ratio, kind):
    """One float32 as a code, saturated."""
    if kind == np.int8:
        return min(max(round(float(ratio)), -128), 127)
    largest = float(ml_dtypes.finfo(kind).max)
    return np.float32(min(max(float(ratio), -largest), largest)).astype(kind)


def write(cache, new, scale, slots):
    """`scale` gives the one of a token and a head."""
    for token, slot in enumerate(slots.tolist()):
        for head in range(new.shape[1]):
            for element in range(new.shape[2]):
                if slot != -1:
                    ratio = np.float32(new[token, head, element]) / scale(token, head)
                    cache[slot // cache.shape[1], slot % cache.shape[1], head, element] = code(ratio, cache.dtype)


def given(key, value, key_cache, value_cache, k_scale, v_scale, slots, to="float8_e4m3fn"):
    write(key_cache, key, lambda token, head: k_scale[head], slots)
    write(value_cache, value, lambda token, head: v_scale[head], slots)
    return key_cache, value_cache


def own(key, value, key_cache, value_cache, k_scales, v_scales, slots, to="float8_e4m3fn", least=1e-12):
    largest = 127.0 if to == "int8" else float(ml_dtypes.finfo(getattr(ml_dtypes, to)).max)
    for new, cache, scales in ((key, key_cache, k_scales), (value, value_cache, v_scales)):
        tokens = {}
        for token, head in np.ndindex(new.shape[:2]):
            amax = max((abs(np.float32(element)) for element in new[token, head]), default=np.float32(0))
            tokens[token, head] = max(amax / np.float32(largest), np.float32(least))
            if slots[token] != -1:
                scales[head, slots[token]] = tokens[token, head]
        write(cache, new, lambda token, head, tokens=tokens: tokens[token, head], slots)
    return k_scales, v_scales, key_cache, value_cache


LOOPS = {"reshape_and_cache_quantised": given, "reshape_and_cache_per_token": own}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_elements_give_the_same(name):
    record = find_operator(name)
    checked = 0
    for case in make_cases(name, "bfloat16", 40, seed=9):
        inputs = case.inputs()
        if inputs["key"].size > 600:
            continue
        copies = {label: array.copy() for label, array in inputs.items()}
        with np.errstate(all="ignore"):
            outputs = LOOPS[name](*copies.values(), **case.params)
        names = [output.name for output in record.outputs]
        expected = record.expect(inputs, case.params, NUMERICS["float32"], dict(zip(names, outputs, strict=True)))
        for part, got in zip(expected, outputs, strict=True):
            verdict = Judge(part).judge(got)
            assert verdict.verdict is Verdict.PASS, (str(case), verdict.message)
        checked += 1
    assert checked > 20


def test_scales_must_be_there_for_every_cell():
    key, cache = np.zeros((1, 1, 2), np.float32), np.zeros((2, 3, 1, 2), np.int8)
    scales = np.zeros((1, 5), np.float32)
    with pytest.raises(InputError, match="there are scales for 5 cells, but the caches have 6"):
        find_operator("reshape_and_cache_per_token")(key, key, cache, cache, scales, scales, np.array([0]), to="int8")

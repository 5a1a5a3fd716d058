"""The paged cache in 8 bits against loops over elements with ml_dtypes' conversions, and what it refuses."""

import math

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


def largest_of(to):
    return 127.0 if to == "int8" else float(ml_dtypes.finfo(getattr(ml_dtypes, to)).max)


def mla(latents, rotated, cache, scale, slots, to="float8_e4m3fn"):
    for token, slot in enumerate(slots.tolist()):
        for element in range(cache.shape[2]):
            x = latents[token, element] if element < latents.shape[1] else rotated[token, element - latents.shape[1]]
            if slot != -1:
                cell = slot // cache.shape[1], slot % cache.shape[1], element
                cache[cell] = code(np.float32(x) / scale[0], cache.dtype)
    return (cache,)


def tiled(
    latents, rotated, codes, scale_cache, rope_cache, slots,
    to="float8_e4m3fn", tile="1x128", scales="any", least=2.0**-126,
):  # fmt: skip
    wide = max(latents.shape[1], 1) if tile == "token" else int(tile.split("x")[1])
    for token, slot in enumerate(slots.tolist()):
        if slot == -1:
            continue
        cell = slot // codes.shape[1], slot % codes.shape[1]
        rope_cache[cell] = rotated[token]
        for number in range(scale_cache.shape[2]):
            columns = range(number * wide, min((number + 1) * wide, latents.shape[1]))
            amax = max((abs(np.float32(latents[token, column])) for column in columns), default=np.float32(0))
            scale = max(amax / np.float32(largest_of(to)), np.float32(least))
            if scales == "power_of_two":
                mantissa, exponent = math.frexp(float(scale))
                scale = np.float32(math.ldexp(1.0, exponent - (mantissa == 0.5)))
            scale_cache[(*cell, number)] = scale
            for column in columns:
                codes[(*cell, column)] = code(np.float32(latents[token, column]) / scale, codes.dtype)
    return scale_cache, rope_cache, codes


def growing(key, value, key_cache, value_cache, k_scales, v_scales, slots, to="float8_e4m3fn", least=1e-6):
    size, known = key_cache.shape[1], [slot for slot in slots.tolist() if slot != -1]
    for new, cache, scales in ((key, key_cache, k_scales), (value, value_cache, v_scales)):
        for block, head in np.ndindex(len(cache), new.shape[1]):
            tokens = [token for token, slot in enumerate(slots.tolist()) if slot != -1 and slot // size == block]
            if not tokens:
                continue
            first = min(slot % size for slot in known if slot // size == block)
            amax = max((abs(np.float32(x)) for token in tokens for x in new[token, head]), default=np.float32(0))
            own = max(amax, np.float32(least)) / np.float32(largest_of(to))
            before = scales[head, block]
            scale = max(before, own) if first else own
            if first and scale > before:
                for offset, element in np.ndindex(first, new.shape[2]):
                    old = np.float32(cache[block, offset, head, element])
                    cache[block, offset, head, element] = code(old * before / scale, cache.dtype)
            scales[head, block] = scale
            for token in tokens:
                for element in range(new.shape[2]):
                    ratio = np.float32(new[token, head, element]) / scale
                    cache[block, slots[token] % size, head, element] = code(ratio, cache.dtype)
    return k_scales, v_scales, key_cache, value_cache


LOOPS = {
    "reshape_and_cache_per_block": growing,
    "concat_and_cache_mla_quantised": mla,
    "concat_and_cache_mla_per_tile": tiled,
    "reshape_and_cache_quantised": given,
    "reshape_and_cache_per_token": own,
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_elements_give_the_same(name):
    record = find_operator(name)
    checked = 0
    for case in make_cases(name, "bfloat16", 40, seed=9):
        inputs = case.inputs()
        if next(iter(inputs.values())).size > 600:
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


def test_a_cell_has_latent_and_rotated_elements_and_a_scale_per_tile():
    rows, codes, scale = np.ones((1, 130), np.float32), np.zeros((1, 1, 131), np.int8), np.ones(1, np.float32)
    at = np.array([0])
    with pytest.raises(InputError, match="cells have entry = 131 elements, but latent \\+ rope = 260"):
        find_operator("concat_and_cache_mla_quantised")(rows, rows, codes, scale, at, to="int8")
    with pytest.raises(InputError, match="a cache has one scale, not 2"):
        find_operator("concat_and_cache_mla_quantised")(rows, rows[:, :1], codes, np.ones(2, np.float32), at, to="int8")
    floats = np.zeros((1, 1, 1), np.float32)
    with pytest.raises(InputError, match="latent = 130 has 2 tiles of 1x128, but cells have 1 scales"):
        find_operator("concat_and_cache_mla_per_tile")(
            rows, rows[:, :1], codes[..., :130], floats, floats, at, to="int8"
        )


def test_a_scale_that_does_not_grow_leaves_codes_alone():
    cache, old = np.array([100, 0], np.int8).reshape(1, 2, 1, 1), np.full((1, 1), 2.0, np.float32)
    given = np.array([[[254.0]]], np.float32), np.array([[[25.4]]], np.float32), cache, cache, old, old, np.array([1])
    scales, same, new, smaller = find_operator("reshape_and_cache_per_block")(*given, to="int8")
    assert scales.tolist() == same.tolist() == [[2.0]]
    assert new[0, :, 0, 0].tolist() == [100.0, 127.0]
    assert smaller[0, :, 0, 0].tolist() == [100.0, 13.0]

"""Frequencies of rotary embedding against loops over Python's floats, against known values, and what is refused."""

import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator


def plain(pair, p):
    base, s, dim, divisor = p["base"], p["factor"], p["rotary_dim"], 1.0
    if p["scaling"] == "linear":
        divisor = s
    elif p["scaling"] == "shifted_ntk":
        return base ** (-2 * pair / dim) * s ** (-(2 * pair + 2) / dim)
    elif p["scaling"] == "dynamic_ntk":
        s = 1.0 if p["length"] <= p["original_length"] else s * p["length"] / p["original_length"] - s + 1
    if p["scaling"] in ("ntk", "dynamic_ntk"):
        divisor = s ** (2 * pair / (dim - 2))
    return base ** (-2 * pair / dim) / divisor


def yarn(place, f, half, p):
    def turning(times):
        return half * math.log(p["original_length"] / (2 * math.pi * times)) / math.log(p["base"])

    low, high = turning(p["beta_fast"]), turning(p["beta_slow"])
    if p["whole_ends"]:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * half - 1)
    high += 0.001 if low == high else 0.0
    ramp = min(max((place - low) / (high - low), 0.0), 1.0)
    return f * (1.0 - ramp + ramp / p["factor"])


def llama3(f, p):
    wave = 2 * math.pi / f if f else math.inf
    longest, shortest = p["original_length"] / p["low_turns"], p["original_length"] / p["high_turns"]
    if wave < shortest:
        return f
    if wave > longest:
        return f / p["factor"]
    smooth = (p["original_length"] / wave - p["low_turns"]) / (p["high_turns"] - p["low_turns"])
    return (1 - smooth) * f / p["factor"] + smooth * f


def cases(name):
    for case in make_cases(name, "float64", 60, seed=2):
        record, inputs = find_operator(name), case.inputs()
        yield record.value(inputs, case.params), inputs, record.signature.complete(case.params)


def test_plain_frequencies_and_their_bases():
    for (found,), inputs, p in cases("rope_frequencies"):
        assert found == pytest.approx([plain(pair, p) for pair in inputs["pairs"]], rel=1e-12)


def test_yarn():
    for (scaled, magnitude), inputs, p in cases("yarn_frequencies"):
        f = inputs["frequencies"]
        assert scaled == pytest.approx([yarn(at, one, len(f), p) for at, one in enumerate(f)], rel=1e-12)
        above, below = (0.1 * p[name] * math.log(p["factor"]) + 1 for name in ("mscale", "mscale_all_dim"))
        assert magnitude.tolist() == pytest.approx([above / below], rel=1e-14)


def test_llama3():
    for (scaled,), inputs, p in cases("llama3_frequencies"):
        assert scaled == pytest.approx([llama3(f, p) for f in inputs["frequencies"]], rel=1e-12)


def test_longrope():
    for (scaled, magnitude), inputs, p in cases("longrope_frequencies"):
        name = "long_factors" if p["length"] > p["original_length"] else "short_factors"
        pairs = zip(inputs["frequencies"].tolist(), inputs[name].tolist(), strict=True)
        assert scaled == pytest.approx([f / factor for f, factor in pairs], rel=1e-14)
        s = p["longest"] / p["original_length"]
        want = math.sqrt(1 + math.log(s) / math.log(p["original_length"])) if s > 1 else 1.0
        assert magnitude.tolist() == pytest.approx([want], rel=1e-14)


def test_ntk_keeps_the_first_frequency_and_divides_the_last():
    pairs = np.arange(64.0)
    straight = find_operator("rope_frequencies")(pairs)
    stretched = find_operator("rope_frequencies")(pairs, scaling="ntk", factor=8.0)
    assert stretched[[0, -1]] == pytest.approx(straight[[0, -1]] / [1.0, 8.0], rel=1e-13)
    shifted = find_operator("rope_frequencies")(pairs, scaling="shifted_ntk", factor=8.0)
    assert shifted[[0, -1]] == pytest.approx(straight[[0, -1]] / [8.0 ** (1 / 64), 8.0], rel=1e-13)


def test_deepseek_and_llama_have_the_published_ends():
    frequencies = find_operator("rope_frequencies")(np.arange(32.0), rotary_dim=64)
    scaled, magnitude = find_operator("yarn_frequencies")(frequencies, factor=40.0)  # DeepSeek-V2: pairs 10 … 23
    changed = scaled / frequencies
    assert np.array_equal(changed == 1.0, np.arange(32) <= 10)
    assert changed[23:] == pytest.approx(1 / 40)
    assert changed[22] > 1.5 / 40
    assert magnitude[0] == pytest.approx(0.1 * math.log(40) + 1)
    frequencies = find_operator("rope_frequencies")(np.arange(64.0), base=500_000.0)  # Llama 3.1: pairs 29 … 35 mix
    changed = find_operator("llama3_frequencies")(frequencies) / frequencies
    assert np.flatnonzero((changed > 1 / 8 + 1e-9) & (changed < 1 - 1e-9)).tolist() == list(range(29, 35))


F = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("rope_frequencies", (F,), {"rotary_dim": 5}, "rotary_dim = 5 must be even"),
        ("rope_frequencies", (F,), {"rotary_dim": 2, "scaling": "ntk"}, "needs rotary_dim above 2"),
        ("rope_frequencies", (F,), {"base": 1.0}, r"base=1\.0 must be float > 1"),
        ("yarn_frequencies", (F,), {"beta_fast": 0.5}, r"beta_fast = 0\.5 must be at least beta_slow = 1\.0"),
        ("llama3_frequencies", (F,), {"low_turns": 4.0}, r"low_turns = 4\.0 must be below high_turns = 4\.0"),
        ("longrope_frequencies", (F, F, F[:1]), {}, "dimension half is 1 in long_factors"),
        ("longrope_frequencies", (F, F, F), {"original_length": 1}, "original_length=1 must be int >= 2"),
    ],
)
def test_refusals(name, arrays, params, words):
    with pytest.raises(InputError, match=words):
        find_operator(name)(*arrays, **params)

"""The attentions against loops over Python floats, how their options relate, and what they refuse."""

import attention_loops
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.cases.draw import curated_count
from oracle.formats import cast
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from oracle.signature import InputError

NAMES = (
    "flash_attention", "attention_varlen", "paged_attention_decode", "paged_attention_prefill", "mla_decode",
    "mla_prefill", "merge_attention_states", "paged_attention_decode_quantised",
    "paged_attention_prefill_quantised", "mla_decode_quantised",
    "attention_quantised",
)  # fmt: skip


def _close(value, other, case):
    finite = other[np.isfinite(other)]
    np.testing.assert_allclose(
        value, other, rtol=1e-12, atol=1e-13 * np.abs(finite).max(initial=1.0), err_msg=str(case)
    )


@pytest.mark.parametrize("name", NAMES)
def test_equals_loops_over_floats(name):
    record = find_operator(name)
    dtype = "float32" if "float32" in record.dtypes else record.dtypes[0]
    for case in make_cases(name, dtype, curated_count(name) + 6, seed=7):
        inputs = case.inputs()
        with np.errstate(all="ignore"):
            expected = getattr(attention_loops, name)(*inputs.values(), **case.params)
        for value, other in zip(record.value(inputs, case.params), expected, strict=True):
            _close(value, other, case)


def _dense(queries=2, keys=3, heads=2, kv_heads=1):
    rng = np.random.default_rng(0)
    shapes = ((1, heads, queries, 4), (1, kv_heads, keys, 4), (1, kv_heads, keys, 4))
    return tuple(rng.standard_normal(shape) for shape in shapes)


def test_a_sink_of_minus_infinity_is_none():
    q, k, v = _dense()
    flash = find_operator("flash_attention")
    plain = flash(q, k, v, causal="bottom_right")
    sunk = flash(q, k, v, sinks=np.full(2, -np.inf, np.float32), causal="bottom_right")
    for one, other in zip(plain, sunk, strict=True):
        assert np.array_equal(one, other)


def test_a_lone_subnormal_value_beside_a_sink_may_be_rounded_twice():
    """As a product with a weight that is not divided yet, and as the quotient."""
    v = (np.arange(1, 513, dtype=np.float32) * np.float32(2.0**-149)).reshape(1, 1, 1, -1)
    zeros, sinks = np.zeros((1, 1, 1, 8), np.float32), np.float32([0.75])
    inputs = {"q": zeros, "k": zeros, "v": v, "sinks": sinks}
    out, _ = find_operator("flash_attention").expect(inputs, {}, NUMERICS["float32"])
    weight, sink = np.exp(np.float32(-0.75)), np.float32(1.0)
    twice = (weight * v / (weight + sink)).astype(np.float64)
    step = 2.0**-149
    low, high = (np.rint((out.value + sign * out.bound) / step) * step for sign in (-1.0, 1.0))
    assert np.all((low <= twice) & (twice <= high))
    assert np.any(twice != np.rint(out.value / step) * step)  # one rounding would not do


def test_what_is_not_finite():
    q, k, v = _dense(3, 4, 1, 1)
    k[0, 0, 1, 0], q[0, 0, :, 0] = np.inf, [1.0, -1.0, 1.0]
    v[0, 0, 3, 0] = np.inf
    flash = find_operator("flash_attention")
    out, lse = flash(q, k, v)
    assert np.isnan(out[0, 0, [0, 2]]).all()
    assert np.isnan(lse[0, 0, [0, 2]]).all()
    without, lse_without = flash(q[:, :, 1:2], np.delete(k, 1, axis=2), np.delete(v, 1, axis=2))
    np.testing.assert_allclose(out[:, :, 1:2], without, rtol=1e-12)
    np.testing.assert_allclose(lse[:, :, 1:2], lse_without, rtol=1e-12)
    assert without[0, 0, 0, 0] == np.inf
    first = flash(q, k, np.where(np.isinf(v), 1.0, v), causal="top_left")
    assert np.isfinite(first[0][0, 0, 0]).all()  # it does not see the infinite key


def test_conventions_of_alibi_differ_by_a_constant_per_row_under_a_causal_mask():
    q, k, v = _dense(3, 5)
    flash, slopes = find_operator("flash_attention"), np.array([0.5, 0.25], np.float32)
    out, lse = flash(q, k, v, alibi_slopes=slopes, causal="bottom_right")
    other, other_lse = flash(q, k, v, alibi_slopes=slopes, causal="bottom_right", alibi="last_key")
    np.testing.assert_allclose(out, other, rtol=1e-12)
    distance = np.arange(2, -1, -1)  # of each query's diagonal from the last key
    np.testing.assert_allclose(lse - other_lse, slopes[:, None].astype(float) * distance + np.zeros((1, 2, 3)))


def test_plain_attention_is_the_one_without_options():
    q, k, v = _dense(4, 6)
    for causal in ("none", "top_left", "bottom_right"):
        for one, other in zip(
            find_operator("attention")(q, k, v, causal=causal),
            find_operator("flash_attention")(q, k, v, causal=causal),
            strict=True,
        ):
            assert np.array_equal(one, other)


def test_what_is_refused():
    q, k, v = _dense(heads=3, kv_heads=2)
    with pytest.raises(InputError, match="heads = 3 must be a multiple of kv_heads = 2"):
        find_operator("flash_attention")(q, k, v)
    q, k, v = _dense()
    with pytest.raises(InputError, match="window_left=-2 must be int >= -1"):
        find_operator("flash_attention")(q, k, v, window_left=-2)
    with pytest.raises(InputError, match=r"softcap=0\.0 must be"):
        find_operator("flash_attention")(q, k, v, softcap=0.0)
    with pytest.raises(InputError, match="alibi='sum' must be one of 'distance', 'last_key'"):
        find_operator("flash_attention")(q, k, v, alibi="sum")


def test_what_packed_attention_refuses():
    varlen = find_operator("attention_varlen")
    rows, edges = np.zeros((4, 1, 4)), np.array([0, 2, 4], np.int32)
    with pytest.raises(InputError, match=r"cu_seqlens_q = \[0, 3, 2\] must rise from 0 to the number of tokens, 4"):
        varlen(rows, rows, rows, np.array([0, 3, 2], np.int32), edges)
    with pytest.raises(InputError, match=r"cu_seqlens_k = \[0, 2, 3\] must rise from 0 to the number of tokens, 4"):
        varlen(rows, rows, rows, edges, np.array([0, 2, 3], np.int32))
    with pytest.raises(InputError, match=r"seqused_k\[1\] = 3 exceeds the 2 keys of its sequence"):
        varlen(rows, rows, rows, edges, edges, np.array([2, 3], np.int32))
    with pytest.raises(InputError, match="seqused_k has 3 lengths for 2 sequences"):
        varlen(rows, rows, rows, edges, edges, np.array([2, 2, 2], np.int32))
    with pytest.raises(InputError, match="cu_seqlens_q is empty"):
        varlen(rows, rows, rows, edges[:0], edges[:0])
    with pytest.raises(InputError, match="sequence 0 has 2 keys, but bias only 1 columns"):
        varlen(rows, rows, rows, edges, edges, bias=rows[:, 0, :1])


def _pages(**changes):
    """Two sequences of 3 and 1 tokens in pages of 2, of which there are 4."""
    rng = np.random.default_rng(1)
    inputs = {
        "q": rng.standard_normal((2, 2, 4)),
        "key_cache": rng.standard_normal((4, 2, 1, 4)),
        "value_cache": rng.standard_normal((4, 2, 1, 4)),
        "page_table": np.array([[2, 0], [3, -5]], np.int32),
        "lengths": np.array([3, 1], np.int32),
    }
    return {**inputs, **changes}


def test_decode_is_prefill_of_one_query_each():
    edges = {"cu_seqlens_q": np.arange(3, dtype=np.int32)}
    out, lse = find_operator("paged_attention_decode")(**_pages(), softcap=2.0)
    other, other_lse = find_operator("paged_attention_prefill")(**_pages(), **edges, softcap=2.0)
    assert np.array_equal(out, other)
    assert np.array_equal(lse, other_lse.T)


def test_what_is_refused_of_pages():
    decode = find_operator("paged_attention_decode")
    with pytest.raises(InputError, match=r"page_table\[1\] uses page -5; there are 4"):
        decode(**_pages(lengths=np.array([3, 3], np.int32)))
    with pytest.raises(InputError, match=r"lengths\[0\] = 5 exceeds the 4 tokens of its row of the page table"):
        decode(**_pages(lengths=np.array([5, 1], np.int32)))
    with pytest.raises(
        InputError, match=r"key_cache has shape \(4, 2, 1, 4\); expected 5 dimensions \(pages, kv_heads"
    ):
        decode(**_pages(), layout="vllm")
    packed = {"key_cache": np.zeros((4, 1, 3, 2, 2)), "value_cache": np.zeros((4, 1, 4, 2))}
    with pytest.raises(InputError, match="head_parts = 3 times pack = 2 must be head_dim = 4"):
        decode(**_pages(**packed), layout="vllm")
    packed = {"key_cache": np.zeros((4, 1, 2, 2, 2)), "value_cache": np.zeros((4, 1, 2, 4, 2))}
    with pytest.raises(InputError, match="page_parts = 2 times pack = 2 must be page_size = 2"):
        decode(**_pages(**packed), layout="aiter_asm")
    prefill = find_operator("paged_attention_prefill")
    with pytest.raises(InputError, match="cu_seqlens_q has 2 boundaries for 2 sequences; one more is due"):
        prefill(**_pages(), cu_seqlens_q=np.array([0, 2], np.int32))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_absorbed_and_written_out_latent_attention_agree_within_bounds(dtype):
    """Small integers make both up-projections exact, so that the two forms are given the same problem."""
    rng = np.random.default_rng(3)
    sequences, queries, heads, keys, latent, nope, rope, v_dim = 2, 3, 2, 9, 8, 4, 4, 5

    def integers(*shape):
        return rng.integers(-2, 3, shape).astype(np.float64)

    up_k, up_v = integers(heads, nope, latent), integers(heads, v_dim, latent)
    q_nope, q_rope = integers(sequences, queries, heads, nope), integers(sequences, queries, heads, rope)
    c, k_rope = integers(sequences, keys, latent), integers(sequences, keys, rope)
    scale = (nope + rope) ** -0.5

    absorbed = np.concatenate([np.einsum("sqhn,hnl->sqhl", q_nope, up_k), q_rope], axis=-1)
    cache = np.concatenate([c, k_rope], axis=-1)
    numerics = NUMERICS["float32"]
    decode = find_operator("mla_decode").expect(
        {
            "q": cast(absorbed, dtype), "cache": cast(cache, dtype), "lengths": np.full(sequences, keys, np.int32),
            "page_table": np.arange(sequences, dtype=np.int32)[:, np.newaxis],
        },
        {"latent_dim": latent, "scale": scale}, numerics,
    )  # fmt: skip
    prefill = find_operator("mla_prefill").expect(
        {
            "q": cast(np.concatenate([q_nope, q_rope], -1).reshape(-1, heads, nope + rope), dtype),
            "k_nope": cast(np.einsum("skl,hnl->skhn", c, up_k).reshape(-1, heads, nope), dtype),
            "k_rope": cast(k_rope.reshape(-1, rope), dtype),
            "v": cast(np.einsum("skl,hvl->skhv", c, up_v).reshape(-1, heads, v_dim), dtype),
            "cu_seqlens_q": queries * np.arange(sequences + 1, dtype=np.int32),
            "cu_seqlens_k": keys * np.arange(sequences + 1, dtype=np.int32),
        },
        {"scale": scale}, numerics,
    )  # fmt: skip
    out = np.einsum("sqhl,hvl->sqhv", decode[0].value, up_v).reshape(-1, heads, v_dim)
    reach = np.einsum("sqhl,hvl->sqhv", decode[0].bound, np.abs(up_v)).reshape(-1, heads, v_dim)
    assert np.all(np.abs(out - prefill[0].value) <= 1e-12)
    assert np.all(np.abs(out - prefill[0].value) <= reach + prefill[0].bound)
    lse = decode[1].value.transpose(2, 0, 1).reshape(heads, -1)
    np.testing.assert_allclose(lse, prefill[1].value, rtol=1e-13)


@pytest.mark.parametrize("base", ["e", "2"])
def test_merged_parts_are_the_whole(base):
    q, k, v = _dense(4, 9, 2, 2)
    flash = find_operator("flash_attention")
    parts = [flash(q, k[:, :, at], v[:, :, at]) for at in (slice(0, 4), slice(4, 5), slice(5, 9))]
    unit = 1.0 if base == "e" else np.log(2.0)
    outs = np.stack([out[0].transpose(1, 0, 2) for out, _ in parts])
    lses = np.stack([lse[0].T / unit for _, lse in parts]).astype(np.float32)
    out, lse = find_operator("merge_attention_states")(outs, lses, base=base)
    whole, whole_lse = flash(q, k, v)
    np.testing.assert_allclose(out, whole[0].transpose(1, 0, 2), atol=1e-6)
    np.testing.assert_allclose(lse * unit, whole_lse[0].T, atol=1e-6)


def test_what_latent_attention_refuses():
    q, cache = np.zeros((1, 1, 2, 6)), np.zeros((2, 4, 6))
    table, lengths = np.zeros((1, 1), np.int32), np.array([4], np.int32)
    decode = find_operator("mla_decode")
    with pytest.raises(InputError, match="latent_dim = 512 exceeds qk_dim = 6"):
        decode(q, cache, table, lengths)
    with pytest.raises(InputError, match=r"page_table\[0\] uses page 2; there are 2"):
        decode(q, cache, table + np.int32(2), lengths, latent_dim=4)
    edges, rows = np.array([0, 3], np.int32), np.zeros((3, 2, 4))
    with pytest.raises(InputError, match="nope_dim = 4 and rope_dim = 3 must add up to qk_dim = 6"):
        find_operator("mla_prefill")(np.zeros((3, 2, 6)), rows, np.zeros((3, 3)), rows, edges, edges)
    with pytest.raises(InputError, match="base='10' must be one of 'e', '2'"):
        find_operator("merge_attention_states")(np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1), np.float32), base="10")


def test_what_quantised_latent_attention_refuses():
    decode = find_operator("mla_decode_quantised")
    q, codes, rope = np.zeros((1, 1, 2, 6)), np.zeros((2, 4, 4), np.int8), np.zeros((2, 4, 2), np.float16)
    table, lengths, scale = np.zeros((1, 1), np.int32), np.array([4], np.int32), np.ones((2, 4, 2), np.float32)
    decode(q, codes, rope, scale, table, lengths)
    with pytest.raises(InputError, match="latent_dim = 4 and rope_dim = 1 must add up to qk_dim = 6"):
        decode(q, codes, rope[..., :1], scale, table, lengths)
    with pytest.raises(InputError, match="tiles = 3 must divide latent_dim = 4"):
        decode(q, codes, rope, np.ones((2, 4, 3), np.float32), table, lengths)
    with pytest.raises(InputError, match="latent_scale has 2 numbers; a scale per tensor is one"):
        decode(q, codes, rope, np.ones(2, np.float32), table, lengths, scales="tensor")
    with pytest.raises(InputError, match="latent_cache has dtype float16; expected one of float8_e4m3fn"):
        decode(q, codes.astype(np.float16), rope, scale, table, lengths)


def test_a_sequence_without_tokens_has_its_sink_under_scales_per_token():
    codes = np.ones((4, 2, 1, 4), np.int8)
    inputs = _pages(key_cache=codes, value_cache=codes, lengths=np.array([0, 1], np.int32))
    scales = {name: np.full((4, 2, 1), 0.5, np.float32) for name in ("k_scale", "v_scale")}
    sinks = np.float32([0.25, 0.5])
    decode = find_operator("paged_attention_decode_quantised")
    (out, lse) = decode.expect({**inputs, **scales, "sinks": sinks}, {"scales": "token"}, NUMERICS["float64"])
    assert np.all(out.value[0] == 0)
    assert np.array_equal(lse.value[0], sinks)
    assert np.all((out.value[1] > 0) & (out.value[1] < 0.5))


def test_what_attention_of_codes_refuses():
    quantised, one = find_operator("attention_quantised"), np.ones(1, np.float32)
    codes = cast(np.ones((1, 2, 3, 4)), "float8_e4m3fn")
    quantised(codes, codes, codes, one, one, one)
    with pytest.raises(InputError, match="q_scale has 2 numbers; a scale per tensor is one"):
        quantised(codes, codes, codes, *(np.ones(2, np.float32) for _ in range(3)))
    with pytest.raises(InputError, match=r"q_scale has shape \(1,\); expected 2 dimensions \(batch, kv_heads\)"):
        quantised(codes, codes, codes, one, one, one, scales="head")
    with pytest.raises(InputError, match="k has dtype float8_e5m2 but q has float8_e4m3fn"):
        quantised(codes, cast(np.ones((1, 2, 3, 4)), "float8_e5m2"), codes, one, one, one)


def test_what_is_refused_of_quantised_pages():
    decode = find_operator("paged_attention_decode_quantised")
    inputs = _pages(key_cache=np.zeros((4, 2, 1, 4), np.int8), value_cache=np.zeros((4, 2, 1, 4), np.int8))
    one = np.ones(1, np.float32)
    decode(**inputs, k_scale=one, v_scale=one)
    with pytest.raises(InputError, match="k_scale has 2 numbers; a scale per tensor is one"):
        decode(**inputs, k_scale=np.ones(2, np.float32), v_scale=np.ones(2, np.float32))
    with pytest.raises(
        InputError, match=r"k_scale has shape \(1,\); expected 3 dimensions \(pages, page_size, kv_heads\)"
    ):
        decode(**inputs, k_scale=one, v_scale=one, scales="token")
    with pytest.raises(InputError, match="key_cache has dtype float64; expected one of float8_e4m3fn"):
        decode(**_pages(), k_scale=one, v_scale=one)

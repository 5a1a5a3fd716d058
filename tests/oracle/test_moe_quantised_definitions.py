"""Fused experts on codes against loops over Python floats, and what they refuse."""

import math

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from oracle.relations import relations_of
from oracle.variants import variants_of

NAMES = (
    "fused_experts_a8w8",
    "fused_experts_a8w8_block_scaled",
    "fused_experts_mxfp4",
    "fused_experts_w4a16",
    "fused_experts_w4a16_mxfp4",
)
LARGEST = {
    "int8": 127.0,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float4_e2m1fn": 6.0,
}
TOP_EXPONENT = {"float8_e4m3fn": 8, "float8_e5m2": 15, "float4_e2m1fn": 2}


def dot(x, x_scale, w, w_scale):
    """Σ over k of codes times scales; scales are functions of k."""
    return math.fsum(float(x[k]) * x_scale(k) * float(w[k]) * w_scale(k) for k in range(len(w)))


def nibbles(inputs, params):
    """Inputs with packed weights as the numbers that codes stand for, less their scales."""
    plain = dict(inputs)
    for label, zero in (("w_gate_up", "gate_up_zero"), ("w_down", "down_zero")):
        packed = inputs[label]
        whole = np.zeros((*packed.shape[:-1], 2 * packed.shape[-1]))
        for at in np.ndindex(whole.shape):
            byte = int(packed[(*at[:-1], at[-1] // 2)])
            point = int(inputs[zero][(*at[:-1], at[-1] // params["group"])]) if zero in inputs else 8
            whole[at] = (byte >> 4 if at[-1] % 2 else byte & 15) - point
            if params["weights"] != "exact":
                scale = float(inputs[f"{label}_scale"][(*at[:-1], at[-1] // params["group"])])
                whole[at] = stored(whole[at] * scale, params["weights"])
        plain[label] = whole
        if params["weights"] != "exact":
            plain[f"{label}_scale"] = np.ones(inputs[f"{label}_scale"].shape)
    return plain


def activation(gate, up, name):
    if name == "swiglu_oai":
        gate, up = min(gate, 7.0), min(max(up, -7.0), 7.0)
        return gate / (1.0 + math.exp(min(-1.702 * gate, 700.0))) * (up + 1.0)
    if name == "gelu":
        return 0.5 * gate * math.erfc(-gate / math.sqrt(2.0)) * up
    return gate / (1.0 + math.exp(min(-gate, 700.0))) * up


def stored(value, name):
    if name == "compute":
        return value
    return float(np.float64(value).astype(np.float32).astype(getattr(ml_dtypes, name) if name == "bfloat16" else name))


class Scales:
    """Scales of one operator, by where they apply."""

    def __init__(self, name, inputs, params):
        self.name, self.inputs = name, inputs
        self.block = 32 if "mxfp4" in name else params.get("block", params.get("group"))

    def hidden(self, token, k):
        scale = self.inputs.get("hidden_scale")
        if scale is None:
            return 1.0
        return float(scale[token] if scale.ndim == 1 else scale[token, k // self.block])

    def weight(self, label, expert, row, k):
        scale = self.inputs[f"{label}_scale"]
        if self.name == "fused_experts_a8w8":
            return float(scale[expert, row])
        row = row // self.block if self.name.endswith("block_scaled") else row
        return float(scale[expert, row, k // self.block])

    def middle(self, scale, at, column):
        return float(scale[at][column // self.block if self.block else 0])


def middle_row(inputs, scales, token, slot, params):
    expert, inner = inputs["topk_ids"][token, slot], inputs["w_down"].shape[2]
    x, w, bias = inputs["hidden"][token], inputs["w_gate_up"][expert], inputs.get("gate_up_bias")
    weight = float(inputs["topk_weights"][token, slot]) if params["weighted"] == "input" else 1.0
    both = []
    for row in range(2 * inner):
        total = dot(
            x, lambda k: scales.hidden(token, k), w[row], lambda k, row=row: scales.weight("w_gate_up", expert, row, k)
        )
        both.append(stored(total * weight + (0.0 if bias is None else float(bias[expert, row])), params["halves"]))
    parts = zip(both[:inner], both[inner:], strict=True)
    return [stored(activation(gate, up, params["activation"]), params["intermediate"]) for gate, up in parts]


def scale_of(part, to, params):
    largest = max(map(abs, part))
    if "mode" not in params:
        scale = max(largest / LARGEST[to], params["least"])
        return 1.0 if largest == 0.0 and params["of_zero"] == "one" else scale
    if largest == 0.0:
        return 2.0**-127
    number = largest / LARGEST[to] if params["mode"] == "up" else largest / 2.0 ** TOP_EXPONENT[to]
    exponent = math.floor(math.log2(number))
    if params["mode"] in ("up", "ceil"):
        exponent = math.ceil(math.log2(number))
    if params["mode"] == "even":
        bits = {"float8_e4m3fn": 4, "float8_e5m2": 3, "float4_e2m1fn": 2}[to]
        exponent += number / 2.0**exponent >= 2.0 - 2.0**-bits
    return 2.0 ** max(exponent, -127)


def code(ratio, to):
    ratio = min(max(ratio, -LARGEST[to] - (to == "int8")), LARGEST[to])
    return float(round(ratio)) if to == "int8" else float(np.float32(ratio).astype(getattr(ml_dtypes, to)))


@pytest.mark.parametrize("name", NAMES)
def test_equals_loops_over_scalars(name):
    record, checked = find_operator(name), 0
    for dtype in record.dtypes[1:3]:
        for case in make_cases(name, dtype, 24, seed=11):
            inputs = {label: array for label, array in case.inputs().items() if array is not None}
            if inputs["w_gate_up"].size > 2500 or not inputs["hidden"].size:
                continue
            params = record.signature.complete(case.params)
            *quantised, out = record.value(case.inputs(), case.params)
            if "weights" in params:
                inputs = nibbles(inputs, params)
            check(name, inputs, params, quantised, out, str(case))
            checked += 1
    assert checked > 20


def check(name, inputs, params, quantised, out, where):
    scales, to = Scales(name, inputs, params), inputs["hidden"].dtype.name
    ids, weights, down = inputs["topk_ids"], inputs["topk_weights"], inputs["w_down"]
    wanted, terms = np.zeros(out.shape), np.zeros(out.shape)
    for token, slot in np.argwhere(ids >= 0):
        row = middle_row(inputs, scales, token, slot, params)
        factor = [1.0] * len(row)
        if quantised:
            scale, codes = quantised
            size = scales.block or max(len(row), 1)
            for first in range(0, len(row), size):
                got, want = float(scale[token, slot, first // size]), scale_of(row[first : first + size], to, params)
                assert got == pytest.approx(want, rel=1e-6, abs=1e-300), where
            factor = [scales.middle(np.float32(scale), (token, slot), column) for column in range(len(row))]
            for column, value in enumerate(row):
                near = {code(value / factor[column] * slack, to) for slack in (1 - 1e-6, 1.0, 1 + 1e-6)}
                assert float(codes[token, slot, column]) in near, where
            row = codes[token, slot]
        expert, bias = ids[token, slot], inputs.get("down_bias")
        for column in range(down.shape[1]):
            w = down[expert, column]
            product = dot(
                row, factor.__getitem__, w, lambda k, e=expert, column=column: scales.weight("w_down", e, column, k)
            )
            product += 0.0 if bias is None else float(bias[expert, column])
            share = float(weights[token, slot]) if params["weighted"] == "output" else 1.0
            wanted[token, column] += product * share
            terms[token, column] += abs(product * share)
    np.testing.assert_allclose(out, wanted, rtol=1e-9, atol=1e-9 * (terms.max(initial=0.0) + 1e-30), err_msg=where)


def test_codes_and_result_are_judged_from_what_was_returned():
    x, up = np.array([[10]], np.int8), np.array([[[10], [127]]], np.int8)
    one, weight = np.ones((1, 1), np.float32), np.array([[0.5]], np.float32)
    inputs = (
        x,
        one[0],
        up,
        np.array([[1.0, 0.5]], np.float32),
        np.array([[[2]]], np.int8),
        one,
        np.array([[0]]),
        weight,
    )
    record = find_operator("fused_experts_a8w8")
    close = np.nextafter(np.float32(500.0), np.float32(np.inf))
    for scale, taken in ((close, float(close)), (np.float32(1000.0), 500.0)):  # a wrong one is nothing to start from
        given = {"middle_scale": np.full((1, 1, 1), scale), "middle": np.array([[[127]]], np.int8)}
        expected = record.expect(dict(zip(record.inputs, inputs, strict=True)), {}, NUMERICS["float32"], given)
        assert expected[0].value.tolist() == [[[500.0]]]
        assert expected[1].value.tolist() == [[[127.0]]]
        assert expected[2].value.tolist() == [[127.0 * taken]]


def test_slots_of_experts_elsewhere_may_hold_anything():
    record = find_operator("fused_experts_a8w8")
    case = next(c for c in make_cases(record.name, "float8_e4m3fn", 20, 0) if c.value_class == "nan_elsewhere")
    inputs = case.inputs()
    numerics = NUMERICS["float32"]
    plain = [part.value for part in record.expect(inputs, case.params, numerics)]
    scale, middle = plain[0].astype(np.float32), plain[1].astype(ml_dtypes.float8_e4m3fn)
    scale[inputs["topk_ids"] < 0] = middle[inputs["topk_ids"] < 0] = np.nan
    assert np.isnan(scale).any()
    given = {"middle_scale": scale, "middle": middle}
    expected = record.expect(inputs, case.params, numerics, given)
    assert not expected[0].choice.wrong(scale).any()
    assert not expected[1].choice.wrong(middle).any()
    assert np.isfinite(expected[2].value).all()

    garbage = np.random.default_rng(0)

    def run(inputs, params):
        parts = tuple(np.array(part) for part in variants_of(record.name)[0].run(inputs, params))
        parts[0][inputs["topk_ids"] < 0] = garbage.random()
        return parts

    assert relations_of(record.name)
    for found in relations_of(record.name):
        assert found.holds(run, inputs, record.signature.complete(case.params), np.random.default_rng(0)) is None


def test_packed_rows_have_half_as_many_bytes_and_whole_groups():
    record = find_operator("fused_experts_w4a16")
    case = make_cases(record.name, "float32", 1, seed=0)[0]
    inputs = case.inputs()
    with pytest.raises(InputError, match="width = 65 needs half as many bytes"):
        record.value({**inputs, "hidden": inputs["hidden"][:, :65], "w_down": inputs["w_down"][:, :65],
                      "w_down_scale": inputs["w_down_scale"][:, :65]}, case.params)  # fmt: skip
    with pytest.raises(InputError, match="width = 66 has 1 groups of 128, but the scales have 3"):
        record.value(inputs, {**case.params, "group": 128})


def test_refuses_what_is_outside_the_specification():
    record = find_operator("fused_experts_a8w8_block_scaled")
    case = make_cases(record.name, "int8", 1, seed=0)[0]
    inputs = case.inputs()
    with pytest.raises(InputError, match="width = 65 has 1 blocks of 128, but the scales have width_blocks = 3"):
        record.value(inputs, {**case.params, "block": 128})
    with pytest.raises(InputError, match="dtype float8_e5m2"):
        record.value({**inputs, "hidden": inputs["hidden"].astype(ml_dtypes.float8_e5m2)}, case.params)
    odd = {**inputs, "w_gate_up": inputs["w_gate_up"][:, :-2], "w_gate_up_scale": inputs["w_gate_up_scale"][:, :2]}
    with pytest.raises(InputError, match="w_gate_up has 64 rows per expert"):
        record.value(odd, case.params)

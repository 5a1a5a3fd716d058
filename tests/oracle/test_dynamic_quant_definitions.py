"""Operators that quantise their result, against loops over Python floats and tables of all codes."""

import bisect
import math

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator

LARGEST = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "int8": 127.0}


def codes_of(to):
    """Every finite number of a format in rising order, and whether its code is even."""
    if to == "int8":
        return [(float(number), number % 2 == 0) for number in range(-128, 128)]
    dtype = getattr(ml_dtypes, to)
    numbers = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    return sorted((float(number), code % 2 == 0) for code, number in enumerate(numbers) if np.isfinite(number))


def nearest(value, table):
    at = bisect.bisect(table, (value, False))
    around = table[max(at - 2, 0) : at + 2] or table[-1:]
    return min(around, key=lambda entry: (abs(entry[0] - value), not entry[1]))[0]


def over_rms(rows, weight, params, dtype):
    for row in rows:
        values = [float(value) for value in row]
        rms = math.sqrt(math.fsum(value * value for value in values) / len(values) + params["eps"])
        values = [value / rms for value in values]
        if params["rounding"] == "twice":
            values = [float(dtype(value)) for value in values]
        shift = 1.0 if params["gain"] == "one_plus_weight" else 0.0
        yield [value * (float(gain) + shift) for value, gain in zip(values, weight, strict=True)]


def rmsnorm(x, weight, params):
    return over_rms(x, weight, params, x.dtype.type)


def layernorm(x, weight, bias, params):
    for row in x:
        values = [float(value) for value in row]
        mean = math.fsum(values) / len(values)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values) + params["eps"])
        yield [
            (value - mean) / deviation * float(gain) + float(shift)
            for value, gain, shift in zip(values, weight, bias, strict=True)
        ]


def added_rmsnorm(x, residual, weight, params):
    rows = []
    for one, other in zip(x, residual, strict=True):
        rows.append([float(a) + float(b) for a, b in zip(one, other, strict=True)])
        if params["normalised"] == "rounded":
            rows[-1] = [float(x.dtype.type(value)) for value in rows[-1]]
    return over_rms(rows, weight, params, x.dtype.type)


def gated(activation):
    def formula(x, bias, params):
        half = x.shape[1] // 2
        for row in x:
            row = [float(value) + (0.0 if bias is None else float(bias[at])) for at, value in enumerate(row)]
            pairs = zip(row[:half], row[half:], strict=True)
            if params["pairing"] == "interleaved":
                pairs = zip(row[0::2], row[1::2], strict=True)
            yield [activation(gate, value, params) for gate, value in pairs]

    return formula


def cut(gate, value, limit):
    return (gate, value) if limit is None else (min(gate, limit), min(max(value, -limit), limit))


def logistic(x):
    return 1.0 / (1.0 + math.exp(min(-x, 700.0)))


def silu(gate, value, params):
    gate, value = cut(gate, value, params["limit"])
    return gate * logistic(gate) * value


def swiglu(gate, value, params):
    gate, value = cut(gate, value, params["limit"])
    return gate * logistic(params["alpha"] * gate) * (value + 1.0)


def gelu(gate, value, params):
    if params["approximate"] == "tanh":
        return 0.5 * gate * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (gate + 0.044715 * gate**3))) * value
    return 0.5 * gate * math.erfc(-gate / math.sqrt(2.0)) * value


def relu2(gate, value, params):
    return gate * gate * value if gate > 0.0 else 0.0 * value


FORMULAS = {
    "rmsnorm_dynamic_quant": rmsnorm,
    "fused_add_rmsnorm_dynamic_quant": added_rmsnorm,
    "layernorm_dynamic_quant": layernorm,
    "silu_and_mul_dynamic_quant": gated(silu),
    "gelu_and_mul_dynamic_quant": gated(gelu),
    "relu2_and_mul_dynamic_quant": gated(relu2),
    "swiglu_with_limit_dynamic_quant": gated(swiglu),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_equals_loops_over_scalars(name):
    record = find_operator(name)
    cases = [case for case in make_cases(name, "float32", 36, seed=5) if np.prod(list(case.dims.values())) < 1200]
    assert len(cases) >= 22
    for case in cases:
        params = record.signature.complete(case.params)
        *before, scale, codes = record.value(case.inputs(), case.params)
        for got, part in zip(before, (sum(map(np.float64, list(case.inputs().values())[:2])),), strict=False):
            assert np.array_equal(got, part)
        table = codes_of(params["to"])
        for number, y in enumerate(FORMULAS[name](*case.inputs().values(), params)):
            if params["quantised"] == "rounded":
                y = [float(np.float32(value)) for value in y]
            size = len(y) if params["block"] == "token" else int(params["block"].split("x")[1])
            for block, first in enumerate(range(0, len(y), size)):
                part = y[first : first + size]
                amax = max(map(abs, part))
                wanted = max(amax / LARGEST[params["to"]], params["least"])
                wanted = 1.0 if amax == 0.0 and params["of_zero"] == "one" else wanted
                assert scale[number, block] == pytest.approx(wanted, rel=1e-6, abs=1e-300), str(case)
                stored = float(np.float32(scale[number, block]))
                if stored < 1e-37:
                    continue
                for column, value in enumerate(part, first):
                    near = {nearest(value / stored * slack, table) for slack in (1 - 1e-6, 1.0, 1 + 1e-6)}
                    got = float(codes[number, column])
                    assert got in near or (params["to"] != "int8" and nearest(got, table) in near), str(case)


ACTIVATIONS = {
    "silu": lambda gate: gate * logistic(gate),
    "gelu": lambda gate: 0.5 * gate * math.erfc(-gate / math.sqrt(2.0)),
    "gelu_tanh": lambda gate: gelu(gate, 1.0, {"approximate": "tanh"}),
    "relu2": lambda gate: max(gate, 0.0) ** 2,
}


def test_a_given_scale_against_loops_over_scalars():
    record, compared = find_operator("act_and_mul_static_quant"), 0
    for case in make_cases(record.name, "float32", 36, seed=5):
        if np.prod(list(case.dims.values())) > 1200:
            continue
        inputs, params = case.inputs(), record.signature.complete(case.params)
        (codes,), table = record.value(inputs, case.params), codes_of(params["to"])

        def product(gate, value, params):
            activated = ACTIVATIONS[params["activation"]](gate)
            if params["rounding"] == "twice":
                activated = float(np.float32(activated))
            return activated * value

        for row, y in enumerate(gated(product)(inputs["x"], inputs["bias"], params)):
            for column, value in enumerate(y):
                value = float(np.float32(value)) if params["quantised"] == "rounded" else value
                ratio = value / float(inputs["scale"][0])
                near = {nearest(ratio * slack, table) for slack in (1 - 1e-6, 1.0, 1 + 1e-6)}
                assert nearest(float(codes[row, column]), table) in near, str(case)
        compared += 1
    assert compared >= 22


def test_a_lower_limit_of_the_scales():
    x, weight = np.zeros((1, 4), np.float32), np.ones(4, np.float32)
    for params, wanted in (
        ({}, 1.0),
        ({"of_zero": "least"}, 0.0),
        ({"of_zero": "least", "least": 0.25}, 0.25),
        ({"least": 0.25}, 1.0),
    ):
        scale, _ = find_operator("rmsnorm_dynamic_quant")(x, weight, **params)
        assert scale.tolist() == [[wanted]], params


def test_codes_are_judged_from_the_scale_that_was_returned():
    x, weight = np.array([[1.0, -1.0]], np.float32), np.ones(2, np.float32)
    given = {"scale": np.array([[0.5]], np.float32)}
    params = {"to": "int8", "eps": 1e-12}
    inputs = {"x": x, "weight": weight}
    expected = find_operator("rmsnorm_dynamic_quant").expect(inputs, params, NUMERICS["float32"], given)
    assert expected[0].value[0, 0] == pytest.approx(1 / 127)
    assert np.asarray(expected[1].value).tolist() == [[2.0, -2.0]]


def test_refuses_what_is_outside_the_specification():
    x = np.ones((2, 4), np.float32)
    with pytest.raises(InputError, match="'int4'"):
        find_operator("rmsnorm_dynamic_quant")(x, x[0], to="int4")
    with pytest.raises(InputError, match=r"least=-1\.0"):
        find_operator("silu_and_mul_dynamic_quant")(x, least=-1.0)
    with pytest.raises(InputError, match="float64"):
        find_operator("silu_and_mul_dynamic_quant")(x.astype(np.float64))
    with pytest.raises(InputError, match="there is one scale for all, not 2"):
        find_operator("act_and_mul_static_quant")(x, x[0, :2])
    with pytest.raises(InputError, match="width = 3 must be even"):
        find_operator("silu_and_mul_dynamic_quant")(x[:, :3])

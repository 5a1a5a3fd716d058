"""Cases: drawn deterministically, covering what they must, and replayed bit for bit from JSON."""

import json

import numpy as np
import pytest

from oracle.cases import LAYOUTS, Case, buffer_of, curated_count, make_cases
from oracle.cases.recipes import RECIPES
from oracle.cases.values import ROWS, draw_rows
from oracle.formats import FORMATS
from oracle.operator import OPERATORS, find_operator
from oracle.signature import InputError

NAMES = sorted(RECIPES)
DTYPES = ("float16", "bfloat16", "float32", "float64")


def test_every_operator_has_a_recipe():
    find_operator("sum")
    assert sorted(OPERATORS) == NAMES


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in NAMES for dtype in find_operator(name).dtypes])
def test_json_replays_bit_for_bit(name, dtype):
    for case in make_cases(name, dtype, 60, seed=5):
        again = Case.from_json(json.dumps(case.to_json()))
        assert again == case
        for array, other in zip(case.inputs().values(), again.inputs().values(), strict=True):
            if array is None:
                assert other is None
                continue
            assert buffer_of(array).tobytes() == buffer_of(other).tobytes()
            assert array.strides == other.strides
            assert array.dtype == other.dtype


# Classes of values that are not all numbers; those that begin with nan_ put a NaN where nothing may read it.
NOT_FINITE = {"not_a_number", "infinities", "masked", "bias_hides", "sink_extremes", "forbidding"}

# Inputs that are logarithms of sums, which may have no terms.
LOGARITHMS = {"lse", "lses"}


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_valid_inputs_of_the_dtype(name):
    record = find_operator(name)
    for dtype in record.dtypes:
        for case in make_cases(name, dtype, 60, seed=6):
            inputs = case.inputs()
            sizes = record.validate(inputs, case.params)
            assert sizes.items() <= dict(case.dims).items()
            assert len(sizes) == len(case.dims) or case.absent
            finite = True
            for label, spec in record.inputs.items():
                array = inputs[label]
                if array is not None and spec.kind == "float":
                    assert array.dtype.name in (spec.dtypes or (dtype,))
                    numbers = array.astype(np.float64)
                    numbers = numbers[~np.isneginf(numbers)] if label in LOGARITHMS else numbers
                    finite &= label in RECIPES[name].unread or bool(np.isfinite(numbers).all())
            meant = case.value_class in {*NOT_FINITE, "mixed"} or case.value_class.startswith("nan_")
            assert finite or meant, str(case)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_cases_other_seed_others(name):
    dtype = find_operator(name).dtypes[-1]
    assert make_cases(name, dtype, 40, 1) == make_cases(name, dtype, 40, 1)
    assert make_cases(name, dtype, 40, 1) != make_cases(name, dtype, 40, 2)
    assert make_cases(name, dtype, 10, 1) == make_cases(name, dtype, 40, 1)[:10]


@pytest.mark.parametrize("name", NAMES)
def test_curated_cases_cover_every_class_layout_and_edge(name):
    cases = make_cases(name, find_operator(name).dtypes[-1], curated_count(name), 0)
    assert {case.layout for case in cases} == set(LAYOUTS)
    assert {case.value_class for case in cases} == set(RECIPES[name].classes)
    assert any(0 in case.dims.values() for case in cases)
    assert any(max(case.dims.values(), default=1) <= 3 for case in cases)
    for param, spec in find_operator(name).params.items():
        if spec.choices:
            assert {case.params.get(param, spec.default) for case in cases} == set(spec.choices)
        else:
            assert any(param in case.params for case in cases)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_exponentials_of_some_row_are_more_than_float16_can_sum(name):
    rows = [case.inputs()["x"].astype(np.float64) for case in make_cases(name, "float16", curated_count(name), 0)]
    with np.errstate(all="ignore"):
        sums = [np.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1).max(initial=0.0) for x in rows if x.size]
    assert np.nanmax(sums) > np.finfo(np.float16).max


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_layouts_keep_the_values_and_poison_the_rest(layout, dtype):
    values = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    placed = LAYOUTS[layout](values)
    assert np.array_equal(placed, values)
    buffer = buffer_of(placed)
    poisoned = np.isnan(buffer) if dtype is np.float32 else buffer == np.iinfo(np.int64).max
    assert poisoned.sum() == buffer.size - values.size
    assert (buffer.size > values.size) == (layout in {"padded", "strided", "misaligned"})
    if layout == "misaligned":
        assert placed.ctypes.data - buffer.ctypes.data == values.itemsize
    if layout in {"transposed", "padded", "strided"}:
        assert not placed.flags.c_contiguous


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (2, 5, 33)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROWS)
def test_rows_have_the_shape_and_fit_the_dtype(name, dtype, shape):
    rows = draw_rows(name, np.random.default_rng(0), shape, FORMATS[dtype])
    assert rows.shape == shape
    finite = np.isfinite(rows)
    assert np.abs(rows[finite]).max(initial=0.0) <= FORMATS[dtype].max
    assert finite.all() == (name not in NOT_FINITE or rows.size == 0 or (name == "masked" and shape[-1] == 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_value_classes_are_what_they_say(dtype):
    number_format = FORMATS[dtype]
    rng = np.random.default_rng(1)

    def rows(name):
        return draw_rows(name, rng, (8, 64), number_format)

    assert np.all(np.count_nonzero(rows("one_hot"), axis=-1) == 1)
    significands = np.abs(rows("full_significand")) * 2 ** (number_format.precision - 1)
    assert np.all(significands % 2 == 1)
    integers = rows("sparse_integers")
    assert np.all(integers == np.rint(integers))
    assert np.all(integers[:, -1] != 0)
    assert np.all(np.exp(rows("all_below").astype(np.float64 if dtype == "float64" else np.float32)) == 0)
    assert np.mean(np.abs(rows("subnormals")) < number_format.min_normal) > 0.5
    assert all(len(np.unique(row)) <= 2 for row in rows("low_entropy"))
    assert np.all(np.abs(rows("cancelling").sum(axis=-1)) < 16)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dtype": "float8"}, "dtype 'float8'"),
        ({"value_class": "nice"}, "value_class 'nice'"),
        ({"layout": "zigzag"}, "layout 'zigzag'"),
        ({"params": {"axis": "x"}}, "axis='x'"),
        ({"shape": [1]}, "no field 'shape'"),
        ({"dims": {"rows": 3}}, "dimension 'rows'"),
        ({"dims": {"d1": 3}}, "dimension 'd1'"),
        ({"dims": {"d0": -3}}, "size -3 of dimension 'd0'"),
        ({"dims": {"d0": 1.5}}, "size 1.5"),
        ({"seed": -1}, "seed -1"),
        ({"absent": ["x"]}, "absent input 'x'"),
        ({"operator": "matmul", "dims": {"m": 1, "n": 2}}, "no size for dimension 'k'"),
    ],
)
def test_a_case_refuses_what_it_does_not_know(changes, words):
    data = {"operator": "sum", "dtype": "float32", "dims": {"d0": 3}, **changes}
    with pytest.raises(InputError) as caught:
        Case.from_json(data)
    assert words in str(caught.value)


def test_a_case_needs_its_fields():
    with pytest.raises(InputError, match="no field 'dims'"):
        Case.from_json({"operator": "sum", "dtype": "float32"})
    with pytest.raises(InputError, match="not list"):
        Case.from_json("[]")


def test_leading_dimensions_go_by_their_numbers():
    assert Case("sum", "float32", {"d1": 5, "d0": 3}).inputs()["x"].shape == (3, 5)


def test_count_and_seed_are_checked():
    with pytest.raises(InputError, match="count=0"):
        make_cases("sum", "float32", 0, 0)
    with pytest.raises(InputError, match="seed=-1"):
        make_cases("sum", "float32", 1, -1)

"""The frozen typing table against numba-cuda's live typing context, and against rows known from its documentation."""

from __future__ import annotations

import doctest
import importlib.util
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from refsim.frontends import numba_types as nt
from refsim.frontends.numba_types import SCALAR_TYPES, Signature, TypingError

ROOT = Path(__file__).resolve().parents[3]
INTEGERS = [name for name in SCALAR_TYPES if "int" in name]


@pytest.fixture(scope="module")
def freezer() -> ModuleType:
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed: nothing to compare the table with")
    spec = importlib.util.spec_from_file_location("freeze_numba_types", ROOT / "tools" / "freeze_numba_types.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def live(freezer: ModuleType) -> Iterator[Any]:
    asked = freezer.Live()
    with asked.active():
        yield asked


def answer(function: Any, *arguments: Any) -> Signature | None:
    try:
        found = function(*arguments)
    except TypingError:
        return None
    assert isinstance(found, Signature)
    return found


def test_every_entry_equals_the_installed_numba_cuda(freezer: ModuleType) -> None:
    frozen = json.loads(freezer.TABLE.read_text())
    asked = json.loads(json.dumps(freezer.freeze()))
    if frozen.pop("numba_cuda") != asked.pop("numba_cuda"):
        assert frozen == asked, "this numba-cuda types differently: run tools/freeze_numba_types.py and read the diff"
    assert frozen == asked


def in_result_type(op: str, expected: tuple[str, ...] | None) -> Signature | None:
    """numba-cuda's implementations of integer operators begin with casts of the operands to the result type."""
    if expected is None:
        return None
    result, a, b = expected
    if "int" in a and "int" in b and op not in ("<", "=="):
        return Signature(result, (result, b if op == "**" else result))
    return Signature(result, (a, b))


@pytest.mark.parametrize("op", ["+", "/", "//", "**", "<<", "&", "<", "=="])
def test_operators_decode_to_what_numba_answers(op: str, freezer: ModuleType, live: Any) -> None:
    function, in_place = freezer.BINARY[op]
    for a, b in itertools.product(SCALAR_TYPES, repeat=2):
        types = (live.by_name[a], live.by_name[b])
        assert answer(nt.binary, op, a, b) == in_result_type(op, live.signature(function, types))
        if in_place is not None:
            assert answer(nt.inplace, op, a, b) == in_result_type(op, live.signature(in_place, types))


@pytest.mark.parametrize(
    ("name", "arity"),
    [("math.exp", 1), ("math.frexp", 1), ("cuda.ffs", 1), ("math.pow", 2), ("cuda.ballot_sync", 2), ("cuda.fma", 3)],
)
def test_calls_decode_to_what_numba_answers(name: str, arity: int, live: Any) -> None:
    function = live.function(name)
    for types in itertools.product(SCALAR_TYPES, repeat=arity):
        expected = live.signature(function, [live.by_name[each] for each in types])
        assert answer(nt.call, name, types) == (expected and Signature(expected[0], expected[1:]))


@pytest.mark.parametrize("name", ["min", "max"])
def test_min_and_max_have_the_unified_type(name: str, live: Any) -> None:
    function = live.function(name)
    for types in [
        *itertools.product(SCALAR_TYPES, repeat=1),
        *itertools.product(SCALAR_TYPES, repeat=2),
        *itertools.product(SCALAR_TYPES[::2], repeat=3),
    ]:
        expected = live.signature(function, [live.by_name[each] for each in types])
        found = answer(nt.call, name, types)
        assert (found and found.result) == (expected and expected[0]), types
        assert found is None or set(found.args) == {found.result}


def test_unify_of_several_types_equals_numba(live: Any) -> None:
    from numba.core.errors import NumbaError

    for types in itertools.product(SCALAR_TYPES, repeat=3):
        try:
            unified = live.context.unify_types(*(live.by_name[each] for each in types))
        except (RecursionError, NumbaError):  # of bfloat16, a float and an integer
            unified = None
        if unified is None:
            with pytest.raises(TypingError, match="cannot unify"):
                nt.unify(*types)
        else:
            assert nt.unify(*types) == live.name(unified), types


def test_casts_between_scalars_are_allowed_but_from_complex_to_real(live: Any) -> None:
    for to, value in itertools.product(SCALAR_TYPES, repeat=2):
        if to == "bfloat16":  # no name of NumPy's
            continue
        expected = live.signature(live.function(f"np.{'bool_' if to == 'bool' else to}"), (live.by_name[value],))
        if value.startswith("complex") and to != "bool" and not to.startswith("complex"):  # typed, but never compiled
            with pytest.raises(TypingError, match="complex"):
                nt.cast(to, value)
            continue
        assert expected == (to, value)
        assert nt.cast(to, value) == Signature(to, (value,))
        if to != "bool":
            assert nt.call(f"np.{to}", [value]) == nt.call(to, [value]) == Signature(to, (value,))


# what the Python simulator of numba-cuda, and NumPy, answer differently
@pytest.mark.parametrize(
    ("op", "a", "b", "result", "args"),
    [
        ("*", "int32", "int32", "int64", ("int64", "int64")),
        ("*", "float32", "float64", "float64", ("float64", "float64")),  # f32 * 0.1
        ("+", "float32", "int32", "float64", ("float64", "float64")),
        ("+", "float32", "int8", "float32", ("float32", "float32")),
        ("+", "uint64", "int64", "int64", ("int64", "int64")),
        ("+", "bool", "bool", "int64", ("int64", "int64")),
        ("-", "uint8", "uint8", "uint64", ("uint64", "uint64")),
        ("/", "int32", "int32", "float64", ("float64", "float64")),
        ("//", "float16", "float16", "float32", ("float32", "float32")),
        ("**", "float32", "int64", "float32", ("float32", "int64")),
        ("<", "uint64", "int64", "bool", ("float64", "float64")),
        ("<<", "uint32", "int64", "uint64", ("uint64", "uint64")),
        (">>", "int32", "uint64", "int64", ("int64", "int64")),
        ("**", "uint64", "int64", "int64", ("int64", "int64")),
    ],
)
def test_rows_that_simulators_get_wrong(op: str, a: str, b: str, result: str, args: tuple[str, str]) -> None:
    assert nt.binary(op, a, b) == Signature(result, args)


def test_a_float_literal_widens_a_float32_sum() -> None:
    product = nt.binary("*", "float32", nt.literal_type(0.1))
    assert nt.binary("+", product.result, "float32").result == "float64"


def test_variables_unify_as_in_numba() -> None:
    assert nt.unify("uint64", "int64") == "float64"
    assert nt.unify("int32", "float32") == "float64"
    assert nt.unify("bool", "int32") == "int32"
    assert nt.unify("int64") == "int64"


def test_literals_have_the_type_of_their_value() -> None:
    assert [nt.literal_type(v) for v in (True, -1, 2**63 - 1, 2**63, 0.5)] == [
        "bool", "int64", "int64", "uint64", "float64",
    ]  # fmt: skip
    with pytest.raises(TypingError, match="does not fit 64 bits"):
        nt.literal_type(2**64)


def test_bit_intrinsics_keep_or_fix_the_width() -> None:
    assert nt.call("cuda.popc", ["int32"]) == Signature("int32", ("int32",))
    assert nt.call("cuda.clz", ["uint64"]) == Signature("uint64", ("uint64",))
    assert nt.call("cuda.ffs", ["int64"]) == Signature("uint32", ("int64",))
    assert nt.call("cuda.brev", ["int32"]) == Signature("uint32", ("uint32",))


def test_a_numpy_function_works_in_the_type_of_its_result() -> None:
    assert nt.call("np.sin", ["int32"]) == Signature("float64", ("float64",))
    assert nt.call("np.log", ["float16"]) == Signature("float32", ("float32",))
    assert nt.call("np.maximum", ["int8", "int16"]) == Signature("int16", ("int16", "int16"))
    assert nt.call("np.isnan", ["float16"]) == Signature("bool", ("float32",))


def test_a_numpy_function_that_numba_cuda_cannot_compile_is_unknown() -> None:
    """np.sqrt is typed, but has no code for the GPU."""
    assert not nt.is_known_call("np.sqrt")
    with pytest.raises(TypingError, match=r"np\.sqrt is not a function"):
        nt.call("np.sqrt", ["float32"])


def test_tuple_results_come_apart() -> None:
    assert nt.call("math.frexp", ["float32"]).results == ("float32", "int32")
    assert nt.call("cuda.match_all_sync", ["int32", "float64"]).results == ("int32", "bool")
    assert nt.call("cuda.syncthreads", []).results == ()
    assert nt.call("math.exp", ["float16"]).results == ("float16",)


def test_the_shuffle_takes_four_types_and_ballot_is_signed() -> None:
    assert nt.call("cuda.shfl_down_sync", ["uint32", "float32", "int64"]).result == "float32"
    with pytest.raises(TypingError, match=r"cuda\.shfl_down_sync\(uint32, float16, int64\)"):
        nt.call("cuda.shfl_down_sync", ["uint32", "float16", "int64"])
    assert nt.call("cuda.ballot_sync", ["uint32", "bool"]).result == "int32"
    assert nt.call("cuda.activemask", []).result == "uint32"


def test_syncthreads_count_takes_no_bool() -> None:
    with pytest.raises(TypingError, match="syncthreads_count"):
        nt.call("cuda.syncthreads_count", ["bool"])


def test_min_and_max_of_floats_skip_nan_but_not_against_an_integer() -> None:
    assert nt.min_max_skips_nan(["float32", "float64"])
    assert not nt.min_max_skips_nan(["float32", "int64"])
    assert not nt.min_max_skips_nan(["float32", "float32", "float32"])
    assert not nt.min_max_skips_nan(["float16", "float16"])


def test_registers_are_int32_and_grid_is_int64() -> None:
    assert nt.special("cuda.threadIdx.x") == nt.special("cuda.gridDim.z") == nt.special("cuda.laneid") == "int32"
    assert nt.special("cuda.grid(1)") == nt.special("array.shape[i]") == nt.special("len") == "int64"
    assert nt.special("cuda.grid(2)") == "(int64, int64)"
    with pytest.raises(TypingError, match="known are"):
        nt.special("cuda.threadIdx.w")


def test_range_follows_its_bounds() -> None:
    assert nt.range_item(["int32"]) == "int32"
    assert nt.range_item(["int32", "int64"]) == "int64"
    assert nt.range_item(["uint8"]) == "uint64"
    with pytest.raises(TypingError, match="1 to 3"):
        nt.range_item([])


def test_an_index_is_an_integer_of_64_bits() -> None:
    assert {name: nt.index_type(name) for name in INTEGERS} == {
        name: "uint64" if name.startswith("u") else "int64" for name in INTEGERS
    }
    for name in ("bool", "float32"):
        with pytest.raises(TypingError, match="must be an integer"):
            nt.index_type(name)


def test_a_store_converts_to_the_dtype() -> None:
    assert nt.setitem("float16", "float64") == "float16"
    assert nt.setitem("int32", "float32") == "int32"


def test_atomics_name_the_dtypes_they_take() -> None:
    assert nt.atomic("add", "float32") == Signature("float32", ("float32",))
    assert nt.atomic("cas", "int32") == Signature("int32", ("int32", "int32"))
    with pytest.raises(TypingError, match="uint32, uint64, got int32"):
        nt.atomic("inc", "int32")
    with pytest.raises(TypingError, match="has no 'mul'"):
        nt.atomic("mul", "int32")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: nt.binary("<<", "float32", "int64"), "numba-cuda has no float32 << int64"),
        (lambda: nt.binary("@", "int32", "int32"), "'@' is not a binary operator"),
        (lambda: nt.unary("~", "float32"), "numba-cuda has no ~ float32"),
        (lambda: nt.binary("+", "int128", "int32"), "'int128' is not a scalar type"),
        (lambda: nt.call("math.cbrt", ["float32"]), "math.cbrt is not a function"),
        (lambda: nt.call("math.exp", ["float32", "float32"]), "takes 1 arguments, got 2"),
        (lambda: nt.call("cuda.activemask", ["int32"]), "takes no argument"),
        (lambda: nt.call("min", []), "at least two scalars, got 0"),
        (lambda: nt.unify("int32", "float8"), "'float8' is not a scalar type"),
    ],
)
def test_errors_name_the_types(ask: Any, message: str) -> None:
    with pytest.raises(TypingError) as caught:
        ask()
    assert message in str(caught.value)


def test_typing_error_is_a_value_error() -> None:
    assert issubclass(TypingError, ValueError)


def test_numba_is_not_imported() -> None:
    code = (
        "import sys; from refsim.frontends import numba_types as n; n.binary('+', 'int8', 'int8');"
        "n.call('cuda.fma', ['float32'] * 3); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_examples_in_the_docstrings() -> None:
    failed, tried = doctest.testmod(nt)
    assert tried > 0
    assert failed == 0

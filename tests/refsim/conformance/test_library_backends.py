"""Backends over installed libraries: what a table of functions serves, refuses and lacks, and the libraries' own."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from oracle.operator import find_operator
from refsim.cli import main
from refsim.conformance import Refused, UsageError, Verdict, check
from refsim.conformance.backends.library import (
    CONTIGUOUS,
    HostArrays,
    LibraryBackend,
    Table,
    by_operator,
    in_dtype,
    term_by_term,
)
from refsim.conformance.backends.loading import as_backend, load_backend
from refsim.operator_commands import all_operators

PACKAGE = "refsim.conformance.backends"
FEW = 6


class Plain(HostArrays):
    """NumPy as if it were a library, on two devices."""

    def __init__(self, device="cpu"):
        self.device = device
        self.scoped = 0

    def on(self, device):
        return Plain(device) if device == "cuda:0" else super().on(device)

    def scope(self, inputs):
        self.scoped += 1
        return super().scope(inputs)


@pytest.fixture
def backend():
    table = Table()

    @table.serves("argmax", "first", ("float32", "float64"), only={"ties": ("lowest",)}, layouts=CONTIGUOUS)
    def first(x):
        return np.argmax(x, axis=-1).astype(np.int32)

    @table.serves("mean", "average", ("float32",), devices=("cuda",), compiles=False, on_gpu=in_dtype)
    def average(x):
        return np.mean(x, axis=-1)

    @table.serves("cumsum", "scan", refuses=lambda inputs, params: "one row only" if len(inputs["x"]) != 1 else None)
    def scan(x):
        return np.cumsum(x, axis=-1)

    return LibraryBackend("plain", Plain(), table.rows, by_operator({"there is none": ("softmax", "sum")}))


def test_what_is_served_is_data(backend):
    rows = [(row.operator, row.kernel, row.dtype) for row in backend.capabilities()]
    assert rows[:2] == [("argmax", "first", "float32"), ("argmax", "first", "float64")]
    assert [dtype for _, kernel, dtype in rows if kernel == "scan"] == list(find_operator("cumsum").dtypes)
    assert backend.rows["argmax", "first"].limits() == {
        "layouts": ["contiguous", "misaligned"],
        "devices": ["cpu", "cuda"],
        "only": {"ties": ["lowest"]},
    }


@pytest.mark.parametrize(
    ("operator", "kernel", "x", "params", "words"),
    [
        ("argmax", "first", np.ones((2, 3)), {"ties": "highest"}, "first has ties='lowest' only, not 'highest'"),
        ("argmax", "first", np.ones((3, 2)).T, {"ties": "lowest"}, "takes contiguous arrays only, and x has strides"),
        ("cumsum", "scan", np.ones((2, 3)), {"exclusive": False}, "one row only"),
        ("cumsum", "scan", np.ones((1, 3)), {"exclusive": True}, "the function takes no exclusive"),
    ],
)
def test_what_is_not_served_is_refused_with_the_reason(backend, operator, kernel, x, params, words):
    with pytest.raises(Refused, match=words):
        backend.run(operator, kernel, {"x": x}, params)


def test_what_is_served_runs_in_the_librarys_scope(backend):
    result = backend.run("argmax", "first", {"x": np.array([[1.0, 3.0, 3.0]])}, {"ties": "lowest"})
    assert [output.tolist() for output in result.outputs] == [[1]]
    assert backend.arrays.scoped == 1


def test_means_that_are_updated_term_by_term_need_that_promise():
    table = Table(dtypes=("float32", "float64"))

    def welford(x, weight, bias, eps):
        mean, squares = np.zeros_like(x[:, :1]), np.zeros_like(x[:, :1])
        for count in range(1, x.shape[1] + 1):
            column = x[:, count - 1 : count]
            step = column - mean
            mean = mean + step / x.dtype.type(count)
            squares = squares + step * (column - mean)
        out = (x - mean) / np.sqrt(squares / x.dtype.type(x.shape[1]) + x.dtype.type(eps))
        out = out if weight is None else out * weight
        return out if bias is None else out + bias

    table.serves("layernorm", "promised", numerics=term_by_term)(welford)
    table.serves("layernorm", "not promised")(welford)
    backend = LibraryBackend("plain", Plain(), table.rows, {})
    report = check(backend, ["layernorm"], ["float32", "float64"], count=48)
    assert len(report.results) == 4
    for row in report.results:
        assert (row.verdict is Verdict.PASS) == (row.kernel == "promised"), row


def test_an_operator_that_the_library_lacks_is_unsupported_with_the_reason(backend):
    results = check(backend, ["softmax", "matmul"], ["float32"], required=True).results
    assert [result.verdict for result in results] == [Verdict.UNSUPPORTED] * 2
    assert [result.reason for result in results] == [
        "backend plain serves no softmax in float32: there is none",
        "backend plain serves no matmul in float32: its adapter knows no function for it",
    ]


def test_an_operator_has_one_reason():
    with pytest.raises(ValueError, match="more than one reason for softmax; leave one"):
        by_operator({"there is none": ("softmax", "sum"), "it is too hard": ("softmax",)})


def test_devices(backend):
    assert "mean" not in {row.operator for row in backend.capabilities()}
    assert "mean" in {row.operator for row in backend.on("cuda:0").capabilities()}
    assert as_backend(backend, "plain", [], "sim:sm_90") is backend
    assert backend.numerics("mean", "average", "float16").name == "float32"
    assert backend.on("cuda:0").numerics("mean", "average", "float16").name == "float16"
    assert as_backend(backend, "plain", [], "cuda:0").device == "cuda:0"
    with pytest.raises(UsageError, match="runs on the CPU only, not on cuda:1"):
        as_backend(backend, "plain", [], "cuda:1")


def test_a_variant_is_the_same_rows_by_other_functions(backend):
    changed = backend.variant("plain-twice", "twice", lambda row: row.call)
    assert next(row.kernel for row in changed.capabilities()) == "twice first"
    assert ("mean", "twice average") not in changed.rows
    assert changed.absent == {**backend.absent, "mean": "its steps depend on values, so it is no one graph"}


@pytest.mark.parametrize(
    ("module", "library", "attributes"),
    [
        ("torch", "torch", ("backend", "compiled_backend")),
        ("jax", "jax", ("backend", "jit_backend")),
        ("onnxruntime", "onnxruntime", ("backend",)),
    ],
)
def test_every_operator_is_served_or_absent_with_a_reason(module, library, attributes):
    pytest.importorskip(library, reason=f"{library} is an extra: python -m pip install 'refsim[{library}]'")
    for attribute in attributes:
        found = load_backend(f"{PACKAGE}.{module}:{attribute}", [], "sim:sm_90")
        served = {row.operator for row in found.capabilities()}
        assert served
        assert not served & set(found.absent)
        assert {operator for operator, _ in found.rows} | set(found.absent) == {
            record.name for record in all_operators()
        }


@pytest.mark.parametrize(
    ("module", "library", "operators", "dtypes"),
    [
        ("jax:backend", "jax", ("softmax", "topk"), ("float32",)),
        ("jax:jit_backend", "jax", ("sum",), ("float64",)),
        (
            "onnxruntime:backend",
            "onnxruntime",
            (
                "softmax",
                "sum",
                "topk",
                "matmul",
                "batched_matmul",
                "quantise_static",
                "reshape_and_cache_flash",
                "rope",
            ),
            ("float16", "bfloat16", "float32", "float64"),
        ),
    ],
)
def test_installed_libraries_conform(module, library, operators, dtypes):
    pytest.importorskip(library, reason=f"{library} is an extra: python -m pip install 'refsim[{library}]'")
    found = load_backend(f"{PACKAGE}.{module}", [], "sim:sm_90")
    report = check(found, operators, dtypes, count=FEW, required=True)
    verdicts = {(row.operator, row.kernel, row.dtype): (row.verdict.name, row.reason) for row in report.results}
    assert {row.operator for row in report.results} == set(operators)
    assert {verdict for verdict, _ in verdicts.values()} <= {"PASS", "INCONCLUSIVE"}, verdicts


def test_jax_has_64_bits_only_while_they_are_judged():
    jax = pytest.importorskip("jax", reason="JAX is an extra: python -m pip install 'refsim[jax]'")
    found = load_backend(f"{PACKAGE}.jax:backend", [], "sim:sm_90")
    (out,) = found.run("sum", "jax.numpy.sum", {"x": np.full(3, 1.0 + 2.0**-40)}, {"axis": None}).outputs
    assert out.dtype == np.float64
    assert out == 3.0 + 3 * 2.0**-40
    assert jax.numpy.ones(1, "float32").sum().dtype == np.float32
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("library", ["jax", "onnxruntime"])
def test_an_absent_library_is_named_with_the_remedy(library, monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.{library}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    result = CliRunner().invoke(main, ["check", "sum", "--backend", f"{PACKAGE}.{library}:backend"])
    assert result.exit_code == 2
    assert f"pip install 'refsim[{library}]'" in result.output


def test_the_list_of_backends_shows_limits_and_what_is_absent():
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is an extra: python -m pip install 'refsim[onnxruntime]'")
    from refsim import backend_commands

    backends = backend_commands.described("onnxruntime", f"{PACKAGE}.onnxruntime:backend")
    row = next(one for one in backends["operators"] if one["operator"] == "gated_delta_rule")
    assert row["only"] == {"normalise": [False]}
    assert "sample_top_k" in backends["absent"]
    text = backend_commands.text_of(json.loads(json.dumps(backends)))
    assert "normalise False only" in text
    assert "not served: sample_top_k, " in text

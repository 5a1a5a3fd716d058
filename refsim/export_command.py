"""``refsim export``: operators, cases and their expected outputs for runners of other projects."""

from __future__ import annotations

from pathlib import Path

import click

from oracle.cases import make_cases
from oracle.operator import find_operator
from refsim.conformance.backends import UsageError


@click.command()
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to write to.")
@click.option("--format", "form", type=click.Choice(["onnx", "flashinfer-bench"]), default="onnx", show_default=True)
@click.option("--dtype", "dtypes", multiple=True, help="May be repeated.  [default: float32 where an operator has it]")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--cases", "count", type=click.IntRange(min=1), default=8, show_default=True, help="Cases per dtype.")
def export(operators: tuple[str, ...], output: Path, form: str, dtypes: tuple[str, ...], seed: int, count: int) -> None:
    """Write operators OP (all that have the form if none is given) as other projects keep them.

    onnx: node tests, a folder per case, laid out like the tests of ONNX itself: a model, inputs, expected outputs.
    flashinfer-bench: a dataset with a definition per set of constant axes, its reference in Python, and a workload per
    case.
    """
    from refsim.conformance.exports.flashinfer_bench import export_definitions
    from refsim.conformance.exports.flashinfer_forms import FLASHINFER_FORMS
    from refsim.conformance.exports.onnx_forms import ONNX_FORMS
    from refsim.conformance.exports.onnx_node_tests import export_node_tests

    known = list(ONNX_FORMS if form == "onnx" else FLASHINFER_FORMS)
    records = [find_operator(name) for name in dict.fromkeys(operators or known)]
    cases = []
    for record in records:
        usual = "float32" if "float32" in record.dtypes else record.dtypes[0]
        for dtype in dtypes or (usual,):
            if dtype not in record.dtypes:
                raise UsageError(f"{record.name} has no dtype {dtype!r}; it has {', '.join(record.dtypes)}")
            cases += make_cases(record.name, dtype, count, seed)
    if form == "onnx":
        tests, refused = export_node_tests(cases, output)
        told = f"{len(tests)} tests in {output}"
    else:
        names, refused = export_definitions(cases, output)
        told = f"{len(names)} workloads of {len(set(names))} definitions in {output}"
    for reason in refused:
        click.echo(f"left out: {reason}", err=True)
    click.echo(told)

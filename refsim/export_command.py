"""``refsim export``: cases and their expected outputs for runners of other projects."""

from __future__ import annotations

from pathlib import Path

import click

from oracle.cases import make_cases
from oracle.operator import find_operator
from refsim.conformance.backends import UsageError


@click.command()
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder for the tests.")
@click.option("--dtype", "dtypes", multiple=True, default=("float32",), show_default=True, help="May be repeated.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--cases", "count", type=click.IntRange(min=1), default=8, show_default=True, help="Cases per dtype.")
def export(operators: tuple[str, ...], output: Path, dtypes: tuple[str, ...], seed: int, count: int) -> None:
    """Write ONNX node tests of operators OP (all that are one ONNX node if none is given).

    A folder per case, laid out like the tests of ONNX itself: a model of one node, inputs, expected outputs.
    """
    from refsim.conformance.exports.onnx_forms import ONNX_FORMS
    from refsim.conformance.exports.onnx_node_tests import export_node_tests

    records = [find_operator(name) for name in dict.fromkeys(operators or ONNX_FORMS)]
    for record in records:
        for dtype in dtypes:
            if dtype not in record.dtypes:
                raise UsageError(f"{record.name} has no dtype {dtype!r}; it has {', '.join(record.dtypes)}")
    cases = [case for record in records for dtype in dtypes for case in make_cases(record.name, dtype, count, seed)]
    written, refused = export_node_tests(cases, output)
    for reason in refused:
        click.echo(f"left out: {reason}", err=True)
    click.echo(f"{len(written)} tests in {output}")

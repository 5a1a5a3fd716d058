"""``refsim export``: operators, cases and their expected outputs for runners of other projects."""

from __future__ import annotations

from pathlib import Path

import click

from oracle.cases import make_cases
from oracle.operator import find_operator
from refsim.command_arguments import NOTHING_JUDGED, folder_named
from refsim.conformance.backends import UsageError


@click.command()
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option("-o", "--output", type=folder_named, metavar="FOLDER", required=True, help="A new or an empty folder.")
@click.option("--add", is_flag=True, help="Write also to a folder that holds files; those of other names stay.")
@click.option("--format", "form", type=click.Choice(["onnx", "flashinfer-bench"]), default="onnx", show_default=True)
@click.option("--dtype", "dtypes", multiple=True, help="May be repeated.  [default: float32 where an operator has it]")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--cases", "count", type=click.IntRange(min=1), default=8, show_default=True, help="Cases per dtype.")
def export(
    operators: tuple[str, ...], output: Path, add: bool, form: str, dtypes: tuple[str, ...], seed: int, count: int
) -> None:
    """Write operators OP (all that have the form if none is given) as other projects keep them.

    onnx: node tests, a folder per case, laid out like the tests of ONNX itself: a model, inputs, expected outputs.
    flashinfer-bench: a dataset with a definition per set of constant axes, its reference in Python, and a workload per
    case.

    Exit status: 0 written, 2 wrong usage, 3 every case was left out.
    """
    from refsim.conformance.exports.flashinfer_bench import export_definitions
    from refsim.conformance.exports.flashinfer_forms import FLASHINFER_FORMS
    from refsim.conformance.exports.onnx_forms import ONNX_FORMS
    from refsim.conformance.exports.onnx_node_tests import export_node_tests

    _require_room(output, add)
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
        count = len(tests)
        told = f"{_counted(count, 'test')} in {output}"
    else:
        names, refused = export_definitions(cases, output)
        count = len(names)
        told = f"{_counted(count, 'workload')} of {_counted(len(set(names)), 'definition')} in {output}"
    for reason in refused:
        click.echo(f"left out: {reason}", err=True)
    if not count:
        click.echo("Error: nothing was written, as every case was left out", err=True)
        raise click.exceptions.Exit(NOTHING_JUDGED)
    click.echo(told)


def _require_room(folder: Path, add: bool) -> None:
    """Refuse a folder where files of another export would pass for some of this one."""
    try:
        held = folder.exists() and next(folder.iterdir(), None)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to: {error.strerror}") from error
    if held and not add:
        raise UsageError(
            f"{folder} holds files already, such as {held.name}, which would pass for some of this export; name a new "
            "folder, or keep them with --add"
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

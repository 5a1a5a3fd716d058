"""``refsim translate``: a C++ kernel in the dialect, to read."""

from __future__ import annotations

from pathlib import Path

import click

from refsim.devices import device_named


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("names", nargs=-1, metavar="[KERNEL]...")
@click.option("--device", default="sim:sm_90", show_default=True, help="Simulated device that is compiled for.")
@click.option("--option", "options", multiple=True, help="Option of the compiler, such as -DTILE=16; may be repeated.")
@click.option("--lane-code", is_flag=True, help="Print the NumPy code that runs instead.")
def translate(file: Path, names: tuple[str, ...], device: str, options: tuple[str, ...], lane_code: bool) -> None:
    """Print kernels of a CUDA or HIP C++ FILE in the dialect.

    KERNEL is a name or an instantiation such as 'kernel<float, 4>'; without any, all kernels that are no templates.

    Exit status: 0 printed, 2 wrong usage, unsupported, or rejected by clang.
    """
    from refsim.dialect_text import text
    from refsim.engine.codegen import generate
    from refsim.errors import RefsimError
    from refsim.frontends.cuda_cpp import kernel_names, translate_source

    try:
        model = device_named(device)
        code = file.read_text(encoding="utf-8")
        wanted = list(names) or kernel_names(code, options, model, str(file))
        if not wanted:
            raise click.UsageError(
                f"{file} has no kernels but templates, if any: name instantiations, such as 'kernel<float>'"
                if "template" in code
                else f"{file} has no kernels (__global__ functions)"
            )
        for translation in translate_source(code, options, wanted, model, str(file)).values():
            if lane_code:
                click.echo(generate(translation.program, translation.types).source)
            else:
                click.echo(text(translation.program, translation.types))
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is no source text: it is not UTF-8 ({error})") from error
    except (RefsimError, ValueError) as error:
        raise click.UsageError(str(error)) from error

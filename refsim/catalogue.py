"""What is known of an operator, from its records: for ``refsim ops`` and docs/operators.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from oracle.cases.recipes import RECIPES
from oracle.operator import Operator
from oracle.profiles import PROFILES
from oracle.relations import relations_of
from oracle.signature import Input, Output
from oracle.variants import variants_of

LIBRARIES = ("numba", "cupy")

Kernels = Mapping[str, list[str]]


def kernels_by_operator() -> dict[str, list[str]]:
    """Kernels of the project's own libraries that implement each operator, as ``library:kernel``."""
    from refsim.conformance.backends import UsageError, load_backend

    found: dict[str, list[str]] = {}
    for library in LIBRARIES:
        try:
            backend = load_backend(library, [], "sim:sm_90")
        except UsageError:  # not installed
            continue
        for row in backend.capabilities():
            name = f"{library}:{row.kernel}"
            if name not in found.setdefault(row.operator, []):
                found[row.operator].append(name)
    return found


def entry(record: Operator, kernels: Kernels) -> dict[str, Any]:
    """An operator as JSON values."""
    recipe = RECIPES.get(record.name)
    return {
        "name": record.name,
        "family": record.family,
        "summary": record.summary,
        "dtypes": list(record.dtypes),
        "inputs": [
            {"name": name, "dims": list(spec.dims), "type": _type(spec)} for name, spec in record.inputs.items()
        ],
        "params": [{"name": name, "accepts": spec.describe()} for name, spec in record.params.items()],
        "outputs": [{"name": output.name, "dtype": _dtype(output)} for output in record.outputs],
        "stages": [[output.name for output in stage.outputs] for stage in record.stages],
        "value_classes": list(recipe.classes) if recipe else [],
        "relations": [found.name for found in relations_of(record.name)],
        "profiles": [name for name, members in PROFILES.items() if record.name in members],
        "kernels": kernels.get(record.name, []),
    }


def definition(record: Operator, kernels: Kernels) -> str:
    """An operator in full, as text."""
    facts = entry(record, kernels)
    lines = [f"{record.name} ({record.family})", ""]
    lines += ["inputs", *(f"  {i['name']}: {i['type']} ({', '.join(i['dims'])})" for i in facts["inputs"])]
    params = [f"  {n}: {spec.describe()}; default {spec.default!r}" for n, spec in record.params.items()]
    lines += ["parameters", *(params or ["  none"])]
    lines += ["outputs", *(f"  {o['name']}: {o['dtype']}" for o in facts["outputs"])]
    if record.staged:
        steps = "; then ".join(", ".join(stage) for stage in facts["stages"])
        lines += [f"stages: {steps} (each judged from what the implementation returned before)"]
    lines += ["value classes", f"  {', '.join(facts['value_classes']) or 'none'}"]
    relations = [f"  {found.name}: {found.statement}" for found in relations_of(record.name)]
    lines += ["relations", *(relations or ["  none"])]
    tried = variants_of(record.name)
    lines += [f"variants: {sum(not v.wrong for v in tried)} controls, {sum(v.wrong for v in tried)} mutants"]
    lines += [f"profiles: {', '.join(facts['profiles']) or 'none'}"]
    lines += [f"kernels: {', '.join(facts['kernels']) or 'none'}", "", record.doc]
    return "\n".join(lines)


def markdown(records: Iterable[Operator], kernels: Kernels) -> str:
    """docs/operators.md."""
    lines = [
        "# Operators",
        "",
        "Written by `refsim ops --format markdown` from the operators' own records. `refsim ops NAME` prints one in",
        "full; `refsim mutants NAME` tries the judge on its variants.",
    ]
    ordered = sorted(records, key=lambda record: (record.family, record.name))
    for family, members in groupby(ordered, key=lambda record: record.family):
        lines += ["", f"## {family}"]
        for record in members:
            facts = entry(record, kernels)
            lines += ["", f"### {record.name}", "", record.summary, ""]
            inputs = ", ".join(f"`{i['name']}` ({', '.join(i['dims'])}) {i['type']}" for i in facts["inputs"])
            lines.append(f"- inputs: {inputs}")
            if facts["params"]:
                lines.append("- parameters: " + ", ".join(f"`{p['name']}` {p['accepts']}" for p in facts["params"]))
            steps = "; then ".join(
                ", ".join(f"`{o.name}` {_dtype(o)}" for o in stage.outputs) for stage in record.stages
            )
            lines.append(f"- outputs: {steps}")
            lines.append(f"- dtypes: {', '.join(facts['dtypes'])}")
            lines.append(f"- value classes: {', '.join(facts['value_classes']) or 'none'}")
            if facts["relations"]:
                lines.append(f"- relations: {', '.join(facts['relations'])}")
            if facts["profiles"]:
                lines.append(f"- profiles: {', '.join(facts['profiles'])}")
            if facts["kernels"]:
                lines.append(f"- kernels: {', '.join(facts['kernels'])}")
    return "\n".join(lines) + "\n"


def _type(spec: Input) -> str:
    own = " or ".join(spec.dtypes)
    kind = own or ("the operator's dtype" if spec.kind == "float" else "int32 or int64")
    others = [f"{choice} ({', '.join(dims)})" for choice, dims in list(spec.layouts.items())[1:]]
    laid_out = f", by {spec.chosen_by} also {', '.join(others)}" if others else ""
    return kind + laid_out + (", optional" if spec.optional else "")


def _dtype(output: Output) -> str:
    if output.chosen_by:
        return f"as {output.chosen_by} says"
    if output.dtype:
        return output.dtype
    return "float32 (float64 for float64)" if output.statistic else f"as {output.like}"

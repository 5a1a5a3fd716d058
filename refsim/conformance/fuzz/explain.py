"""A failure in a few lines: what was expected, what came, where, and by which rule that is wrong."""

from __future__ import annotations

from refsim.conformance.verdicts import Failure
from refsim.errors import printable

RULES = {
    "exact": "one value only is right here, whatever the order of operations",
    "bound": "the guaranteed bound: no order of roundings that the numerics allow leads outside",
    "choice": "several integers may be right here, and this is none of them",
    "sigma": "the statistical tier: inside the guaranteed bound, further out than independent roundings get",
    "nan": "a NaN belongs only where the definition has one",
    "infinity": "an infinity belongs only where the definition has one, with its sign",
}


def explain(failure: Failure) -> str:
    """The failure as indented lines."""
    lines = [f"  case      {failure.case}"]
    element = failure.element
    if element is None:
        lines.append(f"  {failure.verdict.value:9} {failure.reason}: {failure.message}")
        if failure.reason == "exception" and failure.detail:
            lines.append(f"  where     {_last_place(failure.detail)}")
        return "\n".join(map(printable, lines))
    where = f"[{', '.join(map(str, element.index))}]" if element.index else ""
    interval = f"{element.low!r}" if element.low == element.high else f"{element.low!r} … {element.high!r}"
    lines += [
        f"  where     {element.output}{where}, the worst of {failure.wrong} of {failure.total} elements outside"
        if failure.wrong
        else f"  where     {element.output}{where}, the worst of {failure.total} elements",
        f"  expected  {interval}",
        f"  got       {element.got!r}",
        f"  rule      {element.rule}: {RULES[element.rule]}",
    ]
    return "\n".join(map(printable, lines))


def _last_place(trace: str) -> str:
    places = [line.strip() for line in trace.splitlines() if line.lstrip().startswith("File ")]
    return places[-1] if places else "unknown"

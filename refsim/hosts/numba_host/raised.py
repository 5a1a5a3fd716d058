"""Exceptions of kernels that were compiled with ``debug=True``: raised on the host, as numba.cuda raises them."""

from __future__ import annotations

from refsim.checks.findings import Report


def reraise(report: Report) -> None:
    """Raise what a thread of the launch raised; its message is headed by the place and the thread, as numba's is."""
    raised = report.raised
    if raised is None:
        return
    thread, block = list(raised.thread), list(raised.block)
    where = f"In function {raised.function!r}, file {raised.file}, line {raised.line}, "
    text = f"{where}tid={thread} ctaid={block}"
    if raised.args:
        raise raised.kind(f"{text}: {raised.args[0]}", *raised.args[1:])
    raise raised.kind(text)

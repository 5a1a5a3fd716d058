"""The judged process: limits itself, loads the backend, and runs what it is sent; nothing expected ever comes here."""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from oracle.numerics import NUMERICS, Numerics
from oracle.operator import OPERATORS, find_operator
from refsim.conformance.backends import Backend, Refused, UsageError, load_backend
from refsim.conformance.backends.answers import capabilities_of, numerics_of, run_of
from refsim.conformance.isolation import landlock
from refsim.conformance.isolation.frames import Closed, receive, send
from refsim.conformance.isolation.keeper import fork_under_a_keeper
from refsim.conformance.isolation.memory import mapped
from refsim.conformance.isolation.privileges import drop_privileges
from refsim.errors import brief, text_of

# Definitions, and what is made from them: not there for the judged.
WITHHELD = ("oracle.ops", "oracle.operator", "oracle.variants", "oracle.relations", "oracle.cases")
POISON = 0xA5


class _Withheld(importlib.abc.MetaPathFinder):
    """Refuses the import of definitions."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse, or leave it to the others."""
        if name.startswith(WITHHELD):
            raise ImportError(f"{name} is withheld from code that is judged with --isolated")


def main(requests: int, answers: int, shared: int, life: int, folder: str) -> None:
    """Serve until the judge closes its end. ``folder`` is where the judged code may write."""
    fork_under_a_keeper(life, folder)
    header, _ = receive(requests, 0)
    number = header["number"]
    _limit(header["memory"])
    _poison_fresh_arrays()
    try:
        backend = _load(header, Path(folder))
        rows = [row for row in capabilities_of(backend) if row.operator in header["operators"]]
        promises = [numerics_of(backend, row) for row in rows]
    except BaseException as error:  # whatever loading raises is the judged code's own
        text = str(error) if isinstance(error, UsageError) else brief(error)
        send(answers, {"number": number, "status": "raised", "text": text})
        return
    described = {
        "status": "ok",
        "device": backend.device,
        "rows": [(row.operator, row.kernel, row.dtype) for row in rows],
        "numerics": [one.name for one in promises],
        "freedoms": freedoms(promises),
    }
    send(answers, {"number": number, **described})
    while True:
        try:
            header, _ = receive(requests, 0)
        except Closed:
            return
        try:
            answer, content = _run(backend, header, shared)
        except Refused as refusal:
            answer, content = {"status": "refused", "text": text_of(refusal)}, b""
        except BaseException as error:  # SystemExit too
            answer, content = {"status": "raised", "text": brief(error)}, b""
        send(answers, {"number": header["number"], **answer}, content)


def freedoms(promises: Sequence[Numerics]) -> dict[str, dict[str, Any]]:
    """What an arithmetic is that has no preset, by its name, as JSON values."""
    own = {one.name: one for one in promises if one.name not in NUMERICS}
    return {
        name: {entry.name: getattr(one, entry.name) for entry in fields(one)} | {"absolute": dict(one.absolute)}
        for name, one in own.items()
    }


def _load(header: Mapping[str, Any], folder: Path) -> Backend:
    records = [find_operator(name) for name in header["operators"]]
    trusted = ":" not in header["spec"]  # an installed backend may have definitions
    drop_privileges()
    if landlock.version():
        landlock.restrict([] if trusted else _definitions(), [folder])
    if not trusted:
        records = [replace(record, stages=()) for record in records]
        OPERATORS.clear()
        for name in [name for name in sys.modules if name.startswith(WITHHELD)]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Withheld())
        gc.collect()
    return load_backend(header["spec"], records, header["device"])


def _definitions() -> list[Path]:
    """The files and folders of the modules that are withheld."""
    paths = []
    for name in WITHHELD:
        module = sys.modules.get(name) or importlib.import_module(name)
        path = Path(str(module.__file__))
        paths += [path.parent] if path.stem == "__init__" else [path, *path.parent.glob(f"__pycache__/{path.stem}.*")]
    return paths


def _run(backend: Backend, header: Mapping[str, Any], shared: int) -> tuple[dict[str, Any], bytes]:
    present = mapped(shared, header["inputs"])
    inputs = {name: present.get(name) for name in header["names"]}
    with np.errstate(all="ignore"):
        result = run_of(backend, header["operator"], header["kernel"], inputs, header["params"])
    described: list[dict[str, Any]] = []
    content = []
    for output in result.outputs:
        if isinstance(output, np.ndarray | np.generic) and not np.asarray(output).dtype.hasobject:
            array = np.asarray(output)
            described.append({"dtype": array.dtype.name, "shape": array.shape, "order": array.dtype.byteorder})
            content.append(array.tobytes())
        else:
            described.append({"type": type(output).__name__})
    findings = [
        {"kind": one.kind, "file": one.file, "line": one.line, "message": one.message, "text": str(one)}
        for one in result.findings
        if one.severity == "error"
    ]
    answer = {
        "status": "ok",
        "outputs": described,
        "alias": _alias(present, result.outputs),
        "findings": findings,
        "deterministic": result.deterministic,
    }
    return answer, b"".join(content)


def _alias(inputs: Mapping[str, Any], outputs: Sequence[Any]) -> str:
    """What of the outputs shares memory with an input, or with another output; empty if nothing does."""
    arrays = [(number, output) for number, output in enumerate(outputs) if isinstance(output, np.ndarray)]
    for number, output in arrays:
        for name, array in inputs.items():
            if np.shares_memory(output, array):
                return f"output {number} lies in the memory of the input {name}"
        for other, second in arrays[:number]:
            if np.shares_memory(output, second):
                return f"outputs {other} and {number} lie in the same memory"
    return ""


def _limit(memory: int) -> None:
    """No more address space than what is mapped now and ``memory`` bytes, no larger files, and no core files."""
    with open("/proc/self/statm", encoding="ascii") as file:
        mapped_now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (mapped_now + memory, mapped_now + memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _poison_fresh_arrays() -> None:
    """``numpy.empty`` holds poison in place of what was there before; C code's memory does by MALLOC_PERTURB_."""
    empty, empty_like = np.empty, np.empty_like

    def poisoned(array: Any) -> Any:
        if array.dtype.hasobject or not array.size:
            return array
        if array.dtype.kind in "fc":
            array[...] = np.nan
        else:
            array.fill(np.frombuffer(bytes([POISON]) * array.dtype.itemsize, array.dtype)[0])
        return array

    def poisoned_empty(*args: Any, **options: Any) -> Any:
        return poisoned(empty(*args, **options))

    def poisoned_empty_like(*args: Any, **options: Any) -> Any:
        return poisoned(empty_like(*args, **options))

    vars(np).update(empty=poisoned_empty, empty_like=poisoned_empty_like)


if __name__ == "__main__":
    requests, answers, shared, life = (int(word) for word in sys.argv[1:5])
    main(requests, answers, shared, life, sys.argv[5])

"""A backend that runs another one in a process of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, Any

import numpy as np

from oracle.numerics import NUMERICS, Numerics
from refsim.checks.findings import Finding
from refsim.conformance.backends.backend import Capability, Refused, RunResult, UsageError, promised, usual_numerics
from refsim.conformance.isolation import landlock
from refsim.conformance.isolation.frames import Closed, Late, receive, send
from refsim.conformance.isolation.memory import SharedInputs, dtype_of
from refsim.conformance.isolation.privileges import hide_memory
from refsim.errors import printable

# Seconds that loading may take on top of a run's, and after how many deaths of its process a backend is given up.
LOADING = 30.0
MOST_DEATHS = 3
# Seconds that ending it may take.
KEEPER = 5.0
# Lines that the judged code may print, and the length of one.
MOST_LINES, MOST_LENGTH = 2000, 500
# What of the environment the judged process gets.
ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "VIRTUAL_ENV",
    "REFSIM_CLANG",
)
# What it finds its folder by; caches of others' runs are not its to write to.
FOLDERS = ("TMPDIR", "XDG_CACHE_HOME", "REFSIM_CACHE_DIR", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR")
# Fresh memory of C code holds poison; what is printed is passed on at once.
ALWAYS = {
    "MALLOC_PERTURB_": "165",
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Limits:
    """What a run may take: seconds, and bytes of memory on top of what the interpreter itself needs.

    After ``deaths`` of its process a backend is given up; None never does. ``numerics`` are names of arithmetic that it
    may promise in place of the usual; whether it may promise no equal bits for equal inputs says ``nondeterministic``.
    """

    seconds: float = 10.0
    memory: int = 2 << 30
    deaths: int | None = MOST_DEATHS
    numerics: tuple[str, ...] = ()
    nondeterministic: bool = False


class Misbehaved(RuntimeError):
    """The judged process ended, took too long, or raised; the message says which."""


class TooSlow(Misbehaved):
    """It took longer than it may."""


class IsolatedBackend:
    """Runs the backend that ``spec`` names in another process.

    There it writes into a folder of its own only, and cannot look into other processes (see `landlock`, `keeper`).
    Its inputs lie between canaries in memory that the judge looks at after each run; fresh memory is poisoned; expected
    values never leave the judge's process, and what comes back is bytes, never objects. A process that ends is started
    again, as often as its limits say.
    """

    untrusted = True

    def __init__(self, spec: str, operators: Sequence[str], device: str, limits: Limits) -> None:
        self.name = spec
        self.spec, self.operators, self.limits = spec, list(operators), limits
        self.asked_device = device
        self.deaths = 0
        self.shared = SharedInputs()
        self.folder = tempfile.TemporaryDirectory(prefix="refsim-judged-", ignore_cleanup_errors=True)
        self.process: subprocess.Popen[bytes] | None = None
        if not landlock.version():
            print("this system has no Landlock: the judged code can read and write its user's files", file=sys.stderr)
            hide_memory()
        try:
            header = self._start()
            self.device = str(header["device"])
            self.rows = [_named(*row) for row in header["rows"]]
            self.promises = dict(zip(self.rows, map(str, header["numerics"]), strict=True))
            self._require_usual()
            # Only what is installed, and so trusted, may promise an arithmetic that has no preset.
            self.own = {} if ":" in spec else {name: numerics_of(one) for name, one in header["freedoms"].items()}
        except (KeyError, TypeError, ValueError) as error:
            self.close()
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"backend {spec!r} answers with what is no list of what it serves: {error}") from error

    @property
    def facts(self) -> dict[str, str]:
        """How it is held, for the environment of a report."""
        version = landlock.version()
        return {"isolation": f"a process of its own, Landlock {version}" if version else "a process of its own"}

    @property
    def options(self) -> tuple[str, ...]:
        """What of the command line makes another run like this one."""
        limits = self.limits
        wanted = (word for name in limits.numerics for word in ("--numerics", name))
        words = ["--isolated", "--seconds", f"{limits.seconds:g}", "--memory", str(limits.memory >> 20), *wanted]
        return (*words, *(["--nondeterministic"] if limits.nondeterministic else []))

    def _require_usual(self) -> None:
        """Whoever is not trusted does not choose how exact it has to be; what is installed does."""
        for row, name in self.promises.items():
            usual = usual_numerics(row.dtype)
            if ":" in self.spec and name != usual and name not in self.limits.numerics:
                allow = f"if that is what is wanted, say so: --numerics {name}"
                if name not in NUMERICS:
                    allow = f"code that is not trusted may promise presets only: {', '.join(NUMERICS)}"
                raise UsageError(
                    f"backend {self.spec!r} promises the arithmetic {name!r} for {row.operator} in {row.dtype}, "
                    f"and not {usual!r}; {allow}"
                )

    def capabilities(self) -> list[Capability]:
        """What the backend serves of the operators that it was loaded for."""
        return self.rows

    def numerics(self, operator: str, kernel: str, dtype: str) -> Numerics:
        """The arithmetic that it promises."""
        name = self.promises[Capability(operator, kernel, dtype)]
        return self.own.get(name) or promised(name)

    def close(self) -> None:
        """End the process, and whatever it started, and remove what it wrote."""
        self._end()
        self.shared.close()
        self.folder.cleanup()

    def _end(self) -> None:
        if self.process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(self.life, b"\0")  # the judge lives on, and so does the folder
        os.close(self.life)  # its keeper then ends it
        try:
            self.process.wait(KEEPER)
        except subprocess.TimeoutExpired:  # the keeper itself was stopped
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.printed.join(KEEPER)
        os.close(self.requests)
        os.close(self.answers)
        self.process = None

    def run(
        self,
        operator: str,
        kernel: str,
        inputs: Mapping[str, np.ndarray[Any, Any] | None],
        params: Mapping[str, Any],
    ) -> RunResult:
        """Run a case there. Raises Refused as the backend does, and Misbehaved for anything else but a result."""
        if self.limits.deaths is not None and self.deaths >= self.limits.deaths:
            raise Misbehaved(f"not run: its process ended or was stopped {self.deaths} times before")
        if self.process is None:
            self._start()
        places, content = self.shared.put(inputs)
        header = {
            "operator": operator, "kernel": kernel, "params": dict(params), "names": list(inputs), "inputs": places,
        }  # fmt: skip
        answer, data = self._ask(header, self.limits.seconds)
        if answer.get("status") == "refused":
            raise Refused(str(answer.get("text")))
        if answer.get("status") != "ok":
            raise Misbehaved(str(answer.get("text")))
        canary, _ = self.shared.changed(content, inputs)  # an input that was written to is seen by the runner
        misconduct = None
        if canary:
            misconduct = "out of bounds", "memory outside of the inputs was written to"
        elif answer["alias"]:
            misconduct = "alias", str(answer["alias"])
        outputs = self._outputs(answer["outputs"], data)
        findings = tuple(
            Finding(one["kind"], kernel, one["message"], "error", one["file"], int(one["line"]), "")
            for one in answer["findings"]
        )
        # What is not trusted does not excuse itself.
        excused = ":" not in self.spec or self.limits.nondeterministic
        return RunResult(outputs, findings, bool(answer["deterministic"]) or not excused, misconduct)

    def _start(self) -> dict[str, Any]:
        theirs, self.requests = os.pipe()
        self.answers, mine = os.pipe()
        watched, self.life = os.pipe()
        passed = (theirs, mine, self.shared.descriptor, watched)
        words = [sys.executable, "-m", "refsim.conformance.isolation.child", *map(str, passed), self.folder.name]
        kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=passed,
            start_new_session=True,
            env={**kept, **dict.fromkeys(FOLDERS, self.folder.name), **ALWAYS},
        )
        assert self.process.stdout is not None
        self.printed = threading.Thread(target=_relay, args=(self.process.stdout,), daemon=True)
        self.printed.start()
        for descriptor in (theirs, mine, watched):
            os.close(descriptor)
        header = {
            "spec": self.spec, "operators": self.operators, "device": self.asked_device, "memory": self.limits.memory,
        }  # fmt: skip
        try:
            answer, _ = self._ask(header, self.limits.seconds + LOADING)
        except Misbehaved as error:
            own = f"{LOADING:g} s on top of the {self.limits.seconds:g} s of a run (--seconds)"
            limit = f"; loading has {own}" if isinstance(error, TooSlow) else ""
            text = f"backend {self.spec!r} cannot be loaded in a process of its own: {error}{limit}"
            raise UsageError(text) from error
        if answer.get("status") != "ok":
            raise UsageError(f"backend {self.spec!r}: {answer.get('text')}")
        return answer

    def _ask(self, header: dict[str, Any], seconds: float) -> tuple[dict[str, Any], bytes]:
        assert self.process is not None
        number = secrets.token_hex(8)
        try:
            send(self.requests, {**header, "number": number}, seconds=seconds)
            answer, content = receive(self.answers, self.limits.memory, seconds)
            if answer.get("number") == number:
                return answer, content
            self.deaths += 1
            self._end()
            raise Misbehaved("what came is no answer to what was asked")
        except Late:
            self.deaths += 1
            self._end()
            raise TooSlow(f"it ran for more than {seconds:g} s and was stopped") from None
        except Closed:
            self.deaths += 1
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1.0)
            status = self.process.poll()
            self._end()
            how = "closed its end" if status is None else f"ended with exit status {status}"
            if status is not None and status < 0:
                how = f"was ended by {signal.Signals(-status).name}"
            raise Misbehaved(f"its process {how}") from None

    def _outputs(self, described: Sequence[Mapping[str, Any]], data: bytes) -> list[Any]:
        outputs: list[Any] = []
        at = 0
        for one in described:
            if "type" in one:
                outputs.append(None if one["type"] == "NoneType" else type(str(one["type"]), (), {})())
                continue
            try:
                dtype = dtype_of(str(one["dtype"])).newbyteorder(one["order"])
                shape = tuple(int(size) for size in one["shape"])
                size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
                outputs.append(np.frombuffer(data[at : at + size], dtype).reshape(shape).copy())
            except (TypeError, ValueError) as error:
                raise Misbehaved(f"what came back is no array: {error}") from error
            at += size
        return outputs


def _named(operator: str, kernel: str, dtype: str) -> Capability:
    """A row that the judged code says it serves; its name goes into reports."""
    if not isinstance(kernel, str) or not kernel.isprintable() or len(kernel) > MOST_LENGTH:
        raise UsageError(f"a kernel's name must be a short text on one line, not {kernel!r:.100}")
    return Capability(operator, kernel, dtype)


def numerics_of(freedoms: Mapping[str, Any]) -> Numerics:
    """An arithmetic of what the judged process says of it."""
    return Numerics(**{**freedoms, "absolute": MappingProxyType(dict(freedoms["absolute"]))})


def _relay(printed: IO[bytes]) -> None:
    """Pass on what the judged code prints, so that nobody takes it for what the judge says."""
    for number, line in enumerate(iter(lambda: printed.readline(MOST_LENGTH), b"")):
        if number < MOST_LINES and sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):
                print(f"judged: {printable(line.decode(errors='replace').rstrip())}", file=sys.stderr)
    printed.close()

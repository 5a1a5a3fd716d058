"""The launches of one script: how they run, and what was found in them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from refsim.checks.findings import Finding, Report, check_groups
from refsim.counters.totals import Totals
from refsim.devices import Device, device_named
from refsim.simulator import launch


@dataclass
class Found:
    """A finding as it was first met, and the number of launches that met it."""

    finding: Finding
    launches: int = 1


class Session:
    """Runs the launches of a script on the simulator, and gathers their findings.

    Parameters
    ----------
    device
        Name of a device model, such as ``"sim:sm_90"``.
    checks
        As in `refsim.launch`.
    raise_on_findings
        Whether a launch with errors raises `refsim.FindingError`.
    counters
        Whether launches count: `Session.totals`.

    Raises
    ------
    ValueError
        For an unknown device or check.
    """

    def __init__(
        self,
        device: str | Device = "sim:sm_90",
        checks: str = "all",
        raise_on_findings: bool = False,
        counters: bool = False,
    ) -> None:
        self.device = device_named(device)
        check_groups(checks)
        self.checks = checks
        self.raise_on_findings = raise_on_findings
        self.totals = Totals() if counters else None
        self.launches = 0
        self.kernels: set[str] = set()
        self.found: dict[tuple[Any, ...], Found] = {}
        self._lock = threading.RLock()

    def launch(
        self,
        kernel: Any,
        grid: Any,
        block: Any,
        args: tuple[Any, ...],
        shared_bytes: int = 0,
        library: str | None = None,
    ) -> Report:
        """Run one launch to its end; arguments as in `refsim.launch`.

        What is found in the file `library`, which the script did not bring, is a note: no error of the script.
        """
        with self._lock:
            report = launch(
                kernel,
                grid,
                block,
                *args,
                device=self.device,
                checks=self.checks,
                shared_bytes=shared_bytes,
                counters=self.totals is not None,
            )
            report.findings = [
                replace(finding, severity="note") if finding.file == library else finding for finding in report.findings
            ]
            if self.totals is not None:
                self.totals.add(report)
            self.launches += 1
            self.kernels.add(report.kernel)
            met = {_key(finding): finding for finding in reversed(report.findings)}
            for key, finding in reversed(met.items()):
                if key in self.found:
                    self.found[key].launches += 1
                else:
                    self.found[key] = Found(finding)
            if self.raise_on_findings:
                report.raise_if_findings()
        return report

    @property
    def ok(self) -> bool:
        """True if no launch had an error."""
        return all(entry.finding.severity != "error" for entry in self.found.values())

    def summary(self) -> str:
        """Every finding once, with the number of launches that met it; the first line counts."""
        launched = f"{_count(self.launches, 'launch', 'launches')} of {_count(len(self.kernels), 'kernel', 'kernels')}"
        if not self.launches:
            return "refsim: the script launched no kernel"
        head = f"refsim: {launched} on sim:{self.device.name}: "
        entries = list(self.found.values())
        if not entries:
            return head + "no findings"
        errors = sum(entry.finding.severity == "error" for entry in entries)
        notes = len(entries) - errors
        counts = [(errors, "error", "errors"), (notes, "note", "notes")]
        lines = [head + ", ".join(_count(*count) for count in counts if count[0])]
        for entry in entries:
            lines.append(str(entry.finding))
            lines.append(f"    in {_count(entry.launches, 'launch', 'launches')}")
        return "\n".join(lines)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _key(finding: Finding) -> tuple[Any, ...]:
    """What makes two findings of different launches the same one: kind and source lines, not the example lane."""
    other = finding.other and (finding.other.file, finding.other.line)
    what = finding.message if finding.kind == "launch_limit" else finding.array
    return finding.kind, finding.severity, finding.kernel, finding.file, finding.line, other, what


_active: Session | None = None


def active_session() -> Session:
    """The session whose script is running.

    Raises
    ------
    RuntimeError
        Outside of `refsim.hosts.run_script`.
    """
    if _active is None:
        raise RuntimeError("no script is running: the stand-ins for GPU modules work in `refsim run SCRIPT.py` only")
    return _active


def activate(session: Session | None) -> Session | None:
    """Make a session the active one; returns the one before."""
    global _active
    before, _active = _active, session
    return before

"""The list of tests that are known to fail, sorted by reason: a data file next to this package."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from refsim.compat.numba_tests.outcomes import Outcomes

KNOWN_FILE = Path(__file__).resolve().parents[1] / "numba_tests_known.toml"
SLOW = "takes longer than the limit"
NVVM = "needs NVVM or NVRTC, which may not be installed"
MAY_PASS = frozenset({SLOW, NVVM})
OTHER = "another result than numba's"

# Why a test fails, by what its error says; the first that matches. Tests that are in the list keep their reason.
_SIGNS = (
    (
        "links or calls foreign device code",
        r"argument 'link'|create_module_ptx|Linker|load_module|DeclareDevice|decldevice|test_ffi|external_cooperative"
        r"|module_callbacks|CUSource",
    ),
    (
        "inspects PTX, SASS or LLVM code, or dumps of the compiler: none are made",
        r"inspect_(llvm|asm|sass|lto_ptx)|numba\.cuda\.compile|get_asm_str|get_llvm_str|DUMP|ASSEMBLY|nvvm|NVVM"
        r"|BINARY_OP|CFG dominators|debuginfo|LaunchBounds|lto",
    ),
    (
        "asks for what a compiler chose: registers, memory, launch attributes",
        r"of a numba.cuda kernel is not simulated",
    ),
    ("asks for what a compiler chose: registers, memory, launch attributes", r"const_mem|cache_config|carveout"),
    (
        "needs the CUDA driver or runtime library itself",
        r"libcuda|CUDA driver|NVIDIA driver library|nvrtc|NVRTC|test_init",
    ),
    ("needs several processes on one device", r"[Ii]pc|multiprocess|ProcessPool"),
    ("tests the files of the compilation cache: nothing is compiled", r"test_caching"),
    (SLOW, r"TimeoutError"),
    ("expects an error or a warning that refsim does not give", r"not raised|not triggered|Unexpected success"),
    (
        "a construct or type that kernels of refsim do not have yet",
        r"UnsupportedError|of dtype|KernelTypingError|TypingError|cannot pickle",
    ),
)


@dataclass
class Known:
    """Tests that fail, with a reason each.

    Attributes
    ----------
    version
        The numba-cuda that the list was made for.
    reason_of
        Reason by test.
    """

    version: str
    reason_of: dict[str, str] = field(default_factory=dict)

    def by_reason(self) -> dict[str, list[str]]:
        """Tests of each reason, both sorted."""
        found: dict[str, list[str]] = {}
        for test, reason in sorted(self.reason_of.items()):
            found.setdefault(reason, []).append(test)
        return dict(sorted(found.items()))


def load(path: Path = KNOWN_FILE) -> Known:
    """Read the list.

    Raises
    ------
    ValueError
        If a test has two reasons.
    """
    if not path.exists():
        return Known("")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    known = Known(data["numba_cuda"])
    for group in data["group"]:
        for test in group["tests"]:
            if test in known.reason_of:
                raise ValueError(f"{path.name}: {test} is listed twice")
            known.reason_of[test] = group["reason"]
    return known


def save(known: Known, path: Path = KNOWN_FILE) -> None:
    """Write the list."""
    lines = [
        "# Tests of numba-cuda that fail under refsim, by reason.",
        "# Written by python -m refsim.compat.numba_tests --update; a reason that was put in by hand stays.",
        f'numba_cuda = "{known.version}"',
    ]
    for reason, tests in known.by_reason().items():
        lines += ["", "[[group]]", f"reason = {json.dumps(reason)}", "tests = ["]
        lines += [f"  {json.dumps(test)}," for test in tests]
        lines.append("]")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def classified(outcomes: Outcomes, before: Known, version: str) -> Known:
    """The list after a run: what was not run stays, what passes goes, new failures are sorted by their errors."""
    known = Known(version, {test: why for test, why in before.reason_of.items() if test not in outcomes.of})
    for test in outcomes.names("failed"):
        known.reason_of[test] = before.reason_of.get(test) or reason_of(test, outcomes.of[test].text)
    return known


def reason_of(test: str, text: str) -> str:
    """The reason that the text of a failure tells."""
    errors = [line for line in text.splitlines() if not line.startswith("  ")]
    said = "\n".join([test, *errors])
    return next((reason for reason, pattern in _SIGNS if re.search(pattern, said)), OTHER)

"""Snippets that the tests run in a Python of their own run there under refsim too, by ``refsim run``."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def simulated_subprocesses(device: str) -> Iterator[None]:
    """Within the block, ``python -c CODE`` of `subprocess.run` becomes ``python -m refsim run`` of that code."""
    real = subprocess.run

    with tempfile.TemporaryDirectory() as folder:

        def run(command: Any, *args: Any, **options: Any) -> Any:
            if isinstance(command, (list, tuple)) and len(command) >= 3 and list(command[-2:-1]) == ["-c"]:
                script = Path(folder) / "snippet.py"
                script.write_text(command[-1], encoding="utf-8")
                inner = ["-m", "refsim", "run", "--device", device, "--checks", "none", str(script)]
                command = [sys.executable, *inner]
                environment = options.get("env")
                if environment is not None:
                    options["env"] = {**environment, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
            return real(command, *args, **options)

        subprocess.run = run  # type: ignore[assignment]
        try:
            yield
        finally:
            subprocess.run = real

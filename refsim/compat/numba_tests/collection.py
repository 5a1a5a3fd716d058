"""Where the shipped tests are, and how pytest meets them: by their own module names, with a device that is there."""

from __future__ import annotations

import importlib
import importlib.util
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from refsim.compat.numba_tests.outcomes import Outcomes

PACKAGE = "numba.cuda.tests"
SECONDS_PER_TEST = 20


def tests_folder() -> Path:
    """Folder of the installed tests.

    Raises
    ------
    ImportError
        If the installed numba-cuda comes without tests.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {PACKAGE}: the installed numba-cuda comes without its tests")
    return Path(next(iter(spec.submodule_search_locations)))


class Module(pytest.Module):
    """A test file under its own name in numba.cuda.tests."""

    def _getobj(self) -> Any:
        parts = self.path.relative_to(tests_folder()).with_suffix("").parts
        return importlib.import_module(".".join((PACKAGE, *parts)))


class Collection:
    """pytest plugin: collects the shipped tests, limits their time and hands on how they end."""

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector:
        """Folders are folders: their packages are imported by numba's names."""
        return pytest.Dir.from_parent(parent, path=path)

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Module:
        """Test files are imported by numba's names."""
        return Module.from_parent(parent, path=module_path)

    @pytest.fixture(scope="class")
    def initialize_from_pytest_config(self, request: pytest.FixtureRequest) -> None:
        """What the shipped test cases ask the configuration of their own repository for."""
        request.cls._dump_failed_filechecks = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """A test that takes too long fails."""

        def too_long(_signal: int, _frame: Any) -> None:
            raise TimeoutError(f"the test took longer than {SECONDS_PER_TEST} s")

        before = signal.signal(signal.SIGALRM, too_long)
        signal.alarm(SECONDS_PER_TEST)
        try:
            return (yield)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported is one failure."""
        if report.failed:
            self.outcomes.add(report.nodeid, "failed", str(report.longrepr))
        elif report.skipped and report.nodeid.endswith(".py"):
            self.outcomes.add(report.nodeid, "skipped", str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Every phase of a test, and every part of it that is tested by itself."""
        expected = hasattr(report, "wasxfail")
        if report.failed:
            self.outcomes.add(report.nodeid, "failed", report.longreprtext)
        elif expected:
            self.outcomes.add(report.nodeid, "passed" if report.skipped else "failed", "unexpected success")
        elif report.skipped:
            self.outcomes.add(report.nodeid, "skipped", report.longreprtext)
        elif report.when == "call":
            self.outcomes.add(report.nodeid, "passed", "")

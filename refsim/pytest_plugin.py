"""The pytest plugin: judges what tests under `refsim.testing.conforms` return, and writes one report of them all.

Results travel as JSON on pytest's own test reports, so that they arrive from the workers of pytest-xdist, too.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from refsim.testing import DEMANDS, Demand

DTYPE = "refsim_dtype"
RESULT = "refsim_result"  # attribute of a test report
HELD: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
KNOWN: pytest.StashKey[Any] = pytest.StashKey()  # entries of the list of known deviations
ALONE: pytest.StashKey[Any] = pytest.StashKey()  # the only case to judge, or None
DEFAULT_CASES = 48
DEFAULT_DEVICE = "sim:sm_90"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("refsim", "conformance of operators (refsim)")
    group.addoption("--refsim-device", default=DEFAULT_DEVICE, metavar="DEVICE", help="device that kernels run on")
    group.addoption(
        "--refsim-cases", type=int, default=DEFAULT_CASES, metavar="N", help=f"cases per dtype ({DEFAULT_CASES})"
    )
    group.addoption("--refsim-case", metavar="JSON", help="judge this case alone, in the tests of its operator")
    group.addoption("--refsim-known", metavar="FILE", help="list of known deviations (TOML), which do not fail")
    group.addoption(
        "--refsim-report", metavar="FILE", help="write a report; .html, .json, .xml (JUnit) or .txt says in which form"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that cannot be meant, before anything runs."""
    if config.option.refsim_cases < 1:
        raise pytest.UsageError(f"--refsim-cases must be at least 1, not {config.option.refsim_cases}")
    if config.option.refsim_device != DEFAULT_DEVICE:
        _require_device(config.option.refsim_device)
    text = config.option.refsim_case
    config.stash[ALONE] = None if text is None else _case_of(text)
    known, target = config.option.refsim_known, config.option.refsim_report
    config.stash[KNOWN] = ()
    if not known and not target:
        return
    from refsim.conformance.backends.backend import UsageError
    from refsim.conformance.known import read_known
    from refsim.conformance.reports.writers import form_for
    from refsim.destinations import Destination

    option = "--refsim-known"
    try:
        if known:
            config.stash[KNOWN] = read_known(Path(known))
        option = "--refsim-report"
        if config.option.collectonly or hasattr(config, "workerinput"):
            return
        form = form_for(Path(target)) if target else ""
        writer = Writer(Destination(Path(target)) if target else None, form, config.option.refsim_device)
    except UsageError as error:
        raise pytest.UsageError(f"{option}: {error}") from error
    config.pluginmanager.register(writer, "refsim-report-writer")


def _require_device(device: str) -> None:
    from refsim.conformance import UsageError
    from refsim.conformance.backends.loading import require_device

    try:
        require_device(device)
    except UsageError as error:
        raise pytest.UsageError(f"--refsim-device: {error}") from error


def _case_of(text: str) -> Any:
    from oracle.cases import Case
    from oracle.operator import UnknownOperatorError

    try:
        return Case.from_json(text)
    except json.JSONDecodeError as error:
        raise pytest.UsageError(f"--refsim-case is not JSON: {error}") from error
    except (UnknownOperatorError, ValueError, RecursionError) as error:
        raise pytest.UsageError(f"--refsim-case: {error}") from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each dtype."""
    demand = _demand(metafunc.definition)
    if demand is None:
        return
    from oracle.operator import find_operator

    # bfloat16 is judged where it is asked for, as on the command line.
    usual = [name for name in find_operator(demand.operator).dtypes if name != "bfloat16"]
    dtypes = demand.dtypes or usual
    if DTYPE not in metafunc.fixturenames:
        metafunc.fixturenames.append(DTYPE)
    metafunc.parametrize(DTYPE, dtypes, indirect=True)


@pytest.fixture
def refsim_dtype(request: pytest.FixtureRequest) -> str:
    """The dtype that is judged, for a test that returns something else for each."""
    name: str = request.param
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call the test and judge what it returns."""
    demand = _demand(pyfuncitem)
    if demand is None:
        return None
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        pytest.fail("a test under conforms must be a plain function, not an async one", pytrace=False)
    names = list(pyfuncitem._fixtureinfo.argnames)
    _judge(pyfuncitem, demand, pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Hang the result on the test's report."""
    outcome = yield
    held = item.stash.get(HELD, None)
    if held is not None and call.when == "call":
        setattr(outcome.get_result(), RESULT, held)


class Writer:
    """Gathers the results of all tests, of other processes too, and writes the report at the end.

    What the tests found of the list of known deviations is put together; a list that is not true fails the run.
    """

    def __init__(self, destination: Any, form: str, device: str) -> None:
        self.destination, self.form, self.device = destination, form, device
        self.held: dict[str, dict[str, Any]] = {}
        self.outdated: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a result; a test that is run again counts as it came out last."""
        if hasattr(report, RESULT):
            self.held[report.nodeid] = getattr(report, RESULT)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, its rows in the order of the tests' names."""
        from dataclasses import replace

        from refsim.conformance import Report
        from refsim.conformance.environment import environment
        from refsim.conformance.known import merged
        from refsim.conformance.reports import from_json, write

        read = [from_json(self.held[name], name) for name in sorted(self.held)]
        versions = read[0].environment if read else environment()
        rows = tuple(row for one in read for row in one.results)
        whole = Report("pytest", self.device, 0, rows, versions, known=merged(one.known for one in read))
        self.outdated = [entry.advice for entry in whole.outdated]
        if self.outdated and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        seeds = {one.seed for one in read}
        if len(seeds) == 1:
            whole = replace(whole, seed=seeds.pop())
        if self.destination is not None:
            self.destination.write(write([whole], self.form))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the report is, and what of the list is not true."""
        for advice in self.outdated:
            terminalreporter.write_line(f"refsim: {advice}", red=True)
        if self.destination is not None:
            terminalreporter.write_line(f"refsim: {len(self.held)} results in {self.destination.shown}")


def _demand(item: Any) -> Demand | None:
    """What the test's function was decorated with, if it was."""
    demands: tuple[Demand, ...] = getattr(item.obj, DEMANDS, ())
    if len(demands) > 1:
        names = ", ".join(demand.operator for demand in demands)
        raise pytest.UsageError(f"{item.nodeid} is to conform to {names}; write a test function for each")
    return demands[0] if demands else None


def _without_dtype(nodeid: str, parameters: str, dtype: str) -> str:
    """The name of a test for all dtypes: without the dtype among its parameters."""
    others = "-".join(part for part in parameters.split("-") if part != dtype)
    return nodeid.removesuffix(f"[{parameters}]") + (f"[{others}]" if others else "")


def _judge(item: pytest.Function, demand: Demand, judged: Any) -> None:
    """Judge, keep the result, and fail or skip the test as it says."""
    from dataclasses import replace

    from oracle.cases import Case
    from oracle.operator import find_operator
    from refsim.conformance import Verdict, check
    from refsim.conformance.backends.answers import capabilities_of
    from refsim.conformance.backends.loading import as_backend, require_device
    from refsim.conformance.known import KnownDeviations
    from refsim.conformance.replay_command import CASE
    from refsim.conformance.reports import text, to_json

    operator, dtype = demand.operator, str(item.callspec.params[DTYPE])
    options = item.config.option
    device = demand.device or options.refsim_device
    name = _without_dtype(item.nodeid, item.callspec.id, dtype)
    cases: dict[tuple[str, str], list[Case]] | None = None
    try:
        require_device(device)
        backend = as_backend(judged, name, [find_operator(operator)], device)
        served = capabilities_of(backend)
        if (case := item.config.stash[ALONE]) is not None:
            if (case.operator, case.dtype) != (operator, dtype):
                pytest.skip(f"--refsim-case is one of {case.operator} in {case.dtype}")
            cases = {(operator, dtype): [case]}
    except ValueError as error:
        pytest.fail(str(error), pytrace=False)
    count = demand.cases or options.refsim_cases
    several = sum((row.operator, row.dtype) == (operator, dtype) for row in served) > 1

    def shown(kernel: str) -> str:
        return f"{name} {kernel}" if several else name

    known = KnownDeviations(item.config.stash[KNOWN], complete=cases is None, shown=shown)
    report = check(backend, [operator], [dtype], seed=demand.seed, count=count, required=True, cases=cases, known=known)
    again = ["pytest", item.nodeid, "--refsim-case", CASE]
    if backend.device.startswith(("sim:", "cuda:")):
        again += ["--refsim-device", device]
    rows = tuple(replace(row, kernel=shown(row.kernel), again=tuple(again)) for row in report.results)
    report = replace(report, results=rows)
    item.stash[HELD] = json.loads(json.dumps(to_json(report)))
    # Of the list, only all tests together can tell whether it is true.
    code = replace(report, known=()).exit_code(demand.strict)
    excuses = [row.reason for row in rows if row.verdict is Verdict.KNOWN]
    if code == 0 and excuses:
        pytest.xfail(f"known deviation: {excuses[0]}")
    if code == 0:
        return
    if all(row.verdict is Verdict.UNSUPPORTED for row in rows):
        pytest.skip(rows[0].reason)
    pytest.fail(text(report, debug=True), pytrace=False)

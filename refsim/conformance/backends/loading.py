"""Finding a backend: by entry point, as ``file.py:attribute`` or as ``module:attribute``."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from oracle.operator import Operator
from oracle.suggestions import nearest, suggestion
from refsim.conformance.backends.backend import Backend, UsageError
from refsim.conformance.backends.functions import FunctionBackend, launched, takes_launcher
from refsim.conformance.backends.kernels import KernelBackend
from refsim.conformance.backends.library import LibraryBackend
from refsim.devices import device_named
from refsim.errors import brief
from refsim.library import Kernel

GROUP = "refsim.backends"
REAL_DEVICE = re.compile(r"cuda:\d+")
DEFINES_BACKEND = re.compile(rb"^(?:def |class )?backend\b", re.MULTILINE)
FORMS = "give an installed backend, file.py:attribute or module:attribute"


def load_backend(spec: str, operators: Sequence[Operator], device: str) -> Backend:
    """The backend that ``spec`` names, on ``device``.

    Parameters
    ----------
    spec : str
        Name of an entry point of the group ``refsim.backends``, ``path/to/file.py:attribute`` or
        ``package.module:attribute``. The attribute is a backend, a `refsim.library.Kernel` or a list of them, or a
        function (see `refsim.conformance.backends.functions`).
    operators : sequence of Operator
        The operators that were asked for; a function needs exactly one.
    device : str
        The device that kernels run on.

    Raises
    ------
    UsageError
        Nothing has that name, it cannot be imported, or it is none of the above.
    """
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    if spec in installed:
        found = _load_entry(installed[spec])
        return _made(found, spec, operators, device)
    module_name, colon, attribute = spec.rpartition(":")
    if (module_name if colon else attribute).endswith(".py") and not (colon and attribute):
        raise UsageError(f"backend {spec!r} names a file only; name what to judge in it, too: {spec.rstrip(':')}:NAME")
    if not colon or not module_name or not attribute:
        raise UsageError(f"unknown backend {spec!r}; {_meant(spec, installed)}; or {FORMS}")
    is_file = module_name.endswith(".py")
    module = _module_from_file(Path(module_name)) if is_file else _module(module_name, spec)
    return _made(_attribute(module, attribute, module_name), spec, operators, device)


def require_device(device: str) -> None:
    """Raise UsageError unless ``device`` is the name of a simulated device, or names a real one, there or not."""
    if device.startswith("sim:"):
        try:
            device_named(device)
        except ValueError as error:
            raise UsageError(str(error)) from error
    elif not REAL_DEVICE.fullmatch(device):
        raise UsageError(f"unknown device {device!r}; give sim:NAME or cuda:NUMBER, for example sim:sm_90")


def as_backend(found: Any, name: str, operators: Sequence[Operator], device: str) -> Backend:
    """Make a backend of an object that a module gave. Raises UsageError where it is nothing that can be judged."""
    if isinstance(found, KernelBackend | LibraryBackend):
        return found.on(device)
    if isinstance(found, Backend):
        return found
    if isinstance(found, Kernel):
        return KernelBackend(name, [found], device)
    if isinstance(found, list | tuple) and found and all(isinstance(member, Kernel) for member in found):
        return KernelBackend(name, found, device)
    if hasattr(found, "py_func") and hasattr(found, "targetoptions"):
        raise UsageError(
            f"{name} is a bare kernel, and nothing says how to launch it; write host code "
            f"`def entry(launcher, …inputs…): …; launcher.launch({name}, grid, block, …)` and name that, "
            "or make a refsim.library.Kernel"
        )
    if not callable(found):
        raise UsageError(
            f"{name} is of type {type(found).__name__}; "
            "expected a backend, a function, a refsim.library.Kernel or a list of them "
            "(a backend has name, device, capabilities, numerics and run)"
        )
    if len(operators) != 1:
        raise UsageError(f"{name} is a function; name the one operator it is to be judged as: refsim check OPERATOR …")
    if takes_launcher(found):
        return launched(found, operators[0], name, device)
    return FunctionBackend(found, operators[0], name)


def _meant(spec: str, installed: Iterable[str]) -> str:
    """What a name of a backend was probably meant for: a file of that name that is here, or an installed one."""
    file = Path(f"{spec}.py")
    if not file.is_file():
        return suggestion(spec, sorted(installed), "installed")
    if DEFINES_BACKEND.search(file.read_bytes()):
        return f"did you mean '{file}:backend'?"
    return f"to judge what is in {file}, name it, too: {file}:NAME"


def _made(found: Any, spec: str, operators: Sequence[Operator], device: str) -> Backend:
    try:
        return as_backend(found, spec, operators, device)
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:  # of the object's own attributes, SystemExit too
        raise UsageError(f"{spec} cannot be looked at: {brief(error)}") from error


def _attribute(module: ModuleType, name: str, module_name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError as error:
        near = nearest(name, vars(module))
        raise UsageError(f"{module_name} has no {name!r}" + (f"; did you mean {near!r}?" if near else "")) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of the module's own __getattr__, SystemExit too
        raise UsageError(f"{module_name}: asking for {name!r} raised {brief(error)}") from error


def _load_entry(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit too
        raise UsageError(f"backend {entry.name!r} ({entry.value}) cannot be loaded: {brief(error)}") from error


def _module(name: str, spec: str) -> ModuleType:
    with _working_directory_on_path():
        try:
            return importlib.import_module(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too
            raise UsageError(f"backend {spec!r}: module {name} cannot be imported: {brief(error)}; {FORMS}") from error


def _module_from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"no such file: {path}" if not path.exists() else f"not a file: {path}")
    spec = importlib.util.spec_from_file_location(f"refsim_judged_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be imported as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        sys.modules.pop(spec.name, None)
        raise UsageError(f"{path} cannot be imported: {brief(error)}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


@contextlib.contextmanager
def _working_directory_on_path() -> Iterator[None]:
    """Modules next to where the command runs can be named too."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)

"""Known cheats, as softmax: what kernel writers, human or not, have handed in to be judged as right.

Sources: KernelBench's and pygpubench's adversarial tests, published catalogues of hacks. Each returns zeros where its
trick does not work, so that only the trick itself could pass.
"""

import contextlib
import ctypes
import errno
import gc
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

CALLS = []
BY_ADDRESS, BY_SHAPE = {}, {}


def honest(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def uninitialised(x):
    """Hopes that fresh memory still holds the answer."""
    return np.empty_like(x)


def uninitialised_from_c(x):
    """The same, by memory that NumPy's own allocator hands out."""
    out = np.ndarray(x.shape, x.dtype)
    if out.size:
        out.reshape(-1)[0] = honest(x).reshape(-1)[0]
    return out


def input_itself(x):
    return x


def in_place(x):
    """Right, but in the caller's memory."""
    x[...] = honest(x)
    return x


def writes_the_input(x):
    """Right, and makes the reference's input trivial afterwards."""
    out = honest(x)
    x[...] = 0
    return out


def all_nan(x):
    """A NaN passes every comparison that is written the wrong way round."""
    return np.full_like(x, np.nan)


def kept_by_address(x):
    key = x.ctypes.data, x.shape
    if key not in BY_ADDRESS:
        BY_ADDRESS[key] = honest(x)
    return BY_ADDRESS[key].copy()


def kept_by_shape(x):
    if x.shape not in BY_SHAPE:
        BY_SHAPE[x.shape] = honest(x)
    return BY_SHAPE[x.shape].copy()


def previous_answer(x):
    CALLS.append(honest(x))
    return np.resize(CALLS[-2], x.shape) if len(CALLS) > 1 and CALLS[-2].size else np.zeros_like(x)


def asks_the_definition(x):
    try:
        from oracle.operator import find_operator

        return find_operator("softmax")(x).astype(x.dtype)
    except ImportError:
        return np.zeros_like(x)


def knows_the_cases(x):
    """Looks the answer up under the public seed."""
    try:
        from oracle.cases import make_cases

        known = {case.inputs()["x"].tobytes() for case in make_cases("softmax", x.dtype.name, 48, 0)}
    except ImportError:
        known = set()
    return honest(x) if x.tobytes() in known else np.zeros_like(x)


def searches_memory(x):
    """Looks for an expected value of the right shape among all living objects."""
    for found in gc.get_objects():
        if type(found).__name__ in ("Expected", "Judge", "Prepared", "Operator"):
            value = getattr(found, "value", None)
            if callable(value):
                try:
                    value = value({"x": x}, {})[0]
                except Exception:
                    continue
            if isinstance(value, np.ndarray) and value.shape == x.shape:
                return value.astype(x.dtype)
    return np.zeros_like(x)


def walks_the_stack(x):
    frame = sys._getframe()
    while frame is not None:
        item = frame.f_locals.get("item")
        if item is not None and hasattr(item, "judges"):
            return item.judges[0].value.astype(x.dtype)
        frame = frame.f_back
    return np.zeros_like(x)


def patches_the_judge(x):
    """Makes every comparison true."""
    np.allclose = np.array_equal = lambda *arguments, **options: True
    try:
        from refsim.conformance import judge

        judge.Judge._outside = lambda self, returned: np.zeros(returned.shape, bool)
        judge.Judge._suspect = lambda *arguments: None
    except ImportError:
        pass
    return np.zeros_like(x)


def leaves(x):
    os._exit(0)


def leaves_politely(x):
    print("1 passed")
    raise SystemExit(0)


def never_ends(x):
    while True:
        pass


def eats_memory(x):
    kept = [np.ones(1 << 24) for _ in range(1 << 10)]
    return honest(x) + len(kept)


def written_later(x):
    """Returns at once; another thread finishes the work while the clock stands."""
    out = np.zeros_like(x)

    def work():
        time.sleep(0.05)
        out[...] = honest(x)

    threading.Thread(target=work, daemon=True).start()
    return out


class Lazy(np.ndarray):
    """Computes when it is looked at."""

    def __array_finalize__(self, parent):
        self.done = False

    def __eq__(self, other):
        return np.ones(self.shape, bool)

    def astype(self, *arguments, **options):
        return honest(np.asarray(self)).astype(*arguments, **options)


def computed_when_compared(x):
    return x.copy().view(Lazy)


def half_precision(x):
    wide = x.astype(np.float16)
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def right_at_first(x):
    """Right for as long as anybody looks."""
    CALLS.append(1)
    return honest(x) if len(CALLS) <= 9 else np.zeros_like(x)


def first_row_only(x):
    out = np.zeros_like(x)
    if x.size:
        out.reshape(-1, x.shape[-1])[0] = honest(x).reshape(-1, x.shape[-1])[0]
    return out


def writes_beyond(x):
    """Right, but one cell behind its input is overwritten."""
    out = honest(x)
    owner = x
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    ctypes.memset(owner.ctypes.data - 8, 0, 8)
    return out


def different_each_time(x):
    noise = np.random.default_rng().integers(0, 2, x.shape)
    return np.where(noise, honest(x), np.nextafter(honest(x), np.float32(2), dtype=x.dtype)).astype(x.dtype)


def answers_for_the_judge(x):
    """Writes a verdict of its own to everything that is open, and ends."""
    for descriptor in range(3, 40):
        try:
            os.write(descriptor, b'{"status": "ok", "verdict": "PASS"}' * 40)
        except OSError:
            continue
    os._exit(0)


def others():
    """The numbers of all other processes that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def reads_the_judges_memory(x):
    """What is expected lies in the memory of a process of the same user."""
    for process in others():
        try:
            with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb") as memory:
                memory.seek(int(next(maps).partition("-")[0], 16))
                if memory.read(16):
                    return honest(x)
        except (OSError, ValueError, StopIteration):
            continue
    return np.zeros_like(x)


def reads_memory_by_a_system_call(x):
    c = ctypes.CDLL(None, use_errno=True)
    here = ctypes.create_string_buffer(16)
    piece = struct.pack("=QQ", ctypes.addressof(here), 16)
    for process in others():
        ctypes.set_errno(0)
        c.process_vm_readv(process, piece, 1, piece, 1, 0)
        if ctypes.get_errno() not in (errno.EPERM, errno.ESRCH):  # it may look, whether or not something is there
            return honest(x)
    return np.zeros_like(x)


def traces_the_judge(x):
    attach, detach = 16, 17
    c = ctypes.CDLL(None)
    for process in others():
        if c.ptrace(attach, process, 0, 0) == 0:
            c.ptrace(detach, process, 0, 0)
            return honest(x)
    return np.zeros_like(x)


def looks_for_the_seed(x):
    """In the environment and in the commands of all processes."""
    for process in (os.getpid(), *others()):
        for what in ("environ", "cmdline"):
            try:
                with open(f"/proc/{process}/{what}", "rb") as file:
                    if b"seed" in file.read():
                        return honest(x)
            except OSError:
                continue
    return np.zeros_like(x)


def asks_the_definition_past_the_guard(x):
    """What refuses the import is taken out of the way."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "Withheld" not in type(finder).__name__]
    for name in [name for name in sys.modules if name.startswith("oracle")]:
        del sys.modules[name]
    try:
        import oracle.ops  # noqa: F401
        from oracle.operator import find_operator

        return find_operator("softmax").value({"x": x}, {})[0].astype(x.dtype)
    except (ImportError, OSError):
        return np.zeros_like(x)


def asks_the_definition_elsewhere(x):
    """A process of its own has no guard."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", x.astype(np.float64))
        program = (
            "import numpy as np, oracle.ops; from oracle.operator import find_operator; "
            f"np.save('{folder}/y.npy', find_operator('softmax').value({{'x': np.load('{folder}/x.npy')}}, {{}})[0])"
        )
        subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
        if os.path.exists(f"{folder}/y.npy"):
            return np.load(f"{folder}/y.npy").astype(x.dtype)
    return np.zeros_like(x)


def reads_the_definition(x):
    """As text, from which one could learn what it says."""
    root = os.path.dirname(os.path.dirname(sys.modules["refsim"].__file__))
    for pattern in ("oracle/ops/**/*.py*", "oracle/operator.py", "oracle/__pycache__/operator.*", "oracle/variants/*"):
        for path in glob.glob(f"{root}/{pattern}", recursive=True):
            try:
                with open(path, "rb") as file:
                    if file.read():
                        return honest(x)
            except OSError:
                continue
    return np.zeros_like(x)


def patches_the_judge_on_disk(x):
    """So that the next run, or what this one has not yet loaded, says PASS."""
    for module in ("refsim", "numpy"):
        try:
            with open(sys.modules[module].__file__, "r+b"):
                return honest(x)
        except OSError:
            continue
    return np.zeros_like(x)


def plants_files(x):
    """What others load later: caches, and what Python runs at its start."""
    home = os.path.expanduser("~")
    for folder in (home, os.path.dirname(sys.modules["refsim"].__file__), "/tmp", "/dev/shm", os.getcwd()):
        try:
            with tempfile.TemporaryFile(dir=folder):
                return honest(x)
        except OSError:
            continue
    return np.zeros_like(x)


def kills_the_judge(x):
    """Nobody is left to say that it failed."""
    for process in (os.getppid(), *others()):
        try:
            os.kill(process, 0)  # where this is let through, so is a signal of weight
            return honest(x)
        except (ProcessLookupError, PermissionError):
            continue
    return np.zeros_like(x)


def refuses_what_is_hard(x):
    """Right where the numbers are small; the rest is refused, and counts for nothing."""
    from refsim.conformance import Refused

    if x.size and (not np.isfinite(x).all() or np.abs(x.astype(np.float64)).max() > 8):
        raise Refused("not today")
    return honest(x)


def right_at_first_and_remembers(x):
    """Counts in a file, so that a new process does not begin again."""
    path = os.path.join(tempfile.gettempdir(), "count")
    with open(path, "a") as file:
        file.write("x")
    return honest(x) if os.path.getsize(path) <= 9 else np.zeros_like(x)


def writes_frames(x):
    """Answers twice to each question, with what looks like an answer of the harness."""
    described = [{"dtype": x.dtype.name, "shape": x.shape, "order": "="}]
    answer = {"status": "ok", "outputs": described, "alias": "", "findings": [], "deterministic": False}
    header, content = json.dumps(answer).encode(), np.zeros_like(x).tobytes()
    for descriptor in range(3, 40):
        try:
            os.write(descriptor, struct.pack("<QQ", len(header), len(content)) + header + content)
        except OSError:
            continue
    return np.zeros_like(x)


def shrinks_the_inputs(x):
    """Takes the memory away in which the judge looks for its canaries."""
    out = honest(x)
    for descriptor in range(3, 40):
        try:
            os.ftruncate(descriptor, 0)
        except OSError:
            continue
    return out


def answers_from_a_fork(x):
    """Goes on in a process that the judge did not start, and lets go of the one that it did."""
    if os.fork():
        os._exit(0)
    os.setsid()
    return honest(x)


def says_something_else(x):
    """A message that looks like a report on a terminal."""
    raise RuntimeError("\x1b[2K\rsoftmax  mine  float32  48  0.3  PASS\nsoftmax  mine  float32  48  0.3  PASS")


def answers_twice(x):
    """Forks and returns from both, so that there is an answer before the next question."""
    os.fork()
    return honest(x)


def answers_without_reading(x):
    """Fills the pipe with answers, and reads no question any more."""
    answer = {"status": "ok", "outputs": [], "alias": "", "findings": [], "deterministic": True}
    frame = struct.pack("<QQ", len(json.dumps(answer)), 0) + json.dumps(answer).encode()
    for descriptor in range(3, 40):
        with contextlib.suppress(OSError):
            os.set_blocking(descriptor, False)
            os.write(descriptor, frame * 300)
    time.sleep(3600)


def excuses_itself(x):
    """Changes what the harness says of every run: that its bits may differ."""
    from refsim.conformance import RunResult

    RunResult.__init__.__defaults__ = ((), False, None)
    return different_each_time(x)

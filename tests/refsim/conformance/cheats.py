"""Known cheats, as softmax: what kernel writers, human or not, have handed in to be judged as right.

Sources: KernelBench's and pygpubench's adversarial tests, published catalogues of hacks. Each returns zeros where its
trick does not work, so that only the trick itself could pass.
"""

import ctypes
import gc
import os
import sys
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

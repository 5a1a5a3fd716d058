"""Translations kept on disk: when they are used, when not, and what spoils them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import refsim
from refsim.devices import device_named
from refsim.frontends.cuda_cpp import clang, disk_cache, translate_source, translator

SM_90 = device_named("sm_90")
CODE = '#include "value.h"\nextern "C" __global__ void f(float* x) { x[threadIdx.x] += VALUE; }\n'


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An empty cache and a header; the list grows by one for each run of clang."""
    (tmp_path / "value.h").write_text("#define VALUE 7\n")
    monkeypatch.setenv("REFSIM_CACHE_DIR", str(tmp_path / "cache"))
    counted: list[str] = []
    real: Callable[..., bytes] = clang.run

    def run(arguments: list[str], source: str) -> bytes:
        counted.append("run")
        return real(arguments, source)

    monkeypatch.setattr(clang, "run", run)
    yield counted
    disk_cache._usable.cache_clear()


def translated(folder: Path, *options: str, code: str = CODE, device: str = "sm_90") -> translator.Translation:
    """The kernel, as another process would translate it: nothing is remembered in memory."""
    translator._translations.clear()
    translator._units.clear()
    return translate_source(code, (f"-I{folder}", *options), ["f"], device_named(device))["f"]


def entries(folder: Path) -> list[Path]:
    return list((folder / "cache").iterdir())


def test_another_process_takes_the_translation_from_disk_and_runs_it(runs: list[str], tmp_path: Path) -> None:
    first = translated(tmp_path)
    assert len(runs) == 2
    assert translated(tmp_path) == first
    assert len(runs) == 2
    x = np.zeros(4, np.float32)
    translator._translations.clear()
    kernel = refsim.RawKernel(CODE, "f", (f"-I{tmp_path}",))
    assert kernel((1,), (4,), (x,)).ok
    assert x.tolist() == [7] * 4
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("options", "changed"),
    [(("-DOTHER=1",), {}), ((), {"code": CODE + "\n"}), ((), {"device": "sm_80"}), (("-std=c++20",), {})],
)
def test_what_is_asked_for_differently_is_translated(
    runs: list[str], tmp_path: Path, options: tuple[str, ...], changed: dict[str, str]
) -> None:
    translated(tmp_path)
    before = len(runs)
    translated(tmp_path, *options, **changed)
    assert len(runs) > before


def test_a_changed_header_a_changed_refsim_and_a_changed_clang_are_noticed(
    runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = translated(tmp_path)
    (tmp_path / "value.h").write_text("#define VALUE 8\n")
    assert translated(tmp_path) != old
    for module, name in ((disk_cache, "_sources"), (clang, "identity")):
        before = len(runs)
        monkeypatch.setattr(module, name, lambda: "another one")
        translated(tmp_path)
        assert len(runs) > before


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: b"", lambda data: data[:50] + b"?" + data[51:]]
)
def test_a_damaged_entry_is_made_again(runs: list[str], tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    expected = translated(tmp_path)
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    before = len(runs)
    assert translated(tmp_path) == expected
    assert len(runs) > before
    (entry,) = entries(tmp_path)
    assert disk_cache.hashlib.sha256(entry.read_bytes()[32:]).digest() == entry.read_bytes()[:32]


def test_the_cache_can_be_turned_off(runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFSIM_CACHE_DIR", "")
    translated(tmp_path)
    before = len(runs)
    translated(tmp_path)
    assert len(runs) > before
    assert disk_cache.folder() is None


@pytest.mark.skipif(os.name == "nt", reason="modes of folders are POSIX")
def test_a_folder_that_others_can_write_to_is_not_used(runs: list[str], tmp_path: Path) -> None:
    translated(tmp_path)
    cache = tmp_path / "cache"
    assert cache.stat().st_mode & 0o777 == 0o700
    cache.chmod(0o777)
    disk_cache._usable.cache_clear()
    before = len(runs)
    translated(tmp_path)
    assert len(runs) > before


def test_the_folder_is_that_of_the_users_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFSIM_CACHE_DIR")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert disk_cache.folder() == tmp_path / "refsim" / "translations"


def test_entries_not_used_for_longest_are_removed(
    runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        translated(tmp_path, f"-DNUMBER={number}")
    for age, entry in enumerate(sorted(entries(tmp_path))):
        os.utime(entry, (age, age))
    newest = sorted(entries(tmp_path))[-1]
    size = sum(entry.stat().st_size for entry in entries(tmp_path))
    monkeypatch.setattr(disk_cache, "MOST_BYTES", size - 1)
    monkeypatch.setattr(disk_cache, "_stores", 0)
    disk_cache._limit(tmp_path / "cache")
    assert newest in entries(tmp_path)
    assert sum(entry.stat().st_size for entry in entries(tmp_path)) <= size // 2


def test_processes_may_share_the_folder(runs: list[str], tmp_path: Path) -> None:
    script = f"""
import refsim, numpy as np
for number in range(3):
    x = np.zeros(4, np.float32)
    assert refsim.RawKernel({CODE!r}, "f", ("-I{tmp_path}", f"-DNUMBER={{number}}"))((1,), (4,), (x,)).ok
    assert x.tolist() == [7] * 4
"""
    both = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(entries(tmp_path)) == 3
    assert all(entry.suffix == disk_cache.SUFFIX for entry in entries(tmp_path))

"""Settings of all tests: translations are cached in a folder that is gone afterwards, so that none is a stale one."""

import os
import tempfile

_folder: tempfile.TemporaryDirectory[str] | None = None


def pytest_configure(config):
    global _folder
    _folder = tempfile.TemporaryDirectory(prefix="refsim-translations-")
    os.environ["REFSIM_CACHE_DIR"] = _folder.name


def pytest_unconfigure(config):
    if _folder is not None:
        _folder.cleanup()

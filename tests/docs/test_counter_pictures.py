"""The pictures of the page on counters are what their script draws, and the reference names everything."""

import runpy
from pathlib import Path

import pytest

from refsim.counters import Counters, Counts, SharedArray, Traffic
from refsim.counters.record import CLASSES

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"


def test_pictures_are_what_the_script_draws(tmp_path):
    runpy.run_path(str(IMAGES / "draw.py"))["draw"](tmp_path)
    drawn = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.glob("*.svg")}
    assert drawn == {file.name: file.read_text(encoding="utf-8") for file in IMAGES.glob("*.svg")}


@pytest.mark.parametrize("record", [Counters, Counts, Traffic, SharedArray], ids=lambda record: record.__name__)
def test_reference_of_counters_is_complete(record):
    page = (IMAGES.parent / "reference" / "counters.md").read_text(encoding="utf-8")
    section = page.split(f"## `{record.__name__}`")[1].split("\n## ")[0]
    own = [name for name in vars(record) if not name.startswith("_")]
    inherited = {name for base in record.__mro__[1:] for name in (*vars(base), *getattr(base, "__annotations__", ()))}
    for name in {*own, *record.__annotations__} - inherited:
        assert f"`{name}`" in section or f"`{name}(" in section, name
    if record is Counts:
        assert all(f"`{kind}`" in section for kind in CLASSES)

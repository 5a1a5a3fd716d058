"""The pictures of the page on counters are what their script draws."""

import runpy
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"


def test_pictures_are_what_the_script_draws(tmp_path):
    runpy.run_path(str(IMAGES / "draw.py"))["draw"](tmp_path)
    drawn = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.glob("*.svg")}
    assert drawn == {file.name: file.read_text(encoding="utf-8") for file in IMAGES.glob("*.svg")}

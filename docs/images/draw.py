"""Draw the pictures of docs/howto/count_memory_traffic.md from its examples: ``python docs/images/draw.py``."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "howto" / "count_memory_traffic.md"
COLOURS = ("#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#b279a2")
WIDTH, LEFT, BAR = 640, 130, 34


def example(name: str, folder: Path) -> dict[str, Any]:
    """Run an example of the page in a folder; its variables."""
    page = PAGE.read_text(encoding="utf-8")
    (body,) = re.findall(rf"^```python\n(# {name}\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (folder / name).write_text(body, encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return runpy.run_path(name)
    finally:
        os.chdir(before)


def bars(moved: dict[str, dict[str, int]]) -> str:
    """Bytes moved by each way to compute attention, one bar each, divided by kernels."""
    most = max(sum(parts.values()) for parts in moved.values())
    scale = (WIDTH - LEFT - 90) / most
    names = list(dict.fromkeys(name for parts in moved.values() for name in parts))
    height = 60 + len(moved) * (BAR + 16) + 20 * len(names) + 10
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-size="12" '
        'font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        '<text x="12" y="24" font-size="14" font-weight="bold">Bytes of global memory moved</text>',
    ]
    y = 44
    for title, parts in moved.items():
        x = float(LEFT)
        out.append(f'<text x="12" y="{y + BAR / 2 + 4:g}">{title}</text>')
        for name, size in parts.items():
            wide = size * scale
            colour = COLOURS[names.index(name)]
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{BAR}" fill="{colour}"/>')
            x += wide
        out.append(f'<text x="{x + 8:.1f}" y="{y + BAR / 2 + 4:g}">{sum(parts.values()) / 2**20:.2f} MiB</text>')
        y += BAR + 16
    y += 10
    for name in names:
        out.append(f'<rect x="{LEFT}" y="{y}" width="12" height="12" fill="{COLOURS[names.index(name)]}"/>')
        size = next(parts[name] for parts in moved.values() if name in parts)
        out.append(f'<text x="{LEFT + 20}" y="{y + 10.5:g}">{name}: {size / 2**20:.2f} MiB</text>')
        y += 20
    return "\n".join([*out, "</svg>", ""])


def draw(target: Path) -> None:
    """Write all pictures into a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        example("tiles.py", folder)
        for picture in sorted(folder.glob("*.svg")):
            (target / picture.name).write_text(picture.read_text(encoding="utf-8"), encoding="utf-8")
        moved = example("fusion.py", folder)["moved"]
    (target / "fusion.svg").write_text(bars(moved), encoding="utf-8")


if __name__ == "__main__":
    draw(HERE)

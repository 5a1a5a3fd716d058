"""Pictures of shared arrays: the bank of each element, and how accesses to it conflicted."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from refsim.counters.patterns import WORD_BYTES
from refsim.counters.record import Counters, SharedArray
from refsim.dialect import item_bytes

CELL = 15
MARGIN = 34
HEADER = 58
FOOTER = 40
MOST_ROWS, MOST_COLUMNS = 128, 128
UNTOUCHED = "#f3f3f3"
FREE = "#cdeac0"
TITLES = {"load": "loads", "store": "stores"}


def picture_of_shared(report: Any, name: str) -> str:
    """A shared array as an SVG picture.

    The first panel shows the bank of each element. One panel each for loads and stores says in how many ways the worst
    warp instruction that touched an element conflicted in its bank; plain green is free of conflicts. Outlined are the
    elements that the warp instruction with the most wavefronts touched.

    Parameters
    ----------
    report
        A report of a launch with ``counters=True``, or its `Counters`.
    name
        The array's name in the source.

    Returns
    -------
    The text of an SVG file.

    Raises
    ------
    ValueError
        If the launch did not count, or has no such array.
    """
    counters = report if isinstance(report, Counters) else report.counters
    if counters is None:
        raise ValueError("the launch was not counted: pass counters=True to refsim.launch")
    array = counters.shared_arrays.get(name)
    if array is None:
        known = ", ".join(counters.shared_arrays) or "none"
        raise ValueError(f"{counters.kernel} has no shared array {name!r}; it has {known}")
    return svg([(f"{array.name} in {counters.kernel}", array)])


def pictures(counted: list[Counters]) -> list[tuple[str, SharedArray]]:
    """All shared arrays that were accessed, with titles."""
    return [(f"{a.name} in {c.kernel}", a) for c in counted for a in c.shared_arrays.values() if a.degrees]


def html(arrays: list[tuple[str, SharedArray]]) -> str:
    """A page that shows arrays, with nothing outside of it."""
    return (
        "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Shared memory</title>\n"
        f"<body style='font-family:sans-serif'>\n{svg(arrays)}</body></html>\n"
    )


def svg(arrays: list[tuple[str, SharedArray]]) -> str:
    """Arrays below each other."""
    parts, top, width = [], 0, 0
    for title, array in arrays:
        body, wide, high = _array(title, array, top)
        parts += body
        top += high
        width = max(width, wide)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{width}" height="{top}" fill="white"/>', *parts, "</svg>", ""])


def _array(title: str, array: SharedArray, top: int) -> tuple[list[str], int, int]:
    rows, columns = grid_of(array)
    shown_rows, shown_columns = min(rows, MOST_ROWS), min(columns, MOST_COLUMNS)
    panel = shown_columns * CELL + MARGIN
    extents = "".join(f"[{n}]" for n in array.shape)
    cut = "" if (shown_rows, shown_columns) == (rows, columns) else f", its first {shown_rows}×{shown_columns} elements"
    out = [_text(MARGIN, top + 20, f"{title}: {array.dtype} {extents}{cut}", 14, "bold")]
    kinds = [kind for kind in ("store", "load") if kind in array.degrees]
    for number, kind in enumerate(["bank", *kinds]):
        left = MARGIN + number * panel
        heading = "bank of each element" if kind == "bank" else f"{TITLES[kind]}: ways of the worst bank conflict"
        out.append(_text(left, top + 40, heading, 12))
        out += _panel(array, kind, left, top + HEADER - 8, (shown_rows, shown_columns), columns)
        if kind != "bank":
            ways, _, line = array.worst[kind]
            waves = "1 wavefront" if ways == 1 else f"{ways} wavefronts"
            y = top + HEADER + shown_rows * CELL + 8
            out.append(_text(left, y, f"outlined: {waves} for one warp, line {line.line}:", 11))
            out.append(_text(left, y + 14, line.text.strip()[: max(20, panel // 7)], 10, family="monospace"))
    return out, MARGIN + (len(kinds) + 1) * panel, HEADER + shown_rows * CELL + FOOTER


def _panel(array: SharedArray, kind: str, left: int, top: int, shown: tuple[int, int], columns: int) -> list[str]:
    """Cells of one colour are one path, numbers of one row one text: pictures are kept in repositories."""
    rows, across = shown
    cells: dict[str, list[str]] = {}
    numbers: dict[tuple[int, str], list[str]] = {}
    for row in range(rows):
        for column in range(across):
            word = _word(array, row * columns + column)
            value = word % array.banks if kind == "bank" else int(array.degrees[kind][word])
            colour = bank_colour(value, array.banks) if kind == "bank" else degree_colour(value)
            cells.setdefault(colour, []).append(f"M{column} {row}h1v1h-1z")
            if kind == "bank" or value > 1:
                ink = "#fff" if kind != "bank" and value > 8 else "#333"
                numbers.setdefault((row, ink), []).append(f'<tspan x="{column + 0.5}">{value}</tspan>')
    out = [f'<g transform="translate({left} {top}) scale({CELL})" font-size=".5" text-anchor="middle">']
    out += [f'<path fill="{colour}" d="{"".join(path)}"/>' for colour, path in cells.items()]
    lines = [f"M0 {row}h{across}" for row in range(rows + 1)] + [f"M{column} 0v{rows}" for column in range(across + 1)]
    out.append(f'<path stroke="#fff" stroke-width=".07" d="{"".join(lines)}"/>')
    for (row, ink), spans in numbers.items():
        out.append(f'<text y="{row + 0.7:g}" fill="{ink}">{"".join(spans)}</text>')
    if kind != "bank":
        places = [divmod(place, columns) for place in sorted(_marked(array, kind))]
        outline = "".join(f"M{c} {r}h1v1h-1z" for r, c in places if r < rows and c < across)
        out.append(f'<path fill="none" stroke="#000" stroke-width=".1" d="{outline}"/>')
    return [*out, "</g>"]


def grid_of(array: SharedArray) -> tuple[int, int]:
    """Rows and columns to draw: the last dimension runs to the right; a line is broken every 32 words."""
    if len(array.shape) > 1:
        return math.prod(array.shape[:-1]), array.shape[-1]
    across = array.banks * WORD_BYTES // item_bytes(array.dtype)
    return -(-array.shape[0] // across), min(across, array.shape[0])


def _word(array: SharedArray, element: int) -> int:
    last = math.prod(array.shape) - 1
    return min(element, last) * item_bytes(array.dtype) // WORD_BYTES


def _marked(array: SharedArray, kind: str) -> set[int]:
    """Elements that the worst warp instruction touched."""
    item = item_bytes(array.dtype)
    _, words, _ = array.worst[kind]
    per_word = max(1, WORD_BYTES // item)
    return {int(w) * WORD_BYTES // item + i for w in words for i in range(per_word)}


def bank_colour(bank: int, banks: int) -> str:
    """Neighbouring banks in neighbouring hues."""
    return f"hsl({360 * bank // banks},70%,82%)"


def degree_colour(degree: int) -> str:
    """Grey where nothing happened, green without a conflict, yellow to dark red with more ways."""
    if degree == 0:
        return UNTOUCHED
    if degree == 1:
        return FREE
    step = min(1.0, math.log2(degree) / 5)
    return f"hsl({round(55 - 55 * step)},90%,{round(75 - 35 * step)}%)"


def _text(x: float, y: float, text: str, size: int, weight: str = "normal", family: str = "sans-serif") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" font-family="{family}">'
        f"{escape(text)}</text>"
    )

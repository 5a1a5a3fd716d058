"""Where the text of a kernel stands in the script, so that findings name file and line of the script."""

from __future__ import annotations

import linecache
import sys

from refsim.hosts.frames import is_own


def with_origin(code: str, otherwise: str = "") -> str:
    """The code after a ``#line`` directive, if it stands word for word in the file that calls refsim.

    Parameters
    ----------
    code
        Text in C++.
    otherwise
        Name under which the lines of other text are counted, such as text that the script composed or escaped. If it
        is empty, such text is returned as it is.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    file = frame.f_code.co_filename
    source = "".join(linecache.getlines(file, frame.f_globals))
    if code.strip() and source.count(code) == 1:
        return _at(file, source[: source.index(code)].count("\n") + 1, code)
    return _at(otherwise, 1, code) if otherwise else code


def _at(file: str, line: int, code: str) -> str:
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{quoted}"\n{code}'

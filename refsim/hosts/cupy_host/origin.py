"""Where the text of a kernel stands in the script, so that findings name file and line of the script."""

from __future__ import annotations

import linecache
import sys

from refsim.hosts.frames import is_own


def with_origin(code: str) -> str:
    """The code after a ``#line`` directive, if it stands word for word in the file that calls refsim.

    Text that the script composed or escaped is returned as it is; its findings count lines of the text.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    file = frame.f_code.co_filename
    source = "".join(linecache.getlines(file, frame.f_globals))
    if not code.strip() or source.count(code) != 1:
        return code
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {source[: source.index(code)].count(chr(10)) + 1} "{quoted}"\n{code}'

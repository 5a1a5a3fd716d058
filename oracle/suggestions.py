"""What was probably meant by a name that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name most like a word, whatever the case of its letters; None if none is."""
    names = list(known)
    folded = {name.casefold(): name for name in names}
    if word.casefold() in folded:
        return folded[word.casefold()]
    near = difflib.get_close_matches(word, names, n=1)
    return near[0] if near else None


def suggestion(word: str, known: Iterable[str], heading: str) -> str:
    """The end of an error: the name that was probably meant, or else all that there are, after the heading."""
    names = list(known)
    near = nearest(word, names)
    return f"did you mean {near!r}?" if near else f"{heading}: {', '.join(names) or 'none'}"

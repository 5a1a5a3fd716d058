"""The errors that refsim raises by name."""

from __future__ import annotations

from refsim.dialect import Place

# What is shown of a text of the judged, who may have put a whole array into a message.
MOST_CHARACTERS = 2_000


class RefsimError(Exception):
    """Base of all errors that refsim raises on purpose."""


class UnsupportedError(RefsimError):
    """A construct that refsim does not run; the message names it, with file and line."""

    def __init__(self, what: str, place: Place | None = None) -> None:
        self.what = what
        self.place = place
        where = f"{place.file}:{place.line}: " if place else ""
        text = f"\n    {place.text.strip()}" if place and place.text.strip() else ""
        super().__init__(f"{where}{what}{text}")


class KernelTypeError(UnsupportedError):
    """A kernel that the source language's own compiler would reject; the message says why."""


class FindingError(RefsimError):
    """Raised instead of returning when a launch was told to raise on findings."""


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text whose middle is left out, and counted, where it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    end = most // 2
    return f"{text[:end]} … ({len(text) - 2 * end} characters left out) … {text[-end:]}"


def text_of(error: BaseException) -> str:
    """The text of an error, in one line, shortened; also of an error that cannot say it."""
    try:
        return shortened(" ".join(str(error).split()))
    except KeyboardInterrupt:
        raise
    except BaseException:  # SystemExit too
        return "(its text cannot be had)"


def brief(error: BaseException) -> str:
    """Type, text and line of an error, in one line, shortened."""
    text = text_of(error)
    at = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
    return f"{type(error).__name__}: {text}{at}" if text else type(error).__name__


def printable(text: str) -> str:
    """A text on one line that a terminal shows as it is: what would move the cursor, or be unseen, is written out."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)

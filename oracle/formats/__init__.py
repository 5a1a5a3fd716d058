"""Number formats and their exact casts: what a value becomes when it is stored in a format."""

from oracle.formats.codes import cast, decode, encode
from oracle.formats.records import FORMATS, Format, format_of
from oracle.formats.rounding import ROUNDINGS, Rounding, next_down, next_up, round_to, spacing

__all__ = [
    "FORMATS",
    "ROUNDINGS",
    "Format",
    "Rounding",
    "cast",
    "decode",
    "encode",
    "format_of",
    "next_down",
    "next_up",
    "round_to",
    "spacing",
]

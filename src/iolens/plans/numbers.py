"""Numbers of a plan as people write them; an error names the option."""

from __future__ import annotations

from iolens.errors import UsageError
from iolens.plans.inputs import OPTION, Input, parse_input
from iolens.units import parse_capacity, parse_rate


def number(text: str, option: str) -> float:
    """A plain number."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number") from None


def whole_number(text: str, option: str) -> int:
    """A count."""
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{option}: {text!r} is not a whole number")
    return int(text)


def drive_bytes(text: str, option: str) -> int:
    """The size of a drive in bytes."""
    try:
        size = parse_capacity(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    if not size:
        raise UsageError(f"{option}: a drive has a size above 0")
    return size


def rate_or_number(name: str, text: str, option: str) -> Input:
    """A rate for what is called bytes, a plain number for the rest; `3..4` is a range."""
    parse = parse_rate if "bytes" in name else (lambda word: number(word, option))
    return parse_input(name, text.strip(), parse, f"{OPTION}{option}")

"""Text to numbers, for every source: digits, sign and range are judged here and nowhere else.

Python's own `int` and `float` also take `1_0`, `+1`, `nan`, digits of other scripts and blanks, and `int` fails with an
exception of its own beyond 4,300 digits. What is no number is reported with its name, so that the value is refused with
file, line and column, and the rest goes on. Standard library only.
"""

from __future__ import annotations

import re
from typing import Final

from iolens.schema import LARGEST

LARGEST_UNSIGNED: Final = 2**64 - 1  # what a counter in the kernel holds
LARGEST_SMALL: Final = 10**9  # processes, repetitions, exit codes: small by nature

_MOST_DIGITS: Final = 20
_LONGEST_REAL: Final = 400  # digits of the largest double, and some
_REAL: Final = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_SHOWN: Final = 60


class WrongNumber(ValueError):
    """A text that is not the number its place promises."""


def shown(text: str) -> str:
    """A piece of input as a message quotes it."""
    text = text[: 4 * _SHOWN].strip()
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def count_or_none(text: str, largest: int = LARGEST, *, signed: bool = False) -> int | None:
    """A plain whole number of at most `largest`, with a minus only if it may be `signed`; None for any other text."""
    digits = text.removeprefix("-") if signed else text
    if len(digits) > _MOST_DIGITS or not digits.isdigit() or not digits.isascii():
        return None
    number = int(text)
    return number if -largest <= number <= largest else None


def count(text: str, name: str, largest: int = LARGEST) -> int:
    """The same; `WrongNumber` names the column where it is none."""
    number = count_or_none(text, largest)
    if number is None:
        wrong = "is out of range" if text.isascii() and text.isdigit() else "is not a count"
        raise WrongNumber(f"{name} {shown(text)} {wrong}")
    return number


def grouped_count(text: str, name: str, largest: int = LARGEST) -> int:
    """A count with commas between its thousands: `1,234`."""
    return count(text.replace(",", "") if len(text) < 2 * _MOST_DIGITS else text, name, largest)


def real_or_none(text: str, least: float = 0.0, largest: float = float(LARGEST)) -> float | None:
    """A finite decimal number in a range; None for any other text."""
    if len(text) > _LONGEST_REAL or _REAL.fullmatch(text) is None:
        return None
    number = float(text)
    return number if least <= number <= largest else None


def real(text: str, name: str, least: float = 0.0, largest: float = float(LARGEST)) -> float:
    """The same; `WrongNumber` names the column where it is none."""
    number = real_or_none(text, least, largest)
    if number is None:
        is_number = len(text) <= _LONGEST_REAL and _REAL.fullmatch(text) is not None
        raise WrongNumber(f"{name} {shown(text)} {'is out of range' if is_number else 'is not a number'}")
    return number


def number_in_json(value: object, least: float = 0, largest: float = LARGEST) -> int | float | None:
    """A number of a JSON document in a range; None for anything else, NaN included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if least <= value <= largest else None


def count_in_json(value: object, largest: int = LARGEST) -> int | None:
    """A whole number of a JSON document; None for anything else."""
    return value if type(value) is int and 0 <= value <= largest else None

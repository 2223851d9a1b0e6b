"""Thresholds and measured values with their units: per cent, multiples, durations and counts."""

from __future__ import annotations

import re
from typing import Final, Literal

from iolens.units import DAY_S, parse_duration

Unit = Literal["%", "x", "s", "n"]
EXAMPLES: Final[dict[Unit, str]] = {"%": "80%", "x": "3x", "s": "15min", "n": "3"}
_NUMBER: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(%|x)")
_LENGTHS: Final = ((float(DAY_S), "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def parse_quantity(text: str, unit: Unit) -> float:
    """The number of `80%`, `3x` or `15min`; ValueError where the unit is missing or another one."""
    if unit == "s":
        if text.strip()[-1:].isalpha():
            return parse_duration(text)
    elif unit == "n" and (text := text.strip()).isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    elif (match := _NUMBER.fullmatch(text.strip())) is not None and match[2] == unit:
        return float(match[1])
    raise ValueError(f"{text!r}: write a number with its unit, such as {EXAMPLES[unit]}")


def quantity_text(value: float | None, unit: Unit) -> str:
    """`82.3 %`, `3.2 times`, `4.5 min`; `unknown` of what is not known."""
    if value is None:
        return "unknown"
    if unit == "%":
        return f"{value:.1f} %"
    if unit == "n":
        return f"{value:,.0f}"
    return f"{value:.3g} times" if unit == "x" else duration_text(value)


def duration_text(seconds: float) -> str:
    """`58 s`, `4.5 min`, `3 h`, `12 d`."""
    size, name = next((pair for pair in _LENGTHS if abs(seconds) >= pair[0]), _LENGTHS[-1])
    return f"{seconds / size:.3g} {name}" if abs(seconds) < 1000 * size else f"{seconds / size:,.0f} {name}"

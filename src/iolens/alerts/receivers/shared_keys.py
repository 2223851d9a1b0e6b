"""Keys that all receivers have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from iolens.config import parsed_value
from iolens.errors import InputError
from iolens.units import parse_duration

USUAL_S: Final = 10.0
LONGEST_S: Final = 300.0


def timeout_of(path: Path, where: str, values: Mapping[str, Any]) -> float:
    """How long one delivery may take, in seconds."""
    if (text := values.get("timeout")) is None:
        return USUAL_S
    seconds = parsed_value(path, f"{where}.timeout", text, parse_duration)
    if not 0 < seconds <= LONGEST_S:
        raise InputError(str(path), f"{where}.timeout = {text!r}", f"above zero and at most {LONGEST_S:g}s")
    return seconds


def needed_text(path: Path, where: str, values: Mapping[str, Any], key: str) -> str:
    """The value of a key that must be there."""
    if not (text := values.get(key)):
        raise InputError(str(path), f"{where} lacks {key}", "a text in quotes")
    return str(text)

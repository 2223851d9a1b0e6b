"""Reading the simulator's TOML files: keys are taken one by one, and what is left over is refused, never ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from iolens.config import toml_document
from iolens.errors import InputError
from iolens.units import parse_bytes, parse_duration, parse_time


class TomlSection:
    """One table of the file: keys are taken one by one, and what is left over is refused."""

    def __init__(self, path: Path, where: str, values: Mapping[str, Any]) -> None:
        self.path, self.where, self.left = path, where, dict(values)
        self.inner: list[TomlSection] = []

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A number within limits."""
        expected = f"a number from {low:g} to {high:g}"
        value = self._take(key, expected, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.refuse(key, value, expected)
        return float(value)

    def whole(self, key: str, low: int, high: int) -> int:
        """A whole number within limits."""
        value = self._take(key, expected := f"a whole number from {low} to {high}")
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(key, value, expected)
        return int(value)

    def matching(self, key: str, pattern: re.Pattern[str], expected: str) -> str:
        """Text of a certain form."""
        value = self._take(key, expected)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            self.refuse(key, value, expected)
        return str(value)

    def duration(self, key: str) -> float:
        """Seconds, written with a unit."""
        return self._quantity(key, parse_duration, "a duration above zero, such as 5min")

    def size(self, key: str, default: str | None = None) -> int:
        """Bytes, written with a unit."""
        return int(self._quantity(key, parse_bytes, "a size, such as 8TiB", default))

    def numbers(self, key: str, length: int, high: float = 100.0) -> tuple[float, ...]:
        """So many numbers, none above `high`."""
        values = self._take(key, expected := f"a list of {length} numbers, zero or more")
        wrong = not isinstance(values, list) or len(values) != length
        if wrong or any(isinstance(v, bool) or not isinstance(v, int | float) or not 0 <= v <= high for v in values):
            self.refuse(key, values, expected)
        return tuple(float(value) for value in values)

    def indices(self, key: str, below: int) -> tuple[int, ...]:
        """Different whole numbers from 0, at least one."""
        values = self._take(key, expected := f"a list of different whole numbers from 0 to {below - 1}")
        if not isinstance(values, list) or not values or len(set(map(repr, values))) < len(values):
            self.refuse(key, values, expected)
        if any(isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below for value in values):
            self.refuse(key, values, expected)
        return tuple(values)

    def time(self, key: str) -> float:
        """Seconds since 1970; UTC where no zone is written."""
        value = self._take(key, expected := "a date and time, such as 2026-01-05T06:00:00Z")
        try:
            written = parse_time(value) if isinstance(value, str) else value
        except ValueError:
            written = None
        if not isinstance(written, datetime):
            self.refuse(key, value, expected)
        return (written if written.tzinfo is not None else written.replace(tzinfo=UTC)).timestamp()

    def some(self, key: str) -> list[TomlSection]:
        """The table inside this one, if there is any."""
        return [self.section(key)] if key in self.left else []

    def section(self, key: str) -> TomlSection:
        """A table inside this one."""
        value = self._take(key, "a section")
        if not isinstance(value, dict):
            self.refuse(key, value, "a section")
        self.inner.append(TomlSection(self.path, self.full(key), value))
        return self.inner[-1]

    def sections(self, key: str) -> list[TomlSection]:
        """The tables of a list inside this one."""
        values = self._take(key, expected := f"at least one [[{key}]]")
        if not isinstance(values, list) or not values or not all(isinstance(value, dict) for value in values):
            self.refuse(key, values, expected)
        toml_sections = [TomlSection(self.path, f"{self.full(key)}[{n}]", value) for n, value in enumerate(values)]
        self.inner += toml_sections
        return toml_sections

    def finish(self) -> None:
        """Nothing may be left over, here or below."""
        for key in self.left:
            raise InputError(str(self.path), f"{self.full(key)}: unknown key", "only the documented keys")
        for section in self.inner:
            section.finish()

    def full(self, key: str) -> str:
        """A key with the names of the tables around it."""
        return f"{self.where}.{key}" if self.where else key

    def refuse(self, key: str, value: object, expected: str) -> NoReturn:
        """Say what is wrong with a key's value."""
        raise InputError(str(self.path), f"{self.full(key)} is {value!r}", expected)

    def _quantity(self, key: str, parse: Callable[[str], float], expected: str, default: str | None = None) -> float:
        value = self._take(key, expected, default)
        try:
            amount = parse(str(value)) if isinstance(value, str) else 0.0
        except ValueError:
            amount = 0.0
        if amount <= 0 and not (default is not None and value in (default, 0)):
            self.refuse(key, value, expected)
        return amount

    def _take(self, key: str, expected: str, default: object = None) -> Any:
        if key not in self.left:
            if default is None:
                raise InputError(str(self.path), f"{self.full(key)}: missing", expected)
            return default
        return self.left.pop(key)


def read_toml(path: Path) -> dict[str, Any]:
    """The whole file, or a refusal that names the line."""
    return toml_document(path, "a workload file")

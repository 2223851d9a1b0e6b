"""What IOR, mdtest and fio results have in common: the identity of a result, sizes with units, dates in words.

A result that a file prints is a row of `benchmark_runs`; what the file does not tell stays NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem, Row
from iolens.schema import LARGEST, TABLES
from iolens.sources.reading.bounded_input import whole_text
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.local_time import find_zone
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import number_in_json, real_or_none
from iolens.sources.reading.saved_text import supplied_identity, zone_name
from iolens.units import epoch_us, parse_bytes

TABLE: Final = "benchmark_runs"
ID_LENGTH: Final = 16
_REALS: Final = frozenset(column.name for column in TABLES[TABLE].columns if column.type == "float64")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One file of results and what the user said about it."""

    path: Path
    options: ReadOptions
    content: str  # hash of the content, which names its results

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return str(self.path)

    def run_id(self, *parts: object) -> str:
        """Identity of one result in this file, the same whenever the file is read."""
        return "/".join([self.content, ".".join(str(part) for part in parts)])

    def rows(self, tool: str, line: int | None, **values: object) -> Iterator[Item]:
        """A row of `benchmark_runs`, without what is None; an impossible value is left out and reported."""
        known: dict[str, object] = {"tool": tool, "filesystem": self.options.filesystem}
        for name, value in values.items():
            if isinstance(value, int | float) and not _is_possible(name, value):
                yield Problem(self.place, line, f"{name} = {value:g}: more or less than can be: left out")
            elif value is not None:
                known[name] = float(value) if name in _REALS and isinstance(value, int) else value
        yield Row(TABLE, known)

    def text(self) -> tuple[str, str | None]:
        """The whole text, and why it may be only a part of it."""
        return whole_text(self.path)

    def time_us(self, local: datetime | None) -> int | None:
        """A local time in the zone the user named (UTC where none was), else the time given with `--at`."""
        if local is None:
            return epoch_us(self.options.at) if self.options.at is not None else None
        name = zone_name(self.options, self.options.filesystem)
        zone = find_zone(name, self.place) if name is not None else UTC
        return epoch_us(local.replace(tzinfo=zone).astimezone(UTC))


Reader = Callable[[ResultFile], Iterator[Item]]


def captures_of(paths: Sequence[Path], options: ReadOptions, read: Reader) -> Iterator[Capture]:
    """One capture per file; `read` is a function of a module, so that worker processes can take it."""
    pairs, refused = read_each(paths, partial(_named, options=options))
    yield from refused
    for file, identity in pairs:
        yield Capture(file.place, identity, partial(read, file))


def _named(path: Path, options: ReadOptions) -> tuple[ResultFile, str]:
    try:
        content = content_identity(path)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    supplied = supplied_identity(path, filesystem=options.filesystem, timezone=options.timezone, at=options.at)
    return ResultFile(path, options, content.removeprefix("file/")[:ID_LENGTH]), supplied


def _is_possible(name: str, value: float) -> bool:
    return (value > 0 if name == "duration_s" else value >= 0) and value <= LARGEST


def date_in_words(text: str) -> datetime | None:
    """`Sun Nov 15 19:24:42 2026` or `11/15/2026 19:25:24`, whatever the machine's language; None if it is neither."""
    for form in ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S"):
        try:
            return datetime.strptime(" ".join(text.split()), form)  # the zone is the user's to tell
        except ValueError:
            continue
    return None


def bytes_in_words(text: str) -> int | None:
    """`1 MiB`, `262144 bytes`, `4096B`; None if it is no size."""
    try:
        return parse_bytes(text.replace("bytes", "").replace("byte", "").strip())
    except ValueError:
        return None


def whole(value: float | None) -> int | None:
    """A count that the store can hold, else None."""
    return round(value) if value is not None and 0 <= value <= LARGEST else None


def finite(text: object) -> float | None:
    """A number that is not negative and not infinite; None for `-`, `NA`, `nan` and words."""
    if isinstance(text, int | float):
        return None if (number := number_in_json(text)) is None else float(number)
    return real_or_none(str(text).strip())

"""Records of jobs in a text, a line each: how such a file is opened, and read line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from iolens.records import Item, Problem
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import Line, numbered_lines
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import WrongNumber
from iolens.sources.reading.saved_text import supplied_identity, zone_name
from iolens.sources.schedulers.job_records import JobClock, JobRows

Value = TypeVar("Value")


class JobLines:
    """Reads one text; a line that is not understood costs itself."""

    def __init__(self, place: str, options: ReadOptions, time_format: str | None = None) -> None:
        self.place, self.options = place, options
        self.clock = JobClock(options, place, time_format)
        self.rows = JobRows(place, options, options.settings.get("cluster"))
        self.unknown: list[str] = []  # what a line says that could not be read, and that its job has without it

    def items(self, lines: Iterator[Line | Problem]) -> Iterator[Item]:
        """All jobs, then what was left out on purpose."""
        for line in lines:
            if isinstance(line, Problem):
                yield line
            elif line.text.strip():
                try:
                    yield from self.line(line)
                except ValueError as error:
                    yield Problem(self.place, line.number, f"{error}: line left out")
                yield from (Problem(self.place, line.number, f"{reason}: not used") for reason in self.unknown)
                self.unknown = []
        yield from self.finish()

    def line(self, line: Line) -> Iterator[Item]:
        """What one line says; ValueError says why it cannot be used."""
        raise NotImplementedError

    def finish(self) -> Iterator[Item]:
        """What is left at the end."""
        return self.rows.finish()

    def or_unknown(self, read: Callable[[], Value]) -> Value | None:
        """A value that a job can do without: None where it cannot be read, which is reported."""
        try:
            return read()
        except WrongNumber as error:
            self.unknown.append(str(error))
            return None


@dataclass(frozen=True, slots=True)
class JobFile:
    """One file and how it is read."""

    path: Path
    options: ReadOptions
    identity: str
    reader: Callable[[str, ReadOptions], JobLines]

    def items(self) -> Iterator[Item]:
        """Its jobs."""
        return within(self.reader(str(self.path), self.options).items(numbered_lines(self.path)), self.options)


def job_identity(path: Path, options: ReadOptions, *settings: str) -> str:
    """The content, with everything that changes what it means: these settings, file system, zone and window."""
    return supplied_identity(
        path,
        **{name: options.settings.get(name) for name in settings},
        filesystem=options.filesystem,
        timezone=zone_name(options, options.filesystem),
        since=options.since,
        until=options.until,
    )

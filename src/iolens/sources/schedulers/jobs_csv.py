"""Jobs in a CSV file of any columns: the configuration says which of them is which.

`[sources.jobs-csv.columns]` maps our columns to the file's; `time_format` says how its times are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Item
from iolens.sources.reading.bounded_input import Line
from iolens.sources.reading.captures import FileSource, refuse_empty
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import shown
from iolens.sources.reading.saved_text import cells_of
from iolens.sources.schedulers.job_records import (
    JobRecord,
    checked_settings,
    elapsed_s,
    fitting_times,
    scaled_count,
)
from iolens.sources.schedulers.sacct_text import JobFile, JobLines, job_identity

SETTINGS: Final = {"columns": dict, "time_format": str, "timezone": str, "delimiter": str, "cluster": str}
NEEDED: Final = ("job_id", "start")
TEXTS: Final = ("user", "project", "name", "state", "cluster", "node_list")
MAPPED: Final = (*NEEDED, "end", "submit", "duration_s", "nodes", "cores", *TEXTS)


class JobsCsv(FileSource):
    """A CSV file of jobs. It is read by name only: nothing in it tells what it is."""

    name = "jobs-csv"
    summary = "jobs in a CSV file, columns as configured; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Never: any CSV file could be one."""
        return False

    def open(self, path: Path, options: ReadOptions) -> JobFile:
        """The file, if it can be read and the configuration maps its columns."""
        refuse_empty(path, "a CSV file of jobs")
        settings = options.settings
        checked_settings(settings, self.name, SETTINGS, str(path))
        columns: Mapping[str, str] = settings.get("columns", {})
        if unknown := [name for name in columns if name not in MAPPED]:
            where = "sources.jobs-csv.columns"
            raise InputError(str(path), f"unknown key {where}.{unknown[0]}", f"one of {', '.join(MAPPED)}")
        if missing := [name for name in NEEDED if name not in columns]:
            expected = '[sources.jobs-csv.columns] with job_id = "…" and start = "…" in the configuration'
            raise InputError(str(path), f"nothing says which column is {' and which is '.join(missing)}", expected)
        if len(settings.get("delimiter", ",")) != 1:
            raise InputError(str(path), f"sources.jobs-csv.delimiter = {settings['delimiter']!r}", "one character")
        identity = job_identity(path, options, "columns", "time_format", "delimiter", "cluster")
        return JobFile(path, options, identity, _TableReader)


SOURCE: Final = JobsCsv()


class _TableReader(JobLines):
    def __init__(self, place: str, options: ReadOptions) -> None:
        super().__init__(place, options, options.settings.get("time_format"))
        self.columns = options.settings["columns"]
        self.delimiter = options.settings.get("delimiter", ",")
        self.header: list[str] | None = None

    def _header(self, line: Line) -> list[str]:
        header = cells_of(line.text.removeprefix("\ufeff"), self.delimiter)
        for name, column in self.columns.items():
            if column not in header:
                problem = f"no column {column!r}, which sources.jobs-csv.columns.{name} names"
                raise InputError(self.place, problem, f"a header such as {shown(line.text)} to have it", line.number)
        return header

    def line(self, line: Line) -> Iterator[Item]:
        """One job; the first line names the columns."""
        if self.header is None:
            self.header = self._header(line)
            return
        cells = cells_of(line.text, self.delimiter)
        if len(cells) != len(self.header):
            raise ValueError(f"{len(cells)} of {len(self.header)} columns")
        by_column = dict(zip(self.header, cells, strict=True))
        values = {name: by_column[column] for name, column in self.columns.items()}
        if not values["job_id"]:
            raise ValueError("a line without the id of its job")
        yield from self.rows.add(self._job(values), line.number)

    def _job(self, values: Mapping[str, str]) -> JobRecord:
        duration = elapsed_s(values.get("duration_s", "").partition(".")[0], self._named("duration_s"))
        starts, ends, submits = (
            self.clock.times_us(values.get(name, ""), self._named(name)) for name in ("start", "end", "submit")
        )
        start_us, end_us = fitting_times(starts, ends, duration)
        if end_us is None and "end" not in self.columns and duration is not None and start_us is not None:
            end_us = start_us + duration * 1_000_000
        return JobRecord(
            values["job_id"],
            start_us,
            end_us,
            end_us is not None,
            duration,
            submits[0] if submits else None,
            {name: values.get(name) for name in TEXTS},
            *(scaled_count(values.get(name, ""), self._named(name)) for name in ("nodes", "cores")),
        )

    def _named(self, name: str) -> str:
        return str(self.columns.get(name, name))

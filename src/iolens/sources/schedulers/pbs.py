"""Accounting logs of PBS Professional, OpenPBS and Torque: `MM/DD/YYYY HH:MM:SS;E;jobid;key=value …`, a line an event.

S (started) and E (ended) records become rows; R, D and A records say that a run was requeued, deleted or aborted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from iolens.records import Item, Note, Problem
from iolens.sources.reading.bounded_input import Line, unpacked
from iolens.sources.reading.captures import FileSource, refuse_empty
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count, shown
from iolens.sources.schedulers.job_records import JobRecord, checked_settings, elapsed_s
from iolens.sources.schedulers.sacct_text import JobFile, JobLines, job_identity
from iolens.visible_text import counted

SETTINGS: Final = {"cluster": str, "timezone": str}
TIME_FORMAT: Final = "%m/%d/%Y %H:%M:%S"
STARTED, ENDED, REQUEUED, ABORTED = "S", "E", "R", "A"
_RECORD: Final = re.compile(r"(\d{2}/\d{2}/\d{4} \d{2}:\d{2}:\d{2});([A-Za-z]{1,2});([^;]*+);(.*+)", re.DOTALL)
_HEAD: Final = re.compile(rb"^\d{2}/\d{2}/\d{4} \d{2}:\d{2}:\d{2};[A-Za-z]{1,2};[^;\n]*+;", re.MULTILINE)
_PAIR: Final = re.compile(r"""(?<![\w.+-])([A-Za-z_][\w.+-]*+)=(?:"([^"]*+)"|'([^']*+)'|(\S*+))""")
_STATES: Final = {STARTED: "started", ENDED: "ended", REQUEUED: "requeued", ABORTED: "aborted"}

Value = TypeVar("Value")


class Pbs(FileSource):
    """Accounting logs of PBS."""

    name = "pbs"
    summary = "accounting logs of PBS Professional, OpenPBS and Torque; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins with a record of such a log."""
        return _HEAD.match(unpacked(head)) is not None

    def open(self, path: Path, options: ReadOptions) -> JobFile:
        """The file, if it can be read and the settings are right."""
        refuse_empty(path, "an accounting log of PBS")
        checked_settings(options.settings, self.name, SETTINGS, str(path))
        return JobFile(path, options, job_identity(path, options, "cluster"), LogReader)


SOURCE: Final = Pbs()


class LogReader(JobLines):
    """Reads one log, usually of a day."""

    def __init__(self, place: str, options: ReadOptions) -> None:
        super().__init__(place, options, TIME_FORMAT)
        self.records = self.events = self.without_start = 0

    def finish(self) -> Iterator[Item]:
        """What is left, and what has no row."""
        yield from self.rows.finish()
        if not self.records:
            yield Problem(self.place, None, "no record in it: expected `MM/DD/YYYY HH:MM:SS;E;jobid;key=value …`")
        if self.events:
            yield Note(
                self.place, None, f"{counted(self.events, 'record')} of other events (queued, deleted, …): no row"
            )
        if self.without_start:
            reason = (
                f"{counted(self.without_start, 'job')} requeued or aborted: the log does not say the time of the start"
            )
            yield Note(self.place, None, reason)

    def line(self, line: Line) -> Iterator[Item]:
        """One event."""
        match = _RECORD.fullmatch(line.text.strip())
        if match is None:
            raise ValueError(f"not a record of an accounting log: {shown(line.text)}")
        self.records += 1
        time, kind, job_id, message = match.groups()
        if kind not in _STATES:
            self.events += 1
            return
        if not job_id.strip():
            raise ValueError("a record without the id of its job")
        values = {name: plain or "".join(quoted) for name, *quoted, plain in _PAIR.findall(message)}
        job = self._job(job_id.strip(), kind, self.clock.times_us(time, "time"), values)
        if job.start_us is None and kind in (REQUEUED, ABORTED):
            self.without_start += 1
            return
        if job.start_us is None:
            raise ValueError(f"job {shown(job_id)} has no start=")
        yield from self.rows.add(job, line.number)

    def _job(self, job_id: str, kind: str, times: tuple[int, ...], values: Mapping[str, str]) -> JobRecord:
        is_end = kind != STARTED
        start, end, queued = (_seconds(values, name) for name in ("start", "end", "qtime"))
        end_us = end if end is not None else max(times)
        elapsed = elapsed_s(values.get("resources_used.walltime", ""), "resources_used.walltime") if is_end else None
        number, _, server = job_id.partition(".")
        hosts, slots = _hosts(values.get("exec_host", ""))
        cores = self.or_unknown(lambda: _count_of(values, ("Resource_List.ncpus", "total_execution_slots")))
        nodes = self.or_unknown(lambda: _count_of(values, ("Resource_List.nodect", "unique_node_count")))
        return JobRecord(
            number,
            start,
            end_us if is_end else None,
            is_end,
            elapsed,
            queued,
            {
                "user": values.get("user"),
                "project": _first(values, ("project", "account")),
                "name": values.get("jobname"),
                "cluster": server or None,
                "state": _state(kind, values),
                "node_list": ",".join(hosts) or None,
            },
            len(hosts) or nodes,
            cores if cores is not None else slots or None,
        )


def _seconds(values: Mapping[str, str], name: str) -> int | None:
    """A time in seconds since 1970; 0 stands for none."""
    return (count(values[name], name, 1 << 40) * 1_000_000 or None) if values.get(name) else None


def _state(kind: str, values: Mapping[str, str]) -> str:
    """What the event says; of an end, with which status."""
    status = values.get("Exit_status", "")
    return f"{_STATES[kind]} {status}" if kind == ENDED and status.lstrip("-").isdigit() else _STATES[kind]


def _hosts(text: str) -> tuple[list[str], int]:
    """The hosts of `n1/0*8+n2/1` or `n1/0-7+n2/0`, each once in their order, and how many places were named."""
    hosts: dict[str, None] = {}
    slots = 0
    for part in text.split("+"):
        name, slash, places = part.strip().partition("/")
        if name:
            hosts[name] = None
            slots += sum(_slots(place) for place in places.split(",")) if slash else 0
    return list(hosts), slots


def _slots(place: str) -> int:
    """Cores of `0*8` (8), `0-7` (8) or `3` (1)."""
    first, _, times = place.partition("*")
    if times.isascii() and times.isdigit() and len(times) < 8:
        return int(times)
    low, dash, high = first.partition("-")
    is_range = dash and low.isdecimal() and high.isdecimal() and len(high) < 8 and len(low) < 8
    return max(int(high) - int(low) + 1, 1) if is_range else 1


def _count_of(values: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    text = _first(values, names)
    return None if text is None else count(text, names[0])


def _first(values: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((values[name] for name in names if values.get(name)), None)

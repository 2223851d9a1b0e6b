"""Jobs of a user, put together from records, logs, counters of nodes and job_stats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from iolens.analyses.blame.results import WhoShare
from iolens.analyses.job_totals.results import JobTotals
from iolens.analyses.user_page.results import UserJob
from iolens.units import from_epoch_us

FIRST: Final = 5  # by each of disk time, bytes and core-hours
HOUR_S: Final = 3600.0

Row = Mapping[str, Any]


@dataclass(slots=True)
class JobParts:
    """What each layer has of one job."""

    record: Row | None = None
    runs: list[Row] = field(default_factory=list)
    shares: list[WhoShare] = field(default_factory=list)  # one for each file system, by job_stats
    totals: list[JobTotals] = field(default_factory=list)
    disk_seconds: list[float] = field(default_factory=list)


@dataclass(slots=True)
class JobsOfUser:
    """Jobs by id."""

    parts: dict[str, JobParts] = field(default_factory=dict)

    def of(self, job_id: str) -> JobParts:
        """The job, there or new."""
        return self.parts.setdefault(job_id, JobParts())

    def add_records(self, rows: Iterable[Row]) -> None:
        """Of one id several times the last counts."""
        for row in rows:
            self.of(str(row["job_id"])).record = row

    def add_runs(self, rows: Iterable[Row]) -> None:
        """A run without a job stands for itself."""
        for row in rows:
            self.of(str(row["job_id"] or row["run_id"])).runs.append(row)

    def add_shares(self, lines: Iterable[tuple[str, WhoShare]], counts_bytes: bool) -> None:
        """Lines of one file system by job id; by overlap their bytes are those of logs and nodes once more."""
        for job_id, line in lines:
            parts = self.of(job_id)
            if line.disk_seconds is not None:
                parts.disk_seconds.append(line.disk_seconds)
            if counts_bytes:
                parts.shares.append(line)

    def add_totals(self, lines: Iterable[JobTotals]) -> None:
        """Of one file system, by counters of nodes."""
        for line in lines:
            self.of(line.job.job_id).totals.append(line)

    def jobs(self) -> list[UserJob]:
        """All of them, in the order of their ids."""
        return [_job(job_id, parts) for job_id, parts in sorted(self.parts.items())]


def first_jobs(jobs: Sequence[UserJob], most: int = FIRST) -> list[UserJob]:
    """Those that are first by disk time, by bytes or by core-hours."""
    chosen: dict[str, UserJob] = {}
    for name in ("disk_seconds", "moved_bytes", "core_hours"):
        known = [job for job in jobs if getattr(job, name)]
        chosen |= {job.job_id: job for job in sorted(known, key=lambda job: -getattr(job, name))[:most]}
    order = sorted(chosen.values(), key=lambda job: (-(job.disk_seconds or 0.0), -(job.moved_bytes or 0)))
    return sorted(order, key=lambda job: job.disk_seconds is None)


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None: nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _job(job_id: str, parts: JobParts) -> UserJob:
    record, runs = parts.record, parts.runs
    start_us = record["start"] if record else min((row["start"] for row in runs), default=None)
    read, written = (_bytes(parts, f"{direction}_bytes") for direction in ("read", "write"))
    return UserJob(
        job_id=job_id,
        name=_name(parts),
        start=None if start_us is None else from_epoch_us(start_us),
        duration_s=record["duration_s"] if record else total(row["duration_s"] for row in runs),
        core_hours=_core_hours(parts),
        read_bytes=read,
        write_bytes=written,
        disk_seconds=total(parts.disk_seconds),
        runs=len(runs),
    )


def _name(parts: JobParts) -> str | None:
    named = [row["executable"] for row in parts.runs if row["executable"]]
    named += [line.executable for line in parts.shares if line.executable]
    return named[0] if named else parts.record["name"] if parts.record else None


def _bytes(parts: JobParts, name: str) -> int | None:
    """By the logs, else by job_stats, else by its nodes."""
    layers = ([row[name] for row in parts.runs], *([getattr(line, name) for line in lines] for lines in _lines(parts)))
    counted = next((value for layer in layers if (value := total(layer)) is not None), None)
    return None if counted is None else int(counted)


def _lines(parts: JobParts) -> tuple[Sequence[object], Sequence[object]]:
    return parts.shares, parts.totals


def _core_hours(parts: JobParts) -> float | None:
    """Cores × time of the record, else processes × time of the runs."""
    if parts.record and parts.record["cores"] is not None and parts.record["duration_s"] is not None:
        return float(parts.record["cores"] * parts.record["duration_s"] / HOUR_S)
    known = [row["processes"] * row["duration_s"] for row in parts.runs if row["processes"] and row["duration_s"]]
    return sum(known) / HOUR_S if known else None

"""The file system of a run: its rows, what disk I/Os cost there, and how it names jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import narwhals as nw
import pyarrow as pa

from iolens.analyses.attribution.job_ids import JobIdParts, guessed_parts
from iolens.analyses.attribution.work import DiskWork
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.utilization.model_rows import ModelRows
from iolens.store.parts import ALL_TIME, Days, Ends
from iolens.store.selection import StoreSelection
from iolens.units import SECOND_US

HOUR_US: Final = 3600 * SECOND_US


@dataclass(frozen=True, slots=True, eq=False)
class ObservedSystem:
    """`targets` are the OSTs of runs whose logs name none; `parts_of` takes an id of job_stats apart."""

    selection: StoreSelection
    applied: Sequence[AppliedCalibration]
    rows: ModelRows
    parts_of: Callable[[str], JobIdParts] = guessed_parts
    targets: frozenset[str] | None = None

    @property
    def work(self) -> DiskWork:
        """What disks did, in seconds."""
        return DiskWork(tuple(self.applied), self.rows)

    @property
    def calibrations(self) -> list[str]:
        """Their names."""
        return sorted({item.calibration.name for item in self.applied})

    def ids_of(self, jobs: Collection[str], known: Collection[str]) -> dict[str, list[str]]:
        """Of the known ids of job_stats those of each job."""
        by_job: dict[str, list[str]] = {}
        for text in sorted(known):
            parts = self.parts_of(text)
            job = text if text in jobs else parts.job_id if parts.is_whole else None
            if job is not None and job in jobs:
                by_job.setdefault(job, []).append(text)
        return by_job


@dataclass(frozen=True, slots=True, eq=False)
class DaysOfRuns:
    """Some days, which need not follow each other, and of them the hours of runs with one more on both sides."""

    selection: StoreSelection
    days: frozenset[date]
    hours: pa.Table
    looks_around: bool = True
    end_us: int | None = None
    ends: Ends = ALL_TIME

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """Rows that start on these days, in these hours."""
        return self._rows(table, self.days)

    def around(self, table: str) -> nw.LazyFrame[Any]:
        """Those of the day after, too, unless it does not look around: an interval may go on after midnight."""
        if not self.looks_around:
            return self.frame(table)
        return self._rows(table, self.days | {date.fromordinal(day.toordinal() + 1) for day in self.days})

    def beside(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """By the engine of the selection."""
        return self.selection.beside(rows)

    def slices(self, table: str, tick_us: int) -> Iterator[Days]:
        """All at once: sums are the engine's."""
        yield self

    def columns(self, table: str, names: Sequence[str], kind: str) -> None:
        """The engine is asked."""

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """Not known without asking."""
        return None

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """Of all days."""
        return self.selection.live_columns(table, names)

    def _rows(self, table: str, days: Collection[date]) -> nw.LazyFrame[Any]:
        rows = self.selection.rows_of_days(table, days)
        return with_hour(rows, "start_us").join(self.selection.beside(self.hours), on="hour", how="semi")


def with_hour(rows: nw.LazyFrame[Any], column: str) -> nw.LazyFrame[Any]:
    """Rows with the hour since 1970 in which they are."""
    return rows.with_columns((nw.col(column) // HOUR_US).alias("hour"))

"""Runs out of the store: one by its run or job id, or many by user, program, project and time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolens.analyses.runs.asked import RunConditions
from iolens.analyses.runs.finding_inputs import io_seconds
from iolens.analyses.runs.like_runs import LikeRates, like_rates
from iolens.analyses.runs.matching import joined_runs
from iolens.analyses.runs.measures import COLUMNS as RATE_COLUMNS
from iolens.analyses.runs.used_files import RunColumns, RunRecord
from iolens.config import load_config
from iolens.run_tables import RUN_FILES, RUN_RANKS, RUN_SERIES, RUNS, rate_of
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.store import Store

SHORTEST_ID: Final = 4  # digits of a run id that name it
_RUN_ID: Final = re.compile(r"[0-9a-f]{4,64}")

Row = Mapping[str, Any]
Kin = tuple[str | None, str | None, int | None]


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """Which runs: in names `*` and `?` stand for any; empty: all."""

    users: Sequence[str] = ()
    executables: Sequence[str] = ()
    projects: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    filesystem: str | None = None


@dataclass(slots=True)
class StoredRuns:
    """The runs of an open store."""

    store: Store
    _kin: dict[Kin, dict[str, float]] = field(default_factory=dict)  # rates by run, of like runs

    @classmethod
    def opened(cls, url: str | None, config: str | None) -> Self:
        """Of the configured store, which must exist."""
        store = Store(load_config(config).store_url(url))
        store.check_that_it_exists()
        return cls(store)

    @property
    def url(self) -> str:
        """Where the store is."""
        return self.store.url

    def named(self, which: str) -> list[Row]:
        """Rows of `runs` of that job id; else the run of that id, or whose id begins so; by their start."""
        frame = self._selection().frame(RUNS.name)
        rows = _rows(frame.filter(nw.col("job_id") == which))
        if not rows and _RUN_ID.fullmatch(which):
            rows = _rows(frame.filter(nw.col("run_id").str.starts_with(which)))
        return sorted(rows, key=lambda row: (row["start"] or 0, str(row["run_id"])))

    def of_log(self, name: str) -> list[Row]:
        """Rows of `runs` whose log has that name, with or without its suffix."""
        frame = self._selection().frame(RUNS.name)
        rows = _rows(frame.filter(nw.col("log").is_in([name, f"{name}.darshan"])))
        return sorted(rows, key=lambda row: (row["start"] or 0, str(row["run_id"])))

    def of_ids(self, run_ids: Sequence[str]) -> list[Row]:
        """Rows of `runs` of those ids, in that order."""
        frame = self._selection().frame(RUNS.name).filter(nw.col("run_id").is_in(list(run_ids)))
        by_id = {str(row["run_id"]): row for row in _rows(frame)}
        return [by_id[run_id] for run_id in run_ids if run_id in by_id]

    def wanted(self, wanted: WantedRuns) -> list[Row]:
        """Rows of `runs` with project, user and nodes of their jobs, those with most I/O time first."""
        selection = self._selection(wanted)
        frame = RunConditions(wanted.projects, wanted.users, wanted.executables).kept(joined_runs(selection))
        rows = _rows(frame.select(*selection.frame(RUNS.name).collect_schema().names()))
        return sorted(rows, key=lambda row: io_seconds(row) or 0.0, reverse=True)

    def record(self, row: Row) -> RunRecord:
        """A run with its files, ranks and activity, and what the scheduler knows of it."""
        return self.records([row])[0]

    def records(self, rows: Sequence[Row], tables: Sequence[str] = ()) -> list[RunRecord]:
        """Several at once; only those `tables` of detail, or all."""
        if not rows:
            return []
        details = {
            table.name: self._details(table.name, rows)
            for table in (RUN_FILES, RUN_RANKS, RUN_SERIES)
            if not tables or table.name in tables
        }
        return [
            RunRecord(
                self._with_job(row),
                *(
                    details.get(table.name, {}).get(str(row["run_id"]), RunColumns())
                    for table in (RUN_FILES, RUN_RANKS, RUN_SERIES)
                ),
            )
            for row in rows
        ]

    def like(self, run: Row) -> LikeRates | None:
        """Other runs of the same user, program and number of processes."""
        kin: Kin = (run["user"], run["executable"], run["processes"])
        if None in kin:
            return None
        if kin not in self._kin:
            self._kin[kin] = self._rates(kin)
        return like_rates([rate for run_id, rate in self._kin[kin].items() if run_id != run["run_id"]])

    def _rates(self, kin: Kin) -> dict[str, float]:
        frame = self._selection().frame(RUNS.name)
        for column, value in zip(("user", "executable", "processes"), kin, strict=True):
            frame = frame.filter(nw.col(column) == value)
        rates = {
            str(row["run_id"]): rate_of(row).mib_per_s
            for row in _table(frame.select("run_id", *RATE_COLUMNS)).to_pylist()
        }
        return {run_id: rate for run_id, rate in rates.items() if rate is not None}

    def _selection(self, wanted: WantedRuns | None = None) -> StoreSelection:
        asked = wanted or WantedRuns()
        return self.store.select_all(Scope(asked.filesystem, asked.since, asked.until))

    def _details(self, table: str, rows: Sequence[Row]) -> dict[str, RunColumns]:
        """Rows of a table by run; only the days of the runs are opened."""
        starts = [int(row["start"]) for row in rows]
        selection = self._selection().between(min(starts), max(starts) + 1)
        identities = [str(row["run_id"]) for row in rows]
        frame = selection.frame(table).filter(nw.col("run_id").is_in(identities))
        return dict(_by_run(_table(frame)))

    def _with_job(self, row: Row) -> Row:
        """With the nodes, project and user of the scheduler's record, where the log has none."""
        lacking = [name for name in ("nodes", "project", "user") if row[name] is None]
        if not lacking or row["job_id"] is None or row["start"] is None:
            return row
        around = [job for job in self.store.jobs(job_id=str(row["job_id"])) if _overlap(job, row)]
        if _clusters(around) > 1:
            around = [job for job in around if job["user"] == row["user"]]
        if _clusters(around) != 1:
            return row  # several clusters have such a job: which is not known
        return {**row, **{name: around[-1][name] for name in lacking}}


def _clusters(jobs: Sequence[Row]) -> int:
    return len({job["cluster"] for job in jobs})


def _overlap(job: Row, row: Row) -> bool:
    """Whether the run began while the job ran, to a minute: clocks differ."""
    slack_us = 60_000_000
    return bool(job["start"] - slack_us <= row["start"] <= job["time"] + slack_us)


def _by_run(table: pa.Table) -> Iterable[tuple[str, RunColumns]]:
    ordered = table.sort_by([("run_id", "ascending")])
    identities = ordered.column("run_id").to_numpy(zero_copy_only=False).astype(str)
    names, starts = np.unique(identities, return_index=True)
    ends = [*starts[1:].tolist(), len(ordered)][: len(names)]  # none of no rows
    for name, first, last in zip(names, starts.tolist(), ends, strict=True):
        part = ordered.slice(first, last - first)
        columns = {
            column: part.column(column).to_numpy(zero_copy_only=False)
            for column in part.column_names
            if not pa.types.is_temporal(part.schema.field(column).type)
        }
        yield str(name), RunColumns(len(part), columns)


def _rows(frame: nw.LazyFrame[Any]) -> list[Row]:
    """Rows of `runs` with times in microseconds since 1970; a column of a newer iolens is None in an older table."""
    table = _table(frame)
    times = {"time": "epoch_us", "start": "start_us"}
    for column, whole in times.items():
        place = table.schema.get_field_index(column)
        table = table.set_column(place, column, pc.cast(table.column(whole), pa.int64()))
    absent = {column.name: None for column in RUNS.columns}
    return [{**absent, **row} for row in table.to_pylist()]


def _table(frame: nw.LazyFrame[Any]) -> pa.Table:
    table: pa.Table = frame.collect(backend="pyarrow").to_native()
    return table

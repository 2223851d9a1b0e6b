"""Jobs out of the store: those that ran in a window, or one by its id. Of one seen again, the record that counts.

What samples of its nodes tell of a job (source `job-files`) has another start than the scheduler's record, and may come
from several nodes: it counts only where no record of a scheduler overlaps, and as one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import duckdb
from duckdb import ColumnExpression, ConstantExpression

from iolens.schema import JOBS, LATEST_US
from iolens.store.duckdb_engine import connection, newest, query, relation
from iolens.store.placing import files_between
from iolens.store.tables import Tables
from iolens.units import epoch_us

SAMPLED: Final = "job-files"  # the source of rows that samples of nodes made
SAME_JOB_US: Final = 60_000_000  # clocks of nodes and schedulers differ, and prologs take a while
ROWS_AT_ONCE: Final = 10_000  # that are held twice, as the engine gives them and as they are returned


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are alike: what each part of a record may be; empty: anything. In names `*` and `?` stand for any."""

    job_ids: Sequence[str] = ()
    names: Sequence[str] = ()
    users: Sequence[str] = ()
    projects: Sequence[str] = ()
    clusters: Sequence[str] = ()
    states: Sequence[str] = ()
    cores: Sequence[int] = ()

    def condition(self) -> tuple[str, list[object]]:
        """As SQL, and its parameters."""
        equal = {
            "job_id": self.job_ids, "user": self.users, "project": self.projects, "cluster": self.clusters,
            "state": self.states, "cores": self.cores,
        }  # fmt: skip
        parts = [f'"{column}" IN ({", ".join("?" * len(values))})' for column, values in equal.items() if values]
        parameters: list[object] = [value for values in equal.values() for value in values]
        if self.names:
            parts.append(f"({' OR '.join(['name GLOB ?'] * len(self.names))})")
            parameters += self.names
        return " AND ".join(parts) or "true", parameters


def stored_jobs(
    tables: Tables,
    since: datetime | None = None,
    until: datetime | None = None,
    job_id: str | None = None,
    like: JobFilter | None = None,
) -> list[dict[str, object]]:
    """Rows of `jobs` that overlap [since, until), in the order of their start; times in microseconds since 1970.

    Of a job that was running when it was last seen only that much is known: it overlaps up to its `time`.
    """
    recorded = recorded_jobs(tables, since, until, job_id)
    if recorded is None:
        return []
    columns = ", ".join(
        f'epoch_us("{column.name}") AS "{column.name}"' if column.type == "timestamp" else f'"{column.name}"'
        for column in JOBS.columns
    )
    condition, parameters = (like or JobFilter()).condition()
    rows = recorded.rows
    sql = f"SELECT {columns} FROM rows WHERE {condition} ORDER BY start_us, job_id"  # noqa: S608
    assert rows is not None
    answer = connection().execute(sql, parameters)
    names = [column.name for column in JOBS.columns]
    jobs: list[dict[str, object]] = []
    while piece := answer.fetchmany(ROWS_AT_ONCE):
        jobs += [dict(zip(names, row, strict=False)) for row in piece]  # strict takes a fifth longer
    return _one_of_each(jobs) if recorded.is_sampled else jobs


@dataclass(frozen=True, slots=True)
class RecordedJobs:
    """Records of a window, one for each key; where any is of samples, those of one job may be several."""

    rows: duckdb.DuckDBPyRelation
    is_sampled: bool


def recorded_jobs(
    tables: Tables, since: datetime | None = None, until: datetime | None = None, job_id: str | None = None
) -> RecordedJobs | None:
    """Records that overlap [since, until); None where none was ever stored."""
    handle = tables.load(JOBS.name)
    if handle is None:
        return None
    first_us = 0 if since is None else epoch_us(since)
    last_us = LATEST_US if until is None else epoch_us(until)
    rows = relation(tables, JOBS.name, files_between(handle, first_us - SAME_JOB_US, last_us + SAME_JOB_US)).filter(
        ColumnExpression("start_us") < ConstantExpression(last_us + SAME_JOB_US)  # all rows of a key have one start
    )
    if job_id is not None:
        rows = rows.filter(ColumnExpression("job_id") == ConstantExpression(job_id))
    rows = newest(rows, JOBS) if _has_repeats(rows) else rows
    is_sampled = bool(rows.filter(f"source = '{SAMPLED}'").project("1").limit(1).fetchall())
    rows = _recorded_or_alone(rows) if is_sampled else rows
    within = (ColumnExpression("epoch_us") >= ConstantExpression(first_us)) & (
        ColumnExpression("start_us") < ConstantExpression(last_us)
    )
    return RecordedJobs(rows.filter(within), is_sampled)


def _recorded_or_alone(rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """All records of schedulers, and what samples tell of jobs that have none at that time."""
    sql = f"""SELECT * FROM rows AS own WHERE source <> '{SAMPLED}' OR NOT EXISTS (
                SELECT 1 FROM rows AS other
                WHERE other.source <> '{SAMPLED}' AND other.job_id = own.job_id
                  AND (other.cluster = own.cluster OR other.cluster IS NULL OR own.cluster IS NULL)
                  AND other.start_us <= own.epoch_us + {SAME_JOB_US}
                  AND own.start_us <= other.epoch_us + {SAME_JOB_US})"""  # noqa: S608 (constants)
    chosen = rows.query("rows", sql)
    assert chosen is not None
    return chosen


def _one_of_each(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows, in the order of their start, with those that nodes of one job brought each by itself as one."""
    parts: list[list[dict[str, Any]]] = []
    sampled: dict[tuple[object, object], list[dict[str, Any]]] = {}  # the last run of each such job
    for job in jobs:
        key = job["cluster"], job["job_id"]
        run = sampled.get(key) if job["source"] == SAMPLED else None
        if run is not None and job["start"] <= max(row["time"] for row in run) + SAME_JOB_US:
            run.append(job)
            continue
        parts.append([job])
        if job["source"] == SAMPLED:
            sampled[key] = parts[-1]
    return [part[0] if len(part) == 1 else _merged(part) for part in parts]


def _merged(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One job from the first begin to the last end, on all nodes that any of its rows names."""
    end_us = max(row["time"] for row in rows)
    nodes = {row["node_list"]: row["nodes"] for row in rows}
    about = {"node_list": ",".join(nodes), "nodes": sum(nodes.values())}
    return {**rows[0], **about, "time": end_us, "duration_s": (end_us - rows[0]["start"]) / 1e6}


def _has_repeats(rows: duckdb.DuckDBPyRelation) -> bool:
    """Whether any job has several records; it takes a third of the time of choosing among them, which few need."""
    key = ", ".join(f'"{name}"' for name in JOBS.key)
    return bool(rows.aggregate("count(*) AS records", key).filter("records > 1").limit(1).fetchall())


def last_jobs(tables: Tables, source: str) -> dict[str | None, int]:
    """By cluster, when the last record of a source was taken, in microseconds since 1970."""
    handle = tables.load(JOBS.name)
    if handle is None:
        return {}
    sql = "SELECT cluster, max(epoch_us) FROM stored WHERE source = ? GROUP BY cluster"
    return dict(query(tables, handle, JOBS.name, sql, [source]))

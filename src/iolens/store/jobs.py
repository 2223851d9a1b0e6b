"""Jobs out of the store: those that ran in a window, or one by its id. Of one seen again, the record that counts.

A run of a job is its cluster, id and start. A record loaded with another zone has the same cluster and id, and start
and submission that differ by the same whole number of quarter-hours, at most 26 h (an hour more or less for the
submission: clocks may have been changed in between). It is the same run if both have the same user, nodes, state and
elapsed time, or if the two overlap in time, which two runs of one job never do, or if the earlier record is of a job
that was running, with the same user and nodes, and its submission differs by just as much. Of such records the one
that was loaded last counts. Those of one ingest were read with one zone: there, every start is another run. Tasks of
arrays have ids of their own.

What samples of its nodes tell of a job (source `job-files`) has another start than the scheduler's record, and may come
from several nodes: it counts only where no record of a scheduler overlaps, and as one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from duckdb import ColumnExpression, ConstantExpression

from iolens.schema import JOBS, LATEST_US
from iolens.store.duckdb_engine import connection, newest, query, relation
from iolens.store.placing import files_between
from iolens.store.tables import Tables
from iolens.units import epoch_us

SAMPLED: Final = "job-files"  # the source of rows that samples of nodes made
SAME_JOB_US: Final = 60_000_000  # clocks of nodes and schedulers differ, and prologs take a while
ZONES_US: Final = 26 * 3_600_000_000  # from the zone of UTC+14 to that of UTC-12
_QUARTER_US: Final = 900_000_000  # what all zones are multiples of
_HOUR_US: Final = 3_600_000_000
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
    rows = _around(tables, handle, first_us, last_us)
    if job_id is not None:
        rows = rows.filter(ColumnExpression("job_id") == ConstantExpression(job_id))
    rows = _in_one_zone(newest(rows, JOBS)) if _has_repeats(rows) else rows
    is_sampled = bool(rows.filter(f"source = '{SAMPLED}'").project("1").limit(1).fetchall())
    rows = _recorded_or_alone(rows) if is_sampled else rows
    within = (ColumnExpression("epoch_us") >= ConstantExpression(first_us)) & (
        ColumnExpression("start_us") < ConstantExpression(last_us)
    )
    return RecordedJobs(rows.filter(within), is_sampled)


def _around(tables: Tables, handle: DeltaTable, first_us: int, last_us: int) -> duckdb.DuckDBPyRelation:
    """Records of that time, and those that may be of the same runs, by another zone."""
    rows = relation(tables, JOBS.name, files_between(handle, first_us - ZONES_US, last_us + ZONES_US))
    # all rows of a key have one start
    return rows.filter(ColumnExpression("start_us") < ConstantExpression(last_us + ZONES_US))


_SUPERSEDED: Final = f"""
    WITH several AS (
        SELECT cluster, job_id, start_us, epoch_us, epoch_us(submit) AS submit_us, duration_s, ended, "user", node_list,
               state, coalesce(loaded_us, 0) AS loaded
        FROM rows WHERE source <> '{SAMPLED}' QUALIFY count(*) OVER (PARTITION BY cluster, job_id) > 1),
    pairs AS (
        SELECT older.cluster, older.job_id, older.start_us, newer.start_us - older.start_us AS shift_us,
               newer.submit_us - older.submit_us AS submit_shift_us,
               newer.start_us < older.epoch_us AND older.start_us < newer.epoch_us AS overlap,
               CASE WHEN older.ended AND newer.ended
                    THEN coalesce(older.duration_s = newer.duration_s, false)
                         AND coalesce(older.state = newer.state, true)
                    ELSE coalesce(NOT older.ended AND newer.submit_us - older.submit_us = shift_us, false) END
                   AND coalesce(older."user" = newer."user", true)
                   AND coalesce(older.node_list = newer.node_list, true) AS alike
        FROM several AS older JOIN several AS newer
        ON newer.job_id = older.job_id AND newer.cluster IS NOT DISTINCT FROM older.cluster
           AND (newer.loaded > older.loaded
                OR (newer.loaded = 0 AND older.loaded = 0 AND newer.start_us > older.start_us)))
    SELECT DISTINCT cluster, job_id, start_us FROM pairs
    WHERE shift_us <> 0 AND abs(shift_us) <= {ZONES_US} AND shift_us % {_QUARTER_US} = 0 AND (overlap OR alike)
      AND (submit_shift_us IS NULL OR abs(submit_shift_us - shift_us) IN (0, {_HOUR_US}))"""  # noqa: S608 (constants)


def _in_one_zone(rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Records without those that were loaded again with another zone."""
    sql = f"""WITH superseded AS ({_SUPERSEDED})
              SELECT * FROM rows AS own WHERE NOT EXISTS (
                SELECT 1 FROM superseded WHERE superseded.job_id = own.job_id AND superseded.start_us = own.start_us
                AND superseded.cluster IS NOT DISTINCT FROM own.cluster)"""  # noqa: S608 (constants)
    chosen = rows.query("rows", sql)
    assert chosen is not None
    return chosen


def superseded_jobs(tables: Tables, first_us: int, last_us: int) -> pa.Table:
    """Records of that time that were loaded again with another zone: `job_id`, `_cluster` (empty: none), `start_us`."""
    handle = tables.load(JOBS.name)
    assert handle is not None
    rows = _around(tables, handle, first_us, last_us)
    names = "job_id, coalesce(cluster, '') AS _cluster, start_us"
    if not _has_repeats(rows):
        return rows.project(names).limit(0).to_arrow_table()
    chosen = newest(rows, JOBS).query("rows", f"SELECT {names} FROM ({_SUPERSEDED})")  # noqa: S608 (constants)
    assert chosen is not None
    return chosen.to_arrow_table()


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
    """Whether any id has several records; it takes a third of the time of choosing among them, which few need."""
    return bool(rows.aggregate("count(*) AS records", "cluster, job_id").filter("records > 1").limit(1).fetchall())


def last_jobs(tables: Tables, source: str) -> dict[str | None, int]:
    """By cluster, when the last record of a source was taken, in microseconds since 1970."""
    handle = tables.load(JOBS.name)
    if handle is None:
        return {}
    sql = "SELECT cluster, max(epoch_us) FROM stored WHERE source = ? GROUP BY cluster"
    return dict(query(tables, handle, JOBS.name, sql, [source]))

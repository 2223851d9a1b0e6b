"""Jobs out of the store: put together from what each layer knows, and what their nodes counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from duckdb import ColumnExpression, ConstantExpression

from iolens.schema import CLIENT_IO, CLIENT_METADATA, CLIENT_OPS, CLIENT_RPCS, JOBS, LATEST_US, Table
from iolens.store.duckdb_engine import connection, newest, query, relation
from iolens.store.placing import files_between
from iolens.store.tables import Tables
from iolens.units import epoch_us

# Jobs out of the store ------------------------------------------------------------------------------------------------
# Those that ran in a window, or one by its id. Of one seen again, the record that counts.
#
# A run of a job is its cluster, id and start. A record loaded with another zone has the same cluster and id, and start
# and submission that differ by the same whole number of quarter-hours, at most 26 h (an hour more or less for the
# submission: clocks may have been changed in between). It is the same run if both have the same user, nodes, state and
# elapsed time, or if the two overlap in time, which two runs of one job never do, or if the earlier record is of a job
# that was running, with the same user and nodes, and its submission differs by just as much. Of such records the one
# that was loaded last counts. Those of one ingest were read with one zone: there, every start is another run. Tasks of
# arrays have ids of their own.
#
# What samples of its nodes tell of a job (source `job-files`) has another start than the scheduler's record, and may
# come from several nodes: it counts only where no record of a scheduler overlaps, and as one job.

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


# Jobs put together from what each layer knows -------------------------------------------------------------------------
# Records of schedulers, Darshan runs, job_stats, counters of nodes.
#
# A job is a cluster and an id; of several records of it the last counts. Where several clusters have a job of that id,
# a run belongs to the one that ran at its time; job_stats do not say which they mean, and stay a job without a cluster.

_TEXT, _WHOLE, _REAL, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
RECORDS: Final = pa.schema(
    {
        "cluster": _TEXT, "job_id": _TEXT, "start_us": _WHOLE, "epoch_us": _WHOLE, "duration_s": _REAL, "user": _TEXT,
        "project": _TEXT, "name": _TEXT, "state": _TEXT, "nodes": _WHOLE, "cores": _WHOLE, "ended": _FLAG,
        "filesystem": _TEXT,
    }
)  # fmt: skip
RUNS: Final = pa.schema(
    {
        "run_id": _TEXT, "job_id": _TEXT, "filesystem": _TEXT, "start_us": _WHOLE, "epoch_us": _WHOLE,
        "duration_s": _REAL, "user": _TEXT, "project": _TEXT, "executable": _TEXT, "processes": _WHOLE, "nodes": _WHOLE,
        "read_bytes": _WHOLE, "write_bytes": _WHOLE,
        "place": _WHOLE,  # the first run that names a program names the job
    }
)  # fmt: skip
SHARES: Final = pa.schema(
    {
        "job_id": _TEXT, "filesystem": _TEXT, "disk_seconds": _REAL, "share_pct": _REAL, "read_bytes": _WHOLE,
        "write_bytes": _WHOLE, "user": _TEXT, "executable": _TEXT,
        "is_counted": _FLAG,  # false: bytes are those of logs and nodes once more
    }
)  # fmt: skip
TOTALS: Final = pa.schema(
    {"job_id": _TEXT, "cluster": _TEXT, "filesystem": _TEXT, "read_bytes": _WHOLE, "write_bytes": _WHOLE}
)
RECORD: Final = "record"  # a layer by which a job is known, beside log, job_stats and nodes

_MERGED: Final = f"""
    WITH last_records AS (
        SELECT * FROM records
        QUALIFY row_number() OVER (PARTITION BY cluster, job_id ORDER BY start_us DESC, epoch_us DESC) = 1),
    recorded AS (
        SELECT *, row_number() OVER (ORDER BY job_id, cluster) AS home, count(*) OVER (PARTITION BY job_id) AS namesakes
        FROM last_records),
    run_homes AS (
        SELECT runs.*, coalesce(nullif(runs.job_id, ''), run_id) AS known_as, home
        FROM runs LEFT JOIN recorded ON recorded.job_id = runs.job_id AND (
            namesakes = 1 OR (runs.start_us <= recorded.epoch_us + {SAME_JOB_US}
                              AND runs.epoch_us >= recorded.start_us - {SAME_JOB_US}))),
    placed_runs AS (
        SELECT * REPLACE (CASE count(*) OVER (PARTITION BY run_id) WHEN 1 THEN home END AS home) FROM run_homes
        QUALIFY row_number() OVER (PARTITION BY run_id) = 1),
    of_runs AS (
        SELECT home, known_as AS job_id, count(*) AS runs, min(start_us) AS start_us, max(epoch_us) AS end_us,
               sum(duration_s) AS duration_s, sum(processes * duration_s) / 3600 AS core_hours,
               arg_min("user", place) AS "user", arg_min(project, place) AS project, max(nodes) AS nodes,
               arg_min(executable, place) AS executable, {{sums}}, list(DISTINCT filesystem) AS filesystems
        FROM placed_runs GROUP BY home, known_as),
    of_shares AS (
        SELECT home, shares.job_id, sum(disk_seconds) AS disk_seconds, sum(share_pct) AS share_pct,
               min(shares."user") AS "user", min(executable) FILTER (is_counted) AS executable, {{counted_sums}},
               bool_or(is_counted) AS is_counted, list(DISTINCT shares.filesystem) AS filesystems
        FROM shares LEFT JOIN recorded ON recorded.job_id = shares.job_id AND namesakes = 1
        GROUP BY home, shares.job_id),
    of_totals AS (
        SELECT home, totals.job_id, {{sums}}, list(DISTINCT totals.filesystem) AS filesystems
        FROM totals LEFT JOIN recorded
        ON recorded.job_id = totals.job_id AND recorded.cluster IS NOT DISTINCT FROM totals.cluster
        GROUP BY home, totals.job_id),
    keys AS (
        SELECT home, job_id FROM recorded UNION SELECT home, job_id FROM of_runs
        UNION SELECT home, job_id FROM of_shares UNION SELECT home, job_id FROM of_totals),
    merged AS (
        SELECT keys.job_id, recorded.cluster, coalesce(recorded."user", of_runs."user", of_shares."user") AS "user",
               coalesce(recorded.project, of_runs.project) AS project,
               coalesce(of_runs.executable, of_shares.executable, recorded.name) AS name, recorded.name AS job_name,
               coalesce(recorded.start_us, of_runs.start_us) AS start_us,
               CASE WHEN recorded.home IS NULL THEN of_runs.end_us
                    WHEN recorded.ended IS DISTINCT FROM false THEN recorded.epoch_us END AS end_us,
               CASE WHEN recorded.home IS NULL THEN of_runs.duration_s ELSE recorded.duration_s END AS duration_s,
               coalesce(recorded.nodes, of_runs.nodes) AS nodes, recorded.cores,
               coalesce(recorded.cores * recorded.duration_s / 3600, of_runs.core_hours) AS core_hours,
               coalesce(of_runs.read_bytes, of_shares.read_bytes, of_totals.read_bytes) AS read_bytes,
               coalesce(of_runs.write_bytes, of_shares.write_bytes, of_totals.write_bytes) AS write_bytes,
               disk_seconds, share_pct, coalesce(runs, 0) AS runs, recorded.state,
               list_sort(list_distinct(list_concat([recorded.filesystem], of_runs.filesystems, of_shares.filesystems,
                                                   of_totals.filesystems))) AS filesystems,
               list_filter([CASE WHEN recorded.home IS NOT NULL THEN '{RECORD}' END, CASE WHEN runs > 0 THEN 'log' END,
                            CASE WHEN is_counted THEN 'job_stats' END,
                            CASE WHEN of_totals.job_id IS NOT NULL THEN 'nodes' END], lambda word : word IS NOT NULL)
                   AS known_by,
               of_runs.job_id IS NOT NULL OR of_shares.job_id IS NOT NULL OR of_totals.job_id IS NOT NULL AS did_io
        FROM keys
        LEFT JOIN recorded ON recorded.home = keys.home
        LEFT JOIN of_runs ON of_runs.job_id = keys.job_id AND of_runs.home IS NOT DISTINCT FROM keys.home
        LEFT JOIN of_shares ON of_shares.job_id = keys.job_id AND of_shares.home IS NOT DISTINCT FROM keys.home
        LEFT JOIN of_totals ON of_totals.job_id = keys.job_id AND of_totals.home IS NOT DISTINCT FROM keys.home)
"""  # noqa: S608 (constants)


def _sums(condition: str = "") -> str:
    """Bytes as they fit: a sum that is larger than any number of bytes can be is not known."""
    return ", ".join(f"TRY_CAST(sum({name}) {condition} AS BIGINT) AS {name}" for name in ("read_bytes", "write_bytes"))


MERGED: Final = _MERGED.format(sums=_sums(), counted_sums=_sums("FILTER (is_counted)"))
ROWS: Final = (
    "job_id", "cluster", "user", "project", "name", "job_name", "start_us", "end_us", "duration_s", "nodes", "cores",
    "core_hours", "read_bytes", "write_bytes", "disk_seconds", "share_pct", "runs", "state", "filesystems", "known_by",
)  # fmt: skip
ORDERS: Final = {
    "start": "start_us",
    "disk": "disk_seconds",
    "bytes": "coalesce(read_bytes::HUGEINT + write_bytes, read_bytes, write_bytes)",
    "read": "read_bytes",
    "written": "write_bytes",
    "core-hours": "core_hours",
    "duration": "duration_s",
}


@dataclass(frozen=True, slots=True)
class MergedCondition:
    """Which merged jobs are wanted: empty parts mean anything.

    `text` is the begin of an id, or a part of a user, project or name; with `*` or `?` it is the whole of one of them.
    Case does not matter. In `names` `*` and `?` stand for anything. `did_io`: only jobs that some layer beside records
    knows.
    """

    text: str = ""
    users: Sequence[str] = ()
    projects: Sequence[str] = ()
    names: Sequence[str] = ()
    clusters: Sequence[str] = ()
    states: Sequence[str] = ()
    did_io: bool = False

    def sql(self) -> tuple[str, list[object]]:
        """As SQL, and its parameters."""
        equal = {"user": self.users, "project": self.projects, "cluster": self.clusters, "state": self.states}
        parts = [f'"{column}" IN ({", ".join("?" * len(values))})' for column, values in equal.items() if values]
        parameters: list[object] = [value for values in equal.values() for value in values]
        if self.names:
            parts.append(f"({' OR '.join(['name GLOB ? OR job_name GLOB ?'] * len(self.names))})")
            parameters += [name for name in self.names for _ in range(2)]
        if self.text:
            parts.append(f"({' OR '.join(_TEXT_MATCHES)})")
            parameters += self._patterns()
        parts += ["did_io"] if self.did_io else []
        return " AND ".join(parts) or "true", parameters

    def _patterns(self) -> list[object]:
        escaped = re.sub(r"[\\%_]", r"\\\g<0>", self.text)
        if "*" in self.text or "?" in self.text:
            return [escaped.replace("*", "%").replace("?", "_")] * len(_TEXTS)
        return [f"{escaped}%", *[f"%{escaped}%"] * (len(_TEXTS) - 1)]


_TEXTS: Final = ("job_id", "user", "project", "name", "job_name")
_TEXT_MATCHES: Final = [f""""{column}" ILIKE ? ESCAPE '\\'""" for column in _TEXTS]


@dataclass(frozen=True, slots=True)
class JobLayers:
    """Rows of each layer, in the columns above."""

    records: duckdb.DuckDBPyRelation | pa.Table = field(default_factory=RECORDS.empty_table)
    runs: pa.Table = field(default_factory=RUNS.empty_table)
    shares: pa.Table = field(default_factory=SHARES.empty_table)
    totals: pa.Table = field(default_factory=TOTALS.empty_table)

    def jobs(
        self,
        condition: MergedCondition | None = None,
        order: str = "start",
        *,
        reverse: bool = False,
        top: int | None = None,
        skip: int = 0,
    ) -> tuple[list[dict[str, Any]], int]:
        """Jobs as rows with `ROWS`, the most of `order` first, or last with `reverse`; and how many there are in all.

        Those of which it is not known come last.
        """
        where, parameters = (condition or MergedCondition()).sql()
        columns = ", ".join(f'"{column}"' for column in ROWS)
        direction = "ASC" if reverse else "DESC"
        page = f"""{MERGED} SELECT {columns}, count(*) OVER () FROM merged WHERE {where}
                   ORDER BY {ORDERS[order]} {direction} NULLS LAST, start_us DESC NULLS LAST, job_id, cluster NULLS LAST
                   LIMIT ? OFFSET ?"""  # noqa: S608
        rows = self._ask(page, [*parameters, _NO_LIMIT if top is None else top, skip])
        if not rows and skip:
            ((known,),) = self._ask(f"{MERGED} SELECT count(*) FROM merged WHERE {where}", parameters)  # noqa: S608
            return [], known
        return [dict(zip(ROWS, row[:-1], strict=True)) for row in rows], rows[0][-1] if rows else 0

    def _ask(self, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """The engine takes the tables by the names of these variables."""
        records, runs, shares, totals = self.records, self.runs, self.shares, self.totals
        assert None not in (records, runs, shares, totals)
        return connection().execute(sql, list(parameters)).fetchall()


_NO_LIMIT: Final = 2**62


def records_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Records as `store.jobs` gives them."""
    names = {"start_us": "start", "epoch_us": "time"}
    return pa.Table.from_pylist([{name: row[names.get(name, name)] for name in RECORDS.names} for row in rows], RECORDS)


def record_columns() -> str:
    """What to select of a relation of `jobs` for `JobLayers.records`."""
    declared = {column.name for column in JOBS.columns} | {"start_us", "epoch_us"}
    assert set(RECORDS.names) <= declared
    return ", ".join(f'"{name}"' for name in RECORDS.names)


# Rows of the client tables summed for one job, or for some nodes between two times ------------------------------------
# One row per node and kind.

_TAKEN: Final = {
    CLIENT_IO.name: ((), ("read_bytes", "write_bytes")),
    CLIENT_RPCS.name: (("direction", "pages", "page_bytes"), ("rpcs",)),
    CLIENT_METADATA.name: (("operation",), ("count", "sum_us")),
    CLIENT_OPS.name: (("target", "operation"), ("count", "sum_us")),
}
"""By table: what tells sums apart beside file system and node, and what is summed."""
_OF_JOB: Final = "job_id = $3"
_OF_NODES: Final = """job_id IS NULL AND 2 * (least(epoch_us, $2) - greatest(start_us, $1)) > epoch_us - start_us
                   AND (list_contains($3, node) OR list_contains($3, split_part(node, '.', 1)))"""


@dataclass(frozen=True)
class ClientWindow:
    """Which rows count: those of a job's own samples (`job_id`), or of `nodes` by whatever sampled them.

    Of nodes, an interval counts when more than half of it lies within [start_us, end_us), so that it never counts for
    two jobs that follow each other. Nodes may be named without the domain that their own names have.
    """

    start_us: int
    end_us: int
    job_id: str | None = None
    nodes: Sequence[str] = ()


def client_sums(tables: Tables, window: ClientWindow) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Table and columns of each sum; `source` says who sampled it, `samples` how often, `end_us` until when."""
    for table in (CLIENT_IO, CLIENT_RPCS, CLIENT_METADATA, CLIENT_OPS):
        yield from ((table.name, row) for row in _summed(tables, table, window))


def _summed(tables: Tables, table: Table, window: ClientWindow) -> list[dict[str, Any]]:
    handle = tables.load(table.name)
    if handle is None:
        return []
    kinds, values = _TAKEN[table.name]
    names = ("filesystem", "node", "source", *kinds)
    columns = ", ".join(f'"{name}"' for name in names)
    # Bytes are null where they were never read; times are unknown as soon as one of the summed rows has none.
    sums = [f'CAST(sum("{name}") AS BIGINT) AS "{name}"' for name in values if name != "sum_us"]
    sums += ['CASE WHEN count("sum_us") = count(*) THEN CAST(sum("sum_us") AS BIGINT) END AS "sum_us"'] * (
        "sum_us" in values
    )
    chosen = _OF_JOB if window.job_id is not None else _OF_NODES
    sql = f"""SELECT {columns}, {", ".join(sums)}, sum(duration_s) AS duration_s, count(*) AS samples,
                     min(start_us) AS start_us, max(epoch_us) AS end_us, bool_or(after_reset) AS after_reset
              FROM rows WHERE start_us <= $2 AND epoch_us >= $1 AND {chosen}
              GROUP BY {columns} ORDER BY {columns}"""  # noqa: S608 (names of the schema)
    rows = relation(tables, table.name, files_between(handle, window.start_us, window.end_us))
    assert rows is not None
    who: object = window.job_id if window.job_id is not None else list(window.nodes)
    answer = connection().execute(sql, [window.start_us, window.end_us, who])
    keys = [column[0] for column in answer.description or ()]
    return [dict(zip(keys, row, strict=True)) for row in answer.fetchall()]

"""Jobs put together from what each layer knows: records of schedulers, Darshan runs, job_stats, counters of nodes.

A job is a cluster and an id; of several records of it the last counts. Where several clusters have a job of that id, a
run belongs to the one that ran at its time; job_stats do not say which they mean, and stay a job without a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
import pyarrow as pa

from iolens.schema import JOBS
from iolens.store.duckdb_engine import connection
from iolens.store.jobs import SAME_JOB_US

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

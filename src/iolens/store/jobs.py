"""Jobs out of the store: those that ran in a window, or one by its id. Of one seen again, the record that counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from iolens.schema import JOBS, LATEST_US
from iolens.store.duckdb_engine import connection, newest, query, relation
from iolens.store.placing import files_between
from iolens.store.tables import Tables
from iolens.units import epoch_us


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
    handle = tables.load(JOBS.name)
    if handle is None:
        return []
    first_us = 0 if since is None else epoch_us(since)
    last_us = LATEST_US if until is None else epoch_us(until)
    rows = newest(relation(tables, JOBS.name, files_between(handle, first_us, last_us)), JOBS)
    columns = ", ".join(
        f'epoch_us("{column.name}") AS "{column.name}"' if column.type == "timestamp" else f'"{column.name}"'
        for column in JOBS.columns
    )
    chosen = like or JobFilter(() if job_id is None else (job_id,))
    condition, parameters = chosen.condition()
    sql = f"""SELECT {columns} FROM rows WHERE start_us < ? AND epoch_us >= ? AND {condition}
              ORDER BY start_us, job_id"""  # noqa: S608 (column names of the schema)
    assert rows is not None
    answer = connection().execute(sql, [last_us, first_us, *parameters])
    names = [column.name for column in JOBS.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def last_jobs(tables: Tables, source: str) -> dict[str | None, int]:
    """By cluster, when the last record of a source was taken, in microseconds since 1970."""
    handle = tables.load(JOBS.name)
    if handle is None:
        return {}
    sql = "SELECT cluster, max(epoch_us) FROM stored WHERE source = ? GROUP BY cluster"
    return dict(query(tables, handle, JOBS.name, sql, [source]))

"""A made-up centre of two users over two days whose shares of disk time are known: every I/O is a write of 1 MiB."""

from __future__ import annotations

from typing import Any

from iolens.run_tables import access_column
from iolens.schema import TABLES, size_column
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import MIB
from tests.analyses.explain.centre import OSTS, interval
from tests.analyses.run_rows import job_row, run_row

TICKS, TICK_S, DAY_S = 10, 60, 86_400
RUN_S = TICKS * TICK_S
OWN, STRANGER = "ada", "strangeruser"
STRANGE_PROGRAM, STRANGE_PROJECT = "strangeprogram", "strangeproject"
# By day: who wrote how many I/Os per tick to which OST; job None: nobody's.
DAYS: tuple[tuple[tuple[str | None, int, int], ...], ...] = (
    (("101", 0, 100), ("101", 1, 100), ("90002", 0, 300), ("90002", 2, 600), (None, 3, 200)),
    (("103", 0, 300), ("90004", 0, 100)),
)
OWNERS = {"101": OWN, "103": OWN, "90002": STRANGER, "90004": STRANGER}

Tables = dict[str, list[dict[str, Any]]]


def page_centre(job_stats: bool = True, records: bool = True, logs: bool = True) -> Tables:
    """Rows by table."""
    tables: Tables = {}
    for day, writers in enumerate(DAYS):
        for tick in range(TICKS):
            _tick(tables, day * DAY_S + tick * TICK_S, writers, job_stats)
        for job in {job for job, _, _ in writers if job is not None}:
            start_s = day * DAY_S
            moved = TICKS * MIB * sum(count for name, _, count in writers if name == job)
            if records:
                tables.setdefault("jobs", []).append(_record(job, start_s))
            if logs:
                tables.setdefault("runs", []).append(_run(job, start_s, moved))
    return tables


def filled(store: Store, tables: Tables) -> Store:
    """Everything into the store."""
    for table, rows in tables.items():
        store.append(table, to_arrow(TABLES[table], rows))
    return store


def _tick(tables: Tables, at_s: float, writers: Any, job_stats: bool) -> None:
    for place, target in enumerate(OSTS):
        ios = sum(count for _, where, count in writers if where == place)
        nothing = {"read_bytes": 0, "read_ops": 0}
        counts = {"write_bytes": ios * MIB, "write_ops": ios, **nothing}
        tables.setdefault("target_sizes", []).append(interval(at_s, TICK_S, target, **{size_column("write", MIB): ios}))
        tables.setdefault("target_io", []).append(interval(at_s, TICK_S, target, **counts))
        for job, where, count in writers:
            if job_stats and where == place and job is not None:
                own = {"job_id": job, "write_bytes": count * MIB, "write_ops": count, **nothing}
                tables.setdefault("job_io", []).append(interval(at_s, TICK_S, target, **own))


def _record(job: str, start_s: float) -> dict[str, Any]:
    is_own = OWNERS[job] == OWN
    about = {"user": OWNERS[job], "project": "earth" if is_own else STRANGE_PROJECT, "nodes": 2, "cores": 60,
             "name": "wrf" if is_own else STRANGE_PROGRAM, "state": "COMPLETED", "node_list": f"n{job}"}  # fmt: skip
    return job_row(job, start_s, start_s + RUN_S, **about)


def _run(job: str, start_s: float, moved: int) -> dict[str, Any]:
    accesses = moved // (10 << 10)
    own = {
        "job_id": job, "user": OWNERS[job], "executable": "wrf.exe" if OWNERS[job] == OWN else STRANGE_PROGRAM,
        "filesystem": "scratch", "write_bytes": moved, "opens": 32, "files": 1, "writes": accesses, "write_s": 1800.0,
        "posix_writes": accesses, "sequential_writes": accesses, "shared_files": 1, "shared_write_bytes": moved,
        "slowest_rank_s": 500.0, access_column("write", 10 << 10): accesses,
    }  # fmt: skip
    return run_row(f"{int(job):064x}", start_s, start_s + RUN_S, **own)

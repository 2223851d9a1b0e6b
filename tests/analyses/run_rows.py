"""Made-up runs and jobs: rows with every column that questions over many runs read."""

from __future__ import annotations

from typing import Any

from iolens.run_tables import ACCESS_BINS, INTERFACES, PATTERNS, access_column
from iolens.schema import TABLES
from iolens.store.rows import to_arrow
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.store import Store

T0_S = 1_700_006_400  # a UTC midnight
COUNTS = (
    "opens", "reads", "writes", "seeks", "stats", "syncs", "posix_reads", "posix_writes", "sequential_reads",
    "sequential_writes", "consecutive_reads", "consecutive_writes", "misaligned_ops", "independent_ops",
    "collective_ops", "written_files", "new_files",
    *(access_column(direction, upper) for direction in ("read", "write") for upper in (*ACCESS_BINS, None)),
    *(f"{name}_{what}" for name in (*INTERFACES, *PATTERNS) for what in ("files", "read_bytes", "write_bytes")),
)  # fmt: skip


def run_row(run_id: str, start_s: float = 0.0, end_s: float = 100.0, **more: Any) -> dict[str, Any]:
    """One run of 4 processes, seconds from `T0_S`; what is not said is zero, and its job is not known."""
    start, end = (round((T0_S + second) * 1e6) for second in (start_s, end_s))
    values = {
        "time": end, "start": start, "date": start // 86_400_000_000, "duration_s": end_s - start_s, "run_id": run_id,
        "source": "made-up", "user": "ada", "executable": "app", "processes": 4, "read_bytes": 0, "write_bytes": 0,
        "files": 0, "partial": False, "shared_files_overlap": False, "read_s": 0.0, "write_s": 0.0, "metadata_s": 0.0,
        "slowest_rank_s": 0.0, **dict.fromkeys(COUNTS, 0),
    }  # fmt: skip
    return {**values, **more}


def job_row(job_id: str, start_s: float = 0.0, end_s: float = 100.0, **more: Any) -> dict[str, Any]:
    """A record of the scheduler."""
    start, end = (round((T0_S + second) * 1e6) for second in (start_s, end_s))
    values = {
        "time": end, "start": start, "date": start // 86_400_000_000, "duration_s": end_s - start_s, "ended": True,
        "cluster": "frost", "job_id": job_id, "source": "made-up", "user": "ada", "project": "earth", "name": "job",
        "nodes": 1, "cores": 4,
    }  # fmt: skip
    return {**values, **more}


def fill_runs(store: Store, runs: list[dict[str, Any]], jobs: list[dict[str, Any]] | None = None) -> Store:
    """Everything into the store."""
    for table, rows in (("runs", runs), ("jobs", jobs or [])):
        if rows:
            store.append(table, to_arrow(TABLES[table], rows))
    return store


def selected(store: Store, **scope: Any) -> StoreSelection:
    """All runs of the store, or those of a scope."""
    return store.select_all(Scope(**scope))

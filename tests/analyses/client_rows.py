"""Made-up jobs and rows of the client tables: what each node moved, interval by interval or job by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iolens.schema import TABLES
from iolens.store.rows import to_arrow
from iolens.store.store import Store

T0_S = 1_700_006_400  # a UTC midnight
ClientRows = dict[str, list[dict[str, Any]]]  # by table
Rpcs = Mapping[tuple[str, int], int]  # by direction and pages


def client_rows(
    node: str,
    start_s: float,
    end_s: float,
    *,
    job_id: str | None = None,
    read_bytes: int | None = 0,
    write_bytes: int | None = 0,
    rpcs: Rpcs | None = None,
    metadata: Mapping[str, int] | None = None,
    source: str = "made-up",
    filesystem: str = "scratch",
    targets: int = 1,
) -> ClientRows:
    """One node over one interval, or one job."""
    start, end = (round((T0_S + second) * 1e6) for second in (start_s, end_s))
    common = {
        "time": end, "start": start, "duration_s": end_s - start_s, "date": start // 86_400_000_000,
        "source": source, "filesystem": filesystem, "node": node, "job_id": job_id, "after_reset": False,
    }  # fmt: skip
    return {
        "client_io": [{**common, "read_bytes": read_bytes, "write_bytes": write_bytes}],
        "client_rpcs": [
            {**common, "target": f"{filesystem}-OST{number:04x}", "direction": direction, "pages": pages,
             "page_bytes": 4096, "rpcs": count // targets + (number < count % targets)}
            for (direction, pages), count in (rpcs or {}).items() for number in range(targets)
        ],
        "client_metadata": [{**common, "operation": name, "count": count} for name, count in (metadata or {}).items()],
    }  # fmt: skip


def job_row(job_id: str, start_s: float, end_s: float, **more: Any) -> dict[str, Any]:
    """A record of the scheduler."""
    start, end = (round((T0_S + second) * 1e6) for second in (start_s, end_s))
    values = {
        "time": end,
        "start": start,
        "date": start // 86_400_000_000,
        "duration_s": end_s - start_s,
        "ended": True,
    }
    return {**values, "cluster": "frost", "job_id": job_id, "source": "made-up", **more}


def fill(
    store: Store, parts: Sequence[Mapping[str, list[dict[str, Any]]]], jobs: Sequence[dict[str, Any]] = ()
) -> Store:
    """Everything into the store."""
    for table in ("client_io", "client_rpcs", "client_metadata"):
        rows = [row for part in parts for row in part[table]]
        if rows:
            store.append(table, to_arrow(TABLES[table], rows))
    if jobs:
        store.append("jobs", to_arrow(TABLES["jobs"], list(jobs)))
    return store

"""What each layer of a store knows of jobs, as the tables that `store.merged_jobs` puts together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from iolens.analyses.blame.results import WhoShare
from iolens.analyses.job_totals.results import JobTotals
from iolens.store.jobs import RUNS, SHARES, TOTALS

Row = Mapping[str, Any]


def runs_table(rows: Sequence[Row]) -> pa.Table:
    """Rows of `runs`, with times in microseconds since 1970; the first that names a program names the job."""
    times = {"start_us": "start", "epoch_us": "time"}
    own = [name for name in RUNS.names if name != "place"]
    values = [{**{name: row[times.get(name, name)] for name in own}, "place": place} for place, row in enumerate(rows)]
    return pa.Table.from_pylist(values, RUNS)


def shares_table(lines: Iterable[tuple[str, bool, WhoShare]]) -> pa.Table:
    """Lines of blame by job, each with its file system and whether its bytes were counted by job_stats."""
    values = [
        {
            "job_id": line.name, "filesystem": filesystem, "disk_seconds": line.disk_seconds,
            "share_pct": line.share_pct, "read_bytes": line.read_bytes, "write_bytes": line.write_bytes,
            "user": line.user, "executable": line.executable, "is_counted": is_counted,
        }
        for filesystem, is_counted, line in lines
    ]  # fmt: skip
    return pa.Table.from_pylist(values, SHARES)


def totals_table(lines: Iterable[tuple[str, JobTotals]]) -> pa.Table:
    """Totals by counters of nodes, each with its file system."""
    values = [
        {
            "job_id": line.job.job_id, "cluster": line.job.cluster, "filesystem": filesystem,
            "read_bytes": line.read_bytes, "write_bytes": line.write_bytes,
        }
        for filesystem, line in lines
    ]  # fmt: skip
    return pa.Table.from_pylist(values, TOTALS)

"""Made-up runs: a row of `runs` and rows of its files, ranks and heat map, as a source gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iolens.analyses.runs.used_files import RunRecord
from iolens.records import Rows
from iolens.run_tables import ACCESS_BINS, INTERFACES, PATTERNS, RUNS, access_column

MIB, GIB = 1 << 20, 1 << 30
START_US = 1_700_000_000_000_000

POSIX_COUNTS = {
    "posix_reads": 0, "posix_writes": 0, "sequential_reads": 0, "sequential_writes": 0, "misaligned_ops": 0,
    **{access_column(direction, upper): 0 for direction in ("read", "write") for upper in (*ACCESS_BINS, None)},
}  # fmt: skip


def run_row(**values: Any) -> dict[str, Any]:
    """16 ranks that write 1 GiB each into a file of their own, in 10 s each, within 100 s."""
    usual: dict[str, Any] = {
        "time": START_US + 100_000_000, "source": "darshan", "run_id": "ab" * 32, "job_id": "4711", "start": START_US,
        "duration_s": 100.0, "user": "alice", "executable": "solver", "processes": 16, "read_bytes": 0,
        "write_bytes": 16 * GIB, "files": 16, "partial": False, "log": "a.darshan", "log_version": "3.41", "uid": 1000,
        "command": "./solver -n 3", "modules": "POSIX", "opens": 16, "reads": 0, "writes": 16384, "read_s": 0.0,
        "write_s": 152.0, "metadata_s": 8.0, "slowest_rank_s": 10.0, "slowest_rank": 3,
        "slowest_rank_method": "slowest_rank", "shared_files_overlap": False, "io_ranks": 16, "write_ranks": 16,
        "busiest_rank": 3, "busiest_rank_bytes": GIB, "busiest_writer": 3, "busiest_writer_bytes": GIB,
        "independent_ops": 0, "collective_ops": 0, "written_files": 16, "new_files": 16,
        "module_totals": json.dumps(
            {"POSIX": {"read_bytes": 0, "write_bytes": 16 * GIB, "files": 16, "agg_perf_by_slowest_mib_per_s": 1638.4}}
        ),
        **{f"{kind}_{what}": 0 for kind in (*PATTERNS, *INTERFACES) for what in ("files", "read_bytes", "write_bytes")},
        **POSIX_COUNTS,
        "unique_files": 16, "unique_write_bytes": 16 * GIB, "posix_files": 16, "posix_write_bytes": 16 * GIB,
        "posix_writes": 16384, "sequential_writes": 16384, access_column("write", MIB): 16384,
    }  # fmt: skip
    absent = dict.fromkeys(column.name for column in RUNS.columns)
    assert {*usual, *values} <= {*absent}
    return {**absent, **usual, **values}


def file_row(**values: Any) -> dict[str, Any]:
    """One rank's file of 1 GiB through POSIX."""
    usual = {
        "module": "POSIX", "record_id": 1, "rank": 0, "ranks": 1, "read_bytes": 0, "write_bytes": GIB, "opens": 1,
        "path": "/scratch/out/a.0", "extent_bytes": GIB, "read_s": 0.0, "write_s": 9.5, "metadata_s": 0.5,
        "write_start_s": 10.0, "write_end_s": 20.0, "alignment_bytes": 4096,
    }  # fmt: skip
    return {**usual, **values}


def own_files(ranks: int = 16, **values: Any) -> list[dict[str, Any]]:
    """A file for each rank."""
    return [file_row(record_id=rank, rank=rank, path=f"/scratch/out/a.{rank}", **values) for rank in range(ranks)]


def rows(table: str, lines: Sequence[Mapping[str, Any]]) -> Rows:
    """Column by column; numbers as masked arrays, texts as lists."""
    names = dict.fromkeys(name for line in lines for name in line)
    return Rows(table, {name: _column([line.get(name) for line in lines]) for name in names}, len(lines))


def _column(values: list[Any]) -> Any:
    if any(isinstance(value, str) for value in values):
        return values
    mask = [value is None for value in values]
    return np.ma.MaskedArray([0 if value is None else value for value in values], mask)


def run_record(
    file_rows: Sequence[Mapping[str, Any]] | None = None,
    ranks: Sequence[Mapping[str, Any]] = (),
    series: Sequence[Mapping[str, Any]] = (),
    **values: Any,
) -> RunRecord:
    """A run as it comes out of a log."""
    tables = {
        "runs": rows("runs", [run_row(**values)]),
        "run_files": rows("run_files", own_files() if file_rows is None else file_rows),
        "run_ranks": rows("run_ranks", ranks),
        "run_series": rows("run_series", series),
    }
    return RunRecord.of({name: table for name, table in tables.items() if len(table)})

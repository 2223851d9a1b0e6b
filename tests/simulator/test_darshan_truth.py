"""What iolens' own source reads from logs of simulated runs is what is true of them: totals, ranks, strategy, OSTs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.runs.used_files import strategy_of
from iolens.simulator.darshan_jobs import truth_of
from iolens.simulator.darshan_logs import write_log
from iolens.simulator.darshan_runs import STRATEGIES, SimulatedRun, Strategy
from iolens.sources.darshan.isolated import rows_of_log
from iolens.units import MIB
from tests.cli.command import iolens
from tests.simulator.stated_runs import NEEDS_DARSHAN, run_of

pytestmark = NEEDS_DARSHAN


def first_row(tables: dict[str, Any], table: str) -> dict[str, Any]:
    """The first row of a table; a masked value is None."""
    row = {name: values[0] for name, values in tables[table].columns.items()}
    return {name: None if value is np.ma.masked else value for name, value in row.items()}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("processes", "phases"), [(8, 2), (32, 1)])
def test_a_run_as_it_is_stored(tmp_path: Path, strategy: Strategy, processes: int, phases: int) -> None:
    run = run_of(strategy, processes=processes, **({} if strategy == "none" else {"phases": phases}))
    truth, row = truth_of(run), first_row(rows_of_log(write_log(tmp_path, run)), "runs")
    assert (row["job_id"], row["user"], row["uid"], row["executable"]) == ("4711", "ana", 1234, "gyro")
    assert row["processes"] == processes
    assert row["duration_s"] == pytest.approx(60.5)
    for name in ("read_bytes", "write_bytes", "reads", "writes", "opens", "files"):
        assert row[name] == getattr(truth, name), name
    for name in ("read_s", "write_s", "metadata_s", "slowest_rank_s"):
        assert (row[name] or 0.0) == pytest.approx(getattr(truth, name)), name
    assert strategy_of(row)[0] == strategy
    if strategy == "none":
        return
    moved_mib = (row["read_bytes"] + row["write_bytes"]) / MIB
    assert moved_mib / row["slowest_rank_s"] == pytest.approx(truth.mib_per_s)
    assert row["io_ranks"] == truth.io_ranks
    assert row["osts"] == truth.osts
    assert not row["partial"]
    assert not row["shared_files_overlap"]


def test_bytes_by_ost_follow_from_files_and_their_layouts(tmp_path: Path) -> None:
    run = run_of("file_per_process", stripe_count=1, osts=5)
    files = rows_of_log(write_log(tmp_path, run))["run_files"].columns
    osts = {record: int(text) for record, module, text in _columns(files, "record_id", "module", "osts") if text}
    moved: dict[int, int] = {}
    for record, module, read, written in _columns(files, "record_id", "module", "read_bytes", "write_bytes"):
        if module == "POSIX":
            moved[osts[record]] = moved.get(osts[record], 0) + int(read) + int(written)
    assert moved == truth_of(run).bytes_by_ost


def _columns(files: Any, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(list(files[name]) for name in names), strict=True))


@pytest.mark.parametrize("strategy", ["rank0", "shared", "collective"])
def test_activity_over_time_has_every_byte(tmp_path: Path, strategy: Strategy) -> None:
    run: SimulatedRun = run_of(strategy, printed_bytes=0)
    series = rows_of_log(write_log(tmp_path, run))["run_series"].columns
    rows = _columns(series, "module", "read_bytes", "write_bytes")
    read, written = (sum(int(row[place]) for row in rows if row[0] == "POSIX") for place in (1, 2))
    assert (read, written) == (truth_of(run).read_bytes, truth_of(run).write_bytes)


GOOD: dict[str, Any] = {
    "transfer_bytes": 4 * MIB, "write_bytes": 1024 * MIB, "read_bytes": 0, "opens": 0, "stats": 0, "phases": 1,
    "printed_bytes": 0, "stripe_count": 8, "duration_s": 600,
}  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "changes", "expected"),
    [
        ("shared", {}, set()),
        ("collective", {}, set()),
        ("shared", {"transfer_bytes": MIB + 512}, {"misaligned"}),
        ("shared", {"transfer_bytes": 4096, "write_bytes": 64 * MIB}, {"small-accesses"}),  # which explains misaligned
        ("shared", {"opens": 20_000}, {"many-opens", "metadata-bound"}),
        ("shared", {"stripe_count": 1, "write_bytes": 16_384 * MIB, "processes": 32}, {"stripe"}),
        ("rank0", {"processes": 64, "write_bytes": 16_384 * MIB}, {"single-writer", "rank-imbalance"}),
    ],
)
def test_findings_are_those_that_the_run_was_made_for(
    tmp_path: Path, strategy: Strategy, changes: dict[str, Any], expected: set[str]
) -> None:
    done = iolens("runs", "summary", write_log(tmp_path, run_of(strategy, **{**GOOD, **changes})), "--format", "json")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    findings = (summary[0] if isinstance(summary, list) else summary)["findings"]
    assert {finding["code"] for finding in findings} == expected

"""Calibrations and benchmark runs read back whole, also from tables that an older iolens made."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from iolens.records import Capture, Row
from iolens.schema import BENCHMARK_RUNS, CALIBRATIONS, Table
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.store.tables import BatchPart

FIRST_RUN = {"time": 5_000_000, "source": "fio", "tool": "fio", "run_id": "a", "direction": "read", "bytes": 7}
KNOWN = {
    "time": 1, "source": "x", "name": "old", "write_latency_s": 1.0, "write_s_per_byte": 2.0, "read_latency_s": 3.0,
    "read_s_per_byte": 4.0,
}  # fmt: skip


def without(table: Table, *names: str) -> Table:
    return replace(table, columns=tuple(column for column in table.columns if column.name not in names))


def test_a_table_with_fewer_columns_is_read_and_then_grows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    older = without(BENCHMARK_RUNS, "sweep", "study", "device_sizes", "complete")
    handle = store.tables._create("benchmark_runs", older)
    store.tables.commit(handle, "benchmark_runs", to_arrow(older, [FIRST_RUN]), [BatchPart("one", 1)])
    (row,) = store.benchmark_runs()
    assert row.keys() == {column.name for column in BENCHMARK_RUNS.columns}
    assert (row["time"], row["bytes"], row["sweep"]) == (5_000_000, 7, None)
    store.append("benchmark_runs", to_arrow(BENCHMARK_RUNS, [{**FIRST_RUN, "run_id": "b", "sweep": "s"}]))
    assert [(benchmark_run["run_id"], benchmark_run["sweep"]) for benchmark_run in store.benchmark_runs()] == [
        ("a", None),
        ("b", "s"),
    ]


def test_runs_of_one_benchmark(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.benchmark_runs() == []
    rows = [FIRST_RUN, {**FIRST_RUN, "tool": "mdtest", "run_id": "m", "direction": "file_stat"}]
    store.append("benchmark_runs", to_arrow(BENCHMARK_RUNS, rows))
    assert [row["run_id"] for row in store.benchmark_runs("mdtest")] == ["m"]
    assert len(store.benchmark_runs()) == 2


def test_calibrations_of_before_the_fit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    older = without(CALIBRATIONS, "sizes", "write_r2", "read_r2", "fullness_pct")
    handle = store.tables._create("calibrations", older)
    store.tables.commit(handle, "calibrations", to_arrow(older, [KNOWN]), [BatchPart("one", 1)])
    assert store.calibrations()[0]["sizes"] is None
    store.add_calibration({**KNOWN, "name": "new", "valid_from": 9, "sizes": "observed"})
    assert {row["name"]: row["sizes"] for row in store.calibrations()} == {"old": None, "new": "observed"}


DAY_US = 86_400_000_000


def test_a_window_of_whole_days_cuts_records_too(tmp_path: Path) -> None:
    """Their files are not kept by day, so the window's ends have to be asked for."""
    store = Store(tmp_path)
    readings = [{"time": day * DAY_US, "source": "isdct", "filesystem": "bb", "serial": "a"} for day in (1, 2, 3)]
    rows = [Row("drives", values) for values in readings]
    store.ingest([Capture("made up", "one", lambda: iter(rows))], "isdct")
    window = (datetime(1970, 1, 3, tzinfo=UTC), datetime(1970, 1, 4, tzinfo=UTC))
    result = store.select("bb", since=window[0], until=window[1], targets=["OST0000"]).frame("drives")
    assert result.collect(backend="pyarrow")["epoch_us"].to_list() == [2 * DAY_US]

"""Many processes write to one store at once, and some die: every row is there exactly once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from bench.soak import expected_rows, ready_processes, soak, stored_rows

from iolens.schema import TABLES
from iolens.store.duckdb_engine import query
from iolens.store.maintenance import verify_store
from iolens.store.store import Store
from tests.store import writers
from tests.store.writers import PROCESSES, SNAPSHOTS


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=ready_processes()) as pool:
        yield pool


@pytest.fixture
def together(processes: ProcessPoolExecutor, tmp_path: Path) -> Callable[..., list[Any]]:
    """Run a function in all processes at once on one store."""

    def run(function: Callable[..., Any]) -> list[Any]:
        url, folder = str(tmp_path / "store"), tmp_path / "meeting"
        futures = [processes.submit(function, url, folder, number) for number in range(PROCESSES)]
        return [future.result(120) for future in futures]

    return run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def ask(store: Store, table: str, sql: str) -> list[tuple[Any, ...]]:
    handle = store.tables.load(table)
    assert handle is not None
    return query(store.tables, handle, table, sql)


def test_eight_processes_that_send_their_own_and_each_others_captures_leave_every_row_once(
    together: Callable[..., list[Any]], store: Store
) -> None:
    together(writers.send_own_and_others)
    assert stored_rows(store) == expected_rows(dict.fromkeys(range(PROCESSES), 2))
    reported = "SELECT count(*), count(DISTINCT batch), sum(older) FROM stored WHERE samples IS NOT NULL"
    assert ask(store, "batches", reported) == [(16, 16, 0)]
    checked = verify_store(store)
    assert (checked.faults, checked.unrecorded) == ([], 0)


def test_eight_processes_with_overlapping_snapshots_of_the_same_targets_count_nothing_twice(
    together: Callable[..., list[Any]], store: Store
) -> None:
    together(writers.send_snapshots)
    columns = (
        "(start_us // 1000000 - 1600000000) // 5, (epoch_us // 1000000 - 1600000000) // 5, read_bytes, write_bytes"
    )
    for target in ("scratch-OST0000", "scratch-OST0001"):
        rows = ask(store, "target_io", f"SELECT {columns} FROM stored WHERE target = '{target}' ORDER BY time")
        for begin, end, read, written in rows:
            assert begin < end
            assert (read, written) == (1000 * (end**2 - begin**2), 10 * (end - begin))
        assert [row[1] for row in rows[:-1]] == [row[0] for row in rows[1:]]  # each begins where the last ended
        assert rows[-1][1] == SNAPSHOTS - 1  # the newest sample is never refused
        assert sum(row[2] for row in rows) == 1000 * ((SNAPSHOTS - 1) ** 2 - rows[0][0] ** 2)


def test_samples_of_overlapping_snapshots_are_each_a_baseline_an_interval_or_refused(
    together: Callable[..., list[Any]], store: Store
) -> None:
    together(writers.send_snapshots)
    sums = "count(DISTINCT batch), sum(samples), sum(baselines), sum(older), sum(rows)"
    reported = ask(store, "batches", f"SELECT {sums} FROM stored WHERE samples IS NOT NULL")
    ((captures, samples, baselines, older, rows),) = reported
    assert (captures, samples, baselines) == (SNAPSHOTS, 2 * SNAPSHOTS, 2)
    assert baselines + older + rows == samples
    assert ask(store, "target_io", "SELECT count(*) FROM stored") == [(rows,)]


def test_eight_processes_may_be_the_first_to_write_to_every_table(
    together: Callable[..., list[Any]], store: Store
) -> None:
    together(writers.append_to_every_table)
    for name, table in TABLES.items():
        text = next(column.name for column in table.columns if column.type == "string")
        result = ask(store, name, f'SELECT "{text}" FROM stored')
        assert Counter(value for (value,) in result) == Counter(f"writer {n}" for n in range(PROCESSES)), name


def test_eight_processes_may_be_the_first_to_write_to_tables_of_0_1(
    together: Callable[..., list[Any]], store: Store
) -> None:
    old = {"time": 1_500_000_000_000_000, "source": "writer old"}
    for name in writers.CUT_SINCE_0_1:
        writers.make_table_of_0_1(store, name, [old])
    together(writers.append_to_tables_of_0_1)
    names = Counter(["writer old", *(f"writer {n}" for n in range(PROCESSES + 1))])
    for name in writers.CUT_SINCE_0_1:
        handle = store.tables.load(name)
        assert handle is not None
        assert handle.metadata().partition_columns == ["date"]
        assert Counter(value for (value,) in ask(store, name, "SELECT source FROM stored")) == names, name
        assert ask(store, name, "SELECT count(*) FROM stored WHERE date IS NULL") == [(0,)]
    checked = verify_store(store)
    assert (checked.faults, checked.unrecorded) == ([], 0)


def test_logs_of_finished_rows_that_grew_and_are_sent_at_once_leave_every_row_once(
    together: Callable[..., list[Any]], store: Store
) -> None:
    repeated = together(writers.send_grown_log)
    longest, sent = PROCESSES + 2, sum(3 + n for n in range(PROCESSES))
    for table, value in (("target_io", "read_bytes"), ("target_capacity", "used_bytes")):
        assert ask(store, table, f"SELECT {value} FROM stored ORDER BY time") == [(n,) for n in range(longest)]
    assert sum(repeated) == 2 * (sent - longest)
    by_table = ask(store, "batches", "SELECT rows_by_table FROM stored WHERE samples IS NOT NULL")
    assert sum(json.loads(text).get("target_io", 0) for (text,) in by_table) == longest


def test_writers_that_are_killed_at_any_time_lose_and_repeat_nothing_once_everything_is_sent_again(
    tmp_path: Path,
) -> None:
    """The short form of bench/soak.py."""
    report = soak(tmp_path, kills=6, writers=3, longest_s=1.0)
    assert (report.lost, report.too_many, report.faults) == (0, 0, [])
    assert report.kills == 6

"""Rollups are exact for sums, notice what changed, and never lose what only they still know."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import iolens
from iolens.cli.main import iolens as command
from iolens.records import Row
from iolens.schema import TABLES, size_column
from iolens.store import rollup as rollup_module
from iolens.store.duckdb_engine import query
from iolens.store.maintenance import compact_store, verify_store
from iolens.store.rollup import retain_raw, roll_up
from iolens.store.store import Store
from iolens.store.tables import BatchPart, Tables, arrow_schema
from tests.store.samples import T0, capture, io_sample

DAY = date(2020, 9, 13)
MIDNIGHT_US = 1_599_955_200_000_000
HOUR_US = 3_600_000_000
INTERVALS = {name: table for name, table in TABLES.items() if table.kind == "interval"}
TEN_YEARS_S = 10 * 365 * 86400.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def rows_of(name: str, count: int, seed: int, day: int = 0) -> pa.Table:
    """Rows of 5 s over two hours on four keys: every counter random, one in three unknown, a few after a reset."""
    table, random = TABLES[name], np.random.default_rng(seed)
    slots = random.permutation(4 * 1440)[:count]
    start_us = MIDNIGHT_US + day * 86_400_000_000 + (slots // 4) * 5_000_000
    which = slots % 4
    columns: dict[str, Any] = {}
    for column in table.columns:
        if column.name == "date":
            columns["date"] = [DAY + timedelta(days=day)] * count
        elif column.name in ("start", "time"):
            ends = start_us + (5_000_000 if column.name == "time" else 0)
            columns[column.name] = pa.array(ends).cast(pa.timestamp("us", "UTC"))
        elif column.name == "duration_s":
            columns["duration_s"] = np.round(5 + random.normal(0, 0.01, count), 4)
        elif column.name == "after_reset":
            columns["after_reset"] = random.random(count) < 0.01
        elif column.name == "samples":
            columns["samples"] = [None] * count
        elif column.counter:
            values = random.integers(0, 2**40, count)
            columns[column.name] = pa.array(values, mask=random.random(count) < 0.3)
        elif column.name in ("filesystem", "source", "target_kind"):
            columns[column.name] = [
                {"filesystem": "scratch", "source": "test", "target_kind": "ost"}[column.name]
            ] * count
        elif column.type == "string":
            columns[column.name] = [
                f"scratch-{column.name}{item % 2 if column.name == 'target' else item}" for item in which
            ]
        else:
            columns[column.name] = pa.array(which.astype(np.int64))
    schema = arrow_schema(table)
    return pa.table([pa.array(columns[field.name], field.type) if not isinstance(columns[field.name], pa.Array)
                     else columns[field.name].cast(field.type) for field in schema], schema=schema)  # fmt: skip


def ask(tables: Tables, name: str, sql: str) -> list[tuple[Any, ...]]:
    handle = tables.load(name)
    return query(tables, handle, name, sql) if handle is not None else []


def sums(tables: Tables, name: str, width_us: int) -> list[tuple[Any, ...]]:
    """Per key and bucket of the start: all counters, resets and raw rows."""
    table = TABLES[name.rpartition("/")[2]]
    keys = [key for key in table.key if key != "time"]
    counters = ", ".join(f'sum("{counter}")::HUGEINT' for counter in table.counters)
    sql = f"""SELECT {", ".join(f'"{key}"' for key in keys)}, date, start_us // {width_us} AS bucket, {counters},
                     bool_or(after_reset), sum(coalesce(samples, 1))::BIGINT
              FROM stored GROUP BY ALL ORDER BY ALL"""
    return ask(tables, name, sql)


@pytest.mark.parametrize("name", INTERVALS)
def test_sixty_seconds_and_an_hour_hold_exactly_the_sums_of_the_raw_rows(name: str, store: Store) -> None:
    store.append(name, rows_of(name, 1500, seed=1), "a")
    roll_up(store)
    assert sums(store.tables, f"60s/{name}", 60_000_000) == sums(store.tables, name, 60_000_000)
    assert sums(store.tables, f"1h/{name}", HOUR_US) == sums(store.tables, name, HOUR_US)
    counts = [
        ask(store.tables, item, "SELECT count(*) FROM stored")[0][0] for item in (name, f"60s/{name}", f"1h/{name}")
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[2] <= 8


def test_a_rollup_row_spans_its_bucket_and_keeps_the_time_that_was_measured(store: Store) -> None:
    store.append("target_io", rows_of("target_io", 1500, seed=1), "a")
    roll_up(store)
    assert ask(
        store.tables, "60s/target_io", "SELECT DISTINCT epoch_us - start_us, start_us % 60000000 FROM stored"
    ) == [(60_000_000, 0)]
    seconds = "SELECT target, sum(duration_s) FROM stored GROUP BY ALL ORDER BY ALL"
    for fine, coarse in zip(
        ask(store.tables, "target_io", seconds), ask(store.tables, "1h/target_io", seconds), strict=True
    ):
        assert coarse[1] == pytest.approx(fine[1], rel=1e-12)


def test_unknown_stays_unknown_and_zero_stays_zero(store: Store) -> None:
    rows = rows_of("target_io", 40, seed=2)
    for name, value in (("read_bytes", None), ("write_bytes", 0)):
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, pa.array([value] * 40, pa.int64()))
    store.append("target_io", rows, "a")
    roll_up(store)
    for name in ("60s/target_io", "1h/target_io"):
        assert ask(store.tables, name, "SELECT DISTINCT read_bytes, write_bytes FROM stored") == [(None, 0)]


def test_a_second_run_finds_every_day_current_and_writes_nothing(store: Store) -> None:
    for day in range(3):
        store.append("target_io", rows_of("target_io", 50, day, day), f"day {day}")
    first = roll_up(store)
    assert (first.days, first.current, first.kept) == (6, 0, [])
    before = versions(store)
    second = roll_up(store)
    assert (second.days, second.rows, second.current, second.kept) == (0, 0, 6, [])
    assert versions(store) == before


def versions(store: Store) -> list[int]:
    handles = [store.tables.load(name) for name in ("60s/target_io", "1h/target_io")]
    return [handle.version() for handle in handles if handle is not None]


def test_compaction_does_not_make_a_rollup_stale(store: Store) -> None:
    for part in range(3):
        store.append("target_io", rows_of("target_io", 20, part), f"part {part}")
    roll_up(store)
    compact_store(store)
    assert roll_up(store).days == 0


def test_late_rows_are_noticed_and_only_their_day_is_rolled_up_again(store: Store) -> None:
    for day in range(3):
        store.append("target_io", rows_of("target_io", 50, day, day), f"day {day}")
    roll_up(store)
    store.append("target_io", rows_of("target_io", 5, 99, 1), "late")
    again = roll_up(store)
    assert (again.days, again.current) == (2, 4)
    assert sums(store.tables, "1h/target_io", HOUR_US) == sums(store.tables, "target_io", HOUR_US)


def finished(tick: int, read_bytes: int) -> Row:
    """An interval of five seconds that needs no differencing."""
    time_us = (T0 + 5 * tick) * 1_000_000
    head = {"time": time_us, "start": time_us - 5_000_000, "duration_s": 5.0, "filesystem": "scratch"}
    return Row("target_io", {**head, "target": "scratch-OST0000", "read_bytes": read_bytes})


def test_a_rebuild_that_leaves_as_many_rows_as_before_is_noticed(store: Store) -> None:
    """With finished rows: other counters for the same samples contradict the stored ones, and change nothing."""
    store.ingest([capture([io_sample(0, 0, 0), *(finished(n, 100) for n in range(1, 5))], "wrong")], "test")
    roll_up(store)
    store.ingest([capture([finished(n, 300) for n in range(1, 5)], "right")], "test", rebuild=True)
    assert roll_up(store).days == 2
    for name in ("target_io", "60s/target_io", "1h/target_io"):
        assert ask(store.tables, name, "SELECT sum(read_bytes)::BIGINT FROM stored") == [(1200,)]
    assert roll_up(store).days == 0


def test_a_rebuild_that_leaves_fewer_rows_than_before_is_noticed(store: Store) -> None:
    """With finished rows: of samples, a rebuild takes the stored ones and the late ones together."""
    store.ingest([capture([io_sample(0, 0, 0), *(finished(n, 100) for n in range(1, 5))], "fine")], "test")
    roll_up(store)
    coarse = Row("target_io", {**finished(4, 400).values, "start": T0 * 1_000_000, "duration_s": 20.0})
    store.ingest([capture([coarse], "coarse")], "test", rebuild=True)
    assert (roll_up(store).days, roll_up(store).kept) == (2, [])
    assert ask(store.tables, "1h/target_io", "SELECT samples, read_bytes FROM stored") == [(1, 400)]


def test_raw_rows_are_dropped_only_once_rolled_up(store: Store) -> None:
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    refused = retain_raw(store, 86400.0)
    assert (refused.days, refused.rows) == (0, 0)
    assert refused.kept == [f"target_io {DAY}: 30 rows are not rolled up; run `iolens store rollup` first"]
    roll_up(store)
    assert (retain_raw(store, 86400.0, dry_run=True).rows, raw_rows(store)) == (30, 30)
    done = retain_raw(store, 86400.0)
    assert (done.days, done.rows, done.kept, raw_rows(store)) == (1, 30, [], 0)


def raw_rows(store: Store) -> int:
    return int(ask(store.tables, "target_io", "SELECT count(*) FROM stored")[0][0])


def test_without_rollup_drops_what_nobody_summed(store: Store) -> None:
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    done = retain_raw(store, 86400.0, without_rollup=True)
    assert (done.rows, done.kept, raw_rows(store)) == (30, [], 0)
    store.append("target_io", rows_of("target_io", 5, 2), "late")
    assert roll_up(store).kept == []
    assert ask(store.tables, "60s/target_io", "SELECT sum(samples)::BIGINT FROM stored") == [(5,)]


def test_days_younger_than_the_limit_stay(store: Store) -> None:
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    roll_up(store)
    assert (retain_raw(store, TEN_YEARS_S * 5).days, raw_rows(store)) == (0, 30)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_day_is_dropped_when_it_ended_that_long_ago_wherever_the_operator_sits(
    zone: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    roll_up(store)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        end_s = MIDNIGHT_US / 1e6 + 86400
        monkeypatch.setattr(rollup_module.time, "time", lambda: end_s + 7 * 86400 - 1)
        assert retain_raw(store, 7 * 86400.0).days == 0
        monkeypatch.setattr(rollup_module.time, "time", lambda: end_s + 7 * 86400 + 1)
        assert retain_raw(store, 7 * 86400.0).days == 1
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("late", [5, 30, 50])
def test_a_rollup_whose_raw_rows_were_dropped_is_never_overwritten(late: int, store: Store) -> None:
    """However many rows come late: fewer than it stands for, as many, or more."""
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    roll_up(store)
    before = [sums(store.tables, name, HOUR_US) for name in ("60s/target_io", "1h/target_io")]
    retain_raw(store, 86400.0)
    store.append("target_io", rows_of("target_io", late, 2), "late")
    reported = roll_up(store)
    assert reported.days == 0
    assert reported.kept == [
        f"60s/target_io {DAY} stands for 30 raw rows that were dropped; {late} later ones are not in it"
    ]
    assert [sums(store.tables, name, HOUR_US) for name in ("60s/target_io", "1h/target_io")] == before
    refused = retain_raw(store, 86400.0)
    assert refused.kept == [f"target_io {DAY}: {late} rows came after the others were dropped and are in no rollup"]
    assert raw_rows(store) == late


def test_rows_that_come_while_a_day_is_dropped_are_not_dropped_with_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    roll_up(store)
    real, came = Tables.delete_day, []

    def meanwhile(self: Tables, *args: Any) -> None:
        if not came:
            came.append(1)
            store.tables.append("target_io", {BatchPart("late", 1): rows_of("target_io", 4, 7)})
        real(self, *args)

    monkeypatch.setattr(Tables, "delete_day", meanwhile)
    refused = retain_raw(store, 86400.0)
    assert refused.kept == [f"target_io {DAY}: 34 rows are not rolled up; run `iolens store rollup` first"]
    assert raw_rows(store) == 34


def test_rolled_up_and_retained_stores_verify(store: Store) -> None:
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    roll_up(store)
    retain_raw(store, 86400.0)
    checked = verify_store(store)
    assert (checked.faults, checked.unrecorded) == ([], 0)


def test_the_command_line_tells_what_it_did_and_what_it_kept(store: Store) -> None:
    store.append("target_io", rows_of("target_io", 30, 1), "a")
    run = CliRunner().invoke
    refused = run(command, ["store", "retain", "--raw", "1d", "--store", store.url])
    assert "are not rolled up" in refused.output
    assert "2 table-days rolled up" in run(command, ["store", "rollup", "--store", store.url]).output
    assert (
        "0 table-days rolled up, 0 rows written, 2 were current"
        in run(command, ["store", "rollup", "--store", store.url]).output
    )
    assert (
        "1 table-day, 30 rows dropped" in run(command, ["store", "retain", "--raw", "1d", "--store", store.url]).output
    )


@pytest.fixture(scope="module")
def rolled_up(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two targets over three hours and a midnight, 5 s apart, sizes and bytes that agree."""
    store = Store(tmp_path_factory.mktemp("rolled") / "store")
    random = np.random.default_rng(5)
    begin = datetime(2020, 9, 13, 22, 0, tzinfo=UTC)
    sizes, io = [], []
    for tick in range(2160):
        start = begin + timedelta(seconds=5 * tick)
        for target in ("scratch-OST0000", "scratch-OST0001"):
            small, large = int(random.integers(0, 300)), int(random.integers(0, 200))
            head = {
                "time": start + timedelta(seconds=5),
                "start": start,
                "duration_s": 5.0,
                "date": start.date(),
                "filesystem": "scratch",
                "source": "test",
                "target": target,
                "target_kind": "ost",
                "after_reset": False,
            }
            sizes.append({**head, size_column("write", 4096): small, size_column("read", 1 << 20): large})
            io.append({**head, "read_bytes": large << 20, "write_bytes": small << 12})
    for name, rows in (("target_sizes", sizes), ("target_io", io)):
        store.append(name, pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[name])), name)
    roll_up(store)
    return store


def test_utilization_has_the_same_totals_from_rollups_as_from_raw_rows(rolled_up: Store) -> None:
    with iolens.open(rolled_up.url) as opened:
        raw, *rolled = [opened.utilization("scratch", resolution=item) for item in ("raw", "60s", "1h")]
    assert raw.samples == 2160
    for coarse, samples in zip(rolled, (180, 3), strict=True):
        assert coarse.samples == samples
        assert coarse.io_sizes == raw.io_sizes
        assert coarse.daily == raw.daily
        assert coarse.mean_fsu_pct == pytest.approx(raw.mean_fsu_pct, rel=1e-9)
        for entry, other in zip(coarse.per_target, raw.per_target, strict=True):
            assert (entry.target, entry.read_bytes, entry.write_bytes) == (
                other.target,
                other.read_bytes,
                other.write_bytes,
            )
            assert entry.mean_fsu_pct == pytest.approx(other.mean_fsu_pct, rel=1e-9)


def test_analyses_read_rollups_after_the_raw_rows_are_gone(rolled_up: Store, tmp_path: Path) -> None:
    shutil.copytree(rolled_up.url, tmp_path / "store")
    store = Store(tmp_path / "store")
    with iolens.open(store.url) as opened:
        before = opened.utilization("scratch", resolution="60s")
        retain_raw(store, 86400.0)
        after = opened.utilization("scratch", resolution="60s")
    assert (after.samples, after.io_sizes, after.daily) == (before.samples, before.io_sizes, before.daily)
    assert after.mean_fsu_pct == pytest.approx(before.mean_fsu_pct, rel=1e-12)


intervals = st.lists(
    st.tuples(
        st.integers(0, 1440),  # start, minutes of two hours in 5 s ticks
        st.integers(1, 2000),  # length, ticks: some reach over several buckets
        st.sampled_from(["scratch-OST0000", "scratch-OST0001"]),
        st.one_of(st.none(), st.integers(0, 2**50)),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda each: (each[0] + each[1], each[2]),
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(intervals)
def test_any_intervals_have_the_same_sums_at_every_resolution(tmp_path: Path, rows: list[tuple[Any, ...]]) -> None:
    store = Store(tmp_path / os.urandom(8).hex())
    start = datetime(2020, 9, 13, tzinfo=UTC)
    table = pa.Table.from_pylist(
        [
            {
                "start": start + timedelta(seconds=5 * begin),
                "time": start + timedelta(seconds=5 * (begin + length)),
                "duration_s": 5.0 * length,
                "date": (start + timedelta(seconds=5 * begin)).date(),
                "filesystem": "scratch",
                "source": "test",
                "target": target,
                "read_bytes": value,
                "after_reset": reset,
            }
            for begin, length, target, value, reset in rows
        ],
        schema=arrow_schema(TABLES["target_io"]),
    )
    store.tables.append("target_io", {BatchPart("a", 1): table})
    roll_up(store)
    by_target = """SELECT target, sum(read_bytes)::HUGEINT, sum(duration_s), bool_or(after_reset),
                          sum(coalesce(samples, 1))::BIGINT FROM stored GROUP BY ALL ORDER BY ALL"""
    raw = ask(store.tables, "target_io", by_target)
    assert ask(store.tables, "60s/target_io", by_target) == raw
    assert ask(store.tables, "1h/target_io", by_target) == raw
    assert roll_up(store).days == 0


def test_the_store_of_samples_begins_on_the_day_these_tests_think() -> None:
    assert datetime.fromtimestamp(T0, UTC).date() == DAY

"""A question opens only the files it needs: all others may be garbage and nobody notices."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iolens
from iolens.schema import TABLES
from iolens.store import selection
from iolens.store.store import Store
from iolens.store.tables import BatchPart, arrow_schema
from tests.analyses.telemetry import made_up, table_of

FIRST = date(2012, 1, 1)
DAYS = 366
HOURS = (1, 7, 13, 19)
DAY = date(2012, 10, 22)


def year_of(table: str, filesystem: str, values: dict[str, int], only: set[date] | None = None) -> pa.Table:
    """Two targets over four seconds of every day."""
    times = [
        datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
        for day in (FIRST + timedelta(days=n) for n in range(DAYS))
        if only is None or day in only
        for hour in HOURS
    ]
    rows = [
        {
            "time": time + timedelta(seconds=5),
            "start": time,
            "duration_s": 5.0,
            "date": time.date(),
            "filesystem": filesystem,
            "source": "test",
            "target": f"{filesystem}-OST000{n}",
            "after_reset": False,
            **values,
        }
        for time in times
        for n in range(2)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[table]))


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a year of `scratch`, a day of `home`, and one file per day; only what DAY needs is readable."""
    folder = tmp_path_factory.mktemp("year") / "store"
    store = Store(folder)
    store.append("target_sizes", year_of("target_sizes", "scratch", {"write_ios_4096": 10, "read_ios_1048576": 3}), "a")
    store.append("target_io", year_of("target_io", "scratch", {"read_bytes": 100, "write_bytes": 50}), "b")
    for path in folder.glob("target_*/date=*/*.parquet"):
        if path.parent.name != f"date={DAY}":
            path.write_bytes(b"garbage " * 64)
    store.append("target_io", year_of("target_io", "home", {"read_bytes": 7}, {DAY}), "c")
    for path in files_of(store, "target_io", "home"):
        path.write_bytes(b"garbage " * 64)
    return folder


def files_of(store: Store, table: str, filesystem: str) -> Iterator[Path]:
    for path in store.select(filesystem).snapshot(table).paths:
        yield Path(store.url) / table / path


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def reads(store: Store, since: datetime | None, until: datetime | None) -> list[int]:
    frame = store.select("scratch", since=since, until=until).frame("target_io").select("read_bytes")
    return frame.collect(backend="pyarrow").to_native().column("read_bytes").to_pylist()


def test_the_store_has_a_file_for_every_day_of_the_year(year: Path) -> None:
    assert len(list(year.glob("target_sizes/date=*/*.parquet"))) == DAYS


def test_a_question_about_one_day_opens_only_that_days_files(year: Path) -> None:
    assert reads(Store(year), midnight(DAY), midnight(DAY) + timedelta(days=1)) == [100] * 8


def test_a_question_about_hours_of_a_day_opens_only_that_days_files_and_keeps_to_the_hours(year: Path) -> None:
    assert reads(Store(year), midnight(DAY) + timedelta(hours=7), midnight(DAY) + timedelta(hours=19)) == [100] * 4


def test_a_window_that_ends_at_midnight_does_not_open_the_next_day(year: Path) -> None:
    noon = midnight(DAY) + timedelta(hours=12)
    assert reads(Store(year), noon, midnight(DAY) + timedelta(days=1)) == [100] * 4


def test_a_question_about_another_day_does_open_its_files(year: Path) -> None:
    """Or the tests above would prove nothing."""
    with pytest.raises(Exception, match=r"(?i)parquet|magic"):
        reads(Store(year), midnight(DAY), midnight(DAY) + timedelta(days=1, seconds=1))


def test_utilization_of_one_day_opens_only_that_days_files(year: Path) -> None:
    with iolens.open(str(year)) as store:
        result = store.utilization("scratch", since="2012-10-22", until="2012-10-23")
    assert (result.samples, result.target_samples, result.targets) == (4, 8, 2)
    assert {(io_size.direction, io_size.size_bytes): io_size.count for io_size in result.io_sizes if io_size.count} == {
        ("write", 4096): 80,
        ("read", 1 << 20): 24,
    }
    assert [(str(item.date), item.read_bytes, item.write_bytes) for item in result.daily] == [("2012-10-22", 800, 400)]


def test_utilization_of_some_hours_opens_only_that_days_files(year: Path) -> None:
    with iolens.open(str(year)) as store:
        result = store.utilization("scratch", since="2012-10-22T06:00:00Z", until="2012-10-22T14:00:00Z")
    assert (result.samples, result.target_samples) == (2, 4)


def test_files_of_another_file_system_are_not_opened(year: Path) -> None:
    store = Store(year)
    window = {"since": midnight(DAY), "until": midnight(DAY) + timedelta(days=1)}
    assert len(store.select("scratch", **window).snapshot("target_io").paths) == 1
    with pytest.raises(Exception, match=r"(?i)parquet|magic"):
        store.select("home", **window).frame("target_io").select("read_bytes").collect(backend="pyarrow")


def test_the_extent_of_a_window_is_known_without_opening_a_file(year: Path) -> None:
    low, high = Store(year).select("scratch").extent_us("target_io", "target_sizes")
    assert datetime.fromtimestamp(low / 1e6, UTC) == datetime(2012, 1, 1, 1, tzinfo=UTC)
    assert datetime.fromtimestamp(high / 1e6, UTC) == datetime(2012, 12, 31, 19, 0, 5, tzinfo=UTC)


def test_the_engine_reads_only_the_columns_that_are_asked_for(year: Path) -> None:
    chosen = Store(year).select("scratch", since=midnight(DAY), until=midnight(DAY) + timedelta(days=1))
    plan = chosen.frame("target_sizes").select("write_ios_4096").to_native().explain()
    assert "write_ios_4096" in plan
    for name in ("read_ios_4096", "duration_s", "target_kind", "filesystem"):
        assert name not in plan


def test_the_engine_filters_a_window_while_it_reads(year: Path) -> None:
    since = midnight(DAY) + timedelta(hours=12)
    chosen = Store(year).select("scratch", since=since, until=midnight(DAY) + timedelta(days=1))
    plan = chosen.frame("target_io").select("read_bytes").to_native().explain()
    assert "read_bytes" in plan
    assert "write_bytes" not in plan
    assert "start" in plan


def test_size_bins_that_were_never_used_are_left_out_of_a_question(year: Path) -> None:
    chosen = Store(year).select("scratch", since=midnight(DAY), until=midnight(DAY) + timedelta(days=1))
    names = [column.name for column in TABLES["target_sizes"].columns if column.counter]
    live = list(chosen.live_columns("target_sizes", names))
    assert live == ["read_ios_1048576", "write_ios_4096"]


def test_finding_what_is_present_on_append_opens_only_the_days_concerned(year: Path) -> None:
    from iolens.records import Row
    from tests.store.samples import capture

    store = Store(year)
    first = datetime(2012, 10, 23, 3, tzinfo=UTC)
    time_us = int(first.timestamp() * 1e6)
    head = {"time": time_us, "filesystem": "scratch", "target": "scratch-OST0000"}
    store.tables.append(
        "target_capacity",
        {
            BatchPart("x", 1): pa.Table.from_pylist(
                [
                    {
                        "time": first - timedelta(days=9),
                        "date": (first - timedelta(days=9)).date(),
                        "filesystem": "scratch",
                        "source": "test",
                        "target": "scratch-OST0000",
                    }
                ],
                schema=arrow_schema(TABLES["target_capacity"]),
            )
        },
    )
    for path in year.glob("target_capacity/date=*/*.parquet"):
        path.write_bytes(b"garbage " * 64)
    tally = store.ingest([capture([Row("target_capacity", {**head, "used_bytes": 1})], "one")], "test")
    assert tally.rows["target_capacity"] == 1


@pytest.mark.parametrize(("few_rows", "days"), [(100_000, 366), (2928, 366), (1464, 183), (0, 7)])
def test_a_question_has_a_week_or_as_many_days_as_have_few_rows(
    year: Path, monkeypatch: pytest.MonkeyPatch, few_rows: int, days: int
) -> None:
    monkeypatch.setattr(selection, "FEW_ROWS", few_rows)
    chunks = list(Store(year).select("scratch").chunks("target_sizes", "target_io"))
    assert [(chunk.last - chunk.first).days + 1 for chunk in chunks[:-1]] == [days] * (len(chunks) - 1)
    assert (chunks[0].first, chunks[-1].last) == (FIRST, FIRST + timedelta(days=DAYS - 1))
    assert all(later.first == before.last + timedelta(days=1) for before, later in pairwise(chunks))
    assert len(chunks) == -(-DAYS // days)


def test_columns_with_a_value_are_known_from_the_log_where_it_is_of_the_selected_rows(tmp_path: Path) -> None:
    store, names = Store(tmp_path), ["read_bytes", "write_bytes", "background_bytes"]
    first, second = ({**row, "write_bytes": None} for row in made_up(1, ticks=2, targets=1).io[:2])
    store.append("target_io", table_of("target_io", [first, {**second, "read_bytes": None}]))

    def filled(**narrowing: Any) -> list[str] | None:
        (days,) = store.select("scratch", **narrowing).tick_days(["target_io"], 1)
        return days.filled_columns("target_io", names)

    assert filled() == ["read_bytes"]
    assert filled(targets=["OST0000"]) is None
    store.append("target_io", table_of("target_io", [{**first, "target": "sda", "target_kind": "block"}]))
    assert filled() is None

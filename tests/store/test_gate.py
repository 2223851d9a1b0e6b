"""What cannot be is refused, counted and named, one by one or in columns; the rest goes on. Nothing ever raises."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from iolens.columns import MOST_BYTES
from iolens.counters.ceilings import RateCeiling, RateCeilings
from iolens.counters.differences import advance
from iolens.records import Capture, CounterSet, Problem, Row, Rows, Sample, Samples
from iolens.schema import LARGEST, LATEST_US, TABLES
from iolens.store.gate import Gate
from iolens.store.maintenance import compact_store
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from iolens.store.tables import BatchPart
from iolens.store.tally import Tally
from tests.store.samples import T0, capture, io_sample, sample
from tests.store.writers import row_of

US = T0 * 1_000_000
HEAD = {"time": US, "filesystem": "scratch", "target": "scratch-OST0000"}
INTERVAL = {**HEAD, "start": US - 5_000_000, "duration_s": 5.0}
LONG_NUMBER = 10**5000  # more digits than Python turns into text


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def through(table: str, values: dict[str, object], form: str = "rows") -> tuple[list[dict], list[str]]:
    """The row as it would be stored, and what was refused of it."""
    messages: list[str] = []
    gate = Gate("capture.txt", lambda problem, count: messages.append(str(problem)))
    if form == "rows":
        rows = gate.rows(TABLES[table], [values])
    else:
        rows = gate.columns(TABLES[table], {name: [value] for name, value in values.items()}, 1)
    return rows.to_pylist(), messages


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize(
    ("table", "column", "value", "expected"),
    [
        ("target_capacity", "used_bytes", -5, "expected a whole number of at most 64 bits, at least 0"),
        ("target_capacity", "free_inodes", -1, "at least 0"),
        ("target_capacity", "total_bytes", 2**63, "expected a whole number of at most 64 bits"),
        pytest.param("target_capacity", "total_bytes", LONG_NUMBER, "is a number of 16610 bits", id="long"),
        (
            "target_capacity",
            "total_bytes",
            "many",
            "is many (scratch-OST0000, 2020-09-13T12:26:40Z): expected a",
        ),
        ("target_capacity", "total_bytes", 1.5, "is 1.5 (scratch-OST0000, 2020-09-13T12:26:40Z): expected a whole"),
        ("target_capacity", "total_bytes", float("inf"), "expected a whole number"),
        ("target_capacity", "total_bytes", True, "is True (scratch"),
        ("host_load", "memory_pct", -0.5, "expected a finite number, at least 0 and at most 101"),
        ("host_load", "memory_pct", 4000, "at most 101"),
        ("host_load", "memory_pct", float("-inf"), "expected a finite number"),
        ("host_load", "memory_pct", 10**400, "expected a finite number"),
        ("target_state", "recovery_start", LATEST_US + 1, "expected a time between 1970 and 2200"),
        ("target_state", "version", 2.15, "expected a text"),
        ("target_io", "duration_s", -1.0, "expected a finite number, at least 0"),
        ("target_io", "after_reset", "no", "expected true or false"),
        ("target_io", "read_bytes", 9 * 10**18, "more than 1,000,000,000,000 bytes/s allow"),
        ("target_io", "read_ops", 10**10, "more than 1,000,000,000 operations/s allow"),
        ("target_io", "busy_us", 10**14, "more than 1,000,000,000,000 µs/s allow"),
    ],
)
def test_an_impossible_value_is_unknown_and_named(
    table: str, column: str, value: object, expected: str, form: str
) -> None:
    head = INTERVAL if table == "target_io" else HEAD | ({"host": "oss1"} if table == "host_load" else {})
    (row,), (message,) = through(table, {**head, "source": "test", column: value}, form)
    assert row[column] is None
    assert row["filesystem"] == "scratch"
    assert message.startswith(f"capture.txt: {table}.{column} is ")
    assert expected in message
    assert message.endswith("stored as unknown")
    assert ("oss1" if table == "host_load" else "scratch-OST0000") in message
    assert "2020-09-13T12:26:40Z" in message


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("target_io", "time", -1),
        ("target_io", "time", LATEST_US + 1),
        ("target_io", "time", "noon"),
        ("target_io", "time", None),
        ("target_io", "start", US + 1),  # an interval that ends before it began
        pytest.param("target_io", "start", LONG_NUMBER, id="long"),
        ("target_io", "target", 7),
        ("target_histograms", "bin", -(2**63)),
        ("target_histograms", "bin", 2**64),
    ],
)
def test_without_its_name_or_its_time_a_row_is_left_out(table: str, column: str, value: object, form: str) -> None:
    rows, (message,) = through(table, {**INTERVAL, "source": "test", "histogram": "h", "bin": 1, column: value}, form)
    assert rows == []
    assert f"{table}." in message
    assert message.endswith("row left out")


@pytest.mark.parametrize(
    ("table", "column", "value", "expected"),
    [
        ("contents", "count", LARGEST, "at least 0 and at most 1e+15"),
        ("target_state", "lock_timeouts", 9 * 10**18, "at most 1e+15"),
        ("runs", "opens", 5 * 10**18, "at most 1e+15"),
        ("runs", "processes", 2**31, "at most 2.14748e+09"),
        ("runs", "read_s", 1.6e29, "at most 1e+14"),
        ("run_files", "rank", 5 * 10**18, "at least -1 and at most 2.14748e+09"),
        ("run_files", "close_end_s", 4e143, "at most 1e+14"),
    ],
)
def test_more_than_there_can_be_is_unknown_and_named(table: str, column: str, value: object, expected: str) -> None:
    names = {key: "name" for key in TABLES[table].key if TABLES[table].column(key).type == "string"}
    rows, (message,) = through(table, {**HEAD, "start": US, "source": "test", **names, column: value})
    assert all(row[column] is None for row in rows)  # none where the column names the row
    assert message.startswith(f"capture.txt: {table}.{column} is ")
    assert expected in message


def test_a_part_is_not_more_than_its_whole() -> None:
    capacity = {"total_bytes": 100, "used_bytes": 101, "free_bytes": 100, "available_bytes": 7, "used_inodes": 5}
    (row,), (message,) = through("target_capacity", {**HEAD, "source": "test", **capacity})
    assert {name: row[name] for name in capacity} == {**capacity, "used_bytes": None}
    assert "target_capacity.used_bytes is 101" in message
    assert "expected at most total_bytes, 100; stored as unknown" in message


def test_what_can_be_goes_through_as_it_is() -> None:
    for values in ({"used_bytes": 0}, {"used_bytes": MOST_BYTES}, {"used_bytes": None}, {"used_bytes": 7.0}):
        (row,), messages = through("target_capacity", {**HEAD, "source": "test", **values})
        assert (row["used_bytes"], messages) == (values["used_bytes"], [])
    (row,), messages = through("run_files", {"time": US, "run_id": "r", "rank": -1, "record_id": -(2**63)})
    assert (row["rank"], row["record_id"], messages) == (-1, -(2**63), [])
    (row,), messages = through("calibrations", {"name": "n", "write_r2": -3.5})
    assert (row["write_r2"], messages) == (-3.5, [])


def test_not_a_number_is_unknown_in_columns_and_refused_in_a_row() -> None:
    """In columns it is how sources write what they do not know."""
    values = {**HEAD, "source": "test", "host": "oss1", "cpu_pct": float("nan")}
    assert through("host_load", values, "columns")[1] == []
    (row,), (message,) = through("host_load", values, "rows")
    assert (row["cpu_pct"], "cpu_pct is nan" in message) == (None, True)


def test_text_that_is_no_text_is_escaped() -> None:
    (row,), messages = through("target_state", {**HEAD, "source": "test", "version": "caf\udce9"})
    assert (row["version"], messages) == ("caf\\udce9", [])


def test_every_refused_value_is_counted_and_the_first_are_named() -> None:
    tally = Tally()
    used = np.arange(1000, dtype=np.int64)
    used[500:] = -1
    columns = {**HEAD, "time": US + np.arange(1000), "used_bytes": used}
    rows = Gate("capture.txt", tally.refuse).columns(TABLES["target_capacity"], columns, 1000)
    assert (tally.refused, rows.num_rows, rows.column("used_bytes").null_count) == (500, 1000, 500)
    assert len(tally.problems) == 100


def test_a_few_bytes_in_a_millisecond_are_no_impossible_rate() -> None:
    """Over less than a second the jitter of the clock would decide: the bound is that of a second."""
    (row,), messages = through("target_io", {**INTERVAL, "source": "test", "duration_s": 0.001, "read_bytes": 10**12})
    assert (row["read_bytes"], messages) == (10**12, [])


def test_a_sum_over_servers_may_have_a_thousand_times_as_much() -> None:
    for kind, refused in (("ost", 1), ("filesystem", 0), ("server", 0)):
        values = {**INTERVAL, "source": "test", "target_kind": kind, "read_bytes": 10**15}
        assert len(through("target_io", values)[1]) == refused


def test_each_row_has_the_ceiling_of_its_file_system() -> None:
    tally = Tally()
    gate = Gate("x", tally.refuse, RateCeilings({"slow": RateCeiling(10**9, 1000)}))
    columns = {**INTERVAL, "source": "test", "filesystem": ["slow", "fast"], "read_bytes": 6 * 10**9, "read_ops": 5001}
    rows = gate.columns(TABLES["target_io"], columns, 2).to_pylist()
    assert [(row["read_bytes"], row["read_ops"]) for row in rows] == [(None, None), (6 * 10**9, 5001)]
    assert "more than 1,000,000,000 bytes/s allow" in str(tally.problems[0])


def test_what_ingest_counts_is_in_the_books(store: Store) -> None:
    items = [
        Row("target_capacity", {**HEAD, "used_bytes": -5}),
        Row("target_io", {**INTERVAL, "read_bytes": 9 * 10**18, "write_bytes": 7}),
        Rows("target_io", {**INTERVAL, "time": np.array([US + 1, -1]), "read_bytes": np.array([1, 2])}, 2),
    ]
    tally = store.ingest([capture(items, "a")], "test")
    assert (tally.refused, tally.rows["target_io"], tally.rows["target_capacity"]) == (3, 2, 1)
    result = store.select("scratch").frame("target_io").sort("epoch_us").select("read_bytes", "write_bytes")
    assert result.collect("pyarrow").to_native().to_pylist() == [
        {"read_bytes": None, "write_bytes": 7},
        {"read_bytes": 1, "write_bytes": None},
    ]
    batches = store.tables.load("batches")
    assert batches is not None
    (books,) = batches.to_pyarrow_table(columns=["refused", "problems"]).to_pylist()
    assert books["refused"] == 3
    said = "target_io.read_bytes is 9000000000000000000 (scratch-OST0000, 2020-09-13T12:26:40Z): more than"
    assert any(said in load for load in json.loads(books["problems"]))


@pytest.mark.parametrize("form", ["single", "columns"])
def test_raw_counters_that_are_none_are_not_readable(store: Store, form: str) -> None:
    """Of three samples the second has a negative counter: the difference is taken over it."""
    reads = [100, -5, 300]
    if form == "single":
        sets = [{"": CounterSet({"read_bytes": read, "write_bytes": 0})} for read in reads]
        items = [sample("target_io", 5 * n, item) for n, item in enumerate(sets)]
    else:
        times = US + np.arange(3) * 5_000_000
        counters = {"read_bytes": np.array(reads), "write_bytes": np.zeros(3, np.int64)}
        items = [Samples("target_io", "scratch", "scratch-OST0000", times, times, counters)]
    tally = store.ingest([capture(items, "a")], "test")
    result = store.select("scratch").frame("target_io").sort("epoch_us").select("read_bytes").collect("pyarrow")
    assert result.to_native().column(0).to_pylist() == [None, 200]
    assert (tally.refused, tally.resets) == (1, 0)
    assert "target_io of scratch-OST0000 at 2020-09-13T12:26:45Z: read_bytes is -5" in str(tally.problems[0])


def test_a_sample_without_a_time_is_left_out(store: Store) -> None:
    items = [io_sample(0, 0, 0), io_sample(5, 9, 0)]
    bad = Sample("target_io", "scratch", "scratch-OST0000", LONG_NUMBER, LONG_NUMBER, items[0].sets)
    times = np.array([US + 10_000_000, -1, LATEST_US + 1])
    series = Samples("target_io", "scratch", "scratch-OST0000", times, times, {"read_bytes": np.array([19, 1, 1])})
    tally = store.ingest([capture([*items, bad, series], "a")], "test")
    assert (tally.refused, tally.rows["target_io"]) == (3, 2)


def test_a_bin_that_is_no_number_is_left_out(store: Store) -> None:
    def bins(second: int, count: int) -> Sample:
        labels = ("read:8", "read:-9223372036854775808", "read:x", f"read:{'9' * 5000}")
        return sample("target_histograms", second, {"h": CounterSet(dict.fromkeys(labels, count))})

    tally = store.ingest([capture([bins(0, 1), bins(5, 3)], "a")], "test")
    assert (tally.refused, tally.rows["target_histograms"]) == (3, 1)


def test_an_impossible_difference_is_unknown_and_the_next_reading_decides() -> None:
    """50, then a reading that cannot be, then 150: 100 moved. Or the counter goes on from there: then that moved."""
    wrong = 9 * 10**18
    for last, expected in ((150, 100), (wrong + 70, 70)):
        baseline, moved = None, []
        for second, read in ((0, 40), (5, 50), (10, wrong), (15, last)):
            step = advance(baseline, io_sample(second, read, 0))
            baseline = step.baseline
            moved += [movement.moved.get("read_bytes") for movement in step.movements.values()]
        assert moved == [10, None, expected]
        assert not step.resets


def test_a_fall_by_a_tiny_part_is_no_reset() -> None:
    """Separate files whose clocks were set back: in order of time all counters fall a little. Nothing counts twice."""
    large = 438 * 10**12
    baseline, moved, outcomes = None, [], []
    for second, more in ((10, 0), (13, 700), (15, 600), (18, 900)):
        step = advance(baseline, io_sample(second, large + more * 4096, large + more * 4096))
        baseline = step.baseline
        outcomes.append(step.outcome.name)
        moved += [movement.moved.get("read_bytes") for movement in step.movements.values()]
        assert not step.resets
    assert moved == [700 * 4096, 200 * 4096]
    assert outcomes == ["BASELINE", "INTERVAL", "UNORDERED", "INTERVAL"]


def test_a_fall_to_more_than_could_have_moved_is_no_reset() -> None:
    """The counters fell by a part that is not tiny, to a value that no target moves in two seconds."""
    large = 438 * 10**12
    first = advance(None, io_sample(10, large, large)).baseline
    step = advance(first, io_sample(12, large // 2, large // 2))
    assert (step.resets, step.movements[""].moved.get("read_bytes")) == (0, None)
    assert step.refused[""]["read_bytes"] == large // 2


def test_what_a_reset_left_is_counted_if_it_can_have_moved() -> None:
    baseline = advance(None, io_sample(0, 10**15, 10**15)).baseline
    step = advance(baseline, io_sample(5, 10**12, 10**11))
    assert (step.resets, step.movements[""].moved["read_bytes"]) == (1, 10**12)


def test_an_older_store_with_impossible_values_is_rolled_up_all_the_same(store: Store) -> None:
    """Written past the gate, as 0.1 did: the sums that cannot be are unknown, the others are right."""
    good = row_of(TABLES["target_io"], 5)
    for number, value in enumerate((9 * 10**18, 9 * 10**18, -7)):
        place = good.column_names.index("read_bytes" if number < 2 else "write_bytes")
        bad = good.set_column(place, good.column_names[place], pa.array([value], pa.int64()))
        store.tables.append("target_io", {BatchPart(f"bad {number}", 1): bad})
    bins = row_of(TABLES["target_histograms"], 3)
    low = bins.set_column(bins.column_names.index("bin"), "bin", pa.array([-(2**63)], pa.int64()))
    store.tables.append("target_histograms", {BatchPart("bin", 1): low})
    assert roll_up(store).days == 4
    compact_store(store)
    for name in ("60s/target_io", "1h/target_io"):
        handle = store.tables.load(name)
        assert handle is not None
        (row,) = handle.to_pyarrow_table().to_pylist()
        assert (row["read_bytes"], row["write_bytes"], row["read_ops"]) == (None, None, 15)


ANYTHING = [
    None, True, False, 0, 1, -1, 7.0, 2.5, US, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**400, LONG_NUMBER,
    float("nan"), float("inf"), -float("inf"), 1e308, "", "text", "caf\udce9", "7", b"x", [1], {"a": 1}, np.int64(5),
    np.float64("nan"), np.uint64(2**63),
]  # fmt: skip


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("table", sorted(TABLES))
def test_whatever_comes_the_gate_never_raises_and_lets_nothing_impossible_through(table: str, form: str) -> None:
    chance = random.Random(table + form)
    declared, tally, count = TABLES[table], Tally(), 300
    columns = {column.name: chance.choices(ANYTHING, k=count) for column in declared.columns}
    for column in declared.columns:  # four rows of five have a name and a time
        if column.name in (*declared.key, "time", "start"):
            sound = {"string": "text", "timestamp": US}.get(column.type, 7)
            columns[column.name] = [sound if n % 5 else item for n, item in enumerate(columns[column.name])]
    gate = Gate("x", tally.refuse)
    if form == "rows":
        single = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        rows = gate.rows(declared, single)
    else:
        rows = gate.columns(declared, columns, count)
    if any(column.name not in (*declared.key, "time", "start") for column in declared.columns):
        assert tally.refused > count
    else:  # of a table of keys alone every fifth row is bad
        assert tally.refused >= count // 5
    for column in declared.columns:
        values = [item for item in rows.column(column.name).to_pylist() if item is not None]
        if column.type in ("int64", "float64"):
            low, high = column.limits
            assert all(low <= value <= high for value in values)
    assert 4 * count // 5 <= rows.num_rows < count


def test_raw_samples_of_any_kind_never_raise(store: Store) -> None:
    strange = [None, True, "x", 2.5, float("nan"), float("inf"), -1, 2**64, LONG_NUMBER, [1], {"a": 1}]
    items = [sample("target_io", 5 * n, {"": CounterSet({"read_bytes": item})}) for n, item in enumerate(strange)]
    items += [Sample("target_io", "scratch", "scratch-OST0000", item, US, {"": CounterSet({})}) for item in strange]
    items += [sample("target_io", 500 + n, {"": CounterSet({"read_bytes": 1}, item)}) for n, item in enumerate(strange)]
    tally = store.ingest([Capture("x", "file/x", lambda: iter(items))], "test")
    assert tally.refused == len(strange) + 11
    assert all(isinstance(problem, Problem) for problem in tally.problems)

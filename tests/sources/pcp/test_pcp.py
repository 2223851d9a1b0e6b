"""PCP archives: both versions, every way they may be packed, cut, split or interrupted."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolens.analyses.workload.analysis import workload
from iolens.api.open_store import OpenStore
from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Samples
from iolens.sources import recognise
from iolens.sources.pcp.pcp import SOURCE
from iolens.sources.reading.options import ReadOptions
from iolens.store.ingest import Tally
from iolens.store.store import Store
from tests.sources.pcp_writer import DOUBLE, FLOAT, I32, INSTANT, KBYTE, MSEC, TIMES, U32, U64, S, Writer, beside, units

T0 = 1_700_000_000 * S
VERSIONS = pytest.mark.parametrize("version", [2, 3])


def items(*paths: Path, options: ReadOptions | None = None) -> list[Item]:
    captures = list(SOURCE.captures(list(paths), options or ReadOptions()))
    return [item for capture in captures for item in pickle.loads(pickle.dumps(capture)).items()]


def series(results: list[Item]) -> dict[str, dict[str, list[int]]]:
    out: dict[str, dict[str, list[int]]] = {}
    for item in results:
        if isinstance(item, Samples):
            columns = {"time": item.snapshot_us, **item.counters}
            for name, column in columns.items():
                out.setdefault(item.target, {}).setdefault(name, []).extend(column.tolist())
    return out


def problems(results: list[Item]) -> list[str]:
    return [str(item) for item in results if isinstance(item, Problem) and not isinstance(item, Note)]


def notes(results: list[Item]) -> list[str]:
    return [item.reason for item in results if isinstance(item, Note)]


def two_disks(version: int, samples: int = 5) -> Writer:
    made = Writer(version).disks()
    made.names(T0, {0: "sda", 1: "sdb"})
    for number in range(samples):
        made.sample(T0 + number * 10 * S, {0: 100 + number, 1: 7 * number})
    return made


@VERSIONS
def test_every_counter_in_our_units(tmp_path: Path, version: int) -> None:
    result = items(beside(two_disks(version).write(tmp_path / "a"), ".0"))
    assert problems(result) == []
    sda = series(result)["oss1:sda"]
    assert sda["time"] == [T0 + number * 10 * S for number in range(5)]
    assert {name: values[0] for name, values in sda.items()} == {
        "time": T0, "read_ops": 100, "write_ops": 200, "read_bytes": 400 * 1024, "write_bytes": 1600 * 1024,
        "read_wait_us": 100_000, "write_wait_us": 200_000, "busy_us": 300_000, "queue_us": 500_000,
    }  # fmt: skip
    assert series(result)["oss1:sdb"]["read_ops"] == [0, 7, 14, 21, 28]
    samples = [item for item in result if isinstance(item, Samples)]
    assert {(sample.filesystem, sample.labels["target_kind"]) for sample in samples} == {("oss1", "device")}


@pytest.mark.parametrize(
    ("type_", "unit", "raw", "measured"),
    [
        (U64, units(space=1, scales=(0, 0, 0)), 4096, 4096),
        (U32, KBYTE, 3, 3072),
        (U64, units(space=1, scales=(2, 0, 0)), 5, 5 << 20),
        (DOUBLE, units(space=1, scales=(3, 0, 0)), 0.5, 1 << 29),
        (FLOAT, KBYTE, 2.0, 2048),
        (I32, KBYTE, 7, 7168),
        (U64, KBYTE, 2**50 + 1, (2**50 + 1) * 1024),  # exact where a double would not be
    ],
)
def test_units_are_those_of_the_description(tmp_path: Path, type_: int, unit: int, raw: float, measured: int) -> None:
    made = Writer()
    made.describe(1, "disk.dev.read_bytes", type_, unit)
    made.names(T0, {0: "sda"})
    made.values(T0, {1: {0: raw}})
    assert series(items(beside(made.write(tmp_path / "a"), ".meta")))["oss1:sda"]["read_bytes"] == [measured]


@pytest.mark.parametrize(
    ("type_", "raw"),
    [(I32, -7), (DOUBLE, -0.5), (DOUBLE, float("nan")), (DOUBLE, float("inf")), (FLOAT, 1e30), (U64, 2**60)],
)
def test_a_value_that_no_counter_can_have_is_left_out_and_counted(tmp_path: Path, type_: int, raw: float) -> None:
    made = Writer()
    made.describe(1, "disk.dev.read_bytes", type_, KBYTE)
    made.describe(2, "disk.dev.read", U64)
    made.names(T0, {0: "sda"})
    for number, value in enumerate((1, raw, 3)):
        made.values(T0 + number * 10 * S, {1: {0: value}, 2: {0: number}})
    result = items(beside(made.write(tmp_path / "a"), ".0"))
    assert ["1 values that no counter can have: left out" in problem for problem in problems(result)] == [True]
    sda = series(result)["oss1:sda"]
    assert (sda["read_bytes"], sda["read_ops"]) == ([1024, 3072], [0, 2])  # over both intervals, nothing is lost


@pytest.mark.parametrize(("scale", "raw", "us"), [(0, 7000, 7), (1, 7, 7), (2, 7, 7000), (3, 7, 7 * S), (4, 1, 60 * S)])
def test_scales_of_time(tmp_path: Path, scale: int, raw: int, us: int) -> None:
    made = Writer()
    made.describe(1, "disk.dev.avactive", U64, units(time=1, scales=(0, scale, 0)))
    made.names(T0, {0: "sda"})
    made.values(T0, {1: {0: raw}})
    assert series(items(beside(made.write(tmp_path / "a"), ".0")))["oss1:sda"]["busy_us"] == [us]


def test_a_scale_of_time_that_is_none_costs_its_metric(tmp_path: Path) -> None:
    made = Writer()
    made.describe(1, "disk.dev.avactive", U64, units(time=1, scales=(0, 6, 0)))
    made.describe(2, "disk.dev.read", U64)
    made.names(T0, {0: "sda"})
    made.values(T0, {1: {0: 5}, 2: {0: 6}})
    result = items(beside(made.write(tmp_path / "a"), ".0"))
    assert "disk.dev.avactive is no counter of that kind here: not read" in problems(result)[0]
    assert set(series(result)["oss1:sda"]) == {"time", "read_ops"}


def test_blocks_stand_in_where_bytes_are_not_logged(tmp_path: Path) -> None:
    made = Writer()
    made.describe(1, "disk.dev.blkread", U64)
    made.describe(2, "disk.dev.blkwrite", U64)
    made.describe(3, "disk.dev.write_bytes", U64, KBYTE)
    made.names(T0, {0: "sda"})
    made.values(T0, {1: {0: 10}, 2: {0: 999}, 3: {0: 4}})
    sda = series(items(beside(made.write(tmp_path / "a"), ".0")))["oss1:sda"]
    assert (sda["read_bytes"], sda["write_bytes"]) == ([5120], [4096])


@pytest.mark.parametrize(("unit", "semantics"), [(TIMES, 1), (MSEC, 1), (KBYTE, INSTANT)])
def test_a_metric_that_is_not_what_its_name_promises_is_a_problem(tmp_path: Path, unit: int, semantics: int) -> None:
    made = Writer()
    made.describe(1, "disk.dev.read_bytes", U64, unit, semantics)
    made.describe(2, "disk.dev.read", U64)
    made.names(T0, {0: "sda"})
    made.values(T0, {1: {0: 5}, 2: {0: 6}})
    result = items(beside(made.write(tmp_path / "a"), ".0"))
    assert "disk.dev.read_bytes is no counter of that kind here: not read" in problems(result)[0]
    assert set(series(result)["oss1:sda"]) == {"time", "read_ops"}


def test_an_archive_without_disks_says_so(tmp_path: Path) -> None:
    made = Writer()
    made.describe(1, "kernel.all.load", FLOAT, 0, INSTANT)
    (result,) = items(beside(made.write(tmp_path / "a"), ".0"))
    assert "no counter of a disk in it" in str(result)


class TestInstances:
    @VERSIONS
    def test_names_hold_from_their_time_on(self, tmp_path: Path, version: int) -> None:
        made = two_disks(version, 2)
        made.names(T0 + 15 * S, {0: "sdb", 1: "sda"})  # after a restart of the daemon numbers may be others
        made.sample(T0 + 20 * S, {0: 14, 1: 102})
        result = series(items(beside(made.write(tmp_path / "a"), ".0")))
        assert result["oss1:sda"]["read_ops"] == [100, 101, 102]
        assert result["oss1:sdb"]["read_ops"] == [0, 7, 14]

    def test_changes_of_version_3(self, tmp_path: Path) -> None:
        made = two_disks(3, 2)
        made.names(T0 + 15 * S, {1: None, 5: "nvme0n1"}, changed=True)
        made.sample(T0 + 20 * S, {0: 102, 5: 1})
        result = series(items(beside(made.write(tmp_path / "a"), ".0")))
        assert {name: item["read_ops"] for name, item in result.items()} == {
            "oss1:sda": [100, 101, 102], "oss1:sdb": [0, 7], "oss1:nvme0n1": [1],
        }  # fmt: skip

    def test_names_may_be_reported_before_the_metric_that_needs_them(self, tmp_path: Path) -> None:
        made = Writer(3)
        made.names(T0, {0: "sda"})
        made.disks()
        made.sample(T0, {0: 1})
        assert series(items(beside(made.write(tmp_path / "a"), ".0")))["oss1:sda"]["read_ops"] == [1]

    def test_a_number_without_a_name_is_counted(self, tmp_path: Path) -> None:
        made = two_disks(2, 1)
        made.sample(T0 + 10 * S, {0: 101, 9: 5})
        result = items(beside(made.write(tmp_path / "a"), ".0"))
        assert "8 values of instances that have no name" in problems(result)[0]
        assert series(result)["oss1:sda"]["read_ops"] == [100, 101]

    def test_the_rule_chooses(self, tmp_path: Path) -> None:
        path = beside(two_disks(2).write(tmp_path / "a"), ".0")
        result = items(path, options=ReadOptions(filesystem="fs", devices=DeviceRule(exclude=("sdb",))))
        assert list(series(result)) == ["oss1:sda"]
        assert notes(result) == ["1 devices left out by rule: sdb (excluded by 'sdb')"]


class TestTimes:
    def apart(self, made: Writer, number: int, delay_us: int) -> None:
        """One sample in two records, as pmlogger writes groups."""
        at = T0 + number * 10 * S
        made.values(at, {100 + item: {0: number} for item in range(4)})
        made.values(at + delay_us, {100 + item: {0: number} for item in range(4, 8)})

    def test_records_of_one_time_are_one_sample(self, tmp_path: Path) -> None:
        made = Writer(3).disks()
        made.names(T0, {0: "sda"})
        for number in range(4):
            self.apart(made, number, 400)
        result = items(beside(made.write(tmp_path / "a"), ".0"))
        sda = series(result)["oss1:sda"]
        assert (sda["time"], sda["busy_us"]) == ([T0 + n * 10 * S for n in range(4)], [0, 1000, 2000, 3000])
        assert notes(result) == []

    def test_the_slowest_metric_sets_the_pace(self, tmp_path: Path) -> None:
        made = Writer().disks()
        made.names(T0, {0: "sda"})
        for number in range(13):
            if number % 6:
                made.values(T0 + number * 10 * S, {102: {0: number}, 103: {0: number}})
            else:
                made.sample(T0 + number * 10 * S, {0: number})
        result = items(beside(made.write(tmp_path / "a"), ".0"))
        assert series(result)["oss1:sda"]["time"] == [T0, T0 + 60 * S, T0 + 120 * S]
        assert notes(result) == [
            "10 readings lack some of the metrics: skipped, the interval to the next whole one is longer"
        ]

    def test_a_metric_that_was_logged_once_does_not_hold_up_the_others(self, tmp_path: Path) -> None:
        made = Writer().disks()
        made.names(T0, {0: "sda"})
        made.sample(T0, {0: 0})
        for number in range(1, 200):
            made.values(T0 + number * 10 * S, {100 + item: {0: number} for item in range(4)})
        sda = series(items(beside(made.write(tmp_path / "a"), ".0")))["oss1:sda"]
        assert sda["read_ops"] == list(range(200))

    def test_a_metric_that_could_not_be_fetched_once_makes_the_interval_longer(self, tmp_path: Path) -> None:
        """With the other counters alone, the reads of 20 s would fall into an interval of 10 s."""
        made = two_disks(2, 1)
        rest: dict[int, Any] = {100 + item: {0: 101} for item in range(1, 8)}
        made.values(T0 + 10 * S, {100: -12345, **rest})
        made.sample(T0 + 20 * S, {0: 102, 1: 3})
        base = made.write(tmp_path / "a")
        assert series(items(base))["oss1:sda"]["read_ops"] == [100, 102]
        load(store := Store(tmp_path / "store"), base)
        sda = [row for row in rows(store) if row["target"] == "oss1:sda"]
        assert [(row["duration_s"], row["read_ops"], row["write_ops"]) for row in sda] == [(20.0, 2, 4)]

    @pytest.mark.parametrize("delay_us", [400, 12_000, 240_000])
    def test_groups_that_log_the_same_metrics_are_one_sample(self, tmp_path: Path, delay_us: int) -> None:
        """pmlogger has a record per group: some metrics of both disks come a second time."""
        made = Writer(3).disks()
        made.names(T0, {0: "sda", 1: "sdb"})
        for number in range(6):
            at = T0 + number * 10 * S
            made.sample(at, {0: number, 1: number})
            made.values(at + delay_us, {100: {0: number + 1}, 101: {0: 2 * number}})
        base = made.write(tmp_path / "a")
        result = items(base)
        assert series(result)["oss1:sda"]["read_ops"] == [0, 1, 2, 3, 4, 5]
        assert notes(result) == ["12 values logged twice at one time: the first of each counts"]
        load(store := Store(tmp_path / "store"), base)
        assert {(row["duration_s"], row["read_ops"]) for row in rows(store)} == {(10.0, 1)}
        assert {(row["time"] - row["start"]).total_seconds() for row in rows(store)} == {10.0}

    def test_groups_of_different_disks_are_one_sample(self, tmp_path: Path) -> None:
        made = Writer(3).disks()
        made.names(T0, {0: "sda", 1: "sdb"})
        for number in range(6):
            made.sample(T0 + number * 10 * S, {0: number})
            made.sample(T0 + number * 10 * S + 12_000, {1: number})
        result = items(made.write(tmp_path / "a"))
        assert notes(result) == []
        ticks = {item.target: item.time_us.tolist() for item in result if isinstance(item, Samples)}
        assert ticks["oss1:sda"] == ticks["oss1:sdb"] == [T0 + number * 10 * S for number in range(6)]

    def test_logging_ten_times_a_second_is_not_one_time(self, tmp_path: Path) -> None:
        made = Writer(3).disks()
        made.names(T0, {0: "sda"})
        for number in range(30):
            made.sample(T0 + number * S // 10, {0: number})
        assert series(items(made.write(tmp_path / "a")))["oss1:sda"]["read_ops"] == list(range(30))


WORTHS = (1, 2, 4, 16, 1, 2, 3, 5)  # of the eight metrics, per read


class TestHoles:
    """A metric that is not logged for a while is unknown meanwhile, and goes on afterwards."""

    def written(self, base: Path, readings: int, lacking: dict[int, range]) -> Path:
        """One read every ten seconds; `lacking`: where each metric is not logged."""
        made = Writer(3).disks()
        made.names(T0, {0: "sda"})
        for n in range(readings):
            logged = {m: {0: n * worth} for m, worth in enumerate(WORTHS) if n not in lacking.get(m, ())}
            made.values(T0 + n * 10 * S, {100 + metric: values for metric, values in logged.items()})
        return made.write(base)

    def test_a_long_one_is_one_wide_interval_and_no_write_is_lost(self, tmp_path: Path) -> None:
        """Writes (2 per reading) are away from reading 100 to 249; the counter itself went on."""
        base = self.written(tmp_path / "a", 400, {1: range(100, 250)})
        store = Store(tmp_path / "store")
        tally = load(store, base)
        result = rows(store)
        assert [row["duration_s"] for row in result] == [10.0] * 99 + [1510.0] + [10.0] * 149
        assert [row["write_ops"] for row in result] == [2] * 99 + [302] + [2] * 149
        assert sum(row["write_ops"] for row in result) == 2 * 399  # last - first of the counter itself
        assert sum(row["read_bytes"] for row in result) == 4 * 1024 * 399
        assert [note.reason for note in tally.notes] == [
            "150 readings lack some of the metrics: skipped, the interval to the next whole one is longer"
        ]

    def test_a_long_one_is_missing_in_every_answer_and_is_no_maintenance(self, tmp_path: Path) -> None:
        """Reads stand still while writes are not logged for six hours: nothing tells that nobody wrote."""
        made = Writer(3).disks()
        made.names(T0, {0: "sda"})
        pause = range(100, 2260)
        for n in range(2400):
            worths = [worth * (n if metric in (1, 3) else 5) for metric, worth in enumerate(WORTHS)]
            logged = {100 + m: {0: worth} for m, worth in enumerate(worths) if m not in (1, 3) or n not in pause}
            made.values(T0 + n * 10 * S, logged)
        store = Store(tmp_path / "store")
        load(store, made.write(tmp_path / "a"))
        answer = workload(store.select("oss1"))
        assert answer.aggregate is not None
        assert answer.aggregate.write_bytes == 16 * 1024 * 2399
        assert (answer.maintenance, answer.coverage.missing_samples) == ([], len(pause))
        opened = OpenStore(tmp_path / "store")
        coverage = opened.utilization("oss1", model="counters").coverage
        assert coverage.missed_samples == len(pause)
        assert coverage.per_target[0].missing_hours == pytest.approx(len(pause) * 10 / 3600)

    def test_time_counters_that_pause_are_unknown_meanwhile(self, tmp_path: Path) -> None:
        """Busy time (3 ms per reading) is away: operations and bytes keep their ticks."""
        store = Store(tmp_path / "store")
        tally = load(store, self.written(tmp_path / "a", 400, {6: range(100, 250)}))
        result = rows(store)
        assert {row["duration_s"] for row in result} == {10.0}
        assert [row["busy_us"] for row in result] == [3000] * 99 + [None] * 151 + [3000] * 149
        assert [note.reason for note in tally.notes] == [
            "disk.dev.avactive not logged in 150 readings of sda after 2023-11-14T22:29:50Z: unknown there;"
            " 453000 microseconds that it counted meanwhile are in no interval"
        ]

    def test_operations_are_waited_for_though_a_time_is_gone_for_good(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        load(store, self.written(tmp_path / "a", 400, {1: range(100, 290), 6: range(100, 400)}))
        result = rows(store)
        assert [row["duration_s"] for row in result] == [10.0] * 99 + [1910.0] + [10.0] * 109
        assert sum(row["write_ops"] for row in result) == 2 * 399
        assert [row["busy_us"] for row in result][99:] == [None] * 110

    def test_a_short_one_costs_resolution_and_no_bytes(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        tally = load(store, self.written(tmp_path / "a", 400, {1: range(100, 130), 3: range(110, 120)}))
        assert [row["duration_s"] for row in rows(store)] == [10.0] * 99 + [310.0] + [10.0] * 269
        assert sum(row["write_ops"] for row in rows(store)) == 2 * 399
        assert [note.reason for note in tally.notes] == [
            "30 readings lack some of the metrics: skipped, the interval to the next whole one is longer"
        ]

    def test_again_and_again(self, tmp_path: Path) -> None:
        """The last pause has no end: from there on the others go on without."""
        lacking = {1: [*range(50, 150), *range(200, 300), *range(350, 450)]}
        store = Store(tmp_path / "store")
        tally = load(store, self.written(tmp_path / "a", 450, lacking))  # type: ignore[arg-type]
        result = rows(store)
        ticks = [10.0] * 49
        assert [row["duration_s"] for row in result] == [*ticks, 1010.0, *ticks, 1010.0, *ticks, *[10.0] * 100]
        assert sum(row["write_ops"] or 0 for row in result) == 2 * 349
        assert sum(row["read_ops"] for row in result) == 449
        assert "disk.dev.write not logged in 100 readings of sda" in str(tally.notes[1])

    def test_a_metric_that_begins_late_or_ends_early(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        load(store, self.written(tmp_path / "a", 300, {0: range(150), 1: range(150, 300)}))
        result = rows(store)
        assert [row["read_ops"] for row in result] == [None] * 150 + [1] * 149
        assert [row["write_ops"] for row in result] == [2] * 149 + [None] * 150
        assert sum(row["read_bytes"] for row in result) == 4 * 1024 * 299

    def test_a_disk_that_goes_and_comes_back(self, tmp_path: Path) -> None:
        made = Writer(3).disks()
        made.names(T0, {0: "sda", 1: "sdb"})
        for n in range(300):
            if n == 100:
                made.names(T0 + 1000 * S - 1, {0: "sda"})
            elif n == 250:
                made.names(T0 + 2500 * S - 1, {0: "sda", 1: "sdb"})
            made.sample(T0 + n * 10 * S, {0: n} if 100 <= n < 250 else {0: n, 1: 3 * n})
        store = Store(tmp_path / "store")
        load(store, made.write(tmp_path / "a"))
        sdb = [row for row in rows(store) if row["target"] == "oss1:sdb"]
        assert [row["duration_s"] for row in sdb] == [10.0] * 99 + [1510.0] + [10.0] * 49
        assert sum(row["read_ops"] for row in sdb) == 3 * 299
        assert sum(row["read_ops"] for row in rows(store) if row["target"] == "oss1:sda") == 299

    def test_the_end_of_an_archive_waits_for_the_next(self, tmp_path: Path) -> None:
        """Writes are logged every minute: what comes after the last of them is left to the next archive."""
        store = Store(tmp_path / "store")
        for name, readings in (("a", 64), ("b", 128)):
            load(store, self.written(tmp_path / name, readings, {1: [n for n in range(128) if n % 6]}))  # type: ignore[dict-item]
        assert {(row["duration_s"], row["read_ops"], row["write_ops"]) for row in rows(store)} == {(60.0, 6, 12)}
        assert len(rows(store)) == 21

    def test_metrics_that_never_come_together(self, tmp_path: Path) -> None:
        """Five metrics are logged at :00, three at :05: the larger group goes on, the other is said to be left out."""
        made = Writer(3).disks()
        made.names(T0, {0: "sda"})
        for n in range(100):
            made.values(T0 + n * 10 * S, {100 + metric: {0: n * WORTHS[metric]} for metric in range(5)})
            made.values(T0 + n * 10 * S + 5 * S, {100 + metric: {0: n * WORTHS[metric]} for metric in range(5, 8)})
        result = items(made.write(tmp_path / "a"))
        assert series(result)["oss1:sda"]["write_ops"] == [2 * n for n in range(100)]
        assert set(series(result)["oss1:sda"]) == {
            "time",
            "read_ops",
            "write_ops",
            "read_bytes",
            "write_bytes",
            "read_wait_us",
        }
        assert notes(result) == [
            f"disk.dev.{name} was logged apart from the others: 100 values left out"
            for name in ("write_rawactive", "avactive", "aveq")
        ]

    def test_metrics_without_a_description_are_named(self, tmp_path: Path) -> None:
        made = two_disks(3, 3)
        made.values(T0 + 30 * S, {60 << 22 | 4: {0: 5}, 60 << 22 | 10 << 10 | 5: {0: 6}})
        made.values(T0 + 40 * S, {60 << 22 | 4: {0: 7}})
        result = items(made.write(tmp_path / "a"))
        assert [problem.partition(": ")[2] for problem in problems(result)] == [
            "metrics that the archive does not describe, left out: 60.0.4 (2 records), 60.10.5 (1 records)"
        ]


class TestFiles:
    @pytest.mark.parametrize("name", ["a", "a.0", "a.1", "a.meta", "a.index", ""])
    def test_any_of_its_names_is_the_archive(self, tmp_path: Path, name: str) -> None:
        made = two_disks(3, 3)
        made.volume = 1
        made.sample(T0 + 30 * S, {0: 103, 1: 21})
        made.write(tmp_path / "dir/a")
        result = items(tmp_path / "dir" / name if name else tmp_path / "dir")
        assert series(result)["oss1:sda"]["read_ops"] == [100, 101, 102, 103]

    def test_a_name_that_looks_like_a_volume(self, tmp_path: Path) -> None:
        base = two_disks(2).write(tmp_path / "20260105.00.10")
        two_disks(2, 2).write(tmp_path / "20260105.00")
        assert len(series(items(base))["oss1:sda"]["time"]) == 5
        assert len(series(items(tmp_path / "20260105.00"))["oss1:sda"]["time"]) == 2

    def test_all_files_of_one_archive_are_one_capture(self, tmp_path: Path) -> None:
        two_disks(2).write(tmp_path / "a")
        captures = list(SOURCE.captures(sorted(tmp_path.iterdir()), ReadOptions()))
        assert len(captures) == 1

    def test_archives_come_in_the_order_of_time(self, tmp_path: Path) -> None:
        for name, start in (("a", T0 + 86400 * S), ("b", T0)):
            made = two_disks(2)
            made.start_us = start
            made.write(tmp_path / name)
        origins = [Path(capture.origin).name for capture in SOURCE.captures([tmp_path], ReadOptions())]
        assert origins == ["b.0", "a.0"]

    @pytest.mark.parametrize("packing", ["xz", "gz", "bz2", "zst"])
    @VERSIONS
    def test_packed_volumes(self, tmp_path: Path, packing: str, version: int) -> None:
        base = two_disks(version).write(tmp_path / "a")
        packings: dict[str, Callable[[bytes], bytes]] = {"xz": lzma.compress, "gz": gzip.compress, "bz2": bz2.compress,
                "zst": lambda item: bytes(pa.compress(item, "zstd", asbytes=True))}  # fmt: skip
        for ending in (".0", ".meta"):
            plain = beside(base, ending)
            packed = beside(base, f"{ending}.{packing}")
            packed.write_bytes(packings[packing](plain.read_bytes()))
            plain.unlink()
            assert recognise(packed).name == "pcp"
        assert series(items(base))["oss1:sda"]["read_ops"] == [100, 101, 102, 103, 104]

    @pytest.mark.parametrize("missing", [".meta", ".0"])
    def test_an_archive_that_lacks_a_part(self, tmp_path: Path, missing: str) -> None:
        base = two_disks(2).write(tmp_path / "a")
        beside(base, missing).unlink()
        with pytest.raises(InputError, match=r"no \.meta file with its volumes"):
            items(beside(base, ".index"))

    def test_a_directory_without_an_archive(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no archive in this directory"):
            items(tmp_path)

    @VERSIONS
    def test_it_is_recognised(self, tmp_path: Path, version: int) -> None:
        base = two_disks(version).write(tmp_path / "a")
        assert {recognise(path).name for path in (*tmp_path.iterdir(), tmp_path)} == {"pcp"}
        other = beside(base, ".0.xz")
        other.write_bytes(lzma.compress(b"something else"))
        assert not SOURCE.recognises(other, other.read_bytes())
        assert not SOURCE.recognises(tmp_path / "x", b"")


class TestDamage:
    @VERSIONS
    @pytest.mark.parametrize("keep", [-1, -30, -200])
    def test_a_last_record_that_is_cut(self, tmp_path: Path, version: int, keep: int) -> None:
        path = beside(two_disks(version).write(tmp_path / "a"), ".0")
        path.write_bytes(path.read_bytes()[:keep])
        result = items(path)
        assert series(result)["oss1:sda"]["read_ops"] == [100, 101, 102, 103]
        assert "the file ends within a record; what came before it is kept" in problems(result)[0]

    def test_a_damaged_volume_does_not_cost_the_next(self, tmp_path: Path) -> None:
        made = two_disks(2, 3)
        made.volume = 1
        made.sample(T0 + 30 * S, {0: 103, 1: 21})
        path = beside(made.write(tmp_path / "a"), ".0")
        content = bytearray(path.read_bytes())
        content[-2] ^= 0xFF  # the length at the end of its last record
        path.write_bytes(content)
        result = items(path)
        assert series(result)["oss1:sda"]["read_ops"] == [100, 101, 103]
        assert "whose length is not the same at its end" in problems(result)[0]

    def test_a_volume_that_is_rubbish(self, tmp_path: Path) -> None:
        made = two_disks(2, 3)
        made.volume = 1
        made.sample(T0 + 30 * S, {0: 103, 1: 21})
        base = made.write(tmp_path / "a")
        beside(base, ".0").write_bytes(b"\xff" * 5000)
        result = items(base)
        assert series(result)["oss1:sda"]["read_ops"] == [103]
        assert "no label of a PCP archive" in problems(result)[0]

    @pytest.mark.parametrize(
        "content", [b"", b"\x00" * 8, b"\x00\x00\x00\x84\x50\x05\x26\x02", b"\x00\x00\x00\x84\x50\x05\x26\x01"]
    )
    def test_descriptions_that_cannot_be_read(self, tmp_path: Path, content: bytes) -> None:
        base = two_disks(2).write(tmp_path / "a")
        beside(base, ".meta").write_bytes(content)
        with pytest.raises(InputError):
            items(base)

    def test_descriptions_that_are_cut(self, tmp_path: Path) -> None:
        base = two_disks(2).write(tmp_path / "a")
        path = beside(base, ".meta")
        path.write_bytes(path.read_bytes()[:-3])  # within the names
        result = items(base)
        assert "the file ends within a record" in problems(result)[0]
        assert series(result) == {}

    @pytest.mark.parametrize("place", [16, 24, 40, 60])
    def test_any_byte_of_a_record_may_be_wrong(self, tmp_path: Path, place: int) -> None:
        path = beside(two_disks(2, 3).write(tmp_path / "a"), ".0")
        content = bytearray(path.read_bytes())
        content[132 + place] ^= 0xFF
        path.write_bytes(content)
        result, whole = items(path), series(items(two_disks(2, 3).write(tmp_path / "b")))
        assert result  # not an exception that ends the run, and not silence
        for target, columns in series(result).items():
            for name, values in columns.items():
                assert len(values) <= len(whole[target][name])  # a sample may be lost, none is made up

    def test_a_packed_volume_that_is_cut(self, tmp_path: Path) -> None:
        base = two_disks(2, 2000).write(tmp_path / "a")
        packed = gzip.compress(beside(base, ".0").read_bytes())
        beside(base, ".0").unlink()
        beside(base, ".0.gz").write_bytes(packed[: len(packed) // 2])
        result = items(base)
        assert 0 < len(series(result)["oss1:sda"]["read_ops"]) < 2000
        assert "cannot be read on" in problems(result)[0]


def load(store: Store, *paths: Path, options: ReadOptions | None = None) -> Tally:
    return store.ingest(SOURCE.captures(list(paths), options or ReadOptions()), "pcp")


def rows(store: Store) -> list[dict[str, Any]]:
    handle = store.tables.load("target_io")
    result = [] if handle is None else handle.to_pyarrow_table().to_pylist()
    return sorted(result, key=lambda row: (row["target"], row["time"]))


class TestStore:
    def test_twice_adds_nothing_and_an_archive_may_grow(self, tmp_path: Path) -> None:
        store, base = Store(tmp_path / "store"), tmp_path / "a"
        counts = []
        for samples in (5, 5, 9):
            two_disks(3, samples).write(base)
            tally = load(store, base)
            counts.append((tally.rows["target_io"], tally.older))
        assert counts == [(8, 0), (0, 0), (8, 0)]
        assert sum(row["read_ops"] for row in rows(store) if row["target"] == "oss1:sda") == 8
        assert {row["duration_s"] for row in rows(store)} == {10.0}

    def test_across_a_mark_counters_that_went_on_are_one_wide_interval(self, tmp_path: Path) -> None:
        made = two_disks(2, 3)
        made.mark(T0 + 21 * S)
        made.sample(T0 + 3600 * S, {0: 150, 1: 99})
        store = Store(tmp_path / "store")
        assert load(store, made.write(tmp_path / "a")).resets == 0
        sda = [row for row in rows(store) if row["target"] == "oss1:sda"]
        assert [(row["duration_s"], row["read_ops"], row["after_reset"]) for row in sda] == [
            (10.0, 1, False), (10.0, 1, False), (3580.0, 48, False),
        ]  # fmt: skip

    def test_across_a_mark_a_reboot_is_a_reset_and_nothing_is_invented(self, tmp_path: Path) -> None:
        made = two_disks(2, 3)
        made.mark(T0 + 21 * S)
        made.sample(T0 + 3600 * S, {0: 5, 1: 2})
        made.sample(T0 + 3610 * S, {0: 6, 1: 2})
        store = Store(tmp_path / "store")
        tally = load(store, made.write(tmp_path / "a"))
        assert (tally.resets, tally.glitches) == (2, 0)
        assert "1 marks" in str(items(tmp_path / "a"))
        sda = [row for row in rows(store) if row["target"] == "oss1:sda"]
        assert [(row["read_ops"], row["after_reset"]) for row in sda] == [(1, False), (1, False), (5, True), (1, False)]

    def test_a_counter_of_32_bits_that_wraps_costs_one_interval(self, tmp_path: Path) -> None:
        made = Writer()
        for number, name in enumerate(("read", "write", "read_bytes", "write_bytes")):
            made.describe(number, f"disk.dev.{name}", U32, TIMES if number < 2 else KBYTE)
        made.names(T0, {0: "hda"})
        for number in range(5):
            kbytes = (2**32 - 250 + 100 * number) % 2**32
            made.values(T0 + number * 10 * S, {0: {0: 7 + number}, 1: {0: 5}, 2: {0: kbytes}, 3: {0: 80}})
        store = Store(tmp_path / "store")
        assert load(store, made.write(tmp_path / "a")).glitches == 1
        assert [row["read_bytes"] for row in rows(store)] == [102_400, 102_400, 0, 102_400]
        assert [row["read_ops"] for row in rows(store)] == [1, 1, 1, 1]

    def test_a_window(self, tmp_path: Path) -> None:
        from datetime import UTC, datetime

        since = datetime.fromtimestamp(T0 / S + 20, UTC)
        result = items(two_disks(2).write(tmp_path / "a"), options=ReadOptions(since=since))
        assert series(result)["oss1:sda"]["read_ops"] == [102, 103, 104]


class TestRealArchives:
    """What pmdumplog prints of them, typed from its output."""

    def test_version_2_of_2005(self, shared_data: Path) -> None:
        result = series(items(shared_data / "pcp/kenj-pc-diskstat.0"))
        assert set(result) == {"kenj-pc:hda", "kenj-pc:hdc"}
        hda = result["kenj-pc:hda"]
        assert hda["time"][0] == 1110757104370723
        assert [value // 1024 for value in hda["read_bytes"][:3]] == [1056281, 1062553, 1071893]

    def test_version_3(self, shared_data: Path) -> None:
        result = series(items(shared_data / "pcp/disk-a"))
        assert result["vm03:vda"]["read_ops"] == [149071, 149385, 149450, 149450, 149450]
        assert result["vm03:sda"]["read_ops"] == [289] * 5
        assert result["vm03:sdb"]["read_ops"] == [203] * 5

    def test_a_run_under_load(self, shared_data: Path) -> None:
        vda = series(items(shared_data / "pcp/local_disk_1s.meta"))["vm:vda"]
        assert len(vda["time"]) == 16
        assert vda["write_bytes"][:4] == [item * 1024 for item in (97955280, 97955284, 97955284, 98050228)]

    def test_the_folder(self, shared_data: Path, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        tally = load(store, shared_data / "pcp")
        assert (tally.captures, tally.refused, tally.rows["target_io"]) == (3, 0, 47)
        assert load(store, shared_data / "pcp").already_present == 3

"""Lines of a live view against brute force, and what is said of targets that do not report."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.live.analysis import Board, LiveReading
from iolens.analyses.live.boards import Boards
from iolens.analyses.live.target_lines import TargetLine
from iolens.analyses.utilization.analysis import utilization
from iolens.models.transaction_time import GRACE_2012, Calibration, Coefficients, FsuCategory, fsu_pct
from iolens.records import Row, Rows
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.store.frames import FrameSelection
from iolens.units import MIB, from_epoch_us
from tests.analyses.telemetry import SIZES, T0_US, TICK_US, made_up

SECOND = 1_000_000
OST = "scratch-OST0000"


def interval(
    table: str, tick: float, values: dict[str, Any], *, target: str = OST, kind: str = "ost", length: float = 5.0
) -> Row:
    """One row whose interval ends at a tick (of 5 s)."""
    time = T0_US + round(tick * TICK_US)
    head = {"time": time, "start": time - round(length * SECOND), "duration_s": length, "filesystem": "scratch"}
    return Row(table, {**head, "target": target, "target_kind": kind, "after_reset": False, **values})


def sizes(tick: float, ios: dict[tuple[str, int], int], **options: Any) -> Row:
    """A row of `target_sizes` with all bins."""
    counts = {
        size_column(direction, size): ios.get((direction, size), 0) for direction in DIRECTIONS for size in SIZE_BINS
    }
    return interval("target_sizes", tick, {**counts, "read_ios_outside": 0, "write_ios_outside": 0}, **options)


def io_times(tick: float, counts: dict[tuple[str, int], int], length: float = 60.0, target: str = OST) -> list[Row]:
    """Rows of the I/O-time histogram, milliseconds."""
    return [
        interval(
            "target_histograms",
            tick,
            {"histogram": "io_time_ms", "direction": direction, "bin": upper, "count": count},
            length=length,
            target=target,
        )
        for (direction, upper), count in counts.items()
    ]


def at(tick: float) -> int:
    return T0_US + round(tick * TICK_US)


def only(reading: LiveReading) -> TargetLine:
    assert len(reading.targets) == 1
    return reading.targets[0]


def board_of(*rows: Row, **options: Any) -> Board:
    board = Board("scratch", **options)
    board.take(rows)
    return board


# Numbers ---------------------------------------------------------------------------------------------------------


def test_the_check_value_of_the_paper_by_sizes_and_by_counters() -> None:
    """100 writes of 4 KiB and 50 reads of 1 MiB in one second: 20.93."""
    by_sizes = board_of(sizes(1, {("write", 4096): 100, ("read", MIB): 50}, length=1.0))
    assert only(by_sizes.reading()).fsu_pct == pytest.approx(20.93, abs=0.005)
    counted = {"read_ops": 50, "write_ops": 100, "read_bytes": 50 * MIB, "write_bytes": 409_600, "busy_us": 250_000}
    by_counters = board_of(interval("target_io", 1, counted, target="oss1:sdb", kind="device", length=1.0))
    line = only(by_counters.reading())
    assert (line.fsu_pct, line.fsu_bytes_pct) == (None, pytest.approx(20.93, abs=0.005))
    assert line.util_pct == pytest.approx(25.0)
    assert line.busy_pct == line.fsu_bytes_pct


def test_every_tick_of_made_up_telemetry_agrees_with_brute_force() -> None:
    telemetry = made_up(seed=3, ticks=40, targets=7)
    board = Board("scratch", most_cells=10_000)
    board.take([Row("target_sizes", row) for row in telemetry.sizes] + [Row("target_io", row) for row in telemetry.io])
    by_tick: dict[int, dict[str, tuple[dict, dict]]] = {}
    for size_row, io_row in zip(telemetry.sizes, telemetry.io, strict=True):
        by_tick.setdefault(size_row["time"], {})[size_row["target"]] = (size_row, io_row)
    assert list(board.times) == sorted(by_tick)
    for tick, rows in by_tick.items():
        reading = board.reading(tick)
        exact = {line.target: line for line in reading.targets if line.target in rows}
        for target, (size_row, io_row) in rows.items():
            ios = {
                (direction, size): size_row[size_column(direction, size)] for direction in DIRECTIONS for size in SIZES
            }
            total, seconds, line = sum(ios.values()), size_row["duration_s"], exact[target]
            assert line.state == "reporting"
            assert line.fsu_pct == pytest.approx(fsu_pct(ios, seconds, GRACE_2012), rel=1e-12)
            assert line.iops == pytest.approx(total / seconds)
            small = sum(count for (_, size), count in ios.items() if size < MIB)
            assert line.small_io_pct == (pytest.approx(100 * small / total) if total else None)
            assert line.read_bytes_per_s == pytest.approx(io_row["read_bytes"] / seconds)
            assert line.write_bytes_per_s == pytest.approx(io_row["write_bytes"] / seconds)
            assert line.fsu_bytes_pct is None
        assert reading.targets_reporting == len(rows)
        assert reading.mean_fsu_pct == pytest.approx(np.mean([exact[target].fsu_pct for target in rows]))
        moved = sum(io_row["read_bytes"] / io_row["duration_s"] for _, io_row in rows.values())
        assert reading.read_bytes_per_s == pytest.approx(moved)


def test_a_tick_agrees_with_utilization_over_the_same_interval() -> None:
    telemetry = made_up(seed=5, ticks=12, targets=4, missing=0.0)
    board = Board("scratch")
    board.take([Row("target_sizes", row) for row in telemetry.sizes] + [Row("target_io", row) for row in telemetry.io])
    frames = {name: telemetry.table(name) for name in ("target_sizes", "target_io")}
    for tick in board.times:
        window = (from_epoch_us(tick - TICK_US), from_epoch_us(tick))
        expected = utilization(FrameSelection(frames, "scratch", window), calibration=GRACE_2012)
        result = board.reading(tick)
        assert result.mean_fsu_pct == pytest.approx(expected.mean_fsu_pct, rel=1e-9)
        for line, target in zip(result.targets, expected.per_target, strict=True):
            assert line.target == target.target
            assert line.fsu_pct == pytest.approx(target.mean_fsu_pct, rel=1e-9)


def test_rows_and_columns_in_any_order_and_twice_say_the_same() -> None:
    telemetry = made_up(seed=7, ticks=20, targets=5)
    plain = [Row("target_sizes", row) for row in telemetry.sizes] + [Row("target_io", row) for row in telemetry.io]
    item = board_of(*plain)
    shuffled = Board("scratch")
    mixed = plain * 2
    random.Random(1).shuffle(mixed)
    for begin in range(0, len(mixed), 17):
        shuffled.take(mixed[begin : begin + 17])
    columns = Board("scratch")
    for table, rows in (("target_io", telemetry.io), ("target_sizes", telemetry.sizes)):
        by_name: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
        by_name |= {name: np.array(by_name[name]) for name in by_name if name.endswith("_bytes") or "_ios_" in name}
        by_name |= {"filesystem": "scratch", "target_kind": "ost", "after_reset": False}
        columns.take([Rows(table, by_name, len(rows))])
    for tick in item.times:
        assert item.reading(tick).targets == [*_without_numbers(shuffled.reading(tick), item)]
        assert item.reading(tick).targets == [*_without_numbers(columns.reading(tick), item)]


def _without_numbers(reading: LiveReading, like: Board) -> list[TargetLine]:
    """Lines with the other board's numbering: which came first does not matter."""
    from dataclasses import replace

    return [replace(line, number=like.names.index(line.target)) for line in reading.targets]


def test_each_target_has_its_own_calibration() -> None:
    slow = Calibration("slow", Coefficients(1e-2, 1e-9), Coefficients(1e-2, 1e-9))
    ios = {("write", 4096): 100}
    board = board_of(
        sizes(1, ios), sizes(1, ios, target="scratch-OST0001"),
        calibration_of=lambda target: AppliedCalibration.given(slow if target.endswith("1") else GRACE_2012),
    )  # fmt: skip
    usual, other = board.reading().targets
    assert usual.fsu_pct == pytest.approx(fsu_pct(ios, 5.0, GRACE_2012))
    assert other.fsu_pct == pytest.approx(fsu_pct(ios, 5.0, slow))


def test_large_ios_and_no_ios() -> None:
    assert only(board_of(sizes(1, {("read", MIB): 3, ("read", 2 * MIB): 1})).reading()).small_io_pct == 0.0
    idle = only(board_of(sizes(1, {})).reading())
    assert (idle.fsu_pct, idle.iops, idle.small_io_pct) == (0.0, 0.0, None)


def test_ios_outside_the_bins_are_ios_without_disk_time() -> None:
    row = sizes(1, {("write", 4096): 10})
    outside = Row(row.table, {**row.values, "write_ios_outside": 5})
    line = only(board_of(outside).reading())
    assert line.iops == pytest.approx(15 / 5)
    assert line.fsu_pct == pytest.approx(fsu_pct({("write", 4096): 10}, 5.0, GRACE_2012))


def test_a_bin_that_is_unknown_makes_fsu_unknown_and_a_format_without_it_does_not() -> None:
    counts = {size_column("write", 4096): 10}
    line = only(board_of(interval("target_sizes", 1, counts)).reading())
    assert line.fsu_pct == pytest.approx(fsu_pct({("write", 4096): 10}, 5.0, GRACE_2012))
    board = board_of(sizes(1, {("write", 4096): 10}))
    board.take([interval("target_sizes", 2, counts)])
    assert only(board.reading()).fsu_pct is None


def test_durations_count_not_ticks() -> None:
    """A server whose clock ran 100 s between two ticks of 5 s."""
    row = sizes(1, {("write", MIB): 1000})
    line = only(board_of(Row(row.table, {**row.values, "duration_s": 100.0})).reading())
    assert line.iops == pytest.approx(10.0)


# What is not known -----------------------------------------------------------------------------------------------


def test_unknown_bytes_are_none_not_zero() -> None:
    line = only(board_of(interval("target_io", 1, {"write_bytes": 10, "write_ops": 1})).reading())
    assert (line.read_bytes_per_s, line.write_bytes_per_s, line.iops) == (None, 2.0, None)
    reading = board_of(interval("target_io", 1, {"write_bytes": 10})).reading()
    assert (reading.read_bytes_per_s, reading.write_bytes_per_s) == (None, 2.0)
    assert reading.mean_fsu_pct is None
    assert reading.notes == ["FSU is not known for scratch-OST0000: no disk I/O sizes"]


def test_a_target_that_stops_is_late_then_silent_and_has_no_numbers() -> None:
    other = "scratch-OST0001"
    board = Board("scratch")
    for tick in range(1, 7):
        board.take([sizes(tick, {("write", MIB): 5})])
        if tick <= 3:
            board.take([sizes(tick, {("write", MIB): 5}, target=other)])
    states = {tick: board.reading(at(tick)).targets[1] for tick in range(3, 7)}
    assert [states[tick].state for tick in range(3, 7)] == ["reporting", "late", "silent", "silent"]
    assert states[4].fsu_pct == states[3].fsu_pct
    assert (states[5].fsu_pct, states[5].iops, states[5].used_pct) == (None, None, None)
    assert states[6].age_s == pytest.approx(15.0)
    reading = board.reading(at(6), now_us=at(6) + 2 * SECOND)
    assert (reading.targets_known, reading.targets_reporting, reading.missing_targets) == (2, 1, [other])
    assert reading.mean_fsu_pct == reading.targets[0].fsu_pct
    assert reading.age_s == pytest.approx(2.0)
    assert reading.targets[1].age_s == pytest.approx(17.0)
    assert board.reading(at(4)).targets_reporting == 1  # a late one is shown, and not in the mean


def test_by_the_clock_a_file_system_is_late_then_silent_and_never_reporting_again() -> None:
    """Patience is 15 s, the interval 5: rows may come 20 s after their start, and one more interval late."""
    board = board_of(*(sizes(tick, {("write", MIB): 5}) for tick in range(1, 4)))
    result = {age: board.reading(now_us=at(3) + age * SECOND) for age in (0, 14, 19, 21, 23, 60, 300 * 86_400)}
    assert [only(item).state for item in result.values()] == [
        "reporting", "reporting", "reporting", "late", "silent", "silent", "silent",
    ]  # fmt: skip
    assert [item.stale for item in result.values()] == [False] * 4 + [True] * 3
    assert result[60].mean_fsu_pct is None
    assert (result[60].targets_reporting, result[60].missing_targets) == (0, [OST])
    assert only(board.reading(at(3), now_us=at(3) + 60 * SECOND)).state == "reporting"  # as it was then


def test_one_long_interval_does_not_hold_for_as_long() -> None:
    """Two captures 300 days apart: that says nothing of the next 300 days."""
    board = board_of(sizes(1, {("write", MIB): 5}, length=300 * 86_400.0))
    assert only(board.reading(now_us=at(1) + 600 * SECOND)).state == "reporting"
    assert only(board.reading(now_us=at(1) + 2 * 86_400 * SECOND)).state == "silent"


def test_a_target_that_never_reported_is_named() -> None:
    board = board_of(sizes(1, {}))
    board.expect(["scratch-OST0000", "scratch-OST0007"])
    reading = board.reading()
    assert reading.missing_targets == ["scratch-OST0007"]
    assert reading.targets[1].age_s is None


def test_before_the_first_interval_nothing_is_claimed() -> None:
    board = Board("scratch")
    board.take([interval("target_capacity", 1, {"used_bytes": 1, "total_bytes": 2})])
    reading = board.reading(now_us=at(1))
    assert (reading.time, reading.targets_known, reading.missing_targets) == (None, 1, [])
    assert only(reading).state == "waiting"


def test_a_look_back_sees_only_what_was_known_then() -> None:
    board = board_of(*(sizes(tick, {("write", MIB): tick}) for tick in range(1, 6)))
    assert only(board.reading(at(3))).iops == pytest.approx(3 / 5)
    assert board.reading(at(3) + SECOND).time == from_epoch_us(at(3))
    assert board.reading(at(0)).time is None
    course = board.reading(at(3)).course_of(only(board.reading(at(3))), 10)
    assert course == pytest.approx([fsu_pct({("write", MIB): n}, 5.0, GRACE_2012) for n in (1, 2, 3)])


def test_the_course_has_holes_where_a_target_did_not_report() -> None:
    board = board_of(*(sizes(tick, {("read", MIB): 1}) for tick in (1, 2, 4)), sizes(3, {}, target="scratch-OST0001"))
    reading = board.reading(at(4))
    course = reading.course_of(next(line for line in reading.targets if line.target == OST), 4)
    assert [value is None for value in course] == [False, False, True, False]
    assert board.reading(at(4)).course_of(reading.targets[0], 0) == []


def test_damaged_intervals_are_left_out() -> None:
    row = sizes(1, {("read", MIB): 1})
    for wrong in ({"duration_s": 0.0}, {"duration_s": None}, {"start": row.values["time"]}):
        board = board_of(Row(row.table, {**row.values, **wrong}))
        assert board.reading().time is None


# Resets, gaps, ticks ---------------------------------------------------------------------------------------------


def test_resets_are_counted_once_per_target_and_marked() -> None:
    reset = {"after_reset": True}
    board = board_of(
        sizes(1, {}), interval("target_io", 1, {"read_bytes": 1}),
        Row("target_sizes", {**sizes(2, {}).values, **reset}),
        Row("target_io", {**interval("target_io", 2, {"read_bytes": 1}).values, **reset}),
        sizes(3, {}), interval("target_io", 3, {"read_bytes": 1}),
    )  # fmt: skip
    assert [board.reading(at(tick)).resets for tick in (1, 2, 3)] == [0, 1, 1]
    assert [only(board.reading(at(tick))).after_reset for tick in (1, 2, 3)] == [False, True, False]


def test_gaps_are_intervals_that_span_missed_samples() -> None:
    board = board_of(*(sizes(tick, {}) for tick in range(1, 6)), sizes(9, {}, length=20.0), sizes(10, {}))
    assert [board.reading(at(tick)).gaps for tick in (5, 9, 10)] == [0, 1, 1]
    assert board.reading(at(9)).interval_s == 20.0


def test_the_newest_tick_waits_for_agents_that_ship_later_but_not_for_the_dead() -> None:
    targets = [f"scratch-OST{n:04x}" for n in range(8)]
    rows = [sizes(tick, {}, target=target) for tick in (1, 2) for target in targets]
    rows += [sizes(tick, {}, target=target) for tick in (3, 4) for target in targets[:4]]  # one of two agents
    assert board_of(*rows, patience_us=600 * SECOND).newest() == at(2)
    assert board_of(*rows, patience_us=0).newest() == at(4)
    rows += [sizes(tick, {}, target=target) for tick in (3, 4) for target in targets[4:7]]  # all but one
    assert board_of(*rows, patience_us=600 * SECOND).newest() == at(4)


def test_tables_of_different_intervals_hold_until_they_are_overdue() -> None:
    """Bytes every 2 s, sizes every 60 s, as from a storage controller."""
    board = board_of(sizes(12, {("write", MIB): 60}, length=60.0, kind="controller"))
    board.take(
        interval("target_io", tick, {"read_bytes": 1, "write_bytes": 1}, kind="controller", length=2.0)
        for tick in np.arange(12.0, 31.0, 0.4)
    )
    assert [only(board.reading(at(tick))).state for tick in (12, 20, 29.6)] == ["reporting"] * 3
    known = {tick: only(board.reading(at(tick))).fsu_pct for tick in (12.0, 23.6, 29.6, 30.4)}
    assert known[12.0] == known[23.6] == known[29.6] == pytest.approx(fsu_pct({("write", MIB): 1}, 1.0, GRACE_2012))
    assert known[30.4] is None  # 92 s after its end
    assert board.reading(at(20)).mean_fsu_pct == known[12.0]


def test_memory_is_bounded_and_what_is_kept_is_the_newest() -> None:
    board = Board("scratch", most_cells=100)
    for tick in range(1, 301):
        board.take([sizes(tick, {("read", MIB): tick}), *io_times(tick, {("read", 8): 1}, 5.0)])
    assert (len(board.times), board.times[-1]) == (100, at(300))
    assert only(board.reading(at(201))).latency_s == 0.008
    assert board.reading(at(150)).time is None


def test_targets_may_appear_at_any_time() -> None:
    board = board_of(sizes(1, {("read", MIB): 1}))
    board.take([sizes(2, {("read", MIB): 2}), *(sizes(2, {}, target=f"scratch-OST{n:04x}") for n in range(1, 40))])
    assert len(board.reading().targets) == 40
    assert board.reading(at(1)).targets_reporting == 1
    assert len(board.history_of(OST, at(2), 10)) == 2
    assert [item.busy_pct is None for item in board.history_of("scratch-OST0005", at(2), 10)] == [True, False]


# Latency, fullness, metadata ---------------------------------------------------------------------------------------


def brute_percentile(counts: dict[tuple[str, int], int]) -> float:
    """Of every single I/O, the bin's upper edge: the first that has 95 % at or below it."""
    every = sorted(upper for (_, upper), count in counts.items() for _ in range(count))
    return every[int(np.ceil(0.95 * len(every))) - 1] / 1e3


@pytest.mark.parametrize("seed", range(8))
def test_latency_is_the_percentile_of_reads_and_writes_together(seed: int) -> None:
    chance = random.Random(seed)
    rows, expected = [], {}
    for number in range(5):
        target = f"scratch-OST{number:04x}"
        counts = {
            (direction, 1 << power): chance.choice([0, 1, 7, 100]) for direction in DIRECTIONS for power in range(8)
        }
        counts[("read", 1)] += 1
        rows += [*io_times(1, counts, target=target), sizes(1, {}, target=target)]
        expected[target] = brute_percentile(counts)
    chance.shuffle(rows)
    board = board_of(*rows)
    assert {line.target: line.latency_s for line in board.reading().targets} == expected
    assert {line.latency_kind for line in board.reading().targets} == {"p95_io_time"}


def test_other_histograms_are_no_latency() -> None:
    row = io_times(1, {("read", 8): 5})[0]
    board = board_of(sizes(1, {}), Row(row.table, {**row.values, "histogram": "pages_per_bulk"}))
    assert only(board.reading()).latency_s is None


def test_the_mean_wait_stands_in_and_is_called_that() -> None:
    waits = {"read_ops": 3, "write_ops": 1, "read_wait_us": 3_000, "write_wait_us": 5_000}
    board = board_of(interval("target_io", 1, waits))
    assert (only(board.reading()).latency_s, only(board.reading()).latency_kind) == (0.002, "mean_wait")
    board.take(io_times(1, {("read", 16): 1}))
    assert (only(board.reading()).latency_s, only(board.reading()).latency_kind) == (0.016, "p95_io_time")
    idle = board_of(interval("target_io", 1, dict.fromkeys(waits, 0)))
    assert (only(idle.reading()).latency_s, only(idle.reading()).latency_kind) == (None, None)


def test_a_slow_histogram_holds_for_its_minute_and_a_half() -> None:
    board = board_of(*(sizes(tick, {}) for tick in range(1, 40)), *io_times(12, {("write", 4): 9}))
    known = [only(board.reading(at(tick))).latency_s for tick in (11, 12, 24, 29, 30)]
    assert known == [None, 0.004, 0.004, 0.004, None]


def test_fullness_holds_for_an_hour() -> None:
    board = board_of(sizes(1, {}), sizes(720, {}), sizes(800, {}))
    board.take([Row("target_capacity", {"time": at(1), "filesystem": "scratch", "target": OST, "target_kind": "ost",
                                        "used_bytes": 30, "total_bytes": 120})])  # fmt: skip
    assert [only(board.reading(at(tick))).used_pct for tick in (1, 720, 800)] == [25.0, 25.0, None]
    assert only(board_of(sizes(1, {}), interval("target_capacity", 1, {"total_bytes": 5})).reading()).used_pct is None


def test_metadata_operations_are_counted_once_and_leave_the_mean_alone() -> None:
    operations = {"open": 20, "close": 20, "rename": 10, "samedir_rename": 9, "crossdir_rename": 1, "open_us": 12345}
    values = {name: count for name, count in interval("metadata_ops", 1, operations).values.items()
              if name != "target_kind"} | {"target": "scratch-MDT0000"}  # fmt: skip
    board = board_of(sizes(1, {("read", MIB): 5}), Row("metadata_ops", values))
    reading = board.reading()
    mdt, ost = reading.targets
    assert (mdt.target_kind, mdt.metadata_ops_per_s, mdt.fsu_pct, mdt.read_bytes_per_s) == ("mdt", 10.0, None, None)
    assert (reading.metadata_ops_per_s, reading.mean_fsu_pct) == (10.0, ost.fsu_pct)
    assert ost.metadata_ops_per_s is None
    assert reading.notes == []


def test_what_an_ost_moves_its_devices_do_not_move_again() -> None:
    io = {"read_bytes": 500, "write_bytes": 0, "read_ops": 5, "write_ops": 0}
    board = board_of(interval("target_io", 1, io), interval("target_io", 1, io, target="oss1:sdb", kind="device"))
    reading = board.reading()
    assert (reading.read_bytes_per_s, reading.iops) == (100.0, 1.0)
    assert [line.read_bytes_per_s for line in reading.targets] == [100.0, 100.0]
    assert reading.mean_fsu_bytes_pct == reading.targets[0].fsu_bytes_pct  # oss1:sdb


# Several file systems, categories ----------------------------------------------------------------------------------


def test_boards_keep_file_systems_apart_and_disks_last() -> None:
    boards = Boards(Board)
    other = {**sizes(1, {}).values, "filesystem": "home", "target": "home-OST0000"}
    disk = {**interval("target_io", 1, {}).values, "filesystem": "a-server", "target": "a-server:sda",
            "target_kind": "device"}  # fmt: skip
    boards.take([sizes(1, {}), Row("target_sizes", other), Row("target_io", disk)])
    assert boards.filesystems == ["home", "scratch", "a-server"]
    assert boards.main() == ["home", "scratch"]
    assert [line.target for line in boards.board("home").reading().targets] == ["home-OST0000"]
    item = Boards(Board, only="home")
    item.expect({"home": ["home-OST0000"], "scratch": [OST]})
    item.take([sizes(1, {}), Row("target_sizes", other)])
    assert item.filesystems == ["home"]


@pytest.mark.parametrize(
    ("fsu", "expected"),
    [(None, None), (0.0, "idle"), (1.999, "idle"), (2.0, "moderate"), (30.0, "moderate"), (30.001, "busy")],
)
def test_categories_are_those_of_the_definitions(fsu: float | None, expected: str | None) -> None:
    assert FsuCategory.of(fsu) == expected


def test_sizes_of_one_target() -> None:
    board = board_of(sizes(1, {("write", 4096): 10, ("read", MIB): 5}))
    result = {(direction, size): rate for direction, size, rate in board.sizes_of(OST, at(1)) if rate}
    assert result == {("write", 4096): 2.0, ("read", MIB): 1.0}
    assert board.sizes_of(OST, at(2)) == []

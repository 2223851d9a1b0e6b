"""Usage over time and where it leads: made-up readings with a known course, and hostile ones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.capacity.analysis import Capacity, capacity
from iolens.errors import UsageError
from iolens.sources import ReadOptions
from iolens.store.store import Store
from iolens.views.capacity import usage_figure
from iolens.views.render.figures import LineMark, PointsMark
from iolens.views.render.json_text import to_plain
from tests.analyses.capacity_rows import DAY_US, T0_US, TOTAL, reading, readings, selection, table_of
from tests.sources.stored import ingest

START = datetime(2020, 9, 14, tzinfo=UTC)


def of(rows: list[dict], **options: object) -> Capacity:
    return capacity(selection(rows), **options)  # type: ignore[arg-type]


def test_a_straight_course_leads_to_its_threshold() -> None:
    """Two targets of a million bytes, a thousand bytes more each day: 90 % after 1,600 days."""
    days = np.arange(400)
    result = of(readings(days, 200_000 + 1000 * days))
    assert result.capacity_bytes == 2 * TOTAL
    assert result.threshold_bytes == 1_800_000
    assert result.slope_bytes_per_day == pytest.approx(1000.0)
    assert result.threshold_date == (START + timedelta(days=1600)).date()
    assert result.threshold_state == "projected"
    assert {projection.method: projection.slope_bytes_per_day for projection in result.projections} == pytest.approx(
        {"linear": 1000.0, "theil-sen": 1000.0}
    )
    assert result.projections[0].expected[-1].bytes == pytest.approx(200_000 + 1000 * (399 + 365))
    assert [item.bytes for item in result.used] == (200_000 + 1000 * days).tolist()
    assert result.events == []
    assert result.fullness_pct == pytest.approx(100 * 599_000 / 2_000_000)


def test_another_threshold_is_another_date() -> None:
    days = np.arange(400)
    result = of(readings(days, 200_000 + 1000 * days), threshold_pct=50)
    assert result.threshold_date == (START + timedelta(days=800)).date()
    with pytest.raises(UsageError, match="between 0 and 100"):
        of([], threshold_pct=0)
    with pytest.raises(UsageError, match="is called 'spline'"):
        of([], method="spline")


def test_intervals_hold_the_truth_and_their_ends_are_in_order() -> None:
    random = np.random.default_rng(1)
    days = np.arange(300)
    used = 200_000 + 1000 * days + random.normal(0, 20_000, 300)
    result = of(readings(days, used.astype(int)))
    for projection in result.projections:
        assert projection.slope_ci95 is not None
        assert projection.slope_ci95[0] < 1000 < projection.slope_ci95[1]
        assert projection.threshold_ci95 is not None
        early, late = projection.threshold_ci95
        assert early is not None
        assert late is not None
        assert early < (START + timedelta(days=1600)).date() < late
        for ahead in projection.expected:
            assert ahead.low_bytes is not None
            assert ahead.high_bytes is not None
            assert ahead.low_bytes < ahead.bytes < ahead.high_bytes


def test_purges_and_surges_are_dated() -> None:
    random = np.random.default_rng(2)
    used = 500_000 + np.cumsum(random.normal(1000, 500, 120)).astype(int)
    used[40:] -= 300_000  # on the fortieth day
    used[80:] += 200_000
    used[81:] += 100_000
    result = of(readings(range(120), used))
    assert [(event.kind, event.start, event.end) for event in result.events] == [
        ("purge", START + timedelta(days=39), START + timedelta(days=40)),
        ("surge", START + timedelta(days=79), START + timedelta(days=81)),
    ]
    assert [event.bytes for event in result.events] == [int(used[40] - used[39]), int(used[81] - used[79])]


def test_the_headline_follows_the_method() -> None:
    used = 500_000 + 1000 * np.arange(100)
    used[50:53] += 900_000
    linear, robust = (of(readings(range(100), used), method=method) for method in ("linear", "theil-sen"))
    assert robust.slope_bytes_per_day == pytest.approx(1000, abs=30)
    assert linear.slope_bytes_per_day != robust.slope_bytes_per_day
    assert linear.projections[1].slope_bytes_per_day == robust.slope_bytes_per_day


def test_a_threshold_that_was_reached_is_dated_by_its_reading() -> None:
    used = [*[1_600_000] * 16, 1_700_000, 1_850_000, 1_700_000, 1_810_000, 1_900_000]
    result = of(readings(range(21), used))
    assert result.threshold_state == "reached"
    assert result.threshold_date == date(2020, 10, 3)  # the start of the present stretch, not of the first
    assert result.threshold_ci95 is None
    few = of(readings(range(5), used[-5:]))
    assert (few.threshold_state, few.threshold_date) == ("reached", None)


def test_after_a_purge_the_date_counts_from_the_last_reading() -> None:
    """The line is above the threshold already, usage is not."""
    used = [*range(1_000_000, 1_795_000, 15_000), 1_000_000]
    result = of(readings(range(len(used)), used), threshold_pct=80)
    assert result.threshold_state == "projected"
    assert result.slope_bytes_per_day is not None
    ahead = (1_600_000 - 1_000_000) / result.slope_bytes_per_day
    assert result.threshold_date == (START + timedelta(days=len(used) - 1 + ahead)).date()


def test_shrinking_usage_never_gets_there() -> None:
    result = of(readings(range(30), range(900_000, 600_000, -10_000)))
    assert result.slope_bytes_per_day == pytest.approx(-10_000)
    assert (result.threshold_state, result.threshold_date) == ("not growing", None)
    assert all(item.bytes >= 0 for line in result.projections for item in line.expected)


def test_a_threshold_beyond_planning_has_no_date() -> None:
    result = of(readings(range(30), range(1000, 1030)))
    assert (result.threshold_state, result.threshold_date) == ("more than a century away", None)


def test_a_date_far_beyond_the_readings_is_called_a_guess() -> None:
    assert "a guess more than a forecast" in of(readings(range(20), range(0, 20_000, 1000))).warnings[-1]


def test_one_reading_shows_no_trend() -> None:
    result = of(readings([0], [500]))
    assert (result.used_bytes, result.samples) == (500, 1)
    assert (result.slope_bytes_per_day, result.threshold_date) == (None, None)
    assert result.threshold_state == "too little data"
    assert result.projections == []


@pytest.mark.parametrize(
    ("days", "reason"),
    [
        (np.arange(12) / (12 * 1440), "too little data: 0 days of 7"),  # one minute
        (np.arange(24) / 24, "too little data: 1 day of 7"),
        (np.arange(24 * 6) / 24, "too little data: 6 days of 7"),
        (np.arange(19), "too little data: 19 readings of 20"),
    ],
)
def test_nothing_is_forecast_from_too_little(days: np.ndarray, reason: str) -> None:
    """Neither a date nor a growth; the reason stands in place of them, for inodes as well."""
    rows = readings(days, range(100_000, 100_000 + 1000 * len(days), 1000))
    for place, day in enumerate(days):
        rows += reading(day, {"MDT0000": 5}, kind="mdt", used_inodes=400 + place, total_inodes=1000)
    result = of(rows)
    assert (result.too_little_data, result.warnings) == (reason, [reason])
    assert result.inodes is not None
    for answer in (result, result.inodes):
        assert (answer.threshold_state, answer.threshold_date, answer.threshold_ci95) == ("too little data", None, None)
        assert answer.too_little_data == reason
    assert (result.slope_bytes_per_day, result.slope_ci95, result.projections) == (None, None, [])
    assert (result.usual_bytes_per_day, result.inodes.slope_inodes_per_day) == (None, None)


@pytest.mark.parametrize(("days", "count"), [(np.arange(24 * 7) / 24, 168), (np.arange(20), 20)])
def test_seven_days_and_twenty_readings_are_enough(days: np.ndarray, count: int) -> None:
    result = of(readings(days, range(100_000, 100_000 + 1000 * count, 1000)))
    assert result.too_little_data is None
    assert result.threshold_date is not None


def test_readings_on_a_line_have_no_interval_of_zero_width() -> None:
    """Their noise is nothing: every resample would be the same line."""
    days = np.arange(24 * 20) / 24
    exact = of(readings(days, 100_000 + np.arange(24 * 20) * 100))
    assert (exact.threshold_ci95, exact.slope_ci95) == (None, None)
    assert "no interval: the readings lie on a straight line" in exact.notes[-1]
    noisy = of(readings(days, 100_000 + np.arange(24 * 20) * 100 + np.arange(24 * 20) % 7))
    early, late = noisy.threshold_ci95 or (None, None)
    assert early is not None
    assert late is not None
    assert early < late


def test_constant_usage_is_level() -> None:
    result = of(readings(range(20), [500] * 20))
    assert result.slope_bytes_per_day == 0
    assert result.threshold_state == "not growing"
    assert result.events == []
    assert result.slope_ci95 is None


def test_no_readings_at_all() -> None:
    result = of([])
    assert (result.samples, result.used, result.capacity_bytes, result.inodes, result.fullness) == (
        0,
        [],
        None,
        None,
        None,
    )
    assert to_plain(result)["slope_bytes_per_day"] is None


def test_a_projection_starts_at_the_last_reading() -> None:
    """The line through the readings is 20,000 B above the last one, after a purge."""
    days = np.arange(100)
    result = of(readings(days, np.where(days < 99, 200_000 + 1000 * days, 279_000)))
    slope = result.slope_bytes_per_day
    assert slope is not None
    assert result.projections[0].expected[0].bytes == pytest.approx(279_000 + 30 * slope)
    assert result.threshold_bytes is not None
    ahead = (result.threshold_bytes - 279_000) / slope
    assert result.threshold_date == (START + timedelta(days=99 + ahead)).date()
    (panel,) = usage_figure(result).panels
    used, line = (next(mark for mark in panel.marks if getattr(mark, "label", "") == label)
                  for label in ("used", "least squares"))  # fmt: skip
    assert isinstance(used, PointsMark)
    assert isinstance(line, LineMark)
    assert (line.x[0], line.y[0]) == (used.x[-1], pytest.approx(used.y[-1]))


def test_an_unknown_capacity_still_has_a_slope() -> None:
    result = of(readings(range(20), range(0, 2000, 100), total=None))
    assert result.slope_bytes_per_day == pytest.approx(100)
    assert (result.capacity_bytes, result.threshold_bytes, result.threshold_state) == (None, None, "unknown")


def test_incomplete_readings_are_left_out_and_counted() -> None:
    days = range(30)
    rows = [row for day in days for row in readings([day], [100_000 + 1000 * day])]
    rows = [row for row in rows if not (row["time"] == T0_US + 12 * DAY_US and row["target"] == "OST0001")]
    result = of(rows)
    assert (result.samples, result.readings, result.incomplete_readings) == (29, 30, 1)
    assert result.slope_bytes_per_day == pytest.approx(1000)
    assert result.events == []
    assert "1 reading is left out: not all targets answered (as few as 1 of 2)" in result.notes


def test_new_targets_are_a_change_not_a_surge() -> None:
    rows = [*readings(range(15), [100_000] * 15), *readings(range(15, 30), [400_000] * 15, targets=4)]
    result = of(rows)
    assert result.events == []
    assert [
        (target_change.time, target_change.targets_before, target_change.targets_after)
        for target_change in result.target_changes
    ] == [(START + timedelta(days=15), 2, 4)]
    assert result.capacity_bytes == 4 * TOTAL
    assert any("targets came or went" in note for note in result.notes)


def test_gaps_do_not_bend_the_line() -> None:
    days = [day for day in range(100) if not 30 <= day < 70]
    result = of(readings(days, [1000 * day for day in days]))
    assert result.slope_bytes_per_day == pytest.approx(1000)
    assert result.events == []


def test_frequent_readings_are_taken_daily_and_said_so() -> None:
    hours = np.arange(24 * 20)
    result = of(readings(hours / 24, 100_000 + hours))
    assert result.step == "daily"
    assert len(result.used) == 20
    assert result.samples == 480
    assert result.slope_bytes_per_day == pytest.approx(24)
    assert any("20 of 480 readings" in note for note in result.notes)


def test_fullness_of_targets_and_their_imbalance() -> None:
    rows = [
        *reading(0, {"a": 100_000, "b": 500_000, "c": 950_000}),
        *reading(1, {"a": 200_000, "b": 500_000, "c": 950_000}),
        *reading(1, {"MDT": 999_999}, kind="mdt"),
    ]
    result = of(rows)
    assert result.fullness is not None
    assert (result.fullness.targets, result.fullness.emptiest, result.fullness.fullest) == (3, "a", "c")
    assert result.fullness.mean_pct == pytest.approx(55)
    assert result.fullness.stddev_pct == pytest.approx(float(np.std([20, 50, 95], ddof=1)))
    assert result.fullness.above_threshold == ["c"]
    assert [(item.target, item.used_bytes, item.target_kind) for item in result.per_target] == [
        ("MDT", 999_999, "mdt"), ("a", 200_000, "ost"), ("b", 500_000, "ost"), ("c", 950_000, "ost")
    ]  # fmt: skip


def test_inodes_have_a_course_of_their_own() -> None:
    rows = readings(range(20), range(0, 20_000, 1000))
    for day in range(20):
        rows += reading(day, {"MDT0000": 5}, kind="mdt", used_inodes=400 + 10 * day, total_inodes=1000)
    result = of(rows).inodes
    assert result is not None
    assert result.target_kinds == ["mdt"]
    assert result.slope_inodes_per_day == pytest.approx(10)
    assert result.threshold_date == (START + timedelta(days=50)).date()
    assert result.used[-1].inodes == 590
    assert result.fullness_pct == pytest.approx(59)


def test_a_store_and_frames_give_the_same(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    used = 500_000 + np.cumsum(random.normal(1000, 3000, 60)).astype(int)
    rows = [row for row in readings(range(60), used, targets=3) if random.random() > 0.02]
    store = Store(tmp_path)
    store.append("target_capacity", table_of(rows))
    here, there = to_plain(capacity(store.select("scratch"))), to_plain(of(rows))
    for item in (here, there):
        del item["sources"]
    assert here == there


def test_overlapping_sources_are_not_added_up(tmp_path: Path) -> None:
    rows = readings(range(10), range(0, 10_000, 1000))
    store = Store(tmp_path)
    store.append("target_capacity", table_of(rows))
    store.append("target_capacity", table_of([{**row, "source": "other"} for row in rows]))
    result = capacity(store.select("scratch"))
    assert result.used[-1].bytes == 9000
    assert result.overlapping_rows > 0
    assert result.sources == ["made-up", "other"]
    only = capacity(store.select("scratch", source="other"))
    assert (only.used[-1].bytes, only.sources) == (9000, ["other"])


def test_a_rollup_asks_for_the_readings_themselves(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append("target_capacity", table_of(readings(range(10), range(10))))
    assert capacity(store.select("scratch", resolution="1h")).samples == 10


def test_published_fourteen_months(tmp_path: Path, shared_data: Path) -> None:
    file = shared_data / "nersc-fs-design" / "cscratch_fullness-2017-02-14_2018-04-26.csv"
    ingest(tmp_path, "tokio-csv", [file], ReadOptions(filesystem="cscratch"))
    result = capacity(Store(tmp_path).select("cscratch"))
    assert result.capacity_bytes == 29_763_608_416_864 * 1024
    assert (result.samples, result.incomplete_readings) == (430, 1)
    assert result.fullness_pct == pytest.approx(72.18, abs=0.01)
    largest = min(result.events, key=lambda item: item.bytes)
    assert (largest.kind, largest.start.date(), largest.end.date()) == ("purge", date(2017, 9, 25), date(2017, 9, 26))
    assert largest.bytes == pytest.approx(-6.288e15, rel=1e-3)
    dates = {event.start.date() for event in result.events}
    assert not dates & {date(2017, 8, 5), date(2017, 8, 6)}  # the day with 138 of 248 targets is no event


def test_published_lists_of_targets(tmp_path: Path, shared_data: Path) -> None:
    ingest(tmp_path, "lfs-df", [shared_data / "lfs-df" / "ost-fullness.txt.gz"], ReadOptions())
    result = capacity(Store(tmp_path).select("snx11168"))
    assert result.target_kinds == ["ost"]
    assert (result.samples, result.incomplete_readings) == (46, 0)
    assert result.fullness is not None
    assert result.fullness.targets == 248
    assert result.fullness.mean_pct == pytest.approx(43.45, abs=0.01)
    assert sum(item.used_bytes or 0 for item in result.per_target if item.target_kind == "ost") == result.used_bytes

"""Daily growth from readings, and the published fourteen months of a real file system."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.growth import Growth, growth
from iolens.errors import UsageError
from iolens.sources import ReadOptions
from iolens.store.store import Store
from tests.analyses.capacity_rows import TOTAL, reading, readings, selection
from tests.sources.stored import ingest

TB = 1e12
FULLNESS = "nersc-fs-design/cscratch_fullness-2017-02-14_2018-04-26.csv"
CAPACITY = 29_763_608_416_864 * 1024


def of(rows: list[dict], **options: object) -> Growth:
    return growth(selection(rows), **options)  # type: ignore[arg-type]


def test_days_that_grow_count_and_days_that_shrink_do_not() -> None:
    result = of(readings(range(20), [100, 110, 90, 120, *[120] * 16]))
    assert result.kept == [10.0, 30.0]
    assert (result.mean_bytes_per_day, result.median_bytes_per_day) == (20.0, 20.0)
    assert (result.days_with_growth, result.days_excluded, result.days_shrinking) == (2, 17, 17)
    assert result.max_bytes_per_day == 30.0


@pytest.mark.parametrize(
    ("days", "reason"),
    [
        (np.arange(12) / (12 * 1440), "too little data: 0 days of 7"),  # one minute
        (np.arange(24) / 24, "too little data: 1 day of 7"),
        (np.arange(24 * 6) / 24, "too little data: 6 days of 7"),
        (np.arange(19), "too little data: 19 readings of 20"),
        (np.array([*np.arange(12) / 48, *(30 + np.arange(12) / 48)]), "too little data: 2 days of 7"),
    ],
)
def test_nothing_is_said_of_a_usual_day_from_too_little(days: np.ndarray, reason: str) -> None:
    result = of(readings(days, range(1000, 1000 + 10 * len(days), 10)))
    assert (result.too_little_data, result.warnings) == (reason, [reason])
    usual = ("mean", "median", "p95", "max")
    assert [getattr(result, f"{name}_bytes_per_day") for name in usual] == [None] * 4
    assert (result.mean_ci95, result.median_ci95) == (None, None)


def test_equal_days_have_no_interval_of_zero_width() -> None:
    result = of(readings(range(20), range(0, 2000, 100)))
    assert result.mean_bytes_per_day == 100.0
    assert (result.mean_ci95, result.median_ci95) == (None, None)


def test_an_incomplete_day_is_left_out_and_named() -> None:
    rows = [*readings([0, 1, 2], [100, 110, 120]), *reading(3, {"OST0000": 65}), *readings([4, 5], [140, 155])]
    result = of(rows)
    assert result.kept == [10.0, 10.0, 15.0]
    assert (result.incomplete_days, result.days_after_gap, result.days_excluded) == (1, 1, 1)
    assert result.notes == ["days without a complete reading: 2020-09-17 (as few as 1 of 2 targets); they are left out"]


def test_of_many_readings_a_day_the_last_complete_one_counts() -> None:
    rows = [row for hour in range(24 * 12) for row in readings([hour / 24], [hour])]
    rows += reading(3.99, {"OST0000": 10**6})
    result = of(rows)
    assert result.kept == [24.0] * 11
    assert result.incomplete_days == 0
    assert result.readings == "the last of each day, 12 of 289"


def test_targets_that_come_do_not_count_as_growth() -> None:
    rows = [*readings([0, 1, 2], [100, 110, 120]), *readings([3, 4, 5], [900, 910, 920], targets=3)]
    result = of(rows)
    assert result.kept == [10.0] * 4
    assert result.days_targets_changed == 1


def test_the_cut_off_leaves_out_earlier_days_but_not_their_readings() -> None:
    result = of(readings(range(5), [100, 110, 130, 160, 200]), cutoff=date(2020, 9, 17))
    assert result.kept == [30.0, 40.0]
    assert result.days_before_cutoff == 2
    assert [day.date for day in result.daily] == [date(2020, 9, 17), date(2020, 9, 18)]


def test_days_begin_where_the_centre_is() -> None:
    """20:00 and 23:00 UTC are one day in UTC and two in Berlin: the last reading of a day is another."""
    rows = readings([20 / 24, 23 / 24, 1 + 20 / 24], [100, 110, 130])
    assert of(rows).kept == pytest.approx([20 * 24 / 21])  # from 23:00 to 20:00
    berlin = of(rows, timezone="Europe/Berlin")
    assert berlin.kept == [30.0]  # from 22:00 to 22:00 there
    assert berlin.timezone == "Europe/Berlin"


def test_the_paper_takes_mean_fullness_times_capacity() -> None:
    rows = readings(range(4), [10_000, 20_000, 15_000, 15_000])
    result = of(rows, method="paper")
    assert result.kept == pytest.approx([10_000, 0.0], abs=1e-6)  # two targets of a million each; kept if not negative
    assert result.capacity_bytes == 2 * TOTAL
    doubled = of(rows, method="paper", capacity_bytes=4 * TOTAL)
    assert doubled.kept[0] == pytest.approx(20_000)
    assert doubled.capacity_origin == "given"


def test_the_paper_needs_a_capacity() -> None:
    rows = readings(range(4), [1, 2, 3, 4], total=None)
    assert of(rows).days_with_growth == 3
    assert of(rows, method="paper", capacity_bytes=TOTAL).days_with_growth == 0  # no fullness is known
    with pytest.raises(UsageError, match="is called 'guess'"):
        of(rows, method="guess")


@pytest.mark.parametrize("method", ["strict", "paper"])
@pytest.mark.parametrize(
    "rows", [[], readings([0], [5]), readings(range(9), [500] * 9), readings(range(9), range(900, 0, -100))]
)
def test_where_nothing_grows_there_is_no_growth(rows: list[dict], method: str) -> None:
    result = of(rows, method=method)
    assert result.median_bytes_per_day in (None, 0.0)
    assert result.days_with_growth in (0, 8)  # the paper keeps days of no change
    if not result.days_with_growth:
        assert result.mean_bytes_per_day is None
        assert result.mean_ci95 is None


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """The shipped daily fullness of a scratch file system, loaded as `iolens ingest` does."""
    folder = tmp_path_factory.mktemp("store")
    ingest(folder, "tokio-csv", [shared_data / FULLNESS], ReadOptions(filesystem="cscratch"))
    return folder


@pytest.mark.parametrize("capacity", [None, CAPACITY])
def test_published_growth(published: Path, capacity: int | None) -> None:
    """153.8 TB/day mean, 118.2 median; the store itself knows the capacity to the byte."""
    result = growth(Store(published).select("cscratch"), method="paper", capacity_bytes=capacity)
    assert result.capacity_bytes == CAPACITY
    assert result.mean_bytes_per_day is not None
    assert result.mean_bytes_per_day / TB == pytest.approx(153.8, abs=0.05)
    assert result.median_bytes_per_day is not None
    assert result.median_bytes_per_day / TB == pytest.approx(118.2, abs=0.05)
    assert (result.days_with_growth, result.days_excluded, result.incomplete_days) == (336, 94, 1)


def test_the_day_with_138_of_248_targets_disturbs_nothing(published: Path) -> None:
    """At face value it would add 25 TB a day to the mean: 178.8."""
    strict = growth(Store(published).select("cscratch"), method="strict")
    assert strict.incomplete_days == 1
    assert "2017-08-06 (as few as 138 of 248 targets)" in strict.notes[0]
    assert strict.mean_bytes_per_day is not None
    assert strict.mean_bytes_per_day / TB == pytest.approx(155.6, abs=0.1)
    assert strict.max_bytes_per_day is not None
    assert strict.max_bytes_per_day < 1.5e15  # what the missing 110 targets hold is 8 PB


def test_a_cut_off_on_published_days(published: Path) -> None:
    result = growth(Store(published).select("cscratch"), method="paper", cutoff=date(2018, 1, 1))
    everything = growth(Store(published).select("cscratch"), method="paper")
    assert result.days_before_cutoff + result.days_with_growth + result.days_excluded == 430
    assert result.kept == everything.kept[-result.days_with_growth :]

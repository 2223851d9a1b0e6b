"""Weekday and hour in the centre's own zone, per observed hour."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.workload.bandwidth import WEEKDAYS, QuarterHours, Rhythm
from iolens.errors import UsageError
from iolens.units import from_epoch_us
from tests.analyses.matrices import matrix

BERLIN = ZoneInfo("Europe/Berlin")
BOTH = {"read": True, "write": True}


def of_days(start: str, days: int, tick_s: float = 300.0, zone: str = "Europe/Berlin") -> Rhythm:
    """One byte read per second, and as many written as the hour of the UTC day."""
    ticks = round(days * 86400 / tick_s)
    hour = np.arange(ticks) * tick_s // 3600 % 24
    result = QuarterHours()
    result.add(matrix(tick_s, start, read_bytes=np.full(ticks, tick_s), write_bytes=hour * tick_s))
    return result.result(zone, BOTH)


@pytest.mark.parametrize(
    ("start", "hour", "observed"),
    [
        ("2024-03-29T23:00:00+00:00", "02", 1.0),  # 30 and 31 March: on the second there is no hour from 2 to 3
        ("2024-10-25T22:00:00+00:00", "02", 3.0),  # 26 and 27 October: on the second there are two of them
    ],
)
def test_hours_are_those_of_the_people_across_a_daylight_saving_change(start: str, hour: str, observed: float) -> None:
    """Two local days, from midnight to midnight."""
    days = 2 + (observed - 2) / 24
    result = of_days(start, days)
    hours = {item.name: item for item in result.hour}
    assert hours.pop(hour).observed_hours == pytest.approx(observed)
    assert [hour.observed_hours for hour in hours.values()] == pytest.approx([2.0] * 23)
    week = {item.name: item.observed_hours for item in result.weekday}
    assert week == pytest.approx(dict.fromkeys(WEEKDAYS, 0.0) | {"Saturday": 24.0, "Sunday": 24.0 + observed - 2})


def test_an_outage_does_not_count_against_an_hour() -> None:
    """Bytes per observed hour: one byte per second is 3,600 whatever was missed."""
    answer = QuarterHours()
    kept = [tick for tick in range(1, 289) if not 100 < tick < 180]
    answer.add(matrix(300.0, ticks=kept, read_bytes=[300.0] * len(kept), write_bytes=[0.0] * len(kept)))
    result = answer.result("UTC", BOTH)
    known = [item.read_bytes_per_hour for item in result.hour if item.observed_hours]
    assert known == pytest.approx([3600.0] * len(known))
    assert [item.name for item in result.hour if not item.observed_hours] == ["09", "10", "11", "12", "13"]
    assert result.hour[10].read_bytes_per_hour is None
    assert sum(item.observed_hours for item in result.weekday) == pytest.approx(len(kept) / 12)


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=40, unique=True),
    st.sampled_from(["Europe/Berlin", "UTC", "Asia/Kathmandu", "America/St_Johns", "America/Los_Angeles"]),
    st.integers(0, 40),
)
def test_bytes_are_those_of_a_count_one_by_one(ticks: list[int], zone: str, cut: int) -> None:
    ticks = sorted(ticks)
    read = np.arange(1.0, len(ticks) + 1)
    answer = QuarterHours()
    start = "2024-10-20T00:00:00+00:00"
    for part in np.split(np.arange(len(ticks)), [min(cut, len(ticks))]):
        if part.size:
            mine = [ticks[place] for place in part]
            answer.add(matrix(900.0, start, ticks=mine, read_bytes=read[part], write_bytes=2 * read[part]))
    result = answer.result(zone, BOTH)
    sums: dict[object, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for end_us, bytes_ in zip(matrix(900.0, start, ticks=ticks, read_bytes=read).end_us.tolist(), read, strict=True):
        begins = (from_epoch_us(end_us) - timedelta(seconds=900)).astimezone(ZoneInfo(zone))
        for key in (WEEKDAYS[begins.weekday()], f"{begins.hour:02d}"):
            sums[key][0] += bytes_
            sums[key][1] += 0.25
    for item in (*result.weekday, *result.hour):
        bytes_, hours = sums[item.name]
        assert item.observed_hours == pytest.approx(hours)
        expected = bytes_ / hours if hours else None
        assert item.read_bytes_per_hour == pytest.approx(expected)
        assert item.write_bytes_per_hour == pytest.approx(2 * expected if expected is not None else None)


def test_a_missed_sample_does_not_stretch_the_time() -> None:
    """Two targets; one misses every other sample, and its next one is twice as long."""
    nan = np.nan
    ticks = 720
    second = np.where(np.arange(ticks) % 2, 10.0, nan)
    bytes_ = np.column_stack([np.full(ticks, 5.0), second])
    result = QuarterHours()
    length = np.column_stack([np.full(ticks, 5.0), second])
    result.add(matrix(5.0, duration_s=length.tolist(), read_bytes=bytes_, write_bytes=bytes_))
    first = result.result("UTC", BOTH).hour[0]
    assert first.observed_hours == pytest.approx(1.0)
    assert first.read_bytes_per_hour == pytest.approx(2 * 3600.0)


@pytest.mark.parametrize("tick_s", [60.0, 300.0, 3600.0])
def test_long_ticks_count_in_the_hour_they_cover(tick_s: float) -> None:
    result = of_days("2020-09-14T00:00:00+00:00", 7, tick_s, "UTC")
    assert [item.observed_hours for item in result.hour] == pytest.approx([7.0] * 24)
    assert [item.observed_hours for item in result.weekday] == pytest.approx([24.0] * 7)
    assert [item.write_bytes_per_hour for item in result.hour] == pytest.approx([3600.0 * hour for hour in range(24)])
    assert [item.read_bytes_per_hour for item in result.weekday] == pytest.approx([3600.0] * 7)


def test_a_direction_nobody_tells_is_none() -> None:
    answer = QuarterHours()
    answer.add(matrix(300.0, write_bytes=[600.0] * 12))
    result = answer.result("UTC", {"write": True})
    assert result.hour[0].write_bytes_per_hour == pytest.approx(7200.0)
    assert {item.read_bytes_per_hour for item in (*result.hour, *result.weekday)} == {None}


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="Mars/Base"):
        QuarterHours().result("Mars/Base", BOTH)

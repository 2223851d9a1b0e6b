"""Local times to UTC: the hour that comes twice, the hour that never comes, and zones that do neither."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from iolens.errors import InputError
from iolens.sources.reading.local_time import LocalClock, find_zone, local_text

BERLIN = ZoneInfo("Europe/Berlin")


def stamps(first: str, count: int, step_s: int = 600) -> np.ndarray:
    begin = int(datetime.fromisoformat(first).replace(tzinfo=UTC).timestamp())
    return begin + step_s * np.arange(count)


def offsets(*pieces: np.ndarray, zone: tzinfo = BERLIN) -> tuple[list[int | None], LocalClock]:
    clock = LocalClock(zone)
    result = [hour for piece in pieces for hour in clock.offsets(piece).tolist()]
    clock.finish()
    return [None if item is None else item // 3600 for item in result], clock


def test_summer_and_winter() -> None:
    assert offsets(stamps("2026-01-15 12:00:00", 1), stamps("2026-07-15 12:00:00", 1))[0] == [1, 2]


def test_the_second_passage_begins_when_the_clock_goes_back() -> None:
    first, second = stamps("2026-10-25 02:00:00", 6), stamps("2026-10-25 02:00:00", 6)
    before, after = stamps("2026-10-25 01:50:00", 1), stamps("2026-10-25 03:00:00", 1)
    result, clock = offsets(np.concatenate((before, first, second, after)))
    assert result == [2] * 7 + [1] * 7
    assert clock.once == []


@pytest.mark.parametrize("cut", range(1, 13))
def test_it_does_not_matter_where_the_pieces_are_cut(cut: int) -> None:
    hour = stamps("2026-10-25 02:00:00", 6)
    whole = np.concatenate((stamps("2026-10-25 01:50:00", 1), hour, hour, stamps("2026-10-25 03:00:00", 1)))
    result, clock = offsets(whole[:cut], whole[cut:])
    assert (result, clock.once) == ([2] * 7 + [1] * 7, [])


def test_a_gap_over_the_change() -> None:
    result, _ = offsets(np.concatenate((stamps("2026-10-25 02:00:00", 5), stamps("2026-10-25 02:10:00", 5))))
    assert result == [2] * 5 + [1] * 5


def test_a_stamp_out_of_order_is_no_change() -> None:
    hour = stamps("2026-10-25 02:00:00", 6, step_s=5)
    hour[4] -= 15
    result, clock = offsets(hour)
    assert result == [2] * 6
    assert [local_text(item) for item in clock.once] == ["2026-10-25 02:00:25"]


def test_the_hour_that_never_comes() -> None:
    result, _ = offsets(stamps("2026-03-29 01:50:00", 8))
    assert result == [1, None, None, None, None, None, None, 2]


def test_half_an_hour_on_lord_howe() -> None:
    zone = ZoneInfo("Australia/Lord_Howe")
    half = stamps("2026-04-05 01:30:00", 3)
    clock = LocalClock(zone)
    result = clock.offsets(np.concatenate((half, half, stamps("2026-04-05 02:00:00", 1)))).tolist()
    assert result == [39600, 39600, 39600, 37800, 37800, 37800, 37800]


def test_utc_and_nothing() -> None:
    assert offsets(stamps("2026-10-25 02:00:00", 3), zone=find_zone("utc", "x"))[0] == [0, 0, 0]
    assert offsets(np.zeros(0, np.int64))[0] == []


@pytest.mark.parametrize("name", ["", "Nowhere/Land", "../etc/passwd", "/etc/passwd"])
def test_no_such_zone(name: str) -> None:
    with pytest.raises(InputError, match="no time zone is called"):
        find_zone(name, "somewhere")

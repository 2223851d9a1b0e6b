"""Times and periods as people write them, over time zones and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.errors import UsageError
from iolens.store.scope import Scope
from iolens.times import FORMS, PERIODS, last_utc_time, local_day, time_zone, utc_period, utc_time

NOW = datetime(2026, 1, 14, 22, 30, tzinfo=UTC)  # a Wednesday; Thursday in Tokyo
WORDS = [word for word in PERIODS.split(", ") if not word.startswith("2026")]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("now", "2026-01-14T22:30"),
        ("-7d", "2026-01-07T22:30"),
        ("-90min", "2026-01-14T21:00"),
        ("now-1d", "2026-01-13T22:30"),
        ("now - 2 h", "2026-01-14T20:30"),
        ("today", "2026-01-14"),
        (" Yesterday ", "2026-01-13"),
        ("this week", "2026-01-12"),
        ("last week", "2026-01-05"),
        ("last-week", "2026-01-05"),
        ("this month", "2026-01-01"),
        ("last month", "2025-12-01"),
        ("2026-01", "2026-01-01"),
        ("2026-W03", "2026-01-12"),
        ("2026-w03", "2026-01-12"),
        ("2026-W03-2", "2026-01-13"),
        ("2020-W53", "2020-12-28"),
        ("2026-01-05", "2026-01-05"),
        ("2026-01-05T19:00", "2026-01-05T19:00"),
        ("2026-01-05T19:00+02:00", "2026-01-05T17:00"),
        ("1768430000", "2026-01-14T22:33:20"),
    ],
)
def test_a_period_means_its_start(text: str, time: str) -> None:
    assert utc_time(text, now=NOW) == utc(time)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2026-01-14", "2026-01-15"),
        ("yesterday", "2026-01-13", "2026-01-14"),
        ("last week", "2026-01-05", "2026-01-12"),
        ("this month", "2026-01-01", "2026-02-01"),
        ("last month", "2025-12-01", "2026-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2025-12", "2025-12-01", "2026-01-01"),
        ("2026-W03", "2026-01-12", "2026-01-19"),
        ("2026-01-05", "2026-01-05", "2026-01-06"),
    ],
)
def test_how_long_a_period_lasts(text: str, start: str, end: str) -> None:
    assert utc_period(text, now=NOW) == (utc(start), utc(end))
    assert last_utc_time(text, now=NOW) == utc(end) - timedelta(microseconds=1)


def test_which_day_it_is_depends_on_the_zone() -> None:
    assert utc_period("yesterday", "Asia/Tokyo", NOW) == (utc("2026-01-13T15:00"), utc("2026-01-14T15:00"))
    assert utc_time("today", "America/Los_Angeles", NOW) == utc("2026-01-14T08:00")
    assert local_day("today", "Asia/Tokyo", NOW) == date(2026, 1, 15)
    assert local_day("2026-01-05", "Asia/Tokyo", NOW) == date(2026, 1, 5)
    assert utc_time("2026-01-05T19:00", "Europe/Berlin") == utc("2026-01-05T18:00")
    assert utc_time("2026-01-05T19:00Z", "Europe/Berlin") == utc("2026-01-05T19:00")


@pytest.mark.parametrize(
    ("now", "start", "end", "hours"),
    [
        ("2026-03-29T10:00", "2026-03-27T23:00", "2026-03-28T23:00", 24),  # the day of the change: yesterday is whole
        ("2026-03-30T10:00", "2026-03-28T23:00", "2026-03-29T22:00", 23),
        ("2026-10-25T10:00", "2026-10-23T22:00", "2026-10-24T22:00", 24),
        ("2026-10-26T10:00", "2026-10-24T22:00", "2026-10-25T23:00", 25),
    ],
)
def test_yesterday_in_berlin_when_clocks_change(now: str, start: str, end: str, hours: int) -> None:
    assert utc_period("yesterday", "Europe/Berlin", utc(now)) == (utc(start), utc(end))
    assert utc(end) - utc(start) == timedelta(hours=hours)
    assert utc_time("-1d", "Europe/Berlin", utc(now)) == utc(now) - timedelta(hours=24)


def test_a_day_without_midnight_begins_when_clocks_are_put_forward() -> None:
    assert utc_time("2023-03-26", "Africa/Cairo") == utc("2023-03-25T22:00")
    assert utc_time("2023-04-28", "Africa/Cairo") == utc("2023-04-27T22:00")  # from 0:00 to 1:00
    assert utc_time("2023-11-05", "America/Havana") == utc("2023-11-05T04:00")  # 0:00 comes twice


@pytest.mark.parametrize(
    "text", ["soon", "", "-", "-7", "-7x", "now-", "now+1d", "2026-13", "0000-01", "2026-W60", "week"]
)
def test_a_refusal_names_what_is_understood(text: str) -> None:
    with pytest.raises(ValueError, match="not a time; write") as refused:
        utc_time(text, now=NOW)
    assert FORMS in str(refused.value)
    with pytest.raises(ValueError, match="not a period; write 2026-01-05, 2026-01, 2026-W03, today"):
        utc_period(text, now=NOW)


@pytest.mark.parametrize("text", ["now", "-7d", "2026-01-05T19:00", "1768430000"])
def test_a_time_is_no_period(text: str) -> None:
    with pytest.raises(ValueError, match="not a period"):
        utc_period(text, now=NOW)


@pytest.mark.parametrize("text", ["-99999999d", "0001-01-01", "9999-12"])
def test_times_beyond_the_calendar_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a time|not a period|first or after the last year"):
        utc_period(text, "Asia/Tokyo", NOW) if text == "9999-12" else utc_time(text, "Asia/Tokyo", NOW)


@pytest.mark.parametrize("name", ["Mars/Base", "../etc/passwd", "Europe", "x" * 300])
def test_unknown_zones(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone is called"):
        time_zone(name)


@given(st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1)), st.sampled_from(WORDS), st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana"]
))  # fmt: skip
def test_periods_begin_and_end_at_midnight_and_follow_each_other(clock: datetime, word: str, zone: str) -> None:
    now = clock.replace(tzinfo=UTC)
    start, end = utc_period(word, zone, now)
    assert utc_time(word, zone, now) == start < end
    first, last = (time.astimezone(ZoneInfo(zone)) for time in (start, end - timedelta(microseconds=1)))
    assert (start - timedelta(microseconds=1)).astimezone(ZoneInfo(zone)).date() == first.date() - timedelta(days=1)
    assert end.astimezone(ZoneInfo(zone)).date() == last.date() + timedelta(days=1)
    if word in ("today", "this week", "this month"):
        assert start <= now < end
    else:
        after = {"yesterday": "today", "last week": "this week", "last month": "this month"}[word]
        assert utc_period(after, zone, now)[0] == end


def test_a_question_in_python_takes_a_whole_period() -> None:
    scope = Scope.of("scratch", during="2026-W03")
    assert (scope.since, scope.until) == (utc("2026-01-12"), utc("2026-01-19"))
    with pytest.raises(UsageError, match="leave out since and until"):
        Scope.of("scratch", during="2026-W03", since="2026-01-01")
    options = {"during": "2026-01", "by": "user"}
    assert Scope.taken_from(options, "scratch").until == utc("2026-02-01")
    assert options == {"by": "user"}

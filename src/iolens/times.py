"""Times and periods as people write them on the command line and in notebooks: `now-90min`, `yesterday`, `2026-W03`.

Text of others (telemetry, configuration) is read by `units.parse_local_time`, which knows no word that depends on the
clock. A word that names a period stands for its start where a time is asked for. Weeks begin on Monday (ISO 8601).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from iolens.units import parse_duration, parse_local_time

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

PERIODS: Final = "2026-01-05, 2026-01, 2026-W03, today, yesterday, this week, last week, this month, last month"
FORMS: Final = f"2026-01-05T19:00, {PERIODS}, now, -7d, now-90min"
_AGO: Final = re.compile(r"(?:now ?)?- ?([0-9].*[a-z])")
_MONTH: Final = re.compile(r"([0-9]{4})-([0-9]{2})")
_WEEK: Final = re.compile(r"[0-9]{4}-?w[0-9]{2}")
_ONE_DAY: Final = timedelta(days=1)
_ONE_WEEK: Final = timedelta(days=7)

Days = tuple[date, date]  # the first day of a period and the first after it


def utc_time(given: str | datetime | None, zone: str | None = None, now: datetime | None = None) -> datetime | None:
    """The time in UTC; one without a zone is meant in `zone`, or in UTC. `now` is the clock's unless given."""
    if given is None or (isinstance(given, datetime) and given.tzinfo is not None):
        return None if given is None else given.astimezone(UTC)
    there = time_zone(zone)
    return _in_utc(_written_time(given, there, now) if isinstance(given, str) else _local(given, there))


def utc_period(text: str, zone: str | None = None, now: datetime | None = None) -> tuple[datetime, datetime]:
    """From when to when a day, week or month lasts in `zone`, in UTC; its end is not included."""
    there = time_zone(zone)
    if (days := _days(text, _today(there, now))) is None:
        raise ValueError(f"{text!r}: not a period; write {PERIODS}")
    start, end = (_in_utc(_midnight(day, there)) for day in days)
    return start, end


def last_utc_time(text: str, zone: str | None = None, now: datetime | None = None) -> datetime:
    """The time a text names; of a period its last microsecond."""
    if _days(text, _today(time_zone(zone), now)) is not None:
        return utc_period(text, zone, now)[1] - timedelta(microseconds=1)
    return _in_utc(_written_time(text, time_zone(zone), now))


def local_day(text: str, zone: str | None = None, now: datetime | None = None) -> date:
    """The day in `zone` of the time a text names."""
    there = time_zone(zone)
    return _written_time(text, there, now).astimezone(there).date()


def time_zone(name: str | None) -> ZoneInfo:
    """The time zone of that name, UTC without one; an unknown name is a ValueError."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a directory
        raise ValueError(f"no time zone is called {name!r}") from None


def present() -> datetime:
    """What the clock shows, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def _written_time(text: str, zone: ZoneInfo, now: datetime | None) -> datetime:
    word, clock = _word(text), now or present()
    try:
        if word == "now":
            return clock
        if (ago := _AGO.fullmatch(word)) is not None:
            return clock - timedelta(seconds=parse_duration(ago[1]))
        days = _days(text, clock.astimezone(zone).date())
        return _local(parse_local_time(text), zone) if days is None else _midnight(days[0], zone)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r}: not a time; write {FORMS}") from None


def _days(text: str, today: date) -> Days | None:
    """The days of a period that the text names."""
    word = _word(text)
    if (named := _named_days(today).get(word.replace("-", " "))) is not None:
        return named
    try:
        if (month := _MONTH.fullmatch(word)) is not None:
            return _month(int(month[1]), int(month[2]))
        first = date.fromisoformat(word.upper())
        return first, first + (_ONE_WEEK if _WEEK.fullmatch(word) else _ONE_DAY)
    except (ValueError, OverflowError):
        return None


def _named_days(today: date) -> dict[str, Days]:
    monday, first = today - timedelta(days=today.weekday()), today.replace(day=1)
    before = first - _ONE_DAY
    return {
        "today": (today, today + _ONE_DAY),
        "yesterday": (today - _ONE_DAY, today),
        "this week": (monday, monday + _ONE_WEEK),
        "last week": (monday - _ONE_WEEK, monday),
        "this month": _month(today.year, today.month),
        "last month": _month(before.year, before.month),
    }


def _month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _word(text: str) -> str:
    return " ".join(text.lower().split())


def _today(zone: ZoneInfo, now: datetime | None) -> date:
    return (now or present()).astimezone(zone).date()


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    """When the day begins: where clocks skip or repeat midnight, the first time of the day."""
    return datetime.combine(day, time(), zone)


def _in_utc(local: datetime) -> datetime:
    try:
        return local.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{local:%Y-%m-%d}: before the first or after the last year there is") from None


def _local(given: datetime, zone: ZoneInfo) -> datetime:
    return given if given.tzinfo is not None else given.replace(tzinfo=zone)

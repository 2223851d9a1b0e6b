"""In which time zone people see times: in tables, sentences and figures alike.

It is UTC unless the command line (`--timezone`) or a page says otherwise. Machines (JSON, CSV, Parquet) always get UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Final

_ZONE: Final = ContextVar("zone", default="UTC")


@contextmanager
def shown_in(zone: str | None) -> Iterator[None]:
    """Show times in this zone; None leaves it as it is."""
    before = _ZONE.set(zone or _ZONE.get())
    try:
        yield
    finally:
        _ZONE.reset(before)


def zone_name() -> str:
    """Of the zone that times are shown in, for headings and the ends of sentences."""
    return _ZONE.get()


def shown_zone() -> tzinfo:
    """The zone that times are shown in."""
    if zone_name() == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    return ZoneInfo(zone_name())


def show_time(value: datetime) -> str:
    """`2012-10-22 19:00:05`, without microseconds; in the hour that comes twice when clocks are put back: `…+01:00`."""
    local = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).astimezone(shown_zone())
    comes_twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return local.isoformat(" ", "seconds")[: None if comes_twice else len("2012-10-22 19:00:05")]


def short_time(value: datetime) -> str:
    """`2012-10-22 19:00`, without seconds that are none."""
    text = show_time(value)
    return text[:16] + text[19:] if text[16:19] == ":00" else text


def time_with_zone(value: datetime) -> str:
    """`2012-10-22 19:00:05 UTC`."""
    return f"{show_time(value)} {zone_name()}"


def window_with_zone(start: datetime, end: datetime) -> str:
    """`2012-10-22 19:00 to 2012-10-22 20:00 UTC`, without seconds that are none."""
    return f"{short_time(start)} to {short_time(end)} {zone_name()}"

"""Times in the zone of the reader."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from iolens.views.render.tables import show_seconds, show_time


@dataclass(frozen=True, slots=True)
class PageTimes:
    """How times are shown; the zone of None is UTC."""

    zone: str | None = None

    @property
    def zone_name(self) -> str:
        """For headings."""
        return self.zone or "UTC"

    def shown(self, time: datetime) -> str:
        """`2026-01-06 22:00:00`, in the zone."""
        local = time.astimezone(ZoneInfo(self.zone_name))
        return show_time(local.replace(tzinfo=UTC))

    def with_zone(self, time: datetime) -> str:
        """The same, with the zone's name."""
        return f"{self.shown(time)} {self.zone_name}"

    def window(self, start: datetime, end: datetime) -> str:
        """From … to …, without seconds that are none."""
        first, last = (self.shown(time).removesuffix(":00") for time in (start, end))
        return f"{first} to {last} {self.zone_name}"


def length(seconds: float) -> str:
    """`2 h`, `58 s`."""
    return show_seconds(seconds)

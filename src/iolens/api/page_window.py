"""The window of a user's page: the last days of data, and the days or weeks in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from iolens.api.access.store_analyses import StoreAnalyses
from iolens.errors import StoreError
from iolens.store.scope import Scope
from iolens.units import from_epoch_us

DAYS: Final = 7  # of a window that nobody gave
MOST_DAYS: Final = 31  # that are looked at one by one; of more, weeks
TELEMETRY: Final = ("job_io", "target_io", "target_sizes", "client_io")

Piece = tuple[datetime, datetime]


def page_window(opened: StoreAnalyses, scope: Scope, telemetry: Sequence[str], zone: ZoneInfo) -> Piece:
    """As asked; else the last seven days of which anything is stored, from the midnight before."""
    if scope.since is not None and scope.until is not None:
        return scope.since, scope.until
    everything = opened.store.select_all(Scope())
    extents = [everything.of_filesystem(name, set()).extent_us(*TELEMETRY) for name in telemetry]
    extents.append(everything.extent_us("runs", "jobs"))
    known = [extent for extent in extents if extent is not None]
    if not known:
        raise StoreError(f"{opened.store.url} holds no data yet; load some with `iolens ingest`")
    until = scope.until or from_epoch_us(max(end_us for _, end_us in known))
    last = (until - timedelta(microseconds=1)).astimezone(zone).date()
    return scope.since or _midnight(last - timedelta(days=DAYS - 1), zone, until), until


def pieces_of(window: Piece, zone: ZoneInfo) -> tuple[int, list[Piece]]:
    """Days of the zone, or weeks where there are many: how many days each has, and from when to when they are."""
    since, until = window
    each = 1 if until - since <= timedelta(days=MOST_DAYS) else 7
    ends, day = [since], since.astimezone(zone).date()
    while ends[-1] < until:
        day += timedelta(days=each)
        ends.append(min(_midnight(day, zone, since), until))
    return each, list(pairwise(ends))


def _midnight(day: date, zone: ZoneInfo, like: datetime) -> datetime:
    """When the day begins, in the time zone of `like`."""
    return datetime.combine(day, time(), zone).astimezone(like.tzinfo)

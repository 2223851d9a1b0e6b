"""When a scan was taken, where its file does not tell: `--at`, else the day in its name, else when it was written."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Note
from iolens.sources.reading.local_time import find_zone
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import zone_name
from iolens.units import epoch_us

# 20190115, 2019-01-15, 2019_01_15, 2019.01.15, of the years that had file systems worth scanning.
_DAY: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")


class ScanTime(NamedTuple):
    """The time, whether somebody said it (then files of one time are parts of one scan), and what to note."""

    time_us: int
    stated: bool
    note: Note | None


def scan_time_of(path: Path, options: ReadOptions) -> ScanTime:
    """The time of the scan in that file. A day without an hour is its beginning, in UTC unless a zone is stated."""
    if options.at is not None:
        return ScanTime(epoch_us(options.at), True, None)
    if (day := _day_in_name(path.name)) is not None:
        zone = zone_name(options, options.filesystem)
        time = day.replace(tzinfo=UTC if zone is None else find_zone(zone, str(path)))
        reason = f"its name dates it {day:%Y-%m-%d}; state the exact time with --at"
        return ScanTime(epoch_us(time), True, Note(str(path), None, reason))
    try:
        written_us = path.stat().st_mtime_ns // 1000
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    reason = "it does not tell when it was taken: when the file was last written counts; say the time with --at"
    return ScanTime(written_us, False, Note(str(path), None, reason))


def _day_in_name(name: str) -> datetime | None:
    """The only day a name holds; None where it holds none, or several."""
    days = set()
    for year, _, month, day in _DAY.findall(name):
        try:
            days.add(datetime(int(year), int(month), int(day)))
        except ValueError:
            continue
    return days.pop() if len(days) == 1 else None


def scan_name(identity: str) -> str:
    """What tells a scan from others of the same time: a piece of its content's hash."""
    return identity.rpartition("/")[2][:12]

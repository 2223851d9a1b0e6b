"""What the configuration may say of Darshan logs: `[sources.darshan]`, and the mounts of file systems."""

from __future__ import annotations

from typing import Final

from iolens.errors import InputError
from iolens.sources.darshan.messages import RowOptions
from iolens.sources.reading.options import ReadOptions
from iolens.units import epoch_us

SETTINGS: Final = ("paths",)


def row_options(options: ReadOptions, place: str) -> RowOptions:
    """The options as they concern rows; InputError for a setting that is not known, or not true or false."""
    for key, value in options.settings.items():
        if key not in SETTINGS:
            raise InputError(place, f"unknown key sources.darshan.{key}", f"one of {', '.join(SETTINGS)}")
        if not isinstance(value, bool):
            raise InputError(place, f"sources.darshan.{key} = {value!r}", "true or false")
    since_us, until_us = (None if time is None else epoch_us(time) for time in (options.since, options.until))
    keeps_paths = bool(options.settings.get("paths", True))
    return RowOptions(options.mounts, options.filesystem, keeps_paths, since_us, until_us)

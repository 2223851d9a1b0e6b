"""What captures saved as text have in common: cells, quotations, what makes a capture the same again, zones."""

from __future__ import annotations

import csv
import hashlib
from datetime import tzinfo
from pathlib import Path

from iolens.errors import InputError
from iolens.sources.reading.captures import content_identity
from iolens.sources.reading.local_time import find_zone
from iolens.sources.reading.options import ReadOptions


def cells_of(text: str, delimiter: str = ",") -> list[str]:
    """The cells of one line of CSV, without blanks around them; the line itself where it is none."""
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:
        return [text]


def supplied_identity(path: Path, **supplied: object) -> str:
    """The content's hash; what the user had to supply is part of it, for it changes what the content means."""
    return combined_identity([content_identity(path)], **supplied)


def combined_identity(identities: list[str], **supplied: object) -> str:
    """One identity for several contents that are read as one, in whatever order they were named."""
    said = [f"{name}={value}" for name, value in sorted(supplied.items()) if value is not None]
    if len(identities) == 1 and not said:
        return identities[0]
    return "file/" + hashlib.sha256("\0".join([*sorted(identities), *said]).encode()).hexdigest()


def zone_name(options: ReadOptions, filesystem: str | None) -> str | None:
    """The zone of local times: `--timezone`, else the configuration's for the source or the file system."""
    name = options.timezone or options.settings.get("timezone") or options.zones.get(filesystem or "")
    return None if name is None else str(name)


def stated_zone(options: ReadOptions, filesystem: str | None, place: str) -> tzinfo:
    """The zone of local times, where nothing can be read without it."""
    name = zone_name(options, filesystem)
    if name is None:
        expected = "--timezone, such as America/Los_Angeles, or timezone in [filesystems.NAME] of the configuration"
        raise InputError(place, "its times are local and name no zone", expected)
    return find_zone(name, place)


def needed_filesystem(options: ReadOptions, place: str) -> str:
    """The file system, where a format never names it."""
    if options.filesystem is None:
        raise InputError(place, "nothing here tells the file system", "--filesystem")
    return options.filesystem

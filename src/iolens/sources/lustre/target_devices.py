"""The block device that a target is on: which one (`mntdev`), how long it was busy, what it is like.

`/sys/class/block/NAME` below the same root: `stat` of the device itself, be it a disk, a partition, a device-mapper or
an md device; `queue/rotational` of it; `nr_requests` and `scheduler` of the first disk below it, because a stacked
device has none that matter. A file that is not there is unknown. Needs only the standard library, for the sampler
imports it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from iolens.sources.lustre.clock import whole_number
from iolens.sources.reading.limited_reads import Read

SYSFS: Final = "sys/class/block"
STAT: Final = "stat"
FACTS: Final = {"rotational": "device_rotational", "nr_requests": "device_queue_requests",
                "scheduler": "device_scheduler"}  # fmt: skip
"""Files of a device's queue, and the columns of `target_state` they fill."""
_OF_DISK: Final = frozenset({"nr_requests", "scheduler"})
_DEVICES: Final = "/dev/"
_MOST_LAYERS: Final = 8
_STAT_FIELDS: Final = 11
_READ_SECTORS, _WRITTEN_SECTORS, _IO_TICKS = 2, 6, 9


def device_of(text: bytes) -> str | None:
    """The path of the block device in a `mntdev`; None: something else, such as a ZFS dataset."""
    name = text.decode("utf-8", "replace").strip()
    return name if name.startswith(_DEVICES) and len(name.split()) == 1 and ".." not in name else None


def device_files(root: Path, mounted: bytes, leaves: Iterable[str], read: Read) -> dict[str, Path]:
    """Files of the device behind a target by what they tell, as far as they are there; `mounted` is its `mntdev`."""
    device = device_of(mounted)
    folder = None if device is None else _folder(root, device, read)
    if folder is None:
        return {}
    disk = _first_disk(root, folder)
    places = {leaf: _place(disk if leaf in _OF_DISK else folder, leaf) for leaf in leaves}
    return {leaf: place for leaf, place in places.items() if place.is_file()}


def busy_us(stat: bytes) -> int | None:
    """Time the device was busy since the kernel knows it, microseconds; None: not counted."""
    numbers = [whole_number(word) for word in stat.decode("ascii", "replace").split()]
    if len(numbers) < _STAT_FIELDS or None in numbers:
        return None
    ticks = numbers[_IO_TICKS] or 0
    has_moved = numbers[_READ_SECTORS] or numbers[_WRITTEN_SECTORS]
    return None if has_moved and not ticks else ticks * 1000  # old kernels count no time for some stacked devices


def facts_of(texts: Mapping[str, bytes]) -> dict[str, int | float | str | None]:
    """Columns of `target_state` from files of the queue; one that is not understood is unknown."""
    return {column: _PARSERS[leaf](texts[leaf]) for leaf, column in FACTS.items() if leaf in texts}


def _rotational(text: bytes) -> bool | None:
    return {b"0": False, b"1": True}.get(text.strip())


def _requests(text: bytes) -> int | None:
    number = whole_number(text.decode("ascii", "replace").strip())
    return number if number is not None and number < 1 << 31 else None


def _scheduler(text: bytes) -> str | None:
    """The one in use: `[mq-deadline] kyber none`; some kernels print one alone."""
    words = text.decode("ascii", "replace").split()
    used = [word[1:-1] for word in words if word[:1] == "[" and word[-1:] == "]"] or (words if len(words) == 1 else [])
    return used[0][:40] if len(used) == 1 and used[0] else None


_PARSERS: Final = {"rotational": _rotational, "nr_requests": _requests, "scheduler": _scheduler}


def _folder(root: Path, device: str, read: Read) -> Path | None:
    """The device in sysfs: by its name, by the link that its path is, or by the name its owner gave it."""
    path = root / device[1:]
    try:
        linked = path.readlink().name
    except OSError:
        linked = ""
    for name in (device.removeprefix(_DEVICES).replace("/", "!"), linked):
        if name and (folder := root / SYSFS / name).is_dir():
            return folder
    for name in _names(root / SYSFS):
        if name.startswith("dm-") and _text(root / SYSFS / name / "dm/name", read) == path.name:
            return root / SYSFS / name
    return None


def _first_disk(root: Path, folder: Path) -> Path:
    for _ in range(_MOST_LAYERS):
        below = [name for name in _names(folder / "slaves") if (root / SYSFS / name).is_dir()]
        if not below:
            break
        folder = root / SYSFS / below[0]
    return folder


def _place(folder: Path, leaf: str) -> Path:
    """Where the kernel has it; the queue of a partition is that of its disk."""
    if leaf == STAT:
        return folder / STAT
    own = folder / "queue" / leaf
    return own if own.is_file() else Path(os.path.realpath(folder)).parent / "queue" / leaf


def _names(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - names only
    except OSError:
        return []


def _text(path: Path, read: Read) -> str:
    try:
        return read(path).decode("utf-8", "replace").strip()
    except OSError:
        return ""

"""How full a Lustre target is, its state, and the block device that it is on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from iolens.sources.lustre.clock import LATEST_S, whole_number
from iolens.sources.reading.limited_reads import Read
from iolens.units import KIB

# How full a Lustre target is, and its state ---------------------------------------------------------------------------
# Kbytes*, files*, recovery_status, num_exports, locks, version.
#
# Finished rows of `target_capacity` and `target_state`; what a server does not tell is None.

CAPACITY_LEAVES: Final = ("kbytestotal", "kbytesfree", "kbytesavail", "filestotal", "filesfree")
# The lock namespace of a target, and the columns of `target_state` it fills.
LOCK_LEAVES: Final[Mapping[str, str]] = {
    "lock_count": "locks",
    "resource_count": "lock_resources",
    "lock_timeouts": "lock_timeouts",
    "grant_rate": "lock_grants_per_s",
    "cancel_rate": "lock_cancels_per_s",
}
LOCK_PATHS: Final = ("lock_count", "resource_count", "lock_timeouts", "pool/grant_rate", "pool/cancel_rate")
RECOVERY_LINES: Final = frozenset({
    "status", "recovery_start", "recovery_duration", "time_remaining", "completed_clients", "connected_clients",
})  # fmt: skip
_LARGEST: Final = 1 << 53  # in KiB still a signed 64-bit number of bytes
EARLIEST_RECOVERY_S: Final = 1_000_000_000  # some servers print seconds since boot: no date can be made of that

Facts = dict[str, int | float | str | None]


def parse_count(data: bytes) -> int | None:
    """The single number of a `kbytesfree`, `filestotal` or `num_exports` file; None if it is not one."""
    return _count(data.decode("ascii", "replace"))


def capacity(readings: Mapping[str, int]) -> Facts:
    """Columns of `target_capacity` from the numbers of the files by name; KiB become bytes."""
    total, free, available = (_times(readings.get(name), KIB) for name in CAPACITY_LEAVES[:3])
    inodes, free_inodes = (readings.get(name) for name in CAPACITY_LEAVES[3:])
    return {
        "total_bytes": total,
        "used_bytes": _difference(total, free),
        "free_bytes": free,
        "total_inodes": inodes,
        "used_inodes": _difference(inodes, free_inodes),
        "free_inodes": free_inodes,
        "available_bytes": available,
    }


def recovery_lines(data: bytes) -> dict[str, str] | str:
    """The lines of a recovery_status text by their names, or the one that was not understood."""
    said: dict[str, str] = {}
    for line in data.decode("ascii", "replace").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            said[key.strip()] = value.strip()
        elif line.strip():
            return f"recovery line not understood: {line.strip()[:60]!r}"
    return said


def parse_recovery(data: bytes) -> Facts | str:
    """Recovery columns of `target_state` from a recovery_status text, or what was not understood in it."""
    said = recovery_lines(data)
    if isinstance(said, str):
        return said
    if not said.get("status"):
        return "no status in recovery_status"
    completed, expected = _pair(said.get("completed_clients"))
    start = _count(said.get("recovery_start", ""))
    return {
        "recovery_status": said["status"],
        "recovery_start": _times(start, 1_000_000) if start and EARLIEST_RECOVERY_S <= start < LATEST_S else None,
        "recovery_duration_s": _float(said.get("recovery_duration")),
        "recovery_remaining_s": _float(said.get("time_remaining")),
        "completed_clients": completed,
        "expected_clients": expected if expected is not None else _pair(said.get("connected_clients"))[1],
    }


def parse_version(data: bytes) -> str | None:
    """The server's version: `lustre: 1.8.3` (/proc), `2.12.9_12.llnl` (/sys, lctl)."""
    lines = data.decode("ascii", "replace").strip().splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("lustre:")]
    return next(iter(named or lines), None) or None


def _pair(text: str | None) -> tuple[int | None, int | None]:
    done, _, of = (text or "").partition("/")
    return _count(done), _count(of)


def _count(text: str) -> int | None:
    number = whole_number(text.strip())
    return number if number is not None and number < _LARGEST else None


def _float(text: str | None) -> float | None:
    number = _count(text or "")
    return None if number is None else float(number)


def _times(number: int | None, factor: int) -> int | None:
    return None if number is None else number * factor


def _difference(total: int | None, free: int | None) -> int | None:
    return None if total is None or free is None else total - free


# The block device that a target is on ---------------------------------------------------------------------------------
# Which one (`mntdev`), how long it was busy, what it is like.
#
# `/sys/class/block/NAME` below the same root: `stat` of the device itself, be it a disk, a partition, a device-mapper
# or an md device; `queue/rotational` of it; `nr_requests` and `scheduler` of the first disk below it, because a stacked
# device has none that matter. A file that is not there is unknown. Needs only the standard library, for the sampler
# imports it.

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

"""Which block devices are measured, and under which name: one rule for /proc/diskstats, iostat and PCP archives.

A byte written to a file passes a partition, perhaps a device-mapper or md device, and a disk; each counts it. Disks are
kept, what lies over them is left out, unless the configuration asks for it. Needs only the standard library, for the
sampler imports it; NumPy comes with the first saved series.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.reading_rules import DeviceRule
from iolens.records import Note, Samples
from iolens.schema import LARGEST
from iolens.sources.reading.bounded_input import parameter_bytes
from iolens.sources.reading.options import ReadOptions
from iolens.units import epoch_us

TABLE: Final = "target_io"
KIND: Final = {"target_kind": "device"}
COUNTERS: Final = (
    "read_ops", "read_bytes", "read_wait_us", "write_ops", "write_bytes", "write_wait_us", "busy_us", "queue_us",
)  # fmt: skip
ROWS_PER_SERIES: Final = 50_000
NAMED_LEFT_OUT: Final = 8

_NO_DISK: Final = re.compile(r"(?:loop|ram|zram|sr|scd|fd)\d*|nvme\d+c\d+n\d+")
# With `iostat -N` logical volumes are called group-volume; no disk of the kernel's has a hyphen.
_STACKED: Final = re.compile(r"(?:dm-|md|bcache|drbd|zd)\d.*|(?:md_|mpath|emcpower).+|.[^-]*+-.+")
_PARTITION_MARKS: Final = ("-part", "p", "")  # between the name of a disk and the number of its partition
_MAPPER: Final = "/dev/mapper/"
_MOUNTS: Final = ("proc/self/mountinfo", "proc/1/mountinfo")
_HOST_NAMES: Final = ("proc/sys/kernel/hostname", "etc/hostname")


def target_name(host: str, device: str) -> str:
    """The target a device is stored under: unique across servers."""
    return f"{host}:{device}"


class Device(NamedTuple):
    """One block device as the kernel or a report names it."""

    name: str
    shown: str  # the name it is stored under: for device-mapper the one its owner gave
    disk: str | None = None  # the disk it is a partition of
    below: frozenset[str] | None = None  # what it is stacked on; None: not known
    is_empty: bool = False  # a drive without a medium, a network disk without a peer

    @property
    def is_stacked(self) -> bool:
        """Whether other devices carry its I/O."""
        return bool(self.below) if self.below is not None else _STACKED.fullmatch(self.name) is not None


class Choice(NamedTuple):
    """Devices to measure with the names they are stored under, and why each other one is left out."""

    kept: dict[str, str]
    left_out: dict[str, str]


def devices_by_name(names: Iterable[str]) -> list[Device]:
    """Devices of which nothing is known but their names, as in a report."""
    listed = list(dict.fromkeys(names))
    return [Device(name, name, _disk_of(name, set(listed))) for name in listed]


def devices_by_sysfs(root: Path, names: Iterable[str]) -> list[Device]:
    """Devices as `/sys/block` below `root` knows them; by their names where it is missing."""
    folder = root / "sys/block"
    listed = list(dict.fromkeys(names))
    if not folder.is_dir():
        return devices_by_name(listed)
    disks = {name for name in listed if os.path.lexists(folder / _in_sysfs(name))}
    return [
        _from_sysfs(folder / _in_sysfs(name), name) if name in disks else Device(name, name, _disk_of(name, disks))
        for name in listed
    ]


def choose(devices: Collection[Device], rule: DeviceRule, holding_root: Collection[str] = ()) -> Choice:
    """Apply the rule: each I/O is counted once, and on disks that hold data."""
    known = {device.name: device for device in devices}
    left_out = {name: why for name, device in known.items() if (why := _why_not(device, known, rule)) is not None}
    for device in devices:
        if device.name not in left_out:
            for name in _base_of(device, known) - {device.name}:
                if name in known and name not in left_out and not _is_named(known[name], rule.include):
                    left_out[name] = f"carries the I/O of {device.shown}"
    _leave_out_system(known, left_out, rule, holding_root)
    kept = {name: device.shown for name, device in known.items() if name not in left_out}
    return Choice(kept, left_out)


def system_disks(root: Path, devices: Collection[Device], numbers: Mapping[str, str]) -> set[str]:
    """Every device that holds `/` of the system below `root`; `numbers` gives names by `major:minor`."""
    known = {device.name: device for device in devices}
    name = _root_device(root, known, numbers)
    if name is None:
        return set()
    return {name} | _base_of(known[name], known)


def host_of(root: Path) -> str:
    """The name of the machine below `root`: the one this runs on, or the one the files were copied from."""
    return stated_host(root) or os.uname().nodename


def stated_host(root: Path) -> str | None:
    """The name of the machine as the files below `root` give it."""
    return next((name for place in _HOST_NAMES if (name := _text(root / place))), None)


def given_by_user(options: ReadOptions) -> dict[str, object]:
    """What the user supplied that changes the rows of a report or archive: part of its identity."""
    plain = ("filesystem", "target", "timezone", "interval_s", "at", "since", "until")
    reported: dict[str, object] = {name: getattr(options, name) for name in plain}
    reported |= {f"setting {name}": value for name, value in options.settings.items()}
    return reported | ({"devices": options.devices} if options.devices != DeviceRule() else {})


def is_asked_for(time_us: int, options: ReadOptions) -> bool:
    """Whether a time lies in the window the user named, if any."""
    begins = options.since is None or time_us >= epoch_us(options.since)
    return begins and (options.until is None or time_us < epoch_us(options.until))


def refuse_settings(options: ReadOptions, source: str, place: str, known: Collection[str] = ()) -> None:
    """InputError when `[sources.NAME]` has a key that the source does not know."""
    for name in options.settings:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "no settings; [devices] chooses devices"
            raise InputError(place, f"unknown setting sources.{source}.{name}", expected)


def left_out_notes(place: str, left_out: Mapping[str, str]) -> Iterator[Note]:
    """One note for all devices that the rule left out."""
    if left_out:
        names = ", ".join(f"{name} ({why})" for name, why in sorted(left_out.items())[:NAMED_LEFT_OUT])
        more = f", … {len(left_out) - NAMED_LEFT_OUT} more" if len(left_out) > NAMED_LEFT_OUT else ""
        yield Note(place, None, f"{len(left_out)} devices left out by rule: {names}{more}")


@dataclass(slots=True)
class DeviceSeries:
    """Raw counters of one server's devices over many times, on their way into columns."""

    filesystem: str
    host: str
    forgets: bool = False  # see `Samples`
    columns: dict[str, dict[str, list[int | None]]] = field(default_factory=dict)
    rows: int = 0

    def add(self, device: str, tick_us: int, snapshot_us: int, counters: Mapping[str, int]) -> None:
        """One reading of one device; a counter that is missing was not readable."""
        columns = self.columns.get(device)
        if columns is None:
            columns = self.columns[device] = {name: [] for name in ("time_us", "snapshot_us", *COUNTERS)}
        columns["time_us"].append(tick_us)
        columns["snapshot_us"].append(snapshot_us)
        for name in COUNTERS:
            value = counters.get(name)
            columns[name].append(value if value is None or 0 <= value <= LARGEST else None)
        self.rows += 1

    def take(self, *, at_end: bool = False) -> Iterator[Samples]:
        """The columns so far, once there are enough of them."""
        if self.rows < ROWS_PER_SERIES and not at_end:
            return
        taken, self.columns, self.rows = self.columns, {}, 0
        for device, columns in taken.items():
            yield _samples(self.filesystem, target_name(self.host, device), columns, self.forgets)


def _samples(filesystem: str, target: str, columns: dict[str, list[int | None]], forgets: bool) -> Samples:
    import numpy as np

    arrays = {}
    for name in COUNTERS:
        unknown = np.array([value is None for value in columns[name]])
        if unknown.all():
            continue
        numbers = np.array([value or 0 for value in columns[name]], np.int64)
        arrays[name] = np.ma.masked_array(numbers, unknown) if unknown.any() else numbers
    times = np.array(columns["time_us"], np.int64), np.array(columns["snapshot_us"], np.int64)
    return Samples(TABLE, filesystem, target, *times, arrays, KIND, forgets)


def _why_not(device: Device, known: Mapping[str, Device], rule: DeviceRule) -> str | None:
    """Why a device is left out on its own account."""
    if (pattern := _matching(device, rule.exclude)) is not None:
        return f"excluded by {pattern!r}"
    if _is_named(device, rule.include):
        return None
    if rule.include and _matching(device, rule.include) is None:
        return "not among those included"
    if device.disk is not None:
        return f"partition of {device.disk}"
    if _NO_DISK.fullmatch(device.name) and not rule.include:
        return "not a disk"
    if device.is_empty:
        return "has no medium"
    return None if rule.include else _why_stacked(device, known)


def _why_stacked(device: Device, known: Mapping[str, Device]) -> str | None:
    if not device.is_stacked:
        return None
    if device.below is None:
        disks = [device for device in known.values() if not device.is_stacked and not _NO_DISK.fullmatch(device.name)]
        return "lies over other devices" if disks else None
    carriers = sorted(name for name in _base_of(device, known) if not _NO_DISK.fullmatch(name))
    return f"lies over {', '.join(carriers)}" if carriers else None


def _base_of(device: Device, known: Mapping[str, Device]) -> set[str]:
    """Every device that carries the I/O of this one, down to the disks."""
    names: set[str] = set()
    todo = _directly_below(device)
    while todo:
        name = todo.pop()
        if name not in names:
            names.add(name)
            todo += _directly_below(known[name]) if name in known else []
    return names


def _directly_below(device: Device) -> list[str]:
    return [device.disk] if device.disk is not None else list(device.below or ())


def _leave_out_system(
    known: Mapping[str, Device], left_out: dict[str, str], rule: DeviceRule, holding_root: Collection[str]
) -> None:
    """The disk that holds `/` serves the server, not its users; on a machine that has no other it is what there is."""
    mine = {name for name in holding_root if name in known and not _is_named(known[name], rule.include)}
    others = known.keys() - left_out.keys() - mine
    if rule.system is False or (rule.system is None and others):
        left_out |= dict.fromkeys(mine - left_out.keys(), "holds /")


def _matching(device: Device, patterns: Collection[str]) -> str | None:
    names = {device.name, device.shown}
    return next((pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in names)), None)


def _is_named(device: Device, patterns: Collection[str]) -> bool:
    """Named in full, not by a pattern that happens to fit."""
    return device.name in patterns or device.shown in patterns


def _disk_of(name: str, others: Collection[str]) -> str | None:
    """The disk among `others` that this is a partition of: sda1, nvme0n1p1, ata-X-part1."""
    stem = name.rstrip("0123456789")
    if stem == name:
        return None
    for mark in _PARTITION_MARKS:
        disk = stem.removesuffix(mark)
        is_so_marked = mark == "-part" or disk[-1:].isdigit() == (mark == "p")
        if stem.endswith(mark) and disk in others and is_so_marked:
            return disk
    return None


def _in_sysfs(name: str) -> str:
    return name.replace("/", "!")


def _from_sysfs(folder: Path, name: str) -> Device:
    below = frozenset(name.replace("!", "/") for name in _listed(folder / "slaves"))
    shown = _text(folder / "dm/name") or name
    return Device(name, shown, None, below, _text(folder / "size") == "0")


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return parameter_bytes(path).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _root_device(root: Path, known: Mapping[str, Device], numbers: Mapping[str, str]) -> str | None:
    for place in _MOUNTS:
        for line in reversed(_text(root / place).splitlines()):
            before, _, after = line.partition(" - ")
            fields, origin = before.split(), after.split()
            if len(fields) < 5 or fields[4] != "/" or len(origin) < 2:
                continue
            if (name := numbers.get(fields[2])) in known:
                return name
            device = origin[1].removeprefix(_MAPPER).removeprefix("/dev/")
            return next((item.name for item in known.values() if device in (item.name, item.shown)), None)
    return None

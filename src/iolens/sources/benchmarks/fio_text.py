"""What fio prints for people (normal output), and its terse versions 3, 4 and 5.

Normal output rounds bytes to three digits but prints operations, milliseconds and the block size exactly: with one
block size the bytes follow. A run of mixed sizes cannot be known exactly, and is named instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from iolens.records import Item, Problem
from iolens.schema import LARGEST
from iolens.sources.benchmarks.fio_jobs import DIRECTIONS, MIXING, SYNCHRONOUS, TOOL
from iolens.sources.benchmarks.results import ResultFile, bytes_in_words, date_in_words, finite
from iolens.sources.reading.parsed_numbers import LARGEST_SMALL, count_or_none, shown
from iolens.units import KIB

TERSE: Final = re.compile(r"^\d{1,3};fio-\d[^;\n]*+;", re.MULTILINE)
GROUP_HEAD: Final = re.compile(r"^[^\n]+?: \(groupid=\d++, jobs=\d++\): err=", re.MULTILINE)
_GROUP_START, _JOB_START = ": (groupid=", ": (g="
_GROUP: Final = re.compile(
    r"(?P<group>\d++), jobs=(?P<jobs>\d++)\): err=\s*+(?P<error>\d++)(?P<why>.*?): pid=\d++: (?P<time>.++)"
)
_JOB: Final = re.compile(
    r"(?P<group>\d++)\): rw=(?P<rw>\w++), bs=(?P<bs>.+?), ioengine=(?P<engine>\w++), iodepth=(?P<depth>\d++)"
)
_SIZES: Final = re.compile(r"\((?P<kind>[RWT])\) (?P<low>[\d.]++\w*+)-(?P<high>[\d.]++\w*+)")
_RATE: Final = re.compile(r"\s++(?P<direction>read|write)\s*+: IOPS=.*?\)\([\d.]++\w++/(?P<ms>\d++)msec\)")
_ISSUED: Final = re.compile(r"\s++issued rwts: total=(?P<read>\d++),(?P<write>\d++),")
_DISK: Final = re.compile(
    r"\s++(?P<name>[^\s:]++): ios=(?P<read>\d++)/(?P<write>\d++),(?: sectors=(?P<rs>\d++)/(?P<ws>\d++),)? merge="
)
SECTOR: Final = 512
OLD_TERSE: Final = re.compile(r"^2;[^;\n]*+;\d++;\d++;\d++;\d++;", re.MULTILINE)  # has no version of fio


class _Terse(NamedTuple):
    """A terse version: fields of each direction, and how many directions there are (trims from 4 on)."""

    width: int
    directions: int

    @property
    def fewest(self) -> int:
        """Fields of a line: who, the directions, and use of processors, depths and latencies; disks may follow."""
        return _TERSE_HEAD + self.width * self.directions + _TERSE_TAIL


_TERSE_HEAD, _TERSE_TAIL, _TERSE_DISK = 5, 34, 9
# Version 5 adds the number of bandwidth samples, and the smallest, largest and mean IOPS, their deviation and number.
_TERSE_VERSIONS: Final = {"3": _Terse(41, 2), "4": _Terse(41, 3), "5": _Terse(47, 3)}


@dataclass(slots=True)
class _FioGroup:
    """One group of normal output as it is read."""

    line: int
    said: dict[str, str]
    options: dict[str, str]
    milliseconds: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)


def read_normal(file: ResultFile, text: str) -> Iterator[Item]:
    """Rows of normal output."""
    jobs: dict[tuple[str, str], dict[str, str]] = {}
    groups: list[_FioGroup] = []
    disks: list[dict[str, str | None]] = []
    for line, content in enumerate(text.split("\n"), 1):
        if said := _named(_GROUP_START, _GROUP, content):
            groups.append(_FioGroup(line, said, jobs.get((said["name"], said["group"]), {})))
        elif said := _named(_JOB_START, _JOB, content):
            jobs[said["name"], said["group"]] = said
        elif match := _DISK.match(content):
            disks.append(match.groupdict())
        elif groups and (match := _RATE.match(content)):
            groups[-1].milliseconds[match["direction"]] = count_or_none(match["ms"]) or 0
        elif groups and (match := _ISSUED.match(content)):
            groups[-1].operations = {direction: count_or_none(match[direction]) or 0 for direction in DIRECTIONS}
    for number, group in enumerate(groups):
        yield from _group_rows(file, number, group, disks if len(groups) == 1 else [])


def _named(start: str, pattern: re.Pattern[str], content: str) -> dict[str, str] | None:
    """What a line says after the name of a job and `start`."""
    place = content.find(start)
    match = pattern.match(content, place + len(start)) if place > 0 else None
    return None if match is None else {"name": content[:place], **match.groupdict()}


def _group_rows(file: ResultFile, number: int, group: _FioGroup, disks: list[dict[str, str | None]]) -> Iterator[Item]:
    name = group.said["name"]
    if group.said["error"] != "0":
        yield Problem(file.place, group.line, f"job {name!r} failed with error {group.said['error']}: not stored")
        return
    if not group.operations or not group.milliseconds:
        yield Problem(file.place, group.line, f"job {name!r}: the output was cut off")
        return
    tasks = count_or_none(group.said["jobs"], LARGEST_SMALL) or 0
    engine, depth = group.options.get("engine"), count_or_none(group.options.get("depth", ""), LARGEST_SMALL) or 0
    in_flight = tasks if engine in SYNCHRONOUS else depth * tasks
    pattern = group.options.get("rw", "")
    for direction, milliseconds in group.milliseconds.items():
        size, operations = _one_size(group, direction), group.operations[direction]
        if size is None or not milliseconds or not operations:
            why = "block sizes were mixed or are not printed, and bytes are rounded: use --output-format=json"
            yield Problem(file.place, group.line, f"job {name!r}: {direction}s left out: {why}")
            continue
        seconds = milliseconds / 1000
        yield from file.rows(
            TOOL,
            group.line,
            run_id=file.run_id(number, group.said["group"], name),
            time=file.time_us(date_in_words(group.said["time"])),
            direction=direction,
            api=engine,
            transfer_bytes=size,
            tasks=tasks or None,
            queue_depth=in_flight or None,
            duration_s=seconds,
            bytes=operations * size,
            operations=operations,
            access=None if not pattern else "random" if pattern.startswith("rand") else "sequential",
            mixed=pattern in MIXING or len(group.milliseconds) > 1,
            reported_bytes_per_s=operations * size / seconds,
            reported_ops_per_s=operations / seconds,
            complete=True,
            **_disk_values(disks, direction),
        )


def _one_size(group: _FioGroup, direction: str) -> int | None:
    for match in _SIZES.finditer(group.options.get("bs", "")):
        if match["kind"] == direction[0].upper():
            low, high = bytes_in_words(match["low"]), bytes_in_words(match["high"])
            return low if low == high else None
    return None


def _disk_values(disks: list[dict[str, str | None]], direction: str) -> dict[str, object]:
    if len(disks) != 1:
        return {}
    disk = disks[0]
    other = "read" if direction == "write" else "write"
    moved, foreign = (disk["rs" if name == "read" else "ws"] for name in (direction, other))
    return {
        "device": disk["name"],
        "device_ops": count_or_none(disk[direction] or ""),
        "device_bytes": _sectors(moved),
        "device_other_ops": count_or_none(disk[other] or ""),
        "device_other_bytes": _sectors(foreign),
    }


def _sectors(text: str | None) -> int | None:
    number = None if text is None else count_or_none(text, LARGEST // SECTOR)
    return None if number is None else number * SECTOR


def read_terse(file: ResultFile, text: str) -> Iterator[Item]:
    """Rows of terse output, which tells no options: sizes come from bytes and operations per second."""
    for line, content in enumerate(text.split("\n"), 1):
        cells = content.split(";")
        if len(cells) < 3 or not cells[1].startswith("fio-"):
            continue
        version = _TERSE_VERSIONS.get(cells[0])
        if version is None:
            known = ", ".join(_TERSE_VERSIONS)
            reason = f"terse version {shown(cells[0])} is not supported; versions {known} are, and --output-format=json"
            yield Problem(file.place, line, reason)
        elif len(cells) < version.fewest:
            reason = f"{len(cells)} fields; terse version {cells[0]} has at least {version.fewest}"
            yield Problem(file.place, line, reason)
        elif cells[4] != "0":
            yield Problem(file.place, line, f"job {shown(cells[2])} failed with error {shown(cells[4])}: not stored")
        else:
            yield from _terse_rows(file, line, cells, version)


def _terse_rows(file: ResultFile, line: int, cells: list[str], version: _Terse) -> Iterator[Item]:
    values = {
        direction: [finite(cells[_TERSE_HEAD + place * version.width + field_]) for field_ in range(4)]
        for place, direction in enumerate(DIRECTIONS)
    }
    done = {direction: numbers for direction, numbers in values.items() if all(numbers)}
    if not done:
        yield Problem(file.place, line, f"no I/O, or fields not understood: {shown(';'.join(cells[:9]))}")
    for direction, (volume, rate, iops, milliseconds) in done.items():
        moved, seconds = round((volume or 0) * KIB), (milliseconds or 0) / 1000
        size = _implied_size(moved, (iops or 0) * seconds)
        yield from file.rows(
            TOOL,
            line,
            run_id=file.run_id(line, cells[3], cells[2]),
            time=file.time_us(None),
            direction=direction,
            transfer_bytes=size,
            duration_s=seconds,
            bytes=moved,
            operations=None if size is None else moved // size,
            mixed=len(done) > 1,
            reported_bytes_per_s=(rate or 0) * KIB,
            reported_ops_per_s=iops,
            complete=True,
            **_terse_disk(cells, direction),
        )


def _implied_size(moved: int, operations: float) -> int | None:
    """The power of two that bytes and operations agree on within one per cent; None for other or mixed sizes."""
    if operations <= 0:
        return None
    mean = moved / operations
    nearest = 1 << max(round(mean).bit_length() - 1, 0)
    return next((size for size in (nearest, 2 * nearest) if abs(mean - size) <= 0.01 * size), None)


def _terse_disk(cells: list[str], direction: str) -> dict[str, object]:
    """The only device at the end of the line: name; reads; writes; merges; ticks; queue; utilization."""
    rest = cells[-_TERSE_DISK:]
    if not rest[-1].strip().endswith("%") or not all(cell.isdecimal() for cell in rest[1:8]):
        return {}
    if rest[0].endswith("%") or rest[0].replace(".", "").isdecimal():
        return {}
    reads, writes = count_or_none(rest[1]), count_or_none(rest[2])
    ops, other = (reads, writes) if direction == "read" else (writes, reads)
    return {"device": rest[0], "device_ops": ops, "device_other_ops": other}

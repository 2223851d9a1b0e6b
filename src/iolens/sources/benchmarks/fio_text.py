"""Jobs of fio as rows of `benchmark_runs`: of its JSON, of what it prints for people, and of terse versions 3, 4 and
5.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from iolens.records import Item, Problem
from iolens.schema import LARGEST
from iolens.sources.benchmarks.results import ResultFile, bytes_in_words, date_in_words, finite
from iolens.sources.reading.parsed_numbers import LARGEST_SMALL, count_in_json, count_or_none, number_in_json, shown
from iolens.units import KIB

# The jobs of one fio JSON document as rows of `benchmark_runs` --------------------------------------------------------
# One per group of like jobs and direction.

TOOL: Final = "fio"
DIRECTIONS: Final = ("read", "write")
DEFAULT_BLOCK: Final = 4 * KIB
SECTOR: Final = 512
SAME_START_MS: Final = 750  # two documents whose runs began this close together are of one run
# Engines that wait for each I/O, whatever iodepth says.
SYNCHRONOUS: Final = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"})
DEFAULT_ENGINE: Final = "psync"
MIXING: Final = frozenset({"rw", "readwrite", "randrw", "randtrimwrite", "trimwrite"})
_SIZE: Final = re.compile(r"(\d++)([kmgtp]?)(i?)b?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


@dataclass(frozen=True, slots=True)
class Observed:
    """What one device, or several together, counted while the jobs ran; bytes: None where fio does not print them."""

    device: str
    ops: Mapping[str, int]
    bytes: Mapping[str, int | None]


def document_rows(file: ResultFile, number: int, line: int, document: dict[str, Any]) -> Iterator[Item]:
    """Rows of one document; a group with a failed job is reported instead."""
    jobs = [job for job in _list(document.get("jobs")) or _list(document.get("client_stats")) if _is_job(job)]
    if not jobs:
        yield Problem(file.place, line, "a document without jobs")
    groups: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for job in jobs:
        groups.setdefault((job.get("groupid"), job.get("jobname")), []).append(job)
    observed = _observed(document) if len(groups) == 1 else None
    time_us = _time_us(file, document)
    for (group, name), members in groups.items():
        failed = next((job for job in members if job.get("error")), None)
        if failed is not None:
            code = failed["error"]
            why = os.strerror(code) if count_in_json(code, LARGEST_SMALL) is not None else "not reported"
            yield Problem(file.place, line, f"job {name!r} failed with error {code} ({why}): not stored")
            continue
        options = {**_dictionary(document.get("global options")), **_dictionary(members[0].get("job options"))}
        alike = Jobs(members, options)
        done = [direction for direction in DIRECTIONS if alike.total(direction, "total_ios")]
        if not done:
            yield Problem(file.place, line, f"job {name!r} did no I/O")
        for direction in done:
            values = alike.values(direction, mixed=len(done) > 1)
            if values is None:
                yield Problem(file.place, line, f"job {name!r}: {direction} without time or bytes, or beyond 63 bits")
                continue
            seen = _device_values(observed, direction)
            run_id = file.run_id(number, group, name)
            yield from file.rows(TOOL, line, run_id=run_id, time=time_us, direction=direction, **values, **seen)


def is_earlier_status(document: dict[str, Any], following: dict[str, Any]) -> bool:
    """Whether the next document tells of the same run, further on."""
    mine, next_ = (_list(by_name.get("jobs")) for by_name in (document, following))
    if not mine or [_who(job) for job in mine] != [_who(job) for job in next_]:
        return False
    began, again = _began_ms(document), _began_ms(following)
    return began is not None and again is not None and abs(began - again) <= SAME_START_MS


def size_in_fio(text: object) -> int | None:
    """`4k`, `1m`, `512`, `4KiB` in bytes (fio's k is 1024 unless set otherwise); None for `50%` and ranges."""
    match = _SIZE.fullmatch(str(text).strip())
    number = None if match is None else count_or_none(match[1])
    if match is None or number is None:
        return None
    size = number * KIB ** _POWERS[match[2].lower()]
    return size if size <= LARGEST else None


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs that ran side by side with the same options."""

    members: list[dict[str, Any]]
    options: Mapping[str, Any]

    @property
    def tasks(self) -> int:
        """Processes; with group_reporting one entry stands for all of them."""
        if len(self.members) == 1 and "group_reporting" in self.options:
            return _whole(self.options.get("numjobs")) or 1
        return len(self.members)

    @property
    def queue_depth(self) -> int:
        """I/Os in flight, all processes together."""
        engine = str(self.options.get("ioengine", DEFAULT_ENGINE))
        depth = 1 if engine in SYNCHRONOUS else _whole(self.options.get("iodepth")) or 1
        return depth * self.tasks

    @property
    def pattern(self) -> str:
        """The `rw` of fio, without what follows a colon."""
        return str(self.options.get("rw", self.options.get("readwrite", "read"))).partition(":")[0]

    def transfer_bytes(self, direction: str) -> int | None:
        """The block size; None where sizes were mixed."""
        if any(name in self.options for name in ("bssplit", "bsrange", "blocksize_range")):
            return None
        asked = str(self.options.get("bs", self.options.get("blocksize", DEFAULT_BLOCK))).split(",")
        place = min(DIRECTIONS.index(direction), len(asked) - 1)
        return size_in_fio(asked[place])

    def total(self, direction: str, name: str) -> float:
        """A number of that direction, summed over the processes."""
        return sum(_number(_dictionary(job.get(direction)).get(name)) or 0 for job in self.members)

    def values(self, direction: str, mixed: bool) -> dict[str, object] | None:
        """Columns of one direction; None where they make no run."""
        parts = [_dictionary(job.get(direction)) for job in self.members]
        seconds = max((_number(part.get("runtime")) or 0 for part in parts), default=0) / 1000
        # Before version 3 `io_bytes` was in KiB.
        moved = sum((_number(part.get("io_bytes")) or 0) * (1 if "io_kbytes" in part else KIB) for part in parts)
        operations = self.total(direction, "total_ios")
        if not 0 < moved <= LARGEST or not 0 < operations <= LARGEST or seconds <= 0:
            return None
        size = size_in_fio(self.options.get("size", ""))
        shared = "filename" in self.options
        return {
            "api": str(self.options.get("ioengine", DEFAULT_ENGINE)),
            "transfer_bytes": self.transfer_bytes(direction),
            "block_bytes": size,
            "tasks": self.tasks,
            "queue_depth": self.queue_depth,
            "duration_s": seconds,
            "bytes": round(moved),
            "operations": round(operations),
            "access": "random" if self.pattern.startswith("rand") else "sequential",
            "mixed": mixed or self.pattern in MIXING,
            "file_per_process": None if self.tasks == 1 else not shared,
            "direct": _is_set(self.options.get("direct", "0")),
            "aggregate_bytes": None if size is None else size * (1 if shared else self.tasks),
            "reported_bytes_per_s": self._rate(parts),
            "reported_ops_per_s": self.total(direction, "iops"),
            "complete": True,
        }

    def _rate(self, parts: list[dict[str, Any]]) -> float:
        return sum((_number(part.get("bw_bytes")) or (_number(part.get("bw")) or 0) * KIB) for part in parts)


def _observed(document: dict[str, Any]) -> Observed | None:
    """The devices at the bottom: of a stacked one fio lists the members too."""
    disks = [disk for disk in _list(document.get("disk_util")) if "aggr_read_ios" not in disk]
    if not disks:
        return None
    ops = {d: int(sum(_number(disk.get(f"{d}_ios")) or 0 for disk in disks)) for d in DIRECTIONS}
    sectors = {d: [_number(disk.get(f"{d}_sectors")) for disk in disks] for d in DIRECTIONS}
    moved = {
        direction: None if None in sector else int(sum(value or 0 for value in sector)) * SECTOR
        for direction, sector in sectors.items()
    }
    return Observed("+".join(str(disk.get("name")) for disk in disks), ops, moved)


def _device_values(observed: Observed | None, direction: str) -> dict[str, object]:
    if observed is None:
        return {}
    other = "read" if direction == "write" else "write"
    return {
        "device": observed.device,
        "device_ops": observed.ops[direction],
        "device_bytes": observed.bytes[direction],
        "device_other_ops": observed.ops[other],
        "device_other_bytes": observed.bytes[other],
    }


def _time_us(file: ResultFile, document: dict[str, Any]) -> int | None:
    milliseconds = _number(document.get("timestamp_ms"))
    if milliseconds is None and (seconds := _number(document.get("timestamp"))) is not None:
        milliseconds = seconds * 1000
    return file.time_us(None) if milliseconds is None else round(milliseconds * 1000)


def _began_ms(document: dict[str, Any]) -> float | None:
    printed = _number(document.get("timestamp_ms"))
    ran = max((_number(job.get("job_runtime")) or 0 for job in _list(document.get("jobs"))), default=0)
    return None if printed is None else printed - ran


def _who(job: dict[str, Any]) -> tuple[Any, Any, str]:
    return job.get("jobname"), job.get("groupid"), repr(job.get("job options"))


def _is_job(job: dict[str, Any]) -> bool:
    return job.get("jobname") != "All clients"  # the sum that a fio server prints beside its clients


def _is_set(value: object) -> bool:
    return str(value).strip() not in ("0", "false", "False")


def _list(value: Any) -> list[dict[str, Any]]:
    return [by_name for by_name in value if isinstance(by_name, dict)] if isinstance(value, list) else []


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    return number_in_json(value)


def _whole(value: Any) -> int | None:
    return count_or_none(str(value).strip(), LARGEST_SMALL)


# What fio prints for people (normal output), and its terse versions 3, 4 and 5 ----------------------------------------
# Normal output rounds bytes to three digits but prints operations, milliseconds and the block size exactly: with one
# block size the bytes follow. A run of mixed sizes cannot be known exactly, and is named instead.

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

"""The binary archives of Performance Co-Pilot, versions 2 and 3, read as LOGARCHIVE(5) describes them.

An archive is `NAME.meta` (descriptions, instance names) and volumes `NAME.0`, `NAME.1`, … (values), each perhaps
compressed; `NAME.index` only helps to seek. Words are big-endian. Nothing here knows what a metric means.
"""

from __future__ import annotations

import bz2
import lzma
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from iolens.errors import InputError
from iolens.sources.reading import bounded_input

MAGIC: Final = {0x50052602: 2, 0x50052603: 3}
COUNTER: Final = 1  # semantics: grows, never falls but by a restart
LARGEST_RECORD: Final = 1 << 26  # one of ten thousand disks has a tenth of it; it is held as a whole

DESCRIPTION, INSTANCES_V2, INSTANCES_V3, INSTANCES_CHANGED = 1, 2, 5, 6
DELETED: Final = -1
IN_PLACE: Final = 0  # a value of 32 bits stands where others have their offset
OFFSET_BIAS_WORDS: Final = 2  # offsets count from a header of three words; the file keeps one of them
# How a value of each type is packed: in place, and in a block of its own.
TYPES_IN_PLACE: Final = {0: struct.Struct(">i"), 1: struct.Struct(">I"), 4: struct.Struct(">f")}
TYPES_IN_BLOCK: Final = {
    0: struct.Struct(">i"),
    1: struct.Struct(">I"),
    2: struct.Struct(">q"),
    3: struct.Struct(">Q"),
    4: struct.Struct(">f"),
    5: struct.Struct(">d"),
}

FILE: Final = re.compile(r"(?P<base>.+)\.(?P<part>meta|index|\d+)(?P<packed>\.(?:xz|lzma|gz|bz2|zst))?")
_WORD: Final = struct.Struct(">I")
_PACKED: Final = {
    b"\xfd7zXZ": "xz",
    b"\x5d\x00\x00": "xz",
    b"\x1f\x8b": "gz",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zst",
}
_BROKEN: Final = (OSError, EOFError, zlib.error, lzma.LZMAError)


class Units(NamedTuple):
    """Dimension and scale of a metric, for space, time and count."""

    dimension: tuple[int, int, int]
    scale: tuple[int, int, int]

    @classmethod
    def unpacked(cls, word: int) -> Units:
        """From the six four-bit fields of its word."""
        fields = [(word >> shift) & 0xF for shift in (28, 24, 20, 16, 12, 8)]
        space, time, count = (value - 16 if value > 7 else value for value in fields[:3])
        return cls((space, time, count), (fields[3], fields[4], fields[5] - 16 if fields[5] > 7 else fields[5]))


class PcpMetric(NamedTuple):
    """The description of one metric."""

    pmid: int
    name: str
    type: int
    domain: int  # of its instances
    semantics: int
    units: Units


class Label(NamedTuple):
    """What every file of an archive begins with."""

    version: int
    start_us: int
    host: str
    zone: str
    length: int  # of its record


class Values(NamedTuple):
    """One record: values by metric and instance number. A mark has no metric at all."""

    time_us: int
    metrics: dict[int, dict[int, int | float]]  # a metric that could not be fetched has no instance
    is_mark: bool


class DamagedArchive(Exception):
    """A file of an archive that cannot be read on from here."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        self.path, self.offset, self.reason = path, offset, reason
        super().__init__(path, offset, reason)


@dataclass(slots=True)
class InstanceNames:
    """Names of the instances of one domain, as they changed over time.

    Only what changed is kept: jobs come and go all day, and each change lists all that are there.
    """

    first_us: int | None = None
    changes: dict[int, list[tuple[int, str | None]]] = field(default_factory=dict)  # by instance; None: it went
    present: set[int] = field(default_factory=set)

    def name_at(self, instance: int, time_us: int) -> str | None:
        """The name that an instance has at a time; before the first observation of all, that one."""
        changes = self.changes.get(instance, [])
        for since_us, name in reversed(changes):
            if since_us <= time_us:
                return name
        return changes[0][1] if changes and changes[0][0] == self.first_us else None

    def observe(self, time_us: int, names: Mapping[int, str | None], *, is_change: bool = False) -> None:
        """Take one observation; they come in order. It has all instances, unless it is a change."""
        self.first_us = time_us if self.first_us is None else self.first_us
        gone = () if is_change else self.present - names.keys()
        for instance, name in (*names.items(), *((instance, None) for instance in gone)):
            changes = self.changes.setdefault(instance, [])
            if not changes or changes[-1][1] != name:
                changes.append((time_us, name))
            (self.present.discard if name is None else self.present.add)(instance)


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of one archive."""

    base: Path
    meta: Path
    volumes: tuple[Path, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """All that holds its content."""
        return (self.meta, *self.volumes)


@dataclass(slots=True)
class ArchiveMetadata:
    """Label, descriptions and instance names of an archive."""

    label: Label
    described: set[int] = field(default_factory=set)  # every metric's number
    metrics: dict[str, PcpMetric] = field(default_factory=dict)
    instances: dict[int, InstanceNames] = field(default_factory=dict)
    damage: DamagedArchive | None = None  # what came before it was read

    @classmethod
    def read(cls, path: Path, is_wanted: Callable[[str], bool]) -> ArchiveMetadata:
        """The descriptions of the metrics that are wanted, and the names of their instances."""
        with opened(path) as stream:
            metadata = cls(read_label(stream, path))
        # Twice, for an instance domain may come before the first metric that we know to need it.
        for take in (partial(metadata._describe, is_wanted=is_wanted), metadata._observe):
            with opened(path) as stream:
                begin = read_label(stream, path).length
                try:
                    for record in _records(stream, path, begin):
                        take(record)
                except DamagedArchive as damage:
                    metadata.damage = damage
                except (struct.error, IndexError) as error:
                    metadata.damage = DamagedArchive(path, 0, f"a record that contradicts itself: {error}")
        return metadata

    def _observe(self, record: bytes) -> None:
        kind = _WORD.unpack_from(record, 4)[0]
        if kind not in (INSTANCES_V2, INSTANCES_V3, INSTANCES_CHANGED):
            return
        time_us, place = _time_us(record, 8, 2 if kind == INSTANCES_V2 else 3)
        domain, count = struct.unpack_from(">Ii", record, place)
        if domain in self.instances:
            names = _names(record, place + 8, count)
            self.instances[domain].observe(time_us, names, is_change=kind == INSTANCES_CHANGED)

    def _describe(self, record: bytes, is_wanted: Callable[[str], bool]) -> None:
        if _WORD.unpack_from(record, 4)[0] != DESCRIPTION:
            return
        pmid, type_, domain, semantics, units, count = struct.unpack_from(">IiIiIi", record, 8)
        self.described.add(pmid)
        place = 32
        for _ in range(count):
            (length,) = _WORD.unpack_from(record, place)
            name = record[place + 4 : place + 4 + length].decode("utf-8", "replace")
            place += 4 + length
            if is_wanted(name):
                self.metrics[name] = PcpMetric(pmid, name, type_, domain, semantics, Units.unpacked(units))
                self.instances.setdefault(domain, InstanceNames())


def pmid_text(pmid: int) -> str:
    """A metric's number as PCP's tools print it: domain, cluster and item."""
    return f"{pmid >> 22 & 0x1FF}.{pmid >> 10 & 0xFFF}.{pmid & 0x3FF}"


def read_values(
    path: Path, metrics: Collection[PcpMetric], described: Collection[int], undescribed: Counter[int]
) -> Iterator[Values]:
    """The records of one volume that have one of those metrics, and the marks; DamagedArchive where it breaks off.

    Metrics that are not `described` are counted in `undescribed`, by record.
    """
    types = {metric.pmid: metric.type for metric in metrics}
    with opened(path) as stream:
        label = read_label(stream, path)
        for record in _records(stream, path, label.length):
            try:
                values, pmids = _values(record, label.version, types)
            except (struct.error, IndexError, KeyError) as error:
                raise DamagedArchive(path, 0, f"a record that contradicts itself: {error}") from error
            undescribed.update(pmid for pmid in pmids if pmid not in described)
            if values.metrics or values.is_mark:
                yield values


def read_label(stream: BinaryIO, path: Path) -> Label:
    """The label at the beginning of any of the files."""
    try:
        head = stream.read(12)
        length, magic = struct.unpack_from(">II", head)
        version = MAGIC[magic]
        body = head + stream.read(length - 12)
        if len(body) != length or _WORD.unpack_from(body, length - 4)[0] != length:
            raise InputError(str(path), "its label is cut off", "a PCP archive")
        start_us, place = _time_us(body, 12, version)
    except (struct.error, KeyError):
        raise InputError(str(path), "no label of a PCP archive, version 2 or 3") from None
    except _BROKEN as error:
        raise InputError(str(path), f"cannot be read: {error}", "a PCP archive") from error
    place += 4 if version == 2 else 12  # the volume; from version 3 on features and space for more
    host_bytes, zone_bytes = (64, 40) if version == 2 else (256, 256)
    return Label(
        version, start_us, _string(body, place, host_bytes), _string(body, place + host_bytes, zone_bytes), length
    )


def find_archive(path: Path) -> Archive:
    """The archive a path belongs to: its base name or any of its files."""
    archive = _archive_at(path)
    match = FILE.fullmatch(path.name)
    if archive is None and match is not None:
        archive = _archive_at(path.with_name(match["base"]))
    if archive is None:
        raise InputError(str(path), "no .meta file with its volumes .0, .1, … beside it", "a PCP archive")
    return archive


def archives_below(directory: Path) -> list[Archive]:
    """Every archive in a directory and below."""
    result = []
    for path in sorted(directory.rglob("*.meta*")):
        match = FILE.fullmatch(path.name)
        if match is not None and match["part"] == "meta" and (archive := _archive_at(path.with_name(match["base"]))):
            result.append(archive)
    return list(dict.fromkeys(result))


def opened(path: Path) -> BinaryIO:
    """A file as it was before it was compressed."""
    packing = packing_of(bounded_input.head_of(path))
    if packing in (None, "gz"):
        return bounded_input.opened(path)
    try:
        if packing == "zst":
            import pyarrow as pa

            return cast(BinaryIO, pa.input_stream(bounded_input.opened_packed(path), compression="zstd"))
        openers: dict[str | None, Callable[..., Any]] = {"xz": lzma.open, "bz2": bz2.open}
        return cast(BinaryIO, openers[packing](bounded_input.opened_packed(path), "rb"))
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}", "a file of a PCP archive") from error


def packing_of(head: bytes) -> str | None:
    """How a file that begins like this is compressed."""
    return next((packing for start, packing in _PACKED.items() if head.startswith(start)), None)


def _archive_at(base: Path) -> Archive | None:
    meta: Path | None = None
    volumes: dict[int, Path] = {}
    if not base.parent.is_dir():
        return None
    for path in sorted(base.parent.iterdir()):
        match = FILE.fullmatch(path.name)
        if match is None or match["base"] != base.name:
            continue
        if match["part"] == "meta":
            meta = meta or path
        elif match["part"].isdecimal():
            volumes.setdefault(int(match["part"]), path)  # plain before compressed, while pmlogger packs one
    if meta is None or not volumes:
        return None
    return Archive(base, meta, tuple(volumes[number] for number in sorted(volumes)))


def _records(stream: BinaryIO, path: Path, offset: int) -> Iterator[bytes]:
    """Every record after the label, which ends at `offset`, with its leading length."""
    while True:
        try:
            head = stream.read(4)
            if not head:
                return
            length = _WORD.unpack(head)[0] if len(head) == 4 else 0
            if len(head) == 4 and not 12 <= length <= LARGEST_RECORD:
                raise DamagedArchive(path, offset, f"a record of {length} bytes")
            body = stream.read(length - 4) if len(head) == 4 else b""
        except _BROKEN as error:
            raise DamagedArchive(path, offset, f"cannot be read on: {error}") from error
        if len(head) + len(body) != length or len(head) < 4:
            raise DamagedArchive(path, offset, "the file ends within a record")
        if _WORD.unpack_from(body, length - 8)[0] != length:
            raise DamagedArchive(path, offset, "a record whose length is not the same at its end")
        yield head + body
        offset += length


def _values(record: bytes, version: int, types: Mapping[int, int]) -> tuple[Values, list[int]]:
    """The values of those types, and the numbers of all metrics in the record."""
    time_us, place = _time_us(record, 4, version)
    (count,) = _WORD.unpack_from(record, place)
    place += 4
    by_names: dict[int, dict[int, int | float]] = {}
    pmids = []
    for _ in range(count):
        pmid, size = struct.unpack_from(">Ii", record, place)
        pmids.append(pmid)
        place += 8
        if size <= 0:  # an error in place of values, and no word for their format
            if pmid in types:
                by_names[pmid] = {}
            continue
        if pmid in types:
            by_names[pmid] = _instances(record, place, size, types[pmid])
        place += 4 + 8 * size
    return Values(time_us, by_names, count == 0), pmids


def _instances(record: bytes, place: int, size: int, type_: int) -> dict[int, int | float]:
    (form,) = _WORD.unpack_from(record, place)
    if place + 4 + 8 * size > len(record):
        raise struct.error(f"{size} values in a record of {len(record)} bytes")
    numbers = struct.unpack_from(">" + "iI" * size, record, place + 4)
    instances, words = numbers[::2], numbers[1::2]
    if form == IN_PLACE:
        value_of = TYPES_IN_PLACE[type_].unpack_from
        return {instance: value_of(record, place + 8 + 8 * n)[0] for n, instance in enumerate(instances)}
    blocks = [4 * (word - OFFSET_BIAS_WORDS) for word in words]
    return {
        instance: TYPES_IN_BLOCK[record[block]].unpack_from(record, block + 4)[0]
        for instance, block in zip(instances, blocks, strict=True)
    }


def _time_us(record: bytes, place: int, version: int) -> tuple[int, int]:
    """A time stamp, and where it ends. Version 3 has the low word of its seconds first, and nanoseconds."""
    if version == 2:
        seconds, microseconds = struct.unpack_from(">II", record, place)
        return seconds * 1_000_000 + microseconds, place + 8
    low, high, nanoseconds = struct.unpack_from(">III", record, place)
    return ((high << 32) | low) * 1_000_000 + nanoseconds // 1000, place + 12


def _names(record: bytes, place: int, count: int) -> dict[int, str | None]:
    """Instance names; None for one that went."""
    numbers = struct.unpack_from(f">{count}i", record, place)
    offsets = struct.unpack_from(f">{count}i", record, place + 4 * count)
    table = place + 8 * count
    return {
        number: None if offset == DELETED else _string(record, table + offset, len(record) - 4 - table - offset)
        for number, offset in zip(numbers, offsets, strict=True)
    }


def _string(record: bytes, place: int, longest: int) -> str:
    return record[place : place + longest].partition(b"\0")[0].decode("utf-8", "replace")

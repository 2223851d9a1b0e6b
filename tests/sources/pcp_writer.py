"""Writes small PCP archives, version 2 or 3, byte by byte as LOGARCHIVE(5) describes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

I32, U32, I64, U64, FLOAT, DOUBLE, STRING = range(7)
COUNTER, INSTANT = 1, 3
DISKS = 0x0F000001
IN_BLOCK = {I64: ">q", U64: ">Q", FLOAT: ">f", DOUBLE: ">d"}
S = 1_000_000


def units(space: int = 0, time: int = 0, count: int = 0, scales: tuple[int, int, int] = (0, 0, 0)) -> int:
    word = 0
    for value in (space, time, count, *scales):
        word = word << 4 | value & 0xF
    return word << 8


KBYTE, MSEC, TIMES = units(space=1, scales=(1, 0, 0)), units(time=1, scales=(0, 2, 0)), units(count=1)


@dataclass
class Writer:
    """One archive on its way to disk."""

    version: int = 2
    host: str = "oss1"
    start_us: int = 1_700_000_000 * S
    meta: bytes = b""
    volumes: dict[int, bytes] = field(default_factory=lambda: {0: b""})
    types: dict[int, int] = field(default_factory=dict)
    volume: int = 0

    def describe(
        self, pmid: int, name: str, type_: int = U64, unit: int = TIMES, semantics: int = COUNTER, domain: int = DISKS
    ) -> None:
        self.types[pmid] = type_
        text = name.encode()
        body = struct.pack(">IIiIiIiI", 1, pmid, type_, domain, semantics, unit, 1, len(text)) + text
        self.meta += framed(body)

    def disks(self) -> Writer:
        """The eight counters of today."""
        for number, (name, type_, unit) in enumerate([
            ("read", U64, TIMES), ("write", U64, TIMES), ("read_bytes", U64, KBYTE), ("write_bytes", U64, KBYTE),
            ("read_rawactive", U32, MSEC), ("write_rawactive", U32, MSEC), ("avactive", U32, MSEC), ("aveq", U32, MSEC),
        ]):  # fmt: skip
            self.describe(100 + number, f"disk.dev.{name}", type_, unit)
        return self

    def names(
        self, time_us: int, names: Mapping[int, str | None], *, changed: bool = False, domain: int = DISKS
    ) -> None:
        table, offsets = b"", []
        for name in names.values():
            offsets.append(-1 if name is None else len(table))
            table += b"" if name is None else name.encode() + b"\0"
        tag = 6 if changed else 2 if self.version == 2 else 5
        body = struct.pack(">I", tag) + self.time(time_us) + struct.pack(">Ii", domain, len(names))
        body += struct.pack(f">{len(names)}i", *names) + struct.pack(f">{len(names)}i", *offsets) + table
        self.meta += framed(body)

    def values(self, time_us: int, metrics: Mapping[int, Mapping[int, float] | int]) -> None:
        """One record; a metric whose value is a number could not be fetched, for that reason."""
        body = self.time(time_us) + struct.pack(">I", len(metrics))
        words = len(body) // 4 + 1 + sum(2 if isinstance(v, int) else 3 + 2 * len(v) for v in metrics.values())
        blocks = b""
        for pmid, metric in metrics.items():
            if isinstance(metric, int):
                body += struct.pack(">Ii", pmid, metric)
                continue
            type_ = self.types.get(pmid, U32)
            body += struct.pack(">IiI", pmid, len(metric), type_ in IN_BLOCK)
            for instance, value in metric.items():
                if type_ in IN_BLOCK:
                    body += struct.pack(">iI", instance, words + len(blocks) // 4 + 2)
                    packed = struct.pack(IN_BLOCK[type_], value)
                    blocks += struct.pack(">I", type_ << 24 | len(packed) + 4) + packed
                else:
                    body += struct.pack(">ii" if type_ == I32 else ">iI", instance, int(value))
        self.volumes[self.volume] = self.volumes.get(self.volume, b"") + framed(body + blocks)

    def sample(self, time_us: int, counts: Mapping[int, int]) -> None:
        """All eight counters of each disk, in proportion to a count: 1 read and 2 writes of 4 and 8 KiB, 3 ms busy."""
        worths = (1, 2, 4, 16, 1, 2, 3, 5)
        self.values(time_us, {
            100 + number: {instance: count * worth for instance, count in counts.items()}
            for number, worth in enumerate(worths)
        })  # fmt: skip

    def mark(self, time_us: int) -> None:
        self.values(time_us, {})

    def time(self, time_us: int) -> bytes:
        seconds, microseconds = divmod(time_us, S)
        if self.version == 2:
            return struct.pack(">II", seconds, microseconds)
        return struct.pack(">III", seconds & 0xFFFFFFFF, seconds >> 32, microseconds * 1000)

    def label(self, part: int) -> bytes:
        magic = 0x50052600 | self.version
        body = struct.pack(">II", magic, 4711) + self.time(self.start_us) + struct.pack(">i", part)
        if self.version == 2:
            return framed(body + struct.pack("64s40s", self.host.encode(), b"UTC"))
        return framed(body + struct.pack(">II256s256s256s", 0, 0, self.host.encode(), b"UTC", b":UTC"))

    def write(self, base: Path) -> Path:
        """The files; returns the base name."""
        base.parent.mkdir(parents=True, exist_ok=True)
        beside(base, ".meta").write_bytes(self.label(-1) + self.meta)
        beside(base, ".index").write_bytes(self.label(-2))
        for number, content in self.volumes.items():
            beside(base, f".{number}").write_bytes(self.label(number) + content)
        return base


def framed(body: bytes) -> bytes:
    length = struct.pack(">I", len(body) + 8)
    return length + body + length


def beside(base: Path, ending: str) -> Path:
    return base.with_name(base.name + ending)

"""Copies of a real Darshan log that differ in their job, or are damaged within what is packed in them."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

HEADER: Final = struct.Struct("<8sqB7xQ")  # format 3.41: version, magic number, compression, partial flags
MAPS: Final = struct.Struct("<130Q")  # offset and length of the names and of 64 modules
JOB: Final = struct.Struct("<7q")  # uid, start (s, ns), end (s, ns), processes, job id
JOB_OFFSET: Final = 1328
UID, START_S, START_NS, END_S, END_NS, PROCESSES, JOB_ID = range(7)


@dataclass(frozen=True)
class SplitLog:
    """A log of format 3.41 in its parts."""

    head: bytes
    maps: tuple[int, ...]
    versions: bytes
    job: bytes  # unpacked
    rest: bytes  # names and modules, packed

    @classmethod
    def of(cls, content: bytes) -> SplitLog:
        """The parts of a whole log."""
        maps = MAPS.unpack_from(content, HEADER.size)
        names_at = min(offset for offset in maps[::2] if offset)
        return cls(
            content[: HEADER.size],
            maps,
            content[HEADER.size + MAPS.size : JOB_OFFSET],
            zlib.decompress(content[JOB_OFFSET:names_at]),
            content[names_at:],
        )

    def copy(self, changed: Mapping[int, int]) -> bytes:
        """The log with other numbers in its job record, by their places."""
        numbers = list(JOB.unpack_from(self.job))
        for place, value in changed.items():
            numbers[place] = value
        job = zlib.compress(JOB.pack(*numbers) + self.job[JOB.size :])
        old = min(offset for offset in self.maps[::2] if offset)
        moved = JOB_OFFSET + len(job) - old
        maps = [value + moved if place % 2 == 0 and value else value for place, value in enumerate(self.maps)]
        return self.head + MAPS.pack(*maps) + self.versions + job + self.rest

    def regions(self) -> dict[int, bytes]:
        """What is packed after the job, by number: 0 the names, then the modules one higher than Darshan counts."""
        first = min(offset for offset in self.maps[::2] if offset)
        pairs = zip(self.maps[::2], self.maps[1::2], strict=True)
        return {
            number: _inflated(self.rest[offset - first : offset - first + length])
            for number, (offset, length) in enumerate(pairs)
            if length
        }

    def rewritten(self, regions: Mapping[int, bytes]) -> bytes:
        """The log with other names and modules, whole checksums and all."""
        job = zlib.compress(self.job)
        maps, packed, place = [0] * len(self.maps), [], JOB_OFFSET + len(job)
        for number, content in sorted(regions.items()):
            packed.append(zlib.compress(content))
            maps[2 * number : 2 * number + 2] = [place, len(packed[-1])]
            place += len(packed[-1])
        return self.head + MAPS.pack(*maps) + self.versions + job + b"".join(packed)


def _inflated(packed: bytes) -> bytes:
    """Several ranks may have written a stream each."""
    content = b""
    while packed:
        stream = zlib.decompressobj()
        content += stream.decompress(packed)
        packed = stream.unused_data
    return content


WORDS: Final = (0, 1, -1, -2, 7, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 62, -(1 << 63), (1 << 63) - 1)


def damaged_inside(content: bytes, chance: random.Random) -> bytes:
    """A log whose header, or one of whose unpacked parts, holds other numbers: its checksums are right."""
    log = SplitLog.of(content)
    if chance.random() < 0.25:
        return _with_other_words(content, range(8, JOB_OFFSET - 8), chance)
    regions = log.regions()
    number = chance.choice(sorted(regions))
    damage = chance.choice(DAMAGES)
    return log.rewritten({**regions, number: damage(regions[number], chance)})


def _with_other_words(content: bytes, places: range, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.choice(places) // 8 * 8
        struct.pack_into("<q", damaged, place, chance.choice((*WORDS, chance.getrandbits(63))))
    return bytes(damaged)


def _other_words(content: bytes, chance: random.Random) -> bytes:
    return _with_other_words(content, range(len(content) - 8), chance) if len(content) > 16 else content


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _twice(content: bytes, chance: random.Random) -> bytes:
    return content * chance.choice((2, 50))


DAMAGES: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (_other_words, _other_words, _cut, _twice)

"""Copies of a real Darshan log that differ in their job: as many distinct logs as a test needs."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
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

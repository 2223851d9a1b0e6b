"""Packed parts of a Darshan log, unpacked with Python's own zlib.

Job, names, and the records of modules that lie in the log as they do in memory are taken from here: the library needs
four times as long to unpack the modules of a small log, and asserts on some damaged parts.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from iolens.errors import InputError

_ZLIB, _BZIP2, _PLAIN = range(3)
_BLOCK: Final = 1 << 14  # bytes unpacked at once: what is left of them is copied at the end of each stream
_LARGEST_MODULE: Final = 64 << 20  # bytes of a module's records that are unpacked at once


class Region(NamedTuple):
    """Where a part of a log lies in its file; bytes."""

    offset: int
    length: int


def _bzip2_stream() -> Any:
    from bz2 import BZ2Decompressor  # late: few logs are packed so

    return BZ2Decompressor()


@dataclass(frozen=True, slots=True)
class PackedLog:
    """The bytes of a log's file, and how its parts are packed."""

    content: Any
    compression: int
    place: str

    def inflated(self, region: Region, what: str, longest: int) -> bytes:
        """One region, unpacked; several ranks may have written a packed stream each. InputError for a damaged one."""
        if not region.length:
            return b""
        if region.offset + region.length > len(self.content):
            raise InputError(self.place, f"cut off: its {what} should end at byte {region.offset + region.length}")
        packed = bytes(self.content[region.offset : region.offset + region.length])
        if self.compression == _PLAIN:
            return packed[:longest]
        pieces: list[bytes] = []
        left: bytes | memoryview = packed if len(packed) <= _BLOCK else memoryview(packed)
        try:
            while left and longest > 0:
                stream: Any = zlib.decompressobj() if self.compression == _ZLIB else _bzip2_stream()
                while left and longest > 0 and not stream.eof:
                    block = left[:_BLOCK]
                    pieces.append(stream.decompress(block, longest))
                    longest -= len(pieces[-1])
                    left = left[len(block) - len(stream.unused_data) :]
                if not stream.eof and longest > 0:
                    raise InputError(self.place, f"damaged: its {what} break off")
        except (zlib.error, OSError) as error:
            raise InputError(self.place, f"damaged: its {what} cannot be unpacked ({error})") from error
        return b"".join(pieces)

    def records(self, region: Region) -> bytes | None:
        """All of a module; None where it is damaged, cut or large: the library then reads it as far as it can."""
        if self.compression != _ZLIB:
            return None
        try:
            records = self.inflated(region, "records", _LARGEST_MODULE)
        except InputError:
            return None
        return records if len(records) < _LARGEST_MODULE else None

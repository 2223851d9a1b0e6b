"""The cache study (SPEC N7; paper N, Fig. 12): a file that fits into memory and one that does not.

Reads: a second reading that is much faster than one of a file dropped from the page cache came from memory. Writes: one
that returns much faster than with its fsync was kept in memory and written later (write-back).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from iolens.errors import UsageError

MUCH: Final = 2.0  # times as fast: memory, not the disk
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CachedFile:
    """One size of file in one place; medians of the repeats, bytes per second."""

    place: str | None
    file_bytes: int
    memory_bytes: int | None  # that could hold it
    runs: int
    write_bytes_per_s: float | None  # until the last write returned
    synced_write_bytes_per_s: float | None  # with the fsync
    read_again_bytes_per_s: float | None  # just after it was read
    read_dropped_bytes_per_s: float | None  # after the page cache was dropped

    @property
    def fits(self) -> bool | None:
        """Whether memory can hold it; None: not known."""
        return None if self.memory_bytes is None else self.file_bytes < self.memory_bytes

    @property
    def read_factor(self) -> float | None:
        """How much faster it is read again than from the disk."""
        return _ratio(self.read_again_bytes_per_s, self.read_dropped_bytes_per_s)

    @property
    def write_factor(self) -> float | None:
        """How much faster a write returns than it is on disk."""
        return _ratio(self.write_bytes_per_s, self.synced_write_bytes_per_s)


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """What the files of a place say of its policies; None: they do not say."""

    place: str | None
    reads_cached: bool | None  # a file that fits is read again from memory
    large_reads_cached: bool | None  # so is one that does not fit
    write_back: bool | None
    words: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStudy:
    """Files and policies of all places."""

    study: str | None
    hosts: list[str]
    files: list[CachedFile]
    policies: list[CachePolicy]
    warnings: list[str]


def cache_study(rows: Sequence[Row]) -> CacheStudy:
    """From the rows of a cache study."""
    pairs = dict.fromkeys((row.get("place"), row.get("aggregate_bytes")) for row in rows)
    files = [_file(place, size, rows) for place, size in pairs if size]
    if not files:
        raise UsageError("no run of this study has a file size")
    policies = [_policy(place, files) for place in dict.fromkeys(file.place for file in files)]
    hosts = list(dict.fromkeys(str(row["host"]) for row in rows if row.get("host")))
    studies = {str(row["sweep"]) for row in rows if row.get("sweep")}
    warnings = [] if any(file.fits is False for file in files) else ["no file is larger than memory: see --large"]
    return CacheStudy(
        study=studies.pop() if len(studies) == 1 else None,
        hosts=hosts,
        files=files,
        policies=policies,
        warnings=warnings,
    )


def _file(place: str | None, size: int, rows: Sequence[Row]) -> CachedFile:
    mine = [row for row in rows if row.get("place") == place and row.get("aggregate_bytes") == size]

    def rate(**values: object) -> float | None:
        rates = [
            row["bytes"] / row["duration_s"]
            for row in mine
            if row.get("bytes")
            and row.get("duration_s")
            and all(row.get(name) == value for name, value in values.items())
        ]
        return float(median(rates)) if rates else None

    return CachedFile(
        place=place,
        file_bytes=size,
        memory_bytes=min((row["memory_bytes"] for row in mine if row.get("memory_bytes")), default=None),
        runs=len({row.get("iteration") for row in mine}),
        write_bytes_per_s=rate(direction="write", fsync=False),
        synced_write_bytes_per_s=rate(direction="write", fsync=True),
        read_again_bytes_per_s=rate(direction="read", page_cache="warm"),
        read_dropped_bytes_per_s=rate(direction="read", page_cache="dropped"),
    )


def _policy(place: str | None, files: Sequence[CachedFile]) -> CachePolicy:
    mine = [file for file in files if file.place == place]
    small = next((file for file in mine if file.fits), None)
    large = next((file for file in mine if file.fits is False), None)
    reads = _is_much(small.read_factor if small else None)
    large_reads = _is_much(large.read_factor if large else None)
    write_back = _is_much(small.write_factor if small else None)
    return CachePolicy(place, reads, large_reads, write_back, list(_words(small, large)))


def _words(small: CachedFile | None, large: CachedFile | None) -> list[str]:
    words = []
    if small is not None and small.read_factor is not None:
        source = "it came from memory" if _is_much(small.read_factor) else "memory made little difference"
        words.append(
            f"A file that fits into memory is read again {small.read_factor:.1f} times as fast as from disk: {source}."
        )
    if large is not None and large.read_factor is not None:
        source = "part of it came from memory" if _is_much(large.read_factor) else "it came from the disk again"
        words.append(
            f"A file that does not fit is read again {large.read_factor:.1f} times as fast as from disk: {source}."
        )
    if small is not None and small.write_factor is not None:
        policy = (
            "writes return before they are on disk (write-back)"
            if _is_much(small.write_factor)
            else "writes return about when they are on disk (as with write-through)"
        )
        words.append(f"A write returns {small.write_factor:.1f} times as fast as with its fsync: {policy}.")
    return words


def _is_much(factor: float | None) -> bool | None:
    return None if factor is None else factor >= MUCH


def _ratio(value: float | None, reference: float | None) -> float | None:
    return None if value is None or not reference else value / reference

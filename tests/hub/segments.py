"""Segments of made-up agents, and what they add up to."""

from __future__ import annotations

from pathlib import Path

from iolens.records import CounterSet, Sample
from iolens.sources.spool import SegmentHeader, Tick, encode_header, encode_tick

S = 1_000_000
T0 = 1_700_000_000 * S
RUN = "20260105T000000.000000-00000001"


def sample(host: str, number: int) -> Sample:
    """The counters of one OST: 10 bytes more with each tick."""
    time_us = T0 + number * 5 * S
    sets = {"": CounterSet({"write_bytes": 10 * number, "write_ops": number})}
    return Sample("target_io", "fs", f"fs-{host}", time_us, time_us, sets, {"target_kind": "ost"})


def content(host: str, numbers: range, sequence: int = 1, run: str = RUN) -> bytes:
    """A whole segment."""
    ticks = (encode_tick(Tick(T0 + number * 5 * S, [sample(host, number)])) for number in numbers)
    return encode_header(SegmentHeader(host, run, sequence)) + b"".join(ticks)


def stem(host: str, sequence: int = 1, run: str = RUN) -> str:
    """Its name."""
    return SegmentHeader(host, run, sequence).stem


def spool_of(folder: Path, host: str, *pieces: range) -> Path:
    """A spool with a segment for each stretch of ticks."""
    spool = folder / host
    spool.mkdir(parents=True, exist_ok=True, mode=0o700)
    for sequence, numbers in enumerate(pieces, 1):
        (spool / f"{stem(host, sequence)}.seg").write_bytes(content(host, numbers, sequence))
    return spool

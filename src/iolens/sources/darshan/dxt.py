"""Traces of single accesses (DXT) of a Darshan log, for whoever asks: streamed from a child process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from iolens.sources.darshan.isolated import stream

if TYPE_CHECKING:
    from iolens.sources.darshan.traces import TraceChunk


def segments(path: str | Path) -> Iterator[TraceChunk]:
    """Every traced access of a log, in chunks, read in a child process; InputError where it cannot be read on.

    Chunks come in the order of the log: by module, record (file and rank), writes, reads. A log may have no trace.
    """
    return stream("dxt", path)

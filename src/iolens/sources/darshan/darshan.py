"""Darshan logs, one capture each: what an application did to its files, summed per run, with files, ranks and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Capture, Item, RowMark
from iolens.sources.darshan.isolated import DarshanReader, problem_of
from iolens.sources.darshan.messages import LogRequest, RefusedLog, RowOptions
from iolens.sources.darshan.settings import row_options
from iolens.sources.reading.bounded_input import content_hash
from iolens.sources.reading.captures import read_each
from iolens.sources.reading.options import ReadOptions


class Darshan:
    """Logs as Darshan's runtime, darshan-convert or darshan-merge writes them."""

    name = "darshan"
    summary = "Darshan logs, 3.0 to 3.5: runs of applications with their files, ranks and heat maps"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Darshan's magic number, in either byte order; or a file that is called a log."""
        from iolens.sources.darshan.log import magic_of

        return magic_of(head) or (".darshan" in path.name and path.is_file())  # .darshan.gz is a log of Darshan 2

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per log, in the order of the paths; many small ones may be read together."""
        for_rows = replace(row_options(options, "configuration"), in_arrow=True)
        together = partial(_gathered_items, options=for_rows)
        for path in paths:
            hashes, refused = read_each([path], _content_hash)
            yield from refused
            place = str(path)
            for run_id in hashes:
                items = partial(_items, [LogRequest(place, place, run_id)], for_rows)
                mark = RowMark("runs", "run_id", run_id)
                yield Capture(place, f"file/{run_id}", items, row=mark, together=together)


SOURCE: Final = Darshan()


def _content_hash(path: Path) -> str:
    size, run_id = content_hash(path)
    if not size:
        raise InputError(str(path), "empty file", "a Darshan log")
    return run_id


def _gathered_items(names: Sequence[tuple[str, str]], options: RowOptions) -> Iterator[Item]:
    return _items([LogRequest(origin, origin, run_id) for origin, run_id in names], options)


def _items(requests: Sequence[LogRequest], options: RowOptions) -> Iterator[Item]:
    """The rows of all logs that can be read, and a problem for each of the others."""
    try:
        reader = _readers.pop()  # threads may read at the same time, each with a child
    except IndexError:
        reader = DarshanReader()
    try:
        for item in reader.read(requests, options):
            yield problem_of(item) if isinstance(item, RefusedLog) else item
    finally:
        _readers.append(reader)


_readers: Final[list[DarshanReader]] = []  # those that are free; their children end with this process


def stop_readers() -> None:
    """End the children now; the next log starts another."""
    while _readers:
        _readers.pop().close()

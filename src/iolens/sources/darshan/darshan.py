"""Darshan logs, one capture each: what an application did to its files, summed per run, with files, ranks and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from iolens.records import Item
from iolens.sources.darshan.isolated import LogReader, LogRequest, RefusedLog
from iolens.sources.darshan.settings import row_options
from iolens.sources.reading.batches import within
from iolens.sources.reading.captures import FileSource, content_identity, refuse_empty
from iolens.sources.reading.options import ReadOptions


class Darshan(FileSource):
    """Logs as Darshan's runtime, darshan-convert or darshan-merge writes them."""

    name = "darshan"
    summary = "Darshan logs, 3.0 to 3.5: runs of applications with their files, ranks and heat maps"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Darshan's magic number, in either byte order; or a file that is called a log."""
        from iolens.sources.darshan.log import magic_of

        return magic_of(head) or (path.suffix == ".darshan" and path.is_file())

    def open(self, path: Path, options: ReadOptions) -> DarshanLog:
        """The log, if it can be read and the settings are right."""
        refuse_empty(path, "a Darshan log")
        row_options(options, str(path))
        return DarshanLog(path, options, content_identity(path))


SOURCE: Final = Darshan()


@dataclass(frozen=True)
class DarshanLog:
    """One log."""

    path: Path
    options: ReadOptions
    identity: str

    def items(self) -> Iterator[Item]:
        """Its rows; InputError where it cannot be read."""
        return within(self._rows(), self.options)

    def _rows(self) -> Iterator[Item]:
        place = str(self.path)
        for item in _reader().read([LogRequest(place, place)], row_options(self.options, place)):
            if isinstance(item, RefusedLog):
                raise item.error
            yield item


@cache
def _reader() -> LogReader:
    """The child of this process; it ends with it."""
    return LogReader()

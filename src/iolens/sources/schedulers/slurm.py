"""Jobs of Slurm: saved output of `sacct -P`, `--parsable` or `--json`, whatever its columns.

`sacct` prints local times without a zone, so the zone must be stated; JSON has seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.records import Item
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import numbered_lines, unpacked, unpacked_head
from iolens.sources.reading.captures import FileSource, refuse_empty
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import supplied_identity, zone_name
from iolens.sources.schedulers.job_records import checked_settings
from iolens.sources.schedulers.sacct_columns import header_of
from iolens.sources.schedulers.sacct_json import json_items
from iolens.sources.schedulers.sacct_text import SacctText, is_record

SETTINGS: Final = {"columns": list, "cluster": str, "timezone": str, "delimiter": str}
_JOBS: Final = re.compile(rb'"jobs"\s*+:\s*+\[')
_OF_SACCT: Final = (b'"allocation_nodes"', b"openapi/dbv0", b'"sacct"', b"openapi/slurmdbd", b"slurmdbd/")
_LINES: Final = 20  # what a heading may stand behind


class Slurm(FileSource):
    """Saved output of `sacct`."""

    name = "slurm"
    summary = "jobs of Slurm: saved output of `sacct -P` or `sacct --json`; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """A heading or a record of `sacct` between bars, or the JSON of it."""
        text = unpacked(head)
        if is_json(text):
            return _JOBS.search(text) is not None and any(mark in text for mark in _OF_SACCT)
        lines = text[: 1 << 16].decode("utf-8", "replace").splitlines()[:_LINES]
        first = next((line for line in lines if line.count("|") > 2), "").split("|")
        return header_of(first) is not None or (len(first) > 3 and is_record(first))

    def open(self, path: Path, options: ReadOptions) -> SavedSacct:
        """The file, if it can be read and the settings are right."""
        refuse_empty(path, "output of `sacct -P` or `sacct --json`")
        checked_settings(options.settings, self.name, SETTINGS, str(path))
        supplied = {name: options.settings.get(name) for name in ("columns", "cluster", "delimiter")}
        identity = supplied_identity(
            path,
            **supplied,
            filesystem=options.filesystem,
            timezone=zone_name(options, options.filesystem),
            since=options.since,
            until=options.until,
        )
        return SavedSacct(path, options, identity)


SOURCE: Final = Slurm()


@dataclass(frozen=True)
class SavedSacct:
    """One output of `sacct` in a file."""

    path: Path
    options: ReadOptions
    identity: str

    def items(self) -> Iterator[Item]:
        """Its jobs."""
        if is_json(unpacked_head(self.path)):
            return within(json_items(self.path, self.options), self.options)
        return within(SacctText(str(self.path), self.options).items(numbered_lines(self.path)), self.options)


def is_json(head: bytes) -> bool:
    """Whether a text begins as an object does."""
    return head.lstrip().startswith(b"{")

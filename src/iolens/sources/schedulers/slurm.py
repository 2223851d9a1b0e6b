"""Jobs of Slurm: saved output of `sacct -P`, `--parsable` or `--json`, whatever its columns.

`sacct` prints local times without a zone, so the zone must be stated; JSON has seconds since 1970.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from iolens.records import Capture, Item
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import numbered_lines, unpacked, unpacked_head
from iolens.sources.reading.captures import FileSource, read_each, refuse_empty
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import supplied_identity
from iolens.sources.schedulers.job_lines import job_identity
from iolens.sources.schedulers.job_records import checked_settings
from iolens.sources.schedulers.sacct_columns import header_of
from iolens.sources.schedulers.sacct_command import query_of
from iolens.sources.schedulers.sacct_json import json_items
from iolens.sources.schedulers.sacct_text import SacctText, is_record

SETTINGS: Final = {"columns": list, "cluster": str, "timezone": str, "delimiter": str, "timeout": str, "overlap": str}
_JOBS: Final = re.compile(rb'"jobs"\s*+:\s*+\[')
_OF_SACCT: Final = (b'"allocation_nodes"', b"openapi/dbv0", b'"sacct"', b"openapi/slurmdbd", b"slurmdbd/")
_LINES: Final = 20  # what a heading may stand behind


class Slurm(FileSource):
    """Saved output of `sacct`."""

    name = "slurm"
    summary = "jobs of Slurm: saved output of `sacct -P` or `sacct --json`, plain or gzip; slurm:// runs sacct"
    schemes = ("slurm",)
    continues = True

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
        identity = job_identity(path, options, "columns", "cluster", "delimiter")
        return SavedSacct(path, options, identity)

    def url_captures(self, urls: Sequence[str], options: ReadOptions) -> Iterator[Capture]:
        """What `sacct` prints now, of `slurm://` or `slurm://CLUSTER`; the same output again is the same capture."""
        runs, refused = read_each(urls, partial(self._run, options=options))
        yield from refused
        for run in runs:
            yield Capture(run.place, run.identity, run.items)

    def _run(self, url: str, options: ReadOptions) -> SavedSacct:
        checked_settings(options.settings, self.name, SETTINGS, url)
        query = query_of(url, options)
        folder = Path(tempfile.mkdtemp(prefix="iolens-sacct-"))
        try:
            path = query.run(folder)
            own = {name: value for name, value in options.settings.items() if name == "cluster"}
            read = ReadOptions(filesystem=options.filesystem, timezone="UTC", settings=own)
            run = SavedSacct(path, read, supplied_identity(path, filesystem=options.filesystem, **own), url)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)  # the store may read it again until then
        return run


SOURCE: Final = Slurm()


@dataclass(frozen=True)
class SavedSacct:
    """One output of `sacct` in a file; `place` is what messages call it, if not by its path."""

    path: Path
    options: ReadOptions
    identity: str
    place: str = ""

    def items(self) -> Iterator[Item]:
        """Its jobs."""
        if is_json(unpacked_head(self.path)):
            return within(json_items(self.path, self.options), self.options)
        return within(
            SacctText(self.place or str(self.path), self.options).items(numbered_lines(self.path)), self.options
        )


def is_json(head: bytes) -> bool:
    """Whether a text begins as an object does."""
    return head.lstrip().startswith(b"{")

"""Parts of answers that were made before, beside the tables of a store: `parts/FORM-VERSION/DAYS/KEY.part`.

A key is a digest of all that a part depends on: its form, the file system and what narrows its rows, its days, the
question's own parameters, and the data files of those days, whose names never come again with other content. So an
entry is never out of date; one that nobody asks for any more is removed by `store vacuum`. A file is a digest of
its path and of the rest, 8 bytes without a meaning, and the part in its written form. Nothing is synced: what a crash
tore does not match its digest, and is made again. Models of tails and whole answers, which depend on more than some
days, are below `parts/FORM-VERSION/any/`.

`kept/FORM-VERSION/DAY/KEY.part` are parts of days whose raw rows `store retain` drops: they are all that is left of
those days, so that they depend on no data file, are synced, and nothing removes them.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs

from iolens.part_form import PartForm, PartFormError
from iolens.store.durable import make_directory, sync_all
from iolens.store.tables import Tables

FOLDER: Final = "parts"
KEPT: Final = "kept"
DIGEST_BYTES = 32
UNUSED: Final = bytes(8)  # earlier versions counted rows of other sources here
USED_EVERY_S: Final = 86_400.0  # how often the time of an entry is set to that of its last use


@dataclass(frozen=True, slots=True)
class PartEntry:
    """A file of the memory."""

    path: str
    form: str
    bytes: int
    used_s: float  # since 1970


@dataclass(frozen=True, slots=True)
class PartMemory:
    """The parts of one store; `fresh`: only those of days that have no rows any more are used."""

    tables: Tables
    fresh: bool = False

    def path(self, form: PartForm, days: str, depends_on: object, folder: str = FOLDER) -> str:
        """Where the part of some days is, or would be."""
        revision = [form.revision] if form.revision and folder != KEPT else []
        text = json.dumps([form.name, form.version, *revision, days, depends_on], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:40]
        return f"{folder}/{form.name}-{form.version}/{days}/{key}.part"

    def kept_days(self, form: PartForm) -> set[date]:
        """Days of which parts were kept for good."""
        return {
            date.fromisoformat(info.path.split("/")[-2]) for info in self._files(f"{KEPT}/{form.name}-{form.version}")
        }

    def keeps_any(self) -> bool:
        """Whether parts of any day were kept for good."""
        return next(self._files(KEPT), None) is not None

    def keep(self, form: PartForm, path: str, part: Any) -> None:
        """For good: on disk when this returns."""
        self._put(path, self._content(form, path, part))
        if self.tables.is_local:
            sync_all([self.tables.folder / path])

    def holds(self, path: str) -> bool:
        """Whether there is an entry, whatever its state."""
        if self.tables.is_local:
            return (self.tables.folder / path).exists()
        return bool(self.tables.filesystem("").get_file_info(path).type == pafs.FileType.File)

    def read(self, form: PartForm, path: str) -> Any:
        """The part; None where there is none, or a damaged one."""
        try:
            data = memoryview(self.tables.read_bytes("", path))
            digest, rest = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
            if _digest(path, rest) != digest:
                return None
            part = form.read(rest[len(UNUSED) :])
        except (OSError, PartFormError):
            return None
        self._note_use(path)
        return part

    def write(self, form: PartForm, path: str, part: Any) -> None:
        """Keep a part; a store that cannot be written works without."""
        with suppress(OSError, pa.ArrowException):
            self._put(path, self._content(form, path, part))

    def _content(self, form: PartForm, path: str, part: Any) -> bytes:
        rest = UNUSED + form.written(part)
        return _digest(path, rest) + rest

    def entries(self, folder: str = FOLDER) -> Iterator[PartEntry]:
        """All there are, of whatever form."""
        for info in self._files(folder):
            yield PartEntry(info.path, info.path.split("/")[1], info.size, info.mtime_ns / 1e9)

    def _files(self, folder: str) -> Iterator[Any]:
        if self.tables.is_local and not (self.tables.folder / folder).exists():
            return
        chosen = pafs.FileSelector(folder, recursive=True, allow_not_found=True)
        yield from (info for info in self.tables.filesystem("").get_file_info(chosen) if info.is_file)

    def remove(self, entry: PartEntry) -> None:
        """Whoever asks makes it again."""
        if self.tables.is_local:
            (self.tables.folder / entry.path).unlink(missing_ok=True)
        else:
            self.tables.filesystem("").delete_file(entry.path)

    def _put(self, path: str, data: bytes) -> None:
        if not self.tables.is_local:
            with self.tables.filesystem("").open_output_stream(path) as stream:
                stream.write(data)
            return
        file = self.tables.folder / path
        make_directory(file.parent)
        beside = file.with_name(f".{file.name}.{os.getpid()}.new")
        try:
            beside.write_bytes(data)
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)

    def _note_use(self, path: str) -> None:
        if self.tables.is_local:
            file = self.tables.folder / path
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > USED_EVERY_S:
                    os.utime(file)


def _digest(path: str, rest: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(path.encode())
    digest.update(rest)
    return digest.digest()

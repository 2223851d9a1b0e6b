"""Files and names that outlive a power cut, and `iolens-store.json` at the top of a store."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from iolens.schema import SCHEMA_VERSION

# Files and names that outlive a power cut -----------------------------------------------------------------------------
# On disk before anybody relies on them.
#
# A new file is safe once its content and then the directory that names it were synced; a new directory likewise.

SYNCS_AT_ONCE: Final = 16  # the file system writes its journal once for all that wait
_NO_DIRECTORY_SYNC: Final = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # some network file systems have none


def sync_file(path: Path) -> None:
    """Have the content of a file on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make new and changed names in a directory outlive a crash."""
    try:
        sync_file(directory)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def sync_all(files: Iterable[Path]) -> None:
    """Have new files on disk: first their content, then the directories that name them."""
    paths = list(files)
    for sync, wanted in ((sync_file, paths), (sync_directory, list({path.parent for path in paths}))):
        if len(wanted) > 1:
            with ThreadPoolExecutor(min(len(wanted), SYNCS_AT_ONCE)) as pool:
                list(pool.map(sync, wanted))
        elif wanted:
            sync(wanted[0])


def make_directory(directory: Path) -> None:
    """The directory and those above it, each on disk before the next is made."""
    if directory.is_dir():
        return
    if directory.parent != directory:
        make_directory(directory.parent)
    try:
        directory.mkdir(exist_ok=True)  # others may make it at the same time
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory)) from error
    sync_directory(directory.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Exchange the content of a file at once: after a crash it is the old or the new, never half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync_directory(path.parent)


# `iolens-store.json` at the top of a store ----------------------------------------------------------------------------
# That it is one, and how far its books in `batches` had come.
#
# The books say what every other table must hold; this says what the books must hold. It is written after them, so it
# may lag behind, and never runs ahead.

MARKER: Final = "iolens-store.json"


@dataclass(frozen=True, slots=True)
class Marker:
    """An entry of the log of `batches` that was on disk: its version and the checksum of its text."""

    batches_version: int
    batches_entry_sha256: str
    schema_version: int = SCHEMA_VERSION

    def holds(self, checksum: str | None) -> bool:
        """Whether that is the entry; one that was cleared away behind a checkpoint was."""
        return checksum in (None, self.batches_entry_sha256)

    def encoded(self) -> bytes:
        """As it is stored."""
        return json.dumps(asdict(self), indent=2).encode() + b"\n"

    @classmethod
    def decoded(cls, content: bytes) -> Marker:
        """From what is stored; ValueError when that is no marker."""
        try:
            result = json.loads(content)
            return cls(
                int(result["batches_version"]), str(result["batches_entry_sha256"]), int(result["schema_version"])
            )
        except (LookupError, TypeError) as error:
            raise ValueError(f"no marker of a store: {error}") from error

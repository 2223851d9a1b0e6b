"""Files that are either whole or not there: write beside the place, then rename."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from iolens.errors import IolensError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Put `content` (text as UTF-8) at `path`; a reader sees the old file or the new one, never half of it."""
    octets = content.encode() if isinstance(content, str) else content
    with _explained(path):
        if path.exists() and not path.is_file():  # a pipe, /dev/stdout: there is nothing to rename over
            path.write_bytes(octets)
        else:
            _replace(path.resolve(), octets)


def check_place(path: Path) -> None:
    """Refuse a place that nothing can be written to, before anything is computed for it."""
    if path.exists() and not path.is_file():
        return
    folder = path.resolve().parent
    with _explained(path):
        if not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _replace(path: Path, octets: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(octets)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IolensError(f"{path}: cannot be written: {error.strerror or error}") from error

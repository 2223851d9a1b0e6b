"""The directory that a study makes in each place, and the only place it writes to.

It has the study's name, which no other has. At the end its files are removed by the names that studies give them;
anything else in it is not ours, stays, and is named.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import Final

from iolens.errors import IolensError, UsageError

PREFIX: Final = "iolens-bench-"
DATA: Final = "data"  # every file of a study begins so
_OURS: Final = re.compile(r"data[A-Za-z0-9._-]*")
_OF_MDTEST: Final = re.compile(r"(?:test-dir\.|mdtest_tree\.|file\.mdtest\.|dir\.mdtest\.)[A-Za-z0-9._-]*")


def own_directory(place: Path, study: str) -> Path:
    """Where the study writes in a place."""
    return place / f"{PREFIX}{study}"


def make_own_directory(path: Path) -> None:
    """Make it; one that is there already is refused: another user's, or of the same plan that runs elsewhere."""
    try:
        path.mkdir(0o700)
    except FileExistsError:
        hint = "`iolens bench clean` removes what a study left"
        raise UsageError(f"{path}: is there already, and not on record here: it is not touched; {hint}") from None
    except OSError as error:
        raise IolensError(f"{path}: cannot be made: {error.strerror}") from error


def remove_own_files(path: Path) -> None:
    """Remove the files of a point, not the directory."""
    for entry in _entries(path):
        if entry.is_dir(follow_symlinks=False):
            if _OURS.fullmatch(entry.name):
                _remove_tree(Path(entry.path))
        elif _OURS.fullmatch(entry.name):
            os.unlink(entry.path)  # noqa: PTH108 (an entry of scandir)


def remove_own_directory(path: Path, *, is_made_here: bool = False) -> list[Path]:
    """Remove what the study made; what is left because it is of somebody else, which may be all of it."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return []
    is_ours = is_made_here or status.st_uid == os.geteuid()  # a server may give what we make to another user
    if not stat.S_ISDIR(status.st_mode) or not is_ours:
        return [path]
    remove_own_files(path)
    others = [Path(entry.path) for entry in _entries(path)]
    if not others:
        path.rmdir()
    return others


def _remove_tree(folder: Path) -> None:
    """A folder that a benchmark program filled: its own names only, so that nothing else goes with it."""
    for entry in _entries(folder):
        known = _OURS.fullmatch(entry.name) or _OF_MDTEST.fullmatch(entry.name)
        if known and entry.is_dir(follow_symlinks=False):
            _remove_tree(Path(entry.path))
        elif known:
            os.unlink(entry.path)  # noqa: PTH108
    if not _entries(folder):
        folder.rmdir()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except FileNotFoundError:
        return []


def free_bytes(path: Path) -> int:
    """What an unprivileged user may still write."""
    return shutil.disk_usage(path).free


def fullness_pct(path: Path, more_bytes: int = 0) -> float:
    """How full the file system is, or would be with so many bytes more, of what users can have."""
    usage = shutil.disk_usage(path)
    whole = usage.used + usage.free
    return 100.0 * (usage.used + more_bytes) / whole if whole else 0.0

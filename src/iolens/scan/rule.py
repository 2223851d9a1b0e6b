"""What a scan counts, and how: the root, what is left out, whose projects, and which share of a scan by several nodes.

Directories are named by their path relative to the root.
"""

from __future__ import annotations

import fnmatch
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from iolens.config import ProjectRule

ROOT: Final = ""  # the relative path of the directory a scan begins with


class ScanPart(NamedTuple):
    """Which directories are ours when several nodes share a scan: those at most `depth` deep are dealt out by a hash
    of their path, deeper ones go with the one they are in.
    """

    number: int = 1
    of: int = 1
    depth: int = 2

    def is_ours(self, directory: str) -> bool:
        """Whether a directory that is at most `depth` deep is counted here."""
        return self.of == 1 or zlib.crc32(os.fsencode(directory)) % self.of == self.number - 1

    def is_dealt_out(self, directory: str) -> bool:
        """Whether a directory is dealt out by itself."""
        return self.of > 1 and depth(directory) <= self.depth


@dataclass(frozen=True, slots=True)
class WalkRule:
    """What is counted, and how."""

    root: str  # absolute
    time_us: int  # ages count back from here
    device: int  # st_dev of the root
    cross_filesystems: bool = False
    mount_points: frozenset[str] = frozenset()  # below the root, relative to it
    exclude: tuple[str, ...] = ()
    projects: ProjectRule = field(default_factory=ProjectRule)
    project_ids: bool = False
    part: ScanPart = ScanPart()
    pieces: Path | None = None  # where entries with their paths are kept


class Exclusion:
    """Patterns of what is left out: one with a slash is of paths below the root, any other of names."""

    def __init__(self, patterns: Sequence[str]) -> None:
        nothing = r"(?!)"
        names = [fnmatch.translate(pattern) for pattern in patterns if "/" not in pattern]
        paths = [fnmatch.translate("/" + pattern.strip("/")) for pattern in patterns if "/" in pattern]
        self._names, self._paths = re.compile("|".join(names) or nothing), re.compile("|".join(paths) or nothing)
        self._is_empty = not patterns

    def __bool__(self) -> bool:
        return not self._is_empty

    def covers(self, directory: str, name: str) -> bool:
        """Whether an entry of a directory is left out."""
        return bool(self._names.fullmatch(name) or self._paths.fullmatch("/" + inside(directory, name)))


def inside(directory: str, name: str) -> str:
    """The path of an entry."""
    return f"{directory}/{name}" if directory else name


def depth(directory: str) -> int:
    """0 for the root."""
    return directory.count("/") + 1 if directory else 0

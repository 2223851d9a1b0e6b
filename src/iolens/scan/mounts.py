"""Mounted file systems, from `/proc/self/mountinfo`: what a path lies on, what that is called, what is mounted below.

Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

MOUNTINFO: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_END_OF_OPTIONAL: Final = b"-"
_FEWEST_FIELDS: Final = 10
# How the name of the file system is written in the source of a mount, by type. Others go by their mount point.
_NAMED_BY_SOURCE: Final = {
    "lustre": re.compile(r".*:/(?P<name>[^/]+)"),  # 10.0.0.1@tcp:/scratch, or with a directory below
    "gpfs": re.compile(r"(?:.*/)?(?P<name>[^/]+)"),  # /dev/gpfs0
}


class Mount(NamedTuple):
    """One line of mountinfo."""

    point: str
    kind: str  # ext4, lustre, nfs4, …
    source: str


class FilesystemName(NamedTuple):
    """What a file system is called, and how that is known."""

    name: str
    origin: str


def mounts(mountinfo: Path = MOUNTINFO) -> list[Mount]:
    """All mounts, in the order they were made; none where the kernel does not tell."""
    try:
        return list(_parsed(mountinfo.read_bytes()))
    except OSError:
        return []


def _parsed(text: bytes) -> Iterator[Mount]:
    for line in text.splitlines():
        words = line.split(b" ")
        if len(words) < _FEWEST_FIELDS - 1 or _END_OF_OPTIONAL not in words[6:]:
            continue
        end = words.index(_END_OF_OPTIONAL, 6)
        if len(words) > end + 2:
            yield Mount(_plain(words[4]), _plain(words[end + 1]), _plain(words[end + 2]))


def _plain(word: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), word))


def mount_of(path: str, known: Sequence[Mount]) -> Mount | None:
    """The mount a path (absolute, without symbolic links) lies on: the deepest, and of those the last made."""
    holding = [mount for mount in known if _is_at_or_below(path, mount.point)]
    return max(reversed(holding), key=lambda item: len(item.point.rstrip("/")), default=None)


def mount_points_below(path: str, known: Sequence[Mount]) -> list[str]:
    """Mount points inside a directory, as paths relative to it."""
    inside = {mount.point for mount in known if mount.point != path and _is_at_or_below(mount.point, path)}
    return sorted(os.path.relpath(point, path) for point in inside)


def filesystem_name(path: str, known: Sequence[Mount]) -> FilesystemName:
    """What the file system of a path is called: by Lustre or Spectrum Scale, else by its mount point, else its host."""
    mount = mount_of(path, known)
    if mount is None:
        return FilesystemName(_host(), "this host: its mounts are not known")
    named = _NAMED_BY_SOURCE.get(mount.kind)
    if named is not None and (match := named.fullmatch(mount.source) or named.match(mount.source)):
        return FilesystemName(match["name"], f"{mount.kind} mounted from {mount.source}")
    last = mount.point.rstrip("/").rpartition("/")[2]
    if not last:
        return FilesystemName(_host(), f"this host: {path} lies on its root file system")
    return FilesystemName(last, f"the mount point {mount.point}")


def _host() -> str:
    return os.uname().nodename or "unknown"


def _is_at_or_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


# Whose an inode is, as the system it is on tells ----------------------------------------------------------------------
# The user's name by its number, the project id of a directory.

_FSGETXATTR: Final = 0x801C581F  # FS_IOC_FSGETXATTR
_FSXATTR: Final = struct.Struct("=5I8x")


@cache
def owner_name(uid: int) -> str:
    """The user's name, asked once; the number where nobody has it."""
    try:
        return storable(pwd.getpwuid(uid).pw_name)
    except (KeyError, OverflowError, OSError):
        return str(uid)


def project_id(descriptor: int) -> int | None:
    """The project id of an open directory, which files in it are made with; None where the file system has none."""
    try:
        answer = fcntl.ioctl(descriptor, _FSGETXATTR, bytes(_FSXATTR.size))
    except OSError:
        return None
    return int(_FSXATTR.unpack(answer)[3])


def storable(name: str) -> str:
    """A name as it can be stored and printed: bytes that are no UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")

"""Whose an inode is, as the system it is on tells: the user's name by its number, the project id of a directory."""

from __future__ import annotations

import fcntl
import os
import pwd
import struct
from functools import cache
from typing import Final

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

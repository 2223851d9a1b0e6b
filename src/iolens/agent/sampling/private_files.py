"""Files that are the agent's own: 0600 in directories of 0700, and no symbolic link is ever followed to them.

An agent often runs as root, and its spool may lie where others can write: what they put there must not make it read or
write anything else. Standard library only, for the sampler imports it.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from iolens.errors import IolensError


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a file of our own; OSError (ELOOP) where a symbolic link has its name."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def replace_private(path: Path, content: bytes) -> None:
    """Write a file anew in one step, so that a reader sees the old one or the new one."""
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
        stream.write(content)
    beside.replace(path)


def make_private_directory(directory: Path) -> None:
    """The directory, made with no rights for others if it is not there; refused if it is not our own."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_foreign(directory)


def refuse_foreign(directory: Path) -> None:
    """IolensError unless the directory belongs to this user, and nobody else can write there."""
    me = os.geteuid()
    link = directory.lstat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (0, me):
        raise IolensError(f"{directory}: a symbolic link made by {_user(link.st_uid)}: name the directory itself")
    about = directory.stat()
    if about.st_uid != me:
        remedy = f"chown {_user(me)} {directory}, or name another directory"
        raise IolensError(f"{directory}: belongs to {_user(about.st_uid)}, and this runs as {_user(me)}: {remedy}")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(about.st_mode)
        raise IolensError(f"{directory}: others can write there (mode {mode:o}): chmod go-w {directory}")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"

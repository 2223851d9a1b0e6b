"""Append the report to the output of a batch job, as the user whose job it was. Standard library only.

An epilog runs as root and the file's path is the user's: opened as root it could be any file of the system. So a child
process becomes the user first, and opens only a plain file.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from iolens.errors import IolensError


def append_as_user(path: Path, text: str, user: str | None) -> None:
    """Append `text` to a file that exists, as `user` where one is named and we are root."""
    if user is None or os.geteuid() != 0:
        _append(path, text)
        return
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise IolensError(f"{user}: no such user; the report is not appended to {path}") from None
    child = os.fork()
    if child == 0:
        os._exit(_append_in_child(path, text, account))
    _, status = os.waitpid(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        reason = os.strerror(code) if code > 0 else "the process that writes it was killed"
        raise IolensError(f"{path}: {reason}; the report of the job is not appended (as {user})")


def _append_in_child(path: Path, text: str, account: pwd.struct_passwd) -> int:
    """The number of the error, 0 for none: an exception must not run through the parent's code again."""
    try:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        _append(path, text)
    except OSError as error:
        return error.errno or 1
    except IolensError:
        return 22  # EINVAL: no plain file
    return 0


def _append(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise IolensError(f"{path}: not a plain file")
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)

"""A limit on the memory, page cache included, of programs that a study starts: a control group, version 1 or 2."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path("/sys/fs/cgroup")
PREFIX: Final = "iolens-bench-"


class NoMemoryLimit(Exception):
    """Why this user, or this machine, cannot limit memory."""


@contextmanager
def memory_limit(limit_bytes: int, root: Path = ROOT) -> Iterator[Callable[[], None]]:
    """A group of its own; what is given is called in a new process and makes it a member. Removed at the end."""
    parent, name = _parent(root)
    group = parent / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    try:
        group.mkdir()
    except OSError as error:
        raise NoMemoryLimit(f"no control group can be made in {parent}: {error.strerror}") from error
    try:
        try:
            (group / name).write_text(f"{limit_bytes}\n")
        except OSError as error:
            raise NoMemoryLimit(f"{group / name} cannot be set: {error.strerror}") from error
        members = str(group / "cgroup.procs")

        def join() -> None:
            descriptor = os.open(members, os.O_WRONLY)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            os.close(descriptor)

        yield join
    finally:
        with suppress(OSError):  # a process that is still ending keeps it
            group.rmdir()


def _parent(root: Path) -> tuple[Path, str]:
    """Where groups are made, and the file of the limit: version 1's memory controller, or the unified hierarchy."""
    if (root / "memory" / "memory.limit_in_bytes").is_file():
        return root / "memory", "memory.limit_in_bytes"
    controllers = root / "cgroup.subtree_control"
    if controllers.is_file() and "memory" in controllers.read_text().split():
        return root, "memory.max"
    raise NoMemoryLimit(f"{root} has no memory controller that groups can be made of")

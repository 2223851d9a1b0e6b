"""What passes between a process that wants Darshan logs read and the child that reads them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from iolens.errors import InputError

MEMORY_BYTES: Final = 4 << 30  # address space of the child beyond what it starts with
POSITION: Final = struct.Struct("qq")  # number of the log in its request, and of the module; −1: before any


class LogRequest(NamedTuple):
    """One log to read, by its path; `place` is what messages call it. A tuple, since thousands are sent to a child."""

    path: str
    place: str
    run_id: str | None = None  # hash of the content it had when it was listed
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedLog:
    """A log that cannot be read, and why."""

    number: int  # in its request
    error: InputError


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What the configuration and the command line say of logs."""

    mounts: Mapping[str, str] = field(default_factory=dict)  # configured mount point → file system
    filesystem: str | None = None
    paths: bool = True
    since_us: int | None = None  # only runs that end from here on
    until_us: int | None = None  # and before this time
    in_arrow: bool = False  # columns as Arrow arrays, which pass between processes at little cost

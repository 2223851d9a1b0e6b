"""Files that were tried for `iolens doctor`: each is readable, or there is a reason why not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.sources.lustre.parameters import TIMED_LEAVES

READABLE: Final = "readable"
DEBUGFS: Final = "sys/kernel/debug"


@dataclass(slots=True)
class TargetFinding:
    """One target or mount: for each thing it should offer, "readable" or why not."""

    target: str
    kind: str  # ost, mdt or client
    files: dict[str, str] = field(default_factory=dict)

    @property
    def readable(self) -> list[str]:
        """What can be sampled."""
        return [name for name, state in self.files.items() if state == READABLE]


def tried(path: Path) -> str:
    """Whether the file can be read."""
    try:
        with path.open("rb") as stream:
            stream.read(4096)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return READABLE


def names_of(directory: Path) -> list[str]:
    """Names in a directory; none where it cannot be read."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except OSError:
        return []


def why_absent(root: Path, leaf: str) -> str:
    """What may be the reason that there is no such file."""
    hidden = root / DEBUGFS
    if leaf in TIMED_LEAVES and hidden.is_dir() and not os.access(hidden, os.R_OK | os.X_OK):
        return f"not found; {hidden} is closed to this user"
    if leaf == "job_stats":
        return "not found: this version has none, or job statistics are off"
    return "not found"

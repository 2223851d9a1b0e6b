"""Files of a living tree, each replaced at once, so that a reader never sees half of one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 (names in it are made by tempfile)
TREES_BYTES: Final = 32 << 20  # more than the trees of a simulated centre take


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A directory in memory, as /proc is, where the machine has one: on a disk each file replaced is a file flushed."""
    is_here = os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free >= TREES_BYTES
    with tempfile.TemporaryDirectory(prefix="iolens-", dir=SHARED_MEMORY if is_here else None) as name:
        yield Path(name)


@dataclass(slots=True)
class ReplacedFiles:
    """What the files below a root show now; what did not change is left alone."""

    root: Path
    shown: dict[Path, str] = field(default_factory=dict)

    def replace(self, path: Path, text: str) -> None:
        """Put a new file in the place of the old one at once."""
        before = self.shown.get(path)
        if before == text:
            return
        if before is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        fresh = f"{self.root}/.fresh-{os.getpid()}"
        with open(fresh, "w", encoding="ascii") as stream:  # noqa: PTH123 - many files, many times a second
            stream.write(text)
        os.replace(fresh, path)  # noqa: PTH105
        self.shown[path] = text

    def forget(self, is_gone: Callable[[Path], bool]) -> None:
        """Files that were removed: the next text is written whatever it is."""
        self.shown = {path: text for path, text in self.shown.items() if not is_gone(path)}

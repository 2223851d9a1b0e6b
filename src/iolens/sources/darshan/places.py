"""Where the files of a run lie: mount points of the log's own table, and file systems by the configured mounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolens.sources.darshan.head import STREAMS

_ROOT: Final = "/"


def longest_mount(path: str, mounts: Mapping[str, str]) -> str | None:
    """The longest of the mount points that the path lies below; None where it lies below none."""
    place = path
    while place:
        if place in mounts:
            return place
        place = place[: place.rfind("/")] if "/" in place else ""
    return _ROOT if path.startswith(_ROOT) and _ROOT in mounts else None


class PlaceFinder:
    """Finds the mount and the file system of paths; each directory is looked up once."""

    def __init__(self, mounts: Mapping[str, str], configured: Mapping[str, str], filesystem: str | None) -> None:
        self.mounts = mounts
        self.configured = {mount.rstrip("/") or _ROOT: name for mount, name in configured.items()}
        self.filesystem = filesystem
        self._known: dict[str, tuple[str | None, str | None, str | None]] = {}

    def place(self, path: str | None) -> tuple[str | None, str | None, str | None]:
        """Mount point, its type, and the file system's name; None: not known."""
        if path is None or path in STREAMS:
            return None, None, self.filesystem if path is None else None
        directory = path[: path.rfind("/") + 1].rstrip("/") or (_ROOT if path.startswith(_ROOT) else path)
        if path in self.mounts or path in self.configured:
            directory = path
        if directory not in self._known:
            mount = longest_mount(directory, self.mounts)
            own = longest_mount(directory, self.configured)
            self._known[directory] = (
                mount,
                None if mount is None else self.mounts[mount],
                self.filesystem if own is None else self.configured[own],
            )
        return self._known[directory]

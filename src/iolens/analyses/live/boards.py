"""A board for each file system that the rows of a store or an agent speak of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from iolens.analyses.live.analysis import Board
from iolens.records import Item, Row, Rows


class Boards:
    """A board for each file system that the rows speak of."""

    def __init__(self, make: Callable[[str], Board], only: str | None = None) -> None:
        self._make, self._only = make, only
        self.of: dict[str, Board] = {}

    @property
    def filesystems(self) -> list[str]:
        """Names of the file systems seen; those that are mere disks of a server come last."""
        return sorted(self.of, key=lambda name: (self._is_disks(name), name))

    def main(self) -> list[str]:
        """File systems proper, or the servers whose disks are all there is."""
        proper = [name for name in self.filesystems if not self._is_disks(name)]
        return proper or self.filesystems

    def expect(self, known: Mapping[str, Iterable[str]]) -> None:
        """File systems and targets that exist, whether they report or not."""
        for filesystem, targets in known.items():
            if self._only in (None, filesystem):
                self.board(filesystem).expect(targets)

    def take(self, items: Iterable[Item]) -> None:
        """Give each board its rows."""
        parts: dict[str, list[Item]] = {}
        for item in items:
            if isinstance(item, Row | Rows):
                of = item.values if isinstance(item, Row) else item.columns
                parts.setdefault(str(of.get("filesystem") or ""), []).append(item)
        for filesystem, rows in parts.items():
            if self._only in (None, filesystem):
                self.board(filesystem).take(rows)

    def board(self, filesystem: str) -> Board:
        """The board of a file system, new if need be."""
        if filesystem not in self.of:
            self.of[filesystem] = self._make(filesystem)
        return self.of[filesystem]

    def _is_disks(self, filesystem: str) -> bool:
        kinds = self.of[filesystem].kinds
        return bool(kinds) and all(kind == "device" for kind in kinds)

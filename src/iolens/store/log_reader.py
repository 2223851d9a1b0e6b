"""A table's log, entry by entry: what the handle does not tell, or would tell one question at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from iolens.errors import StoreError
from iolens.store.delta_log import CHECKPOINT, ENTRY
from iolens.store.tables import Tables


class DeltaLogReader:
    """The log of one table, on disk or object storage, oldest first."""

    def __init__(self, tables: Tables, name: str) -> None:
        self.tables, self.name = tables, name

    @cached_property
    def _names(self) -> list[str]:
        listed = self.tables.filesystem(self.name).get_file_info(pafs.FileSelector("_delta_log", allow_not_found=True))
        return sorted(info.base_name for info in listed if info.type == pafs.FileType.File)

    @cached_property
    def versions(self) -> list[int]:
        """Versions whose entries are there."""
        return [int(match.group(1)) for name in self._names if (match := ENTRY.fullmatch(name))]

    def gaps(self) -> Iterator[int]:
        """Versions between others whose entries are not there."""
        for before, after in pairwise(self.versions):
            yield from range(before + 1, after)

    @cached_property
    def _actions(self) -> list[dict[str, Any]]:
        """What the newest checkpoint and the entries say about marks and removed files."""
        kept: list[dict[str, Any]] = []
        newest = max((match.group(1) for name in self._names if (match := CHECKPOINT.fullmatch(name))), default=None)
        for name in self._names:
            if newest is not None and name.startswith(f"{newest}.checkpoint"):
                with self.tables.filesystem(self.name).open_input_file(f"_delta_log/{name}") as stream:
                    rows = pq.read_table(stream, columns=["txn", "remove"]).to_pylist()
                kept += [{key: value for key, value in row.items() if value is not None} for row in rows]
        for version in self.versions:
            entry = f"_delta_log/{version:020}.json"
            for number, line in enumerate(self.tables.read_bytes(self.name, entry).splitlines(), 1):
                if line.startswith((b'{"txn"', b'{"remove"')):
                    kept.append(self._action(line, f"{self.tables.uri(self.name)}/{entry}:{number}"))
        return kept

    def _action(self, line: bytes, place: str) -> dict[str, Any]:
        try:
            action: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise StoreError(f"{place}: altered: {error}") from error
        return action

    def check(self) -> None:
        """StoreError where an entry is not as it was written."""
        _ = self._actions

    @cached_property
    def marks(self) -> dict[str, int]:
        """The highest version of every mark."""
        highest: dict[str, int] = {}
        for action in self._actions:
            if mark := action.get("txn"):
                highest[mark["appId"]] = max(mark["version"], highest.get(mark["appId"], mark["version"]))
        return highest

    @cached_property
    def removed(self) -> set[str]:
        """Paths of files that an entry took out of the table, as far back as the log is kept."""
        return {action["remove"]["path"] for action in self._actions if "remove" in action}

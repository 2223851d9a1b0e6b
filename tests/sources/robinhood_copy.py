"""Made-up Robinhood databases: a tree of directories with files, written to SQLite, and counted one by one."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from iolens.records import Item, Rows
from iolens.sources.contents.inode_counts import InodeCounts, Projects
from tests.sources.stored import rows_of

AT: Final = datetime(2025, 3, 1, 12, tzinfo=UTC)
AT_S: Final = int(AT.timestamp())
DAY_S: Final = 86_400
ROOT: Final = "0x200000007:0x1:0x0"
V3: Final = ("id", "uid", "gid", "projid", "size", "blocks", "last_access", "last_mod", "type", "nlink", "md_update")
V25: Final[Mapping[str, str]] = {"uid": "owner", "gid": "gr_name"}
TYPES: Final = ("file",) * 12 + ("dir",) * 3 + ("symlink", "fifo", "sock", "chr", "blk")

Entry = dict[str, Any]


@dataclass
class MadeUp:
    """Entries and their names."""

    entries: list[Entry] = field(default_factory=list)
    names: list[tuple[str, str, str]] = field(default_factory=list)  # id, parent, name
    variables: dict[str, str] = field(default_factory=dict)

    def add(self, parent: str = ROOT, name: str | None = None, **values: Any) -> str:
        number = len(self.entries) + 1
        item = f"0x200000400:{number:#x}:0x0"
        plain = {
            "id": item, "uid": "ada", "gid": "staff", "projid": 0, "size": 100, "blocks": 8,
            "last_access": AT_S - DAY_S,
            "last_mod": AT_S - DAY_S, "type": "file", "nlink": 1, "md_update": AT_S - 60,
        }  # fmt: skip
        self.entries.append(plain | values)
        self.names.append((item, parent, name or f"n{number}"))
        return item

    def link(self, text: str, parent: str, name: str) -> None:
        """Another name of an entry."""
        self.names.append((text, parent, name))

    def write(self, path: Path, columns: Mapping[str, str] | None = None, leave_out: Sequence[str] = ()) -> Path:
        """A SQLite copy; `columns` renames some, `leave_out` names columns or tables that are not there."""
        kept = [name for name in V3 if name not in leave_out]
        spelt = [(columns or {}).get(name, name) for name in kept]
        with closing(sqlite3.connect(path)) as database:
            if "ENTRIES" not in leave_out:
                database.execute(f"CREATE TABLE ENTRIES ({', '.join(spelt)})")
                rows = [[entry[name] for name in kept] for entry in self.entries]
                database.executemany(f"INSERT INTO ENTRIES VALUES ({', '.join('?' * len(kept))})", rows)
            if "NAMES" not in leave_out:
                database.execute("CREATE TABLE NAMES (id, parent_id, name)")
                database.executemany("INSERT INTO NAMES VALUES (?, ?, ?)", self.names)
            if self.variables:
                database.execute("CREATE TABLE VARS (varname, value)")
                database.executemany("INSERT INTO VARS VALUES (?, ?)", self.variables.items())
            database.commit()
        return path

    def path(self, text: str, mount: str) -> str:
        """The path by the first name in order."""
        result = min((parent, name) for key, parent, name in self.names if key == text)
        return f"{mount if result[0] == ROOT else self.path(result[0], mount)}/{result[1]}"

    def counted(self, projects: Projects, mount: str | None = None) -> list[str]:
        """Rows of `contents` by counting entries one after the other."""
        counts = InodeCounts(AT_S * 1_000_000)
        held = Counter(parent for _, parent, _ in self.names)
        wide = []
        codes = []
        for entry in self.entries:
            codes.append(counts.code(str(entry["uid"]), self._project(entry, projects, mount), entry["type"]))
            if entry["type"] == "dir":
                wide.append((codes[-1], held[entry["id"]]))
        size, blocks, atimes, mtimes = (
            [entry[name] for entry in self.entries] for name in ("size", "blocks", "last_access", "last_mod")
        )
        counts.add(codes, size, [512 * block for block in blocks], atimes_s=atimes, mtimes_s=mtimes)
        counts.add_widths(*zip(*wide, strict=True))
        return plain_rows(list(counts.rows("scratch")))

    def _project(self, entry: Entry, projects: Projects, mount: str | None) -> str | None:
        result = None
        if mount is not None:
            path = self.path(entry["id"], mount)
            result = projects.of_path(path if entry["type"] == "dir" else path.rpartition("/")[0])
        return result or projects.of_id(entry["projid"])


def made_up(seed: int, entries: int = 400) -> MadeUp:
    """A tree with sizes at the ends of bins, hard links, several owners and project ids."""
    chance = random.Random(seed)
    made, directories = MadeUp(), [ROOT]
    for number in range(entries):
        inode_type = "dir" if number < 4 else chance.choice(TYPES)
        end = 2 ** chance.randrange(63)
        item = made.add(
            chance.choice(directories if number >= 4 else [ROOT]),
            uid=chance.choice(["ada", "Ada", "bob", "1001", "zoë"]),
            projid=chance.choice([0, 0, 5001, 77]),
            size=chance.choice([0, 1, 2, end, end + 1, end - 1, chance.randrange(10**7)]),
            blocks=chance.choice([0, 1, 8, 2**40]),
            last_access=AT_S - chance.choice([-5, 0, 1, 3600, 3601, 7 * DAY_S, 7 * DAY_S + 1, AT_S, 400 * DAY_S]),
            last_mod=AT_S - chance.randrange(12 * 365 * DAY_S),
            type=inode_type,
        )
        if inode_type == "dir":
            directories.append(item)
        elif chance.random() < 0.1:
            made.link(item, chance.choice(directories), f"again{number}")
    return made


def plain_rows(items: Sequence[Item]) -> list[str]:
    """The rows, comparable."""
    assert any(isinstance(item, Rows) for item in items)
    names = ("owner", "project", "inode_type", "histogram", "bin_from", "bin", "count", "bytes", "allocated_bytes")
    return sorted(str([row["time"], *(row.get(name) for name in names)]) for row in rows_of(items, "contents"))

"""Robinhood's entries by the directory they are in, for projects that are known by a directory rule.

Paths are put together from NAMES. Directories go to a scratch database on this machine's disk; entries stream past
it. So memory stays flat whatever their number, and no path is kept.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError
from iolens.records import Problem
from iolens.sources.contents.inode_counts import ATIME, MTIME, InodeCounts, Projects
from iolens.sources.contents.robinhood_entries import (
    BLOCK_BYTES,
    TYPES,
    Entries,
    Troubles,
    absent_columns,
    no_widths,
    project_of,
    text,
    widths,
)
from iolens.sources.reading.sql_database import BATCH_ROWS, TableSchema

LUSTRE_ROOT: Final = "0x200000007:0x1:0x0"  # the FID of every Lustre 2 file system's root
NUMBERS: Final = ("size", "blocks", ATIME, MTIME)
_DIR: Final = ("dir", b"dir")
_SCRATCH_SETTINGS: Final = (
    "journal_mode = OFF",
    "synchronous = OFF",
    "locking_mode = EXCLUSIVE",
    "cache_size = -65536",
)
_ASKED_AT_ONCE: Final = 500
_REMEMBERED: Final = 200_000

Named = tuple[Any, ...]  # a row with id, owner, project id, type, numbers, parent and name


@dataclass(frozen=True, slots=True)
class PathRules:
    """What paths are needed for: where the file system is mounted, and how many names of a path a rule looks at."""

    mount: str
    directories: tuple[str, ...]
    root: str | None = None  # the id of the file system's root, where neither Lustre nor NAMES tells it

    @property
    def depth(self) -> int:
        """So many names from the top decide on the project; what is below them does not matter."""
        return max(rule.count("/") for rule in self.directories)


@dataclass(slots=True)
class Directories:
    """Where each directory is, as far as rules look: found by id in a scratch database."""

    rules: PathRules
    projects: Projects
    scratch: sqlite3.Connection
    paths: list[str] = field(default_factory=list)  # the beginnings of paths that occur, by code
    codes: dict[str, int] = field(default_factory=dict)
    remembered: dict[str, int | None] = field(default_factory=dict)
    projects_by_code: dict[int, str | None] = field(default_factory=dict)  # projects by code

    def below(self, code: int, name: str) -> int:
        """The code of what is called so in a directory; below the depth of the rules it is the directory's own."""
        path = self.paths[code]
        if not name or path.count("/") >= self.rules.depth:
            return code
        return self._code("/".join(f"{path}/{name}".split("/")[: self.rules.depth + 1]))

    def _code(self, path: str) -> int:
        if path not in self.codes:
            self.codes[path] = len(self.paths)
            self.paths.append(path)
        return self.codes[path]

    def project(self, code: int | None) -> str | None:
        """The project of everything there."""
        if code is None:
            return None
        if code not in self.projects_by_code:
            self.projects_by_code[code] = self.projects.of_path(self.paths[code] or "/")
        return self.projects_by_code[code]

    def load(self, entries: Entries, names: TableSchema) -> Iterator[Problem]:
        """Read all directories and find their places from the root down; tells of those that hang nowhere."""
        key = entries.table.column("ID")
        sql = (
            f"SELECT e.{key}, n.{names.column('PARENT_ID')}, n.{names.column('NAME')}"  # noqa: S608 (the schema's)
            f" FROM {entries.table.quoted} AS e JOIN {names.quoted} AS n ON n.{names.column('ID')} = e.{key}"
            f" WHERE {entries.text_column('inode_type', 'e.')} = 'dir'"
        )
        run = self.scratch.execute
        run("BEGIN")
        run("CREATE TABLE directories (id TEXT PRIMARY KEY, parent TEXT, name TEXT) WITHOUT ROWID")
        for batch in entries.database.batches(sql):
            rows = [(text(item), text(parent) or "", text(name) or "") for item, parent, name in batch]
            self.scratch.executemany("INSERT OR IGNORE INTO directories VALUES (?, ?, ?)", rows)
        run("CREATE INDEX children ON directories (parent)")
        roots = self._roots(entries.database.place)
        top = self._code(self.rules.mount.rstrip("/"))
        self.scratch.create_function("below", 2, self.below, deterministic=True)
        run("CREATE TABLE roots (id TEXT, code INTEGER)")
        self.scratch.executemany("INSERT INTO roots VALUES (?, ?)", [(root, top) for root in roots])
        run(
            "CREATE TABLE places AS WITH RECURSIVE tree (id, code) AS (SELECT id, code FROM roots UNION ALL"
            " SELECT d.id, below(t.code, d.name) FROM tree t JOIN directories d ON d.parent = t.id"
            " WHERE d.id NOT IN (SELECT id FROM roots)) SELECT * FROM tree"  # or a root below itself would never end
        )
        run("CREATE UNIQUE INDEX by_id ON places (id)")
        run("COMMIT")
        lost = run("SELECT COUNT(*) FROM directories WHERE id NOT IN (SELECT id FROM places)").fetchone()[0]
        if lost:
            reason = f"{lost} directories hang below none that is known: no directory rule finds a project there"
            yield Problem(entries.database.place, None, reason)

    def _roots(self, place: str) -> list[str]:
        """The one parent that is no directory of ENTRIES itself; names that are whole paths have none."""
        if self.rules.root is not None:
            return [self.rules.root]
        sql = "SELECT DISTINCT parent FROM directories WHERE parent NOT IN (SELECT id FROM directories) LIMIT 1000"
        results = [row[0] for row in self.scratch.execute(sql)]
        known = [root for root in (LUSTRE_ROOT, "") if root in results or not results]
        if known or len(results) == 1:
            return known or results
        expected = f"root in [sources.robinhood], the id of the root directory, such as {results[0]!r}"
        raise InputError(place, f"{len(results)} directories could be the root of the file system", expected)

    def places(self, ids: set[str]) -> dict[str, int | None]:
        """Codes by id; None where that directory is not known."""
        if len(self.remembered) > _REMEMBERED:
            self.remembered.clear()
        missing = [name for name in ids if name not in self.remembered]
        self.remembered |= dict.fromkeys(missing)
        for start in range(0, len(missing), _ASKED_AT_ONCE):
            asked = missing[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(asked))
            self.remembered |= dict(
                self.scratch.execute(f"SELECT id, code FROM places WHERE id IN ({marks})", asked)  # noqa: S608 (marks)
            )
        return self.remembered


def count_by_path(
    entries: Entries, names: TableSchema, rules: PathRules, counts: InodeCounts, projects: Projects
) -> Iterator[Problem]:
    """Put all entries into `counts`; the project is the one of the path, else of the project id."""
    with _scratch(entries.database.place) as scratch:
        directories = Directories(rules, projects, scratch)
        yield from directories.load(entries, names)
        yield from absent_columns(entries)
        stream = _Stream(counts, directories, Troubles(entries))
        for batch in _in_batches(_first_names(entries, names)):
            stream.take(batch)
        yield from stream.troubles.problems()
        yield from _count_widths(entries, names, directories, counts)


@contextlib.contextmanager
def _scratch(place: str) -> Iterator[sqlite3.Connection]:
    """A database on disk that nobody else sees and that leaves nothing behind."""
    try:
        with tempfile.TemporaryDirectory(prefix="iolens-robinhood-") as folder:
            connection = sqlite3.connect(Path(folder) / "directories.sqlite3", isolation_level=None)
            with contextlib.closing(connection):
                for setting in _SCRATCH_SETTINGS:
                    connection.execute(f"PRAGMA {setting}")
                yield connection
    except sqlite3.Error as error:
        expected = (
            f"space for the directories in {tempfile.gettempdir()}; or directories = false in [sources.robinhood]"
        )
        raise InputError(place, f"its directories cannot be kept on this machine: {error}", expected) from error


def _first_names(entries: Entries, names: TableSchema) -> Iterator[Named]:
    """Each entry once: id, owner, project id, type, numbers, parent and name; of several names the first in order."""
    key = entries.table.column("ID")
    chosen = entries.coded("owner", "project_id", "inode_type", *NUMBERS, prefix="e.")
    sql = (
        f"SELECT e.{key}, {chosen}, n.{names.column('PARENT_ID')}, n.{names.column('NAME')}"  # noqa: S608 (the schema's)
        f" FROM {entries.table.quoted} AS e LEFT JOIN {names.quoted} AS n ON n.{names.column('ID')} = e.{key}"
        f" ORDER BY e.{key}"
    )
    rows = (row for batch in entries.database.batches(sql) for row in batch)
    for _, same in groupby(rows, key=itemgetter(0)):
        first, *others = same
        yield min((first, *others), key=_name) if others else first


def _name(row: Named) -> tuple[str, str]:
    return text(row[-2]) or "", text(row[-1]) or ""


def _in_batches(rows: Iterator[Named]) -> Iterator[list[Named]]:
    batch: list[Named] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


@dataclass(slots=True)
class _Stream:
    """Entries on their way into the counts."""

    counts: InodeCounts
    directories: Directories
    troubles: Troubles
    codes: dict[Named, int | None] = field(default_factory=dict)  # by owner, project id, type and place, as they come

    def take(self, batch: Sequence[Named]) -> None:
        """Count some entries."""
        places = self.directories.places({_directory(row) for row in batch})
        codes = [self._code(row, places) for row in batch]
        kept = [row[4 : 4 + len(NUMBERS)] for row, code in zip(batch, codes, strict=True) if code is not None]
        if kept:
            known = np.array([code for code in codes if code is not None], np.int64)
            _add_numbers(self.counts, known, np.array(kept, np.int64), self.troubles)

    def _code(self, row: Named, places: dict[str, int | None]) -> int | None:
        """The number of the group; None for a type that is none."""
        directory = _directory(row)
        place = places[directory]
        if place is not None and not directory and row[3] not in _DIR:
            place = self.directories.below(place, (text(row[-1]) or "").rpartition("/")[0])
        group = (*row[1:4], place)
        if group not in self.codes:
            self.codes[group] = self._new_code(*group)
        code = self.codes[group]
        if code is None:
            self.troubles.inode_type(text(row[3]), 1)
        return code

    def _new_code(self, owner: Any, project_id: Any, result: Any, place: int | None) -> int | None:
        inode_type = text(result)
        if inode_type is None or inode_type not in TYPES:
            return None
        project = self.directories.project(place) or project_of(project_id, self.directories.projects)
        return self.counts.code(text(owner), project, inode_type)


def _directory(row: Named) -> str:
    """The directory that tells the project: a directory itself, else the one a name is in.

    It is "" for names that are whole paths, in copies made that way.
    """
    return text(row[0] if row[3] in _DIR else row[-2]) or ""


def _add_numbers(counts: InodeCounts, codes: NDArray[np.int64], values: NDArray[np.int64], troubles: Troubles) -> None:
    """Count entries that tell the same numbers together; an entry without a size is not counted."""
    sizes = values[:, 0]
    _tell(troubles, "size", sizes)
    codes, values = codes[sizes >= 0], values[sizes >= 0]
    for column, name in enumerate(NUMBERS[1:], 1):
        _tell(troubles, name, values[:, column])
    reported = values[:, 1:] >= 0
    patterns = reported @ np.array([1, 2, 4])
    for pattern in np.unique(patterns):
        same = patterns == pattern
        size, blocks, atimes, mtimes = values[same].T
        counts.add(
            codes[same],
            size,
            blocks * BLOCK_BYTES if pattern & 1 else None,
            atimes_s=atimes if pattern & 2 else None,
            mtimes_s=mtimes if pattern & 4 else None,
        )


def _tell(troubles: Troubles, name: str, values: NDArray[np.int64]) -> None:
    for kind, count in zip(*np.unique(values[values < 0], return_counts=True), strict=True):
        troubles.value(name, int(kind), int(count))


def _count_widths(
    entries: Entries, names: TableSchema, directories: Directories, counts: InodeCounts
) -> Iterator[Problem]:
    if not entries.tells_directories():
        yield no_widths(entries)
        return
    sql = f"SELECT owner, project_id, id, width FROM {widths(entries, names, 'owner', 'project_id')}"  # noqa: S608
    for batch in entries.database.batches(sql):
        places = directories.places({text(row[2]) or "" for row in batch})
        codes = []
        for owner, project_id, item, _ in batch:
            project = directories.project(places[text(item) or ""]) or project_of(project_id, directories.projects)
            codes.append(counts.code(text(owner), project, "dir"))
        counts.add_widths(codes, [int(row[3]) for row in batch])

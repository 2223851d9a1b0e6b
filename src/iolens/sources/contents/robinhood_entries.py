"""Robinhood's ENTRIES, counted by the database itself: sums by owner, project, type and bin of `contents`.

Versions and sites differ in what columns there are. A billion rows never leave the server; where they must, because
a path tells the project, `robinhood_paths.py` reads them one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import AGES, ATIME, ENDS, MTIME, SIZE, WIDTH, BinSum, InodeCounts, Projects
from iolens.sources.reading.sql_database import NOT_A_NUMBER, NULL, Database, TableSchema

ENTRIES, NAMES = "ENTRIES", "NAMES"
REQUIRED: Final = ("SIZE", "TYPE")
TYPES: Final = frozenset({"file", "dir", "symlink", "blk", "chr", "fifo", "sock"})
BLOCK_BYTES: Final = 512
OWNERS: Final = ("UID", "OWNER")  # the second up to Robinhood 2.5
NUMBERS: Final[Mapping[str, str]] = {
    "project_id": "PROJID",
    "size": "SIZE",
    "blocks": "BLOCKS",
    ATIME: "LAST_ACCESS",
    MTIME: "LAST_MOD",
    "updated": "MD_UPDATE",
}
_LOW: Final = 0xFFFFFFFF
_MOST_BLOCKS: Final = LARGEST // BLOCK_BYTES
_NOTHING: Final = "''"  # the parent of names in copies that have whole paths for names

Schema = Mapping[str, TableSchema]


def text(value: object) -> str | None:
    """A text of either kind of database; nothing, and a text of no letters, is not reported."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    return None if value is None or value == "" else str(value)


def halves(name: str) -> str:
    """SQL for the sum of whole numbers in two parts, because the whole of it may be more than SQLite can hold."""
    return f"SUM(({name}) >> 32), SUM(({name}) & {_LOW})"


def whole(high: Any, low: Any) -> int:
    """Both parts together; zero where there were no rows."""
    return (int(high or 0) << 32) + int(low or 0)


def bin_place(value: str, histogram: str, time_us: int) -> str:
    """SQL for the place of a number among the bins of `contents`; for ages the number is a time, seconds since 1970.

    A tree of comparisons of whole numbers: six per row, and exact on every engine, as no logarithm would be.
    """
    ends = ENDS[histogram]
    if ends is AGES:
        tests = [f"{value} >= {time_us // 1_000_000 - end}" for end in ends]
    else:
        tests = [f"{value} <= {end}" for end in ends]
    return _tree(tests, 0, len(ends))


def _tree(tests: Sequence[str], first: int, last: int) -> str:
    if first == last:
        return str(first)
    middle = (first + last) // 2
    return f"CASE WHEN {tests[middle]} THEN {_tree(tests, first, middle)} ELSE {_tree(tests, middle + 1, last)} END"


@dataclass(frozen=True, slots=True)
class Entries:
    """The table ENTRIES of an open database, and how to ask for its columns."""

    database: Database
    table: TableSchema
    names: TableSchema | None  # NAMES, where it tells which entry is in which directory

    @classmethod
    def of(cls, database: Database, schema: Schema) -> Entries:
        """The entries of a database, which must have the columns without which nothing can be counted."""
        table = schema[ENTRIES]
        if missing := [name.lower() for name in REQUIRED if not table.has(name)]:
            raise InputError(database.place, f"table {table.name} has no column {', '.join(missing)}", "Robinhood's")
        names = schema.get(NAMES)
        linked = names is not None and names.has("ID", "PARENT_ID") and table.has("ID")
        return cls(database, table, names if linked else None)

    def has(self, name: str) -> bool:
        """Whether there is a column for one of `NUMBERS`, or an owner."""
        return any(self.table.has(kind) for kind in (OWNERS if name == "owner" else (NUMBERS[name],)))

    def text_column(self, name: str, prefix: str = "") -> str:
        """SQL for `owner` or `inode_type`; NULL where there is no such column."""
        candidates = OWNERS if name == "owner" else ("TYPE",)
        spelt = next((candidate for candidate in candidates if self.table.has(candidate)), None)
        return "NULL" if spelt is None else self.database.exact_text(self.table, spelt, prefix)

    def coded_number(self, name: str, prefix: str = "") -> str:
        """SQL for one of `NUMBERS` that is `NULL` or `NOT_A_NUMBER` where there is none."""
        if not self.has(name):
            return str(NULL)
        number = self.database.number(prefix + self.table.column(NUMBERS[name]))
        if name != "blocks":
            return number
        return f"CASE WHEN {number} > {_MOST_BLOCKS} THEN {NOT_A_NUMBER} ELSE {number} END"

    def coded(self, *names: str, prefix: str = "") -> str:
        """SQL for several columns, called by these names."""
        pairs = ((name, self.coded_number if name in NUMBERS else self.text_column) for name in names)
        return ", ".join(f"{column(name, prefix)} AS {name}" for name, column in pairs)

    def rows(self, *names: str) -> str:
        """SQL for all entries, with numbers as they are."""
        columns = (f"{self._raw(name)} AS {name}" for name in names)
        return f"(SELECT {', '.join(columns)} FROM {self.table.quoted}) AS entries"  # noqa: S608 (the schema's names)

    def _raw(self, name: str) -> str:
        if name not in NUMBERS:
            return self.text_column(name)
        return self.database.raw_number(self.table, NUMBERS[name]) if self.has(name) else "NULL"

    def extent(self, latest_s: int) -> tuple[int | None, ...]:
        """How many entries; when the last was looked at, at the latest then; their bytes, blocks and times summed up.

        What makes a state of the database itself, in one pass over it.
        """
        names = ("size", "blocks", ATIME, MTIME)
        sums = ", ".join(halves(name) for name in names)
        updated = f"MAX(CASE WHEN updated BETWEEN 1 AND {latest_s} THEN updated END)"
        sql = f"SELECT COUNT(*), {updated}, {sums} FROM {self.rows(*names, 'updated')}"  # noqa: S608 (as above)
        count, last, *parts = self.database.rows(sql)[0]
        summed = [whole(*parts[place : place + 2]) for place in range(0, len(parts), 2)]
        return int(count), None if last is None else int(last), *summed

    def tells_directories(self) -> bool:
        """Whether NAMES has the parent of every name. Copies that have whole paths for names do not."""
        if self.names is None:
            return False
        parent = self.names.column("PARENT_ID")
        sql = f"SELECT 1 FROM {self.names.quoted} WHERE {parent} IS NULL OR {parent} = {_NOTHING} LIMIT 1"  # noqa: S608
        return not self.database.rows(sql)


def count_entries(entries: Entries, counts: InodeCounts, projects: Projects) -> Iterator[Problem]:
    """Put all entries into `counts`, by size and age, and directories by width; tells what could not be counted."""
    yield from absent_columns(entries)
    troubles = Troubles(entries)
    for histogram in (SIZE, ATIME, MTIME):
        if histogram == SIZE or entries.has(histogram):
            for row in _sums(entries, histogram, counts.time_us):
                _add(counts, projects, histogram, row, troubles)
    yield from troubles.problems()
    yield from _count_widths(entries, counts, projects)


def absent_columns(entries: Entries) -> Iterator[Note]:
    """What this version or copy does not tell."""
    lacking = {
        "owner": "owners are not reported",
        "blocks": "allocated bytes are not reported",
        ATIME: "there is no histogram of access times",
        MTIME: "there is no histogram of modification times",
    }
    for name, loss in lacking.items():
        if not entries.has(name):
            column = OWNERS[0] if name == "owner" else NUMBERS[name]
            yield Note(entries.database.place, None, f"{entries.table.name} has no column {column.lower()}: {loss}")


class Troubles:
    """Entries that could not be counted, or not in full, by reason."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._unknown: Counter[tuple[str, int]] = Counter()  # by column, and whether it is NULL or no number
        self._types: Counter[str | None] = Counter()

    def value(self, name: str, kind: int, count: int) -> None:
        """That many entries have NULL, or something that is no number."""
        if count and self._entries.has(name):
            self._unknown[name, kind] += count

    def inode_type(self, name: str | None, count: int) -> None:
        """That many entries have a type that is none."""
        self._types[name] += count

    def problems(self) -> Iterator[Problem]:
        """All of it; an attribute that Robinhood has not looked up yet is nothing wrong."""
        place, table = self._entries.database.place, self._entries.table.name
        for word, count in sorted(self._types.items(), key=str):
            yield Problem(place, None, f"{table}.type {word!r} is not known: {count} entries left out")
        for (name, kind), count in sorted(self._unknown.items()):
            where = f"{table}.{NUMBERS[name].lower()}"
            if kind == NULL:
                yield Note(place, None, f"{where}: not reported for {count} entries: {_LOSSES[name]}")
            else:
                reason = f"{where}: {count} values are no whole numbers from 0 to 2^63-1: {_LOSSES[name]}"
                yield Problem(place, None, reason)


_LOSSES: Final[Mapping[str, str]] = {
    "size": "those entries left out",
    "blocks": "the bins they are in tell no allocated bytes",
    ATIME: "not in the histogram of access times",
    MTIME: "not in the histogram of modification times",
}


def _sums(entries: Entries, histogram: str, time_us: int) -> Iterator[tuple[Any, ...]]:
    """Owner, project id, type, place of the bin (negative: none), inodes, bytes, blocks, and how many lack blocks."""
    value = "size" if histogram == SIZE else histogram
    names = dict.fromkeys(("owner", "project_id", "inode_type", "size", "blocks", value))
    where = "" if histogram == SIZE else f"WHERE size BETWEEN 0 AND {LARGEST}"
    wrong = f"{value} < 0 OR {value} > {LARGEST}"
    sql = (
        "SELECT owner, project_id, inode_type,"  # noqa: S608 (names from the schema, numbers of our own)
        f" CASE WHEN {value} IS NULL THEN {NULL} WHEN {wrong} THEN {NOT_A_NUMBER}"
        f" ELSE {bin_place(value, histogram, time_us)} END AS place,"
        f" COUNT(*), {halves('size')}, {halves('blocks')}, COUNT(*) - COUNT(blocks),"
        f" SUM(CASE WHEN blocks < 0 OR blocks > {_MOST_BLOCKS} THEN 1 ELSE 0 END)"
        f" FROM {entries.rows(*names)} {where} GROUP BY owner, project_id, inode_type, place"
    )
    for batch in entries.database.batches(sql):
        yield from batch


def _add(counts: InodeCounts, projects: Projects, histogram: str, row: tuple[Any, ...], troubles: Troubles) -> None:
    owner, project_id, result, *numbers = row
    place, inodes, size_high, size_low, blocks_high, blocks_low, unreported, wrong = (
        int(number or 0) for number in numbers
    )
    inode_type = text(result)
    if inode_type is None or inode_type not in TYPES:
        if histogram == SIZE:
            troubles.inode_type(inode_type, inodes)
        return
    if place < 0:
        troubles.value(histogram, place, inodes)
        return
    if histogram == SIZE:
        troubles.value("blocks", NULL, unreported)
        troubles.value("blocks", NOT_A_NUMBER, wrong)
    allocated = None if unreported or wrong else whole(blocks_high, blocks_low) * BLOCK_BYTES
    code = counts.code(text(owner), project_of(project_id, projects), inode_type)
    counts.add_sum(code, histogram, place, BinSum(inodes, whole(size_high, size_low), allocated))


def project_of(project_id: Any, projects: Projects) -> str | None:
    """The project of a project id, as the database gives it: nothing or negative where it has none."""
    return None if project_id is None or int(project_id) < 0 else projects.of_id(int(project_id))


def widths(entries: Entries, names: TableSchema, *wanted: str) -> str:
    """SQL for all directories with these columns, `id`, and `width`: how many names are in them."""
    parent, key = names.column("PARENT_ID"), entries.table.column("ID")
    counted = f"(SELECT {parent} AS parent, COUNT(*) AS entries FROM {names.quoted} GROUP BY {parent})"  # noqa: S608
    return (
        f"(SELECT {entries.coded(*wanted, prefix='e.')}, e.{key} AS id, COALESCE(n.entries, 0) AS width"  # noqa: S608
        f" FROM {entries.table.quoted} AS e LEFT JOIN {counted} AS n ON n.parent = e.{key}"
        f" WHERE {entries.text_column('inode_type', 'e.')} = 'dir') AS directories"
    )


def _count_widths(entries: Entries, counts: InodeCounts, projects: Projects) -> Iterator[Problem]:
    if entries.names is None or not entries.tells_directories():
        yield no_widths(entries)
        return
    sql = (
        f"SELECT owner, project_id, {bin_place('width', WIDTH, 0)} AS place, COUNT(*)"  # noqa: S608 (as above)
        f" FROM {widths(entries, entries.names, 'owner', 'project_id')} GROUP BY owner, project_id, place"
    )
    for batch in entries.database.batches(sql):
        for owner, project_id, place, directories in batch:
            code = counts.code(text(owner), project_of(project_id, projects), "dir")
            counts.add_sum(code, WIDTH, int(place), BinSum(int(directories), None, None))


def no_widths(entries: Entries) -> Note:
    """Why there is no histogram of directory widths."""
    reason = "NAMES does not tell which directory a name is in: there is no histogram of directory widths"
    return Note(entries.database.place, None, reason)

"""Robinhood databases: what a file system holds, in MySQL or MariaDB, or copied to a SQLite file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from iolens.config import ProjectRule
from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem, Rows
from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import SIZE, TABLE, InodeCounts, Projects
from iolens.sources.contents.robinhood_entries import (
    BLOCK_BYTES,
    ENTRIES,
    OWNERS,
    TYPES,
    Entries,
    Schema,
    count_entries,
    text,
)
from iolens.sources.contents.robinhood_paths import PathRules, count_by_path
from iolens.sources.reading.captures import read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.sql_database import (
    SCHEMES,
    SQLITE_MAGIC,
    Database,
    MysqlOpening,
    Opening,
    SqliteOpening,
    TableSchema,
)
from iolens.units import SECOND_US, epoch_us

# Totals that Robinhood keeps by owner and type ------------------------------------------------------------------------
# Its table ACCT_STAT, and the size profile that reports print as well.
#
# The profile's bins are wider than ours, by powers of 32, and tell no bytes. So its counts are rows of histogram
# `size`, and counts and bytes together are rows of histogram `total`.

ACCOUNTS: Final = "ACCT_STAT"
TOTAL: Final = "total"
REQUIRED: Final = ("TYPE", "COUNT")
# A bin holds its column's number of bytes and what is smaller than the next one's; the last has no end.
PROFILE: Final[Mapping[str, int]] = {
    "SZ0": 0, "SZ1": 1, "SZ32": 32, "SZ1K": 1 << 10, "SZ32K": 1 << 15, "SZ1M": 1 << 20, "SZ32M": 1 << 25,
    "SZ1G": 1 << 30, "SZ32G": 1 << 35, "SZ1T": 1 << 40,
}  # fmt: skip
PROFILE_BINS: Final[tuple[tuple[int | None, int | None], ...]] = (
    *((start - 1 if start else None, after - 1) for start, after in pairwise(PROFILE.values())),
    ((1 << 40) - 1, None),
)

Key = tuple[str | None, str]  # owner and type


@dataclass(slots=True)
class Account:
    """Inodes of one owner and type; None: not reported, or not by all that was added."""

    inodes: int
    size: int | None
    allocated: int | None
    profile: list[int] | None = None  # inodes by bin of `PROFILE_BINS`

    def add(self, other: Account) -> None:
        """Both together."""
        self.inodes += other.inodes
        self.size = _plus(self.size, other.size)
        self.allocated = _plus(self.allocated, other.allocated)
        if self.profile is None or other.profile is None:
            self.profile = None
        else:
            self.profile = [value + more for value, more in zip(self.profile, other.profile, strict=True)]

    @property
    def is_too_large(self) -> bool:
        """Whether a number is more than a column can hold."""
        return max(self.inodes, self.size or 0, self.allocated or 0, *(self.profile or ())) > LARGEST


@dataclass(slots=True)
class Accounts:
    """Totals by owner and type, as they are reported."""

    place: str
    accounts: dict[Key, Account] = field(default_factory=dict)

    def add(self, key: Key, account: Account) -> None:
        """Add to what is reported of that owner and type already."""
        if key in self.accounts:
            self.accounts[key].add(account)
        else:
            self.accounts[key] = account

    def rows(self, filesystem: str, time_us: int, scan: str | None = None) -> Iterator[Rows | Problem]:
        """Rows of `contents`; a profile that does not add up is reported, and stored as it is."""
        columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        for key, account in sorted(self.accounts.items(), key=lambda pair: (pair[0][0] or "", pair[0][1])):
            whose = f"{key[1]} of {key[0] or 'unknown owners'}"
            if account.is_too_large:
                yield Problem(self.place, None, f"{whose}: a total is more than a number can hold: left out")
                continue
            if account.profile is not None and sum(account.profile) != account.inodes:
                reason = f"{whose}: {account.inodes} inodes, but {sum(account.profile)} in the size profile"
                yield Problem(self.place, None, reason)
            for row in _account_rows(key, account):
                for name, value in zip(_COLUMNS, row, strict=True):
                    columns[name].append(value)
        if count := len(columns["count"]):
            yield Rows(TABLE, {**columns, "time": time_us, "filesystem": filesystem, "scan": scan}, count)


_COLUMNS: Final = (
    "owner", "inode_type", "histogram", "bin_from", "bin", "count", "bytes", "allocated_bytes",
)  # fmt: skip


def _account_rows(key: Key, account: Account) -> Iterator[tuple[Any, ...]]:
    for (above, up_to), inodes in zip(PROFILE_BINS, account.profile or (), strict=False):
        if inodes:
            yield *key, SIZE, above, up_to, inodes, None, None
    yield *key, TOTAL, None, None, account.inodes, account.size, account.allocated


def read_accounts(database: Database, table: TableSchema) -> tuple[Accounts, list[Problem]]:
    """ACCT_STAT, groups and states of an owner added up."""
    if missing := [name.lower() for name in REQUIRED if not table.has(name)]:
        raise InputError(database.place, f"table {table.name} has no column {', '.join(missing)}", "Robinhood's")
    accounts, problems = Accounts(database.place), []
    for batch in database.batches(f"SELECT {', '.join(_columns(database, table))} FROM {table.quoted}"):  # noqa: S608
        for owner, kind, *numbers in batch:
            reason = _add(accounts, text(owner), text(kind), [int(number) for number in numbers])
            if reason:
                whose = f"{text(kind)} of {text(owner) or 'unknown owners'}"
                problems.append(Problem(database.place, None, f"{table.name}: {whose}: {reason}"))
    return accounts, problems


def extent(database: Database, table: TableSchema) -> list[tuple[Any, ...]]:
    """All of the table, in an order of its own: it is small."""
    sql = f"SELECT {', '.join(_columns(database, table))} FROM {table.quoted}"  # noqa: S608 (the schema's names)
    rows = [(text(owner), text(kind), *map(int, numbers)) for owner, kind, *numbers in database.rows(sql)]
    return sorted(rows, key=repr)


def _columns(database: Database, table: TableSchema) -> list[str]:
    owner = next((name for name in OWNERS if table.has(name)), None)
    profile = PROFILE if table.has(*PROFILE) else ()
    numbers = ("COUNT", "SIZE", "BLOCKS", *profile)
    return [
        "NULL" if owner is None else database.exact_text(table, owner),
        database.exact_text(table, "TYPE"),
        *(database.number(table.column(name)) if table.has(name) else "-1" for name in numbers),
    ]


def _add(accounts: Accounts, owner: str | None, kind: str | None, numbers: Sequence[int]) -> str | None:
    """Add one row; the reason where some of it is no count."""
    inodes, size, blocks, *profile = numbers
    if kind is None or kind not in TYPES:
        return f"{inodes} inodes of no type that is known: left out"
    if inodes < 0:
        return "the count is no whole number from 0 to 2^63-1: left out"
    if inodes == 0:  # Robinhood keeps the rows of owners that have nothing left
        return None
    reported = profile if profile and min(profile) >= 0 else None
    allocated = blocks * BLOCK_BYTES if blocks >= 0 else None
    accounts.add((owner, kind), Account(inodes, size if size >= 0 else None, allocated, reported))
    return "a total is no whole number from 0 to 2^63-1: not reported" if min(numbers) < -1 else None


def _plus(value: int | None, other: int | None) -> int | None:
    return None if value is None or other is None else value + other


# Robinhood databases --------------------------------------------------------------------------------------------------
# What a file system holds, in MySQL or MariaDB, or copied to a SQLite file.
#
# ENTRIES are counted by the database, or streamed where directory rules need paths; where there are only the totals of
# ACCT_STAT, those are read. One capture is one state of one database; no path leaves it.

PREFIXES: Final = ("robinhood_", "rbh_")
SETTINGS: Final[Mapping[str, type]] = {"mount": str, "root": str, "directories": bool}
VARIABLES: Final = "VARS"
MOUNT_VARIABLE, SCAN_VARIABLE = "FS_Path", "LastScanEndTime"
AHEAD_S: Final = 3600  # clocks differ; what was looked at later than this is a wrong clock's
_ENTRY_MARKS: Final = ("ID", "SIZE", "TYPE", "BLOCKS", "LAST_MOD")
_ACCOUNT_MARKS: Final = ("TYPE", "COUNT", "SIZE", "BLOCKS")


class Robinhood:
    """A Robinhood database."""

    name = "robinhood"
    summary = "Robinhood databases: MySQL or MariaDB by URL, or a SQLite copy"

    def recognises(self, path: Path, head: bytes) -> bool:
        """A SQLite file with Robinhood's entries or totals."""
        if not head.startswith(SQLITE_MAGIC):
            return False
        try:
            with SqliteOpening(path).open() as database:
                schema = database.schema()
        except InputError:
            return False
        marks = ((ENTRIES, _ENTRY_MARKS), (ACCOUNTS, _ACCOUNT_MARKS))
        return any(name in schema and schema[name].has(*columns) for name, columns in marks)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per database."""
        yield from _captures([SqliteOpening(path) for path in paths], options)

    def url_captures(self, urls: Sequence[str], options: ReadOptions) -> Iterator[Capture]:
        """The same from live databases: `mysql://user@host/robinhood_NAME`, or `mariadb://…`."""
        for url in urls:
            if url.partition("://")[0] not in SCHEMES:
                raise InputError(f"{url.partition('://')[0]}://…", "no database of this kind", "mysql://…")
        yield from _captures([MysqlOpening(url) for url in urls], options)


SOURCE: Final = Robinhood()


@dataclass(frozen=True, slots=True)
class DatabaseReading:
    """How to read one database, now or in another process."""

    opening: Opening
    filesystem: str
    time_us: int
    project_rule: ProjectRule
    path_rules: PathRules | None
    notes: tuple[Note, ...]

    def items(self) -> Iterator[Item]:
        """All of its inodes, counted; nothing before everything is, for half a scan would be a wrong one."""
        yield from self.notes
        with self.opening.open() as database:
            schema = database.schema()
            samples = list(
                self._entries(database, schema) if has_entries(database, schema) else self._accounts(database)
            )
        yield from samples
        if all(isinstance(item, Problem) for item in samples):
            yield Problem(self.opening.place, None, "no entry that could be counted")

    def _entries(self, database: Database, schema: Schema) -> Iterator[Item]:
        entries, projects = Entries.of(database, schema), Projects(self.project_rule)
        counts = InodeCounts(self.time_us)
        if self.path_rules is not None and entries.names is not None:
            yield from count_by_path(entries, entries.names, self.path_rules, counts, projects)
        else:
            yield from count_entries(entries, counts, projects)
        yield from counts.rows(self.filesystem)

    def _accounts(self, database: Database) -> Iterator[Item]:
        table = database.schema()[ACCOUNTS]
        accounts, problems = read_accounts(database, table)
        yield from problems
        yield from accounts.rows(self.filesystem, self.time_us)


def has_entries(database: Database, schema: Schema) -> bool:
    """Whether to count ENTRIES; a copy may have kept ACCT_STAT alone, or an empty ENTRIES beside it."""
    if ENTRIES not in schema or ACCOUNTS not in schema:
        return ENTRIES in schema
    return bool(database.rows(f"SELECT 1 FROM {schema[ENTRIES].quoted} LIMIT 1"))  # noqa: S608 (the schema's name)


def _captures(openings: Sequence[Opening], options: ReadOptions) -> Iterator[Capture]:
    pairs, refused = read_each(openings, partial(_listed, options=options), lambda opening: opening.place)
    yield from refused
    for identity, reading in pairs:
        yield Capture(reading.opening.place, identity, reading.items)


def _listed(opening: Opening, options: ReadOptions) -> tuple[str, DatabaseReading]:
    """What the database holds, in brief, and how to read it."""
    _check_settings(options.settings, opening.place)
    with opening.open() as database:
        schema = database.schema()
        if ENTRIES not in schema and ACCOUNTS not in schema:
            raise InputError(opening.place, f"neither a table {ENTRIES} nor {ACCOUNTS}", "a Robinhood database")
        filesystem = _filesystem(opening, options)
        variables = _variables(database, schema)
        path_rules, notes = _path_rules(database, schema, variables, options)
        latest_s = int(time.time()) + AHEAD_S
        state: Sequence[object]
        if has_entries(database, schema):
            state = Entries.of(database, schema).extent(latest_s)
            looked_at = state[1]
        else:
            state, looked_at = extent(database, schema[ACCOUNTS]), None
        time_us, reported = _time(opening, database, options, variables, looked_at, latest_s)
    said = [filesystem, state, options.at, options.projects, path_rules]
    identity = "robinhood/" + hashlib.sha256(repr(said).encode()).hexdigest()
    return identity, DatabaseReading(opening, filesystem, time_us, options.projects, path_rules, (*notes, *reported))


def _check_settings(settings: Mapping[str, Any], place: str) -> None:
    for key, value in settings.items():
        if key not in SETTINGS:
            raise InputError(place, f"unknown key sources.robinhood.{key}", f"one of {', '.join(SETTINGS)}")
        if not isinstance(value, SETTINGS[key]):
            expected = "true or false" if SETTINGS[key] is bool else "a text in quotes"
            raise InputError(place, f"sources.robinhood.{key} = {value!r}", expected)
    if not settings.get("mount", "/").startswith("/"):
        raise InputError(place, f"sources.robinhood.mount = {settings['mount']!r}", "an absolute path")


def _filesystem(opening: Opening, options: ReadOptions) -> str:
    """`--filesystem`, else the database's name without its prefix."""
    if options.filesystem:
        return options.filesystem
    for prefix in PREFIXES:
        if opening.database_name.startswith(prefix) and len(opening.database_name) > len(prefix):
            return opening.database_name.removeprefix(prefix)
    raise InputError(opening.place, "nothing here tells the file system", "--filesystem, or a name robinhood_NAME")


def _variables(database: Database, schema: Schema) -> dict[str, str]:
    """What Robinhood notes of itself."""
    table = schema.get(VARIABLES)
    if table is None or not table.has("VARNAME", "VALUE"):
        return {}
    sql = f"SELECT {table.column('VARNAME')}, {table.column('VALUE')} FROM {table.quoted}"  # noqa: S608 (the schema's)
    return {text(name) or "": text(value) or "" for name, value in database.rows(sql)}


def _path_rules(
    database: Database, schema: Schema, variables: Mapping[str, str], options: ReadOptions
) -> tuple[PathRules | None, list[Note]]:
    """Where paths are needed to tell projects, and can be had."""
    rules, settings = options.projects.directories, options.settings
    if not rules or not settings.get("directories", True) or not has_entries(database, schema):
        return None, []
    names = Entries.of(database, schema).names
    if names is None or not names.has("NAME"):
        return None, [Note(database.place, None, "no table NAMES tells paths: no directory rule finds a project")]
    mount = settings.get("mount") or variables.get(MOUNT_VARIABLE)
    if not mount:
        raise InputError(
            database.place,
            "[projects] has directory rules, and nothing here tells where the file system is mounted",
            'mount = "/scratch" in [sources.robinhood]; or directories = false there, to leave projects to project ids',
        )
    return PathRules(str(mount), rules, settings.get("root")), []


def _time(
    opening: Opening,
    database: Database,
    options: ReadOptions,
    variables: Mapping[str, str],
    looked_at: object,
    latest_s: int,
) -> tuple[int, list[Note]]:
    """`--at`, else when Robinhood last looked at an entry or ended a scan; else when the copy was made, or now."""
    if options.at is not None:
        return epoch_us(options.at), []
    scanned = variables.get(SCAN_VARIABLE, "")
    known = [looked_at if isinstance(looked_at, int) else 0, int(scanned) if _is_count(scanned) else 0]
    reported = max(value for value in (0, *known) if value <= latest_s)
    if reported:
        return reported * SECOND_US, []
    if isinstance(opening, SqliteOpening):
        timestamp, words = int(opening.path.stat().st_mtime), "when the file was written"
    else:
        timestamp, words = int(database.rows("SELECT UNIX_TIMESTAMP()")[0][0]), "now"
    reason = f"nothing here tells when Robinhood last looked: ages count from {words}, or from --at"
    return timestamp * SECOND_US, [Note(opening.place, None, reason)]


def _is_count(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 12

"""Totals that Robinhood keeps by owner and type: its table ACCT_STAT, and the size profile that reports print as well.

The profile's bins are wider than ours, by powers of 32, and tell no bytes. So its counts are rows of histogram `size`,
and counts and bytes together are rows of histogram `total`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from iolens.errors import InputError
from iolens.records import Problem, Rows
from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import SIZE, TABLE
from iolens.sources.contents.robinhood_entries import BLOCK_BYTES, OWNERS, TYPES, text
from iolens.sources.reading.sql_database import Database, TableSchema

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

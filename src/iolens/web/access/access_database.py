"""The SQLite file in which tokens and sessions are kept: private, and shared by the server and `iolens serve token`."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from iolens.agent.sampling.spool import make_private_directory, open_private
from iolens.errors import IolensError

FILE: Final = "access.sqlite"
VERSION: Final = 1
BUSY_S: Final = 2.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tokens (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, user TEXT, hash BLOB NOT NULL UNIQUE,
    created_s INTEGER NOT NULL, expires_s INTEGER, last_used_s INTEGER, revoked_s INTEGER
);
CREATE UNIQUE INDEX IF NOT EXISTS live_names ON tokens (name) WHERE revoked_s IS NULL;
CREATE TABLE IF NOT EXISTS sessions (
    hash BLOB PRIMARY KEY, token INTEGER NOT NULL REFERENCES tokens (id), created_s INTEGER NOT NULL,
    last_used_s INTEGER NOT NULL
) WITHOUT ROWID;
"""


class AccessDatabase:
    """One connection, used by one thread at a time."""

    def __init__(self, state: Path) -> None:
        make_private_directory(state)
        self.path = state / FILE
        self._lock = threading.Lock()
        try:
            os.close(
                open_private(self.path, os.O_RDWR | os.O_CREAT)
            )  # 0600 before SQLite opens it; its own files follow
            self._connection = _connected(self.path)
        except (OSError, sqlite3.Error) as error:
            raise IolensError(f"{self.path}: {getattr(error, 'strerror', None) or error}") from None

    def row(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of an answer."""
        with self._lock:
            row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        return row

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def change(self, statement: str, *values: Any) -> int:
        """How many rows the statement changed."""
        with self._lock:
            return self._connection.execute(statement, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Several statements that count together or not at all."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._connection.close()


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for a writer
    connection.execute("PRAGMA synchronous = FULL")  # a revoked token stays revoked after a power cut
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise sqlite3.DatabaseError(f"written by a newer iolens (version {version}; this one knows {VERSION})")
    if version < VERSION:
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT")

"""The state of all alerts in one SQLite file, `STATE/alerts.sqlite`: alerts, silences, and notifications to deliver.

A check changes it in one transaction. A lock beside it lets one check run at a time, of any process.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from iolens.alerts.changes import AlertRecord
from iolens.alerts.notifications import alert_document, alert_of
from iolens.alerts.results import Alert, NotEvaluatedRule
from iolens.errors import AlertsBusyError, StoreError
from iolens.units import epoch_us, from_epoch_us

NAME: Final = "alerts.sqlite"
LOCK: Final = "alerts.lock"
VERSION: Final = 1
LONGEST_WAIT_S: Final = 120.0  # for another check
_LOOK_S: Final = 0.05
_KEPT: Final = timedelta(days=90)  # resolved alerts and delivered notifications
_SCHEMA: Final = """
CREATE TABLE alerts (
    id TEXT PRIMARY KEY, rule TEXT NOT NULL, filesystem TEXT NOT NULL, subject TEXT NOT NULL, state TEXT NOT NULL,
    seen_us INTEGER NOT NULL, clear_us INTEGER, sent TEXT NOT NULL, sent_us INTEGER, resolved_us INTEGER,
    document TEXT NOT NULL);
CREATE UNIQUE INDEX alerts_now ON alerts (rule, filesystem, subject) WHERE state != 'resolved';
CREATE INDEX alerts_resolved ON alerts (resolved_us);
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY, notification TEXT NOT NULL, receiver TEXT NOT NULL, alert TEXT NOT NULL,
    event TEXT NOT NULL, document TEXT NOT NULL, created_us INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
    next_us INTEGER NOT NULL, delivered_us INTEGER, given_up_us INTEGER, error TEXT, UNIQUE (notification, receiver));
CREATE INDEX outbox_waiting ON outbox (number) WHERE delivered_us IS NULL;
CREATE INDEX outbox_alert ON outbox (alert, receiver);
CREATE TABLE silences (
    id INTEGER PRIMARY KEY AUTOINCREMENT, rule TEXT NOT NULL, filesystem TEXT NOT NULL, subject TEXT NOT NULL,
    until_us INTEGER NOT NULL, author TEXT NOT NULL, comment TEXT NOT NULL, created_us INTEGER NOT NULL);
CREATE TABLE checks (checked_us INTEGER NOT NULL, not_evaluated TEXT NOT NULL);
"""


class StateFile:
    """The open file; close it, or use it in `with`."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the state directory, made if it is not there."""
        self.path = folder / NAME
        with self._errors():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self.connection = sqlite3.connect(self.path, timeout=60.0, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def _prepare(self) -> None:
        self.connection.execute("PRAGMA synchronous = FULL")
        if self._version() == 0:
            self.connection.execute("PRAGMA journal_mode = WAL")
            with self.transaction():
                self._make_tables()
        if (version := self._version()) != VERSION:
            raise StoreError(f"{self.path}: version {version} of another iolens; this one knows {VERSION}")

    def _version(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    def _make_tables(self) -> None:
        """Unless another process has made them meanwhile."""
        if self._version() == 0:
            for statement in _SCHEMA.split(";\n"):
                self.connection.execute(statement)
            self.connection.execute(f"PRAGMA user_version = {VERSION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes inside, or none."""
        with self._errors():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement; the rows that it gives."""
        with self._errors():
            return self.connection.execute(statement, values).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: the state of alerts: {error}") from error

    # Alerts

    def records(self) -> list[AlertRecord]:
        """Alerts that go on, and those of whose end nobody has been notified yet."""
        return self._records("state != 'resolved' OR sent != 'resolved'")

    def resolved_since(self, time: datetime) -> list[Alert]:
        """Alerts that ended then or later, the last one first."""
        ended = self._records("state = 'resolved' AND resolved_us >= ?", epoch_us(time))
        return [record.alert for record in reversed(ended)]

    def _records(self, which: str, *values: Any) -> list[AlertRecord]:
        statement = f"SELECT document, seen_us, clear_us, sent, sent_us FROM alerts WHERE {which} ORDER BY resolved_us, seen_us, id"  # noqa: S608, E501 (texts of this module)
        return [
            AlertRecord(alert_of(json.loads(document)), from_epoch_us(seen), _time(clear), sent, _time(sent_at))
            for document, seen, clear, sent, sent_at in self.execute(statement, *values)
        ]

    def save(self, record: AlertRecord) -> None:
        """Write a record, new or again."""
        alert = record.alert
        self.execute(
            "INSERT OR REPLACE INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            alert.id, alert.rule, alert.filesystem or "", alert.subject, alert.state, epoch_us(record.seen_at),
            _us(record.clear_at), record.sent, _us(record.sent_at), _us(alert.resolved_at),
            json.dumps(alert_document(alert)),
        )  # fmt: skip

    def forget(self, records: Iterable[AlertRecord]) -> None:
        """Drop alerts that never fired."""
        for record in records:
            self.execute("DELETE FROM alerts WHERE id = ?", record.alert.id)

    # Checks

    @property
    def checked_at(self) -> datetime | None:
        """When the last check was."""
        rows = self.execute("SELECT checked_us FROM checks")
        return from_epoch_us(rows[0][0]) if rows else None

    def not_evaluated(self) -> list[NotEvaluatedRule]:
        """What the last check could not evaluate."""
        rows = self.execute("SELECT not_evaluated FROM checks")
        return [NotEvaluatedRule(*values) for values in json.loads(rows[0][0])] if rows else []

    def note_check(self, at: datetime, not_evaluated: Iterable[NotEvaluatedRule]) -> None:
        """Remember the check, and drop what is older than anybody asks for."""
        lines = [(line.rule, line.filesystem, line.subject, line.why, line.counts) for line in not_evaluated]
        oldest = epoch_us(at - _KEPT)
        self.execute("DELETE FROM checks")
        self.execute("INSERT INTO checks VALUES (?, ?)", epoch_us(at), json.dumps(lines))
        self.execute("DELETE FROM alerts WHERE state = 'resolved' AND sent = 'resolved' AND resolved_us < ?", oldest)
        self.execute("DELETE FROM outbox WHERE coalesce(delivered_us, given_up_us) < ?", oldest)
        self.execute("DELETE FROM silences WHERE until_us < ?", oldest)


@contextmanager
def sole_check(folder: Path, wait_s: float = LONGEST_WAIT_S) -> Iterator[None]:
    """Wait until no other check runs, in this process or another; a process that was killed holds no lock."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, deadline = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600), time.monotonic() + wait_s
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise AlertsBusyError(f"{folder / LOCK}: another check has run for {wait_s:g} s") from None
                time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)


def _us(time: datetime | None) -> int | None:
    return None if time is None else epoch_us(time)


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_epoch_us(microseconds)

"""Silences: alerts that are not sent for a while, because somebody said so or maintenance is under way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from iolens.alerts.results import Alert, Silence
from iolens.alerts.state_file import StateFile
from iolens.config import Config
from iolens.errors import UsageError
from iolens.units import epoch_us, from_epoch_us, iso
from iolens.visible_text import visible

LONGEST_TEXT: Final = 500


def add(file: StateFile, silence: Silence) -> Silence:
    """Write a silence down; the number it gets is its id."""
    texts = [visible(text)[:LONGEST_TEXT] for text in (silence.author, silence.comment)]
    patterns = [_storable(text) for text in (silence.rule, silence.filesystem, silence.subject)]
    with file.transaction():
        rows = file.execute(
            "INSERT INTO silences (rule, filesystem, subject, until_us, author, comment, created_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
            *patterns, epoch_us(silence.until), *texts,
            epoch_us(silence.created_at),
        )  # fmt: skip
    return in_force(file, silence.created_at, int(rows[0][0]))[0]


def _storable(text: str) -> str:
    """Text that can be written as UTF-8; arguments of a command may hold any byte."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")[:LONGEST_TEXT]


def remove(file: StateFile, number: int, at: datetime) -> Silence:
    """End a silence now."""
    silences = in_force(file, at, number)
    if not silences:
        raise UsageError(f"no silence {number} is in force at {iso(at)}; `iolens alerts list` shows those that are")
    with file.transaction():
        file.execute("DELETE FROM silences WHERE id = ?", number)
    return silences[0]


def in_force(file: StateFile, at: datetime, number: int | None = None) -> list[Silence]:
    """Silences that have not ended, or the one of that id."""
    rows = file.execute(
        "SELECT id, rule, filesystem, subject, until_us, author, comment, created_us FROM silences"
        " WHERE until_us > ? AND coalesce(?, id) = id ORDER BY id",
        epoch_us(at), number,
    )  # fmt: skip
    return [
        Silence(id, rule, filesystem, subject, from_epoch_us(until), author, comment, from_epoch_us(created))
        for id, rule, filesystem, subject, until, author, comment, created in rows  # noqa: A001
    ]


def silenced_by(alert: Alert, silences: Sequence[Silence], config: Config, at: datetime) -> str | None:
    """Why an alert is not sent; None: it is."""
    for maintenance in config.filesystem(alert.filesystem or "").maintenance:
        if maintenance.start <= at < maintenance.end:
            return f"{maintenance.name} until {iso(maintenance.end)}"
    for silence in silences:
        parts = (
            (alert.rule, silence.rule),
            (alert.filesystem or "", silence.filesystem),
            (alert.subject, silence.subject),
        )
        if all(fnmatchcase(text, pattern) for text, pattern in parts):
            return f"silence {silence.id} of {silence.author} until {iso(silence.until)}"
    return None

"""Notifications that wait to be delivered, and silences, by which alerts are not sent for a while."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final

from iolens.alerts.notifications import Event, Notification, notification_of
from iolens.alerts.receivers import DeliveryError, Receiver
from iolens.alerts.results import Alert, DeliveryAttempt, Outcome, Silence, Undelivered
from iolens.alerts.state_file import StateFile
from iolens.config import Config
from iolens.errors import UsageError, unexpected
from iolens.units import epoch_us, from_epoch_us, iso
from iolens.visible_text import visible

# Silences -------------------------------------------------------------------------------------------------------------
# Alerts that are not sent for a while, because somebody said so or maintenance is under way.

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


# Notifications that wait to be delivered ------------------------------------------------------------------------------
# Written with the state, delivered after it, marked for each receiver.
#
# A process that dies between a delivery and its mark delivers that one notification again, under the same id.

FIRST_PAUSE_S: Final = 30.0
LONGEST_PAUSE_S: Final = 3600.0
RENEWAL: Final[Event] = "renewal"
_WAITING: Final = "delivered_us IS NULL AND given_up_us IS NULL"


@dataclass(frozen=True, slots=True)
class _Waiting:
    """One notification for one receiver."""

    number: int
    receiver: str
    attempts: int
    created: datetime
    next: datetime
    notification: Notification


def enqueue(file: StateFile, notification: Notification, receivers: Iterable[str]) -> None:
    """Write a notification down for each receiver; the same one is not written twice."""
    created, document = epoch_us(notification.created_at), json.dumps(notification.document())
    for receiver in receivers:
        file.execute(
            "INSERT OR IGNORE INTO outbox (notification, receiver, alert, event, document, created_us, next_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            notification.id, receiver, notification.alert.id, notification.event, document, created, created,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LastSent:
    """When a receiver was last to hear of an alert, and whether that still waits."""

    time: datetime
    waits: bool


def last_sent(file: StateFile, alert: str, receiver: str) -> LastSent | None:
    """None: never."""
    rows = file.execute(
        f"SELECT max(created_us), max({_WAITING}) FROM outbox WHERE alert = ? AND receiver = ?",  # noqa: S608
        alert, receiver,
    )  # fmt: skip
    return None if rows[0][0] is None else LastSent(from_epoch_us(rows[0][0]), bool(rows[0][1]))


def drop_renewals(file: StateFile, alert: str, receiver: str) -> None:
    """Forget older renewals: the next one says the same."""
    file.execute("DELETE FROM outbox WHERE alert = ? AND receiver = ? AND event = ?", alert, receiver, RENEWAL)


def deliver(
    file: StateFile, receivers: Mapping[str, Receiver], at: datetime, give_up_s: float
) -> list[DeliveryAttempt]:
    """Deliver what is due, in order; of a receiver that is down nothing more is tried in this check.

    What was not taken waits for a later check, each time twice as long; after `give_up_s` it is given up.
    """
    attempts: list[DeliveryAttempt] = []
    down: set[str] = set()
    blocked: set[tuple[str, str]] = set()  # later notifications of an alert do not overtake earlier ones
    for waiting in _waiting(file):
        key = (waiting.receiver, waiting.notification.alert.id)
        if waiting.receiver in down or key in blocked or waiting.next > at:
            blocked.add(key)
            continue
        error = _tried(receivers, waiting)
        outcome = _marked(file, waiting, error, at, give_up_s)
        if error is not None and outcome != "given up":
            blocked.add(key)
            if error.is_down:
                down.add(waiting.receiver)
                _put_off(file, waiting.receiver, waiting.number)
        attempts.append(attempt_of(waiting.receiver, waiting.notification, outcome, error))
    return attempts


def attempt_of(
    receiver: str, notification: Notification, outcome: Outcome, error: DeliveryError | None
) -> DeliveryAttempt:
    """What became of a notification."""
    alert, problem = notification.alert, None if error is None else str(error)
    return DeliveryAttempt(
        receiver, notification.id, notification.event, alert.rule, alert.filesystem, alert.subject, outcome, problem
    )


def try_delivery(receiver: Receiver, notification: Notification) -> DeliveryError | None:
    """Deliver; what nobody foresaw in a receiver is a failure of it alone."""
    try:
        receiver.deliver(notification)
    except DeliveryError as error:
        return error
    except Exception as error:
        return DeliveryError(unexpected(error), is_down=False)
    return None


def undelivered(file: StateFile) -> list[Undelivered]:
    """What waits or was given up, the oldest first."""
    rows = file.execute(
        "SELECT receiver, document, created_us, attempts, next_us, given_up_us, error FROM outbox"
        " WHERE delivered_us IS NULL ORDER BY number"
    )
    lines = []
    for receiver, document, created, attempts, next_us, given_up, error in rows:
        notification = notification_of(json.loads(document))
        alert = notification.alert
        lines.append(
            Undelivered(
                receiver=receiver,
                notification=notification.id,
                event=notification.event,
                rule=alert.rule,
                filesystem=alert.filesystem,
                subject=alert.subject,
                created_at=from_epoch_us(created),
                attempts=attempts,
                next_attempt_at=None if given_up is not None else from_epoch_us(next_us),
                given_up_at=None if given_up is None else from_epoch_us(given_up),
                error=error,
            )
        )
    return lines


def _waiting(file: StateFile) -> list[_Waiting]:
    rows = file.execute(
        f"SELECT number, receiver, attempts, created_us, next_us, document FROM outbox WHERE {_WAITING}"  # noqa: S608
        " ORDER BY number"
    )
    return [
        _Waiting(
            number,
            receiver,
            attempts,
            from_epoch_us(created),
            from_epoch_us(due),
            notification_of(json.loads(document)),
        )
        for number, receiver, attempts, created, due, document in rows
    ]


def _tried(receivers: Mapping[str, Receiver], waiting: _Waiting) -> DeliveryError | None:
    receiver = receivers.get(waiting.receiver)
    if receiver is None:
        return DeliveryError("the configuration has no such receiver", is_down=True)
    return try_delivery(receiver, waiting.notification)


def _marked(file: StateFile, waiting: _Waiting, error: DeliveryError | None, at: datetime, give_up_s: float) -> Outcome:
    now = epoch_us(at)
    if error is None:
        file.execute("UPDATE outbox SET delivered_us = ?, error = NULL WHERE number = ?", now, waiting.number)
        return "delivered"
    last = waiting.created + timedelta(seconds=give_up_s)
    pause_s = min(FIRST_PAUSE_S * 2.0 ** min(waiting.attempts, 20), LONGEST_PAUSE_S)
    due, is_over = min(at + timedelta(seconds=pause_s), max(last, at)), at >= last
    file.execute(
        "UPDATE outbox SET attempts = attempts + 1, next_us = ?, given_up_us = ?, error = ? WHERE number = ?",
        epoch_us(due), now if is_over else None, str(error), waiting.number,
    )  # fmt: skip
    return "given up" if is_over else "failed"


def _put_off(file: StateFile, receiver: str, number: int) -> None:
    """What else waits for a receiver that is down is due when the first of it is."""
    file.execute(
        f"UPDATE outbox SET next_us = max(next_us, (SELECT next_us FROM outbox WHERE number = ?)) WHERE receiver = ? AND {_WAITING}",  # noqa: S608, E501
        number, receiver,
    )  # fmt: skip

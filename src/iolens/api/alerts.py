"""Alerts of a store: check them, list them, silence them, and try the receivers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolens.alerts import outbox as silences
from iolens.alerts.changes import AlertChanges, AlertRecord, changes_of, notification, owed
from iolens.alerts.outbox import (
    RENEWAL,
    attempt_of,
    deliver,
    drop_renewals,
    enqueue,
    last_sent,
    try_delivery,
    undelivered,
)
from iolens.alerts.results import (
    Alert,
    AlertCheck,
    AlertList,
    DeliveryAttempt,
    ReceiverTest,
    RuleLine,
    RuleList,
    Silence,
    quantity_text,
)
from iolens.alerts.rule import AlertRule
from iolens.alerts.settings import AlertSettings, alert_settings
from iolens.alerts.state_file import NAME, StateFile, sole_check
from iolens.config import Config
from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.times import present, utc_time
from iolens.units import DAY_S, format_bytes_si, iso

if TYPE_CHECKING:
    from iolens.api.access.store_analyses import StoreAnalyses

EVERYTHING: Final = "*"


def check_alerts(
    opened: StoreAnalyses, state: Path, now: datetime | None = None, *, dry_run: bool = False
) -> AlertCheck:
    """Evaluate all rules, keep what changed, and deliver what is due; with `dry_run` nothing is changed or sent.

    `now` is the clock's time unless given; it ends every window. One check runs at a time: another waits for it.
    """
    settings = alert_settings(opened.config)
    if dry_run:
        return _dry_check(opened, settings, state, utc_time(now) or present())
    with sole_check(state), StateFile(state) as file:
        at = _time_of_check(utc_time(now), file.checked_at)
        records = file.records()
        changes = _changes(opened, settings, records, silences.in_force(file, at), at, state)
        with file.transaction():
            _keep(file, settings, changes, at)
            file.note_check(at, changes.not_evaluated)
        attempts = deliver(file, settings.receivers, at, settings.give_up_s)
    return _result(settings, records, changes, at, attempts)


def _dry_check(opened: StoreAnalyses, settings: AlertSettings, state: Path, at: datetime) -> AlertCheck:
    records: list[AlertRecord] = []
    in_force: list[Silence] = []
    if (state / NAME).exists():
        with StateFile(state) as file:
            records, in_force = file.records(), silences.in_force(file, at)
    changes = _changes(opened, settings, records, in_force, at, state)
    return _result(settings, records, changes, at, None)


def _time_of_check(now: datetime | None, last: datetime | None) -> datetime:
    """The clock's time, but never earlier than the last check; a given time that is earlier is refused."""
    if now is None:
        return max(present(), last) if last is not None else present()
    if last is not None and now < last:
        raise UsageError(f"the last check was for {iso(last)}, after {iso(now)}: time goes one way in the state")
    return now


def _changes(
    opened: StoreAnalyses,
    settings: AlertSettings,
    records: Sequence[AlertRecord],
    in_force: Sequence[Silence],
    at: datetime,
    state: Path,
) -> AlertChanges:
    """What the rules see now, after what was before; with why an alert is not sent."""
    from iolens.api.alert_evidence import Evidence

    going_on = [record for record in records if not record.is_over]
    changes = changes_of(settings, going_on, Evidence(opened, at, state).seen(settings.rules), at)
    changes.ended = [record for record in records if record.is_over]
    changes.mark_silenced(lambda alert: silences.silenced_by(alert, in_force, opened.config, at))
    return changes


def _keep(file: StateFile, settings: AlertSettings, changes: AlertChanges, at: datetime) -> None:
    """Write the records and what they owe their receivers."""
    rules = {rule.name: rule for rule in settings.rules}
    file.forget(changes.forgotten)
    for record in (*changes.ended, *changes.kept.values()):
        after, owed_notification = owed(record, rules.get(record.alert.rule), at)
        file.save(after)
        if owed_notification is not None:
            enqueue(file, owed_notification, after.alert.receivers)
        elif after.alert.state == "firing" and after.sent == "firing" and after.alert.silenced_by is None:
            _renew(file, settings, after.alert, at)


def _renew(file: StateFile, settings: AlertSettings, alert: Alert, at: datetime) -> None:
    """Remind those receivers that forget alerts of which they hear no more."""
    for name in alert.receivers:
        renew_s = settings.receivers[name].renew_s if name in settings.receivers else None
        last = last_sent(file, alert.id, name)
        if renew_s is None or last is None or last.waits or at - last.time < timedelta(seconds=renew_s):
            continue
        drop_renewals(file, alert.id, name)
        enqueue(file, notification(alert, RENEWAL, at), [name])


def _result(
    settings: AlertSettings,
    before: Sequence[AlertRecord],
    changes: AlertChanges,
    at: datetime,
    attempts: list[DeliveryAttempt] | None,
) -> AlertCheck:
    """`attempts` is None where it was a dry run."""
    fired_before = {record.alert.id for record in before if record.alert.fired_at is not None}
    return AlertCheck(
        checked_at=at,
        dry_run=attempts is None,
        rules=len(settings.rules),
        alerts=changes.alerts("pending", "firing"),
        fired=[alert for alert in changes.alerts("firing") if alert.id not in fired_before],
        resolved=changes.alerts("resolved"),
        not_evaluated=changes.not_evaluated,
        deliveries=attempts or [],
    )


def alert_list(
    config: Config, state: Path, now: datetime | None = None, day_s: float = DAY_S, filesystem: str | None = None
) -> AlertList:
    """Alerts that go on, those that ended in the last `day_s` seconds, silences, and what was not delivered.

    With `filesystem` only the alerts of that file system.
    """
    alert_settings(config)  # a configuration that no check could use is refused here too
    at = utc_time(now) or present()
    if not (state / NAME).exists():
        return AlertList(at, None, [], [], [], [], [])
    with StateFile(state) as file:
        going_on = _of([record.alert for record in file.records() if not record.is_over], filesystem)
        return AlertList(
            listed_at=at,
            checked_at=file.checked_at,
            alerts=sorted(going_on, key=lambda alert: (alert.state, alert.since)),
            resolved=_of(file.resolved_since(at - timedelta(seconds=day_s)), filesystem),
            silences=silences.in_force(file, at),
            undelivered=undelivered(file),
            not_evaluated=file.not_evaluated(),
        )


def _of(alerts: Sequence[Alert], filesystem: str | None) -> list[Alert]:
    return [alert for alert in alerts if filesystem is None or alert.filesystem == filesystem]


def add_silence(
    config: Config,
    state: Path,
    rule: str,
    *,
    until: datetime,
    comment: str,
    author: str | None = None,
    filesystem: str = EVERYTHING,
    subject: str = EVERYTHING,
    now: datetime | None = None,
) -> Silence:
    """Do not send alerts of these rules, file systems and subjects (patterns) until a time."""
    at, until = utc_time(now) or present(), utc_time(until) or until
    if until <= at:
        raise UsageError(f"a silence until {iso(until)} would be over already")
    names = [known.name for known in alert_settings(config).rules]
    if not any(fnmatchcase(name, rule) for name in names):
        raise UsageError(f"no rule is called {rule!r}{not_among(rule, names)}")
    with StateFile(state) as file:
        return silences.add(file, Silence(0, rule, filesystem, subject, until, author or getuser(), comment, at))


def remove_silence(state: Path, number: int, now: datetime | None = None) -> Silence:
    """End a silence now; an alert that still fires is sent at the next check."""
    if not (state / NAME).exists():
        raise UsageError(f"{state} holds no alerts, and no silence")
    with StateFile(state) as file:
        return silences.remove(file, number, now or present())


def rule_list(config: Config) -> RuleList:
    """All rules in force."""
    settings = alert_settings(config)
    return RuleList(settings.is_built_in, [_line(settings, rule) for rule in settings.rules])


def _line(settings: AlertSettings, rule: AlertRule) -> RuleLine:
    border = "at most" if rule.kind.is_below else "at least"
    return RuleLine(
        name=rule.name,
        kind=rule.kind.name,
        filesystem=rule.filesystem,
        subject=rule.subject,
        condition=f"{rule.kind.measure} {border} {rule.text(rule.threshold)}",
        clear=f"{'above' if rule.kind.is_below else 'below'} {rule.text(rule.clear)}",
        window_s=rule.window_s,
        for_s=rule.for_s,
        clear_for_s=rule.clear_for_s,
        severity=rule.severity,
        receivers=settings.receivers_of(rule),
        repeat_s=rule.repeat_s,
        optional=rule.optional,
        options={name: _option_text(rule, name) for name in rule.options},
    )


def _option_text(rule: AlertRule, name: str) -> str:
    value, unit = rule.options[name], rule.kind.options[name].unit
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{format_bytes_si(value)}/s" if unit == "rate" or unit == "words" else quantity_text(value, unit)


def try_receivers(config: Config, now: datetime | None = None) -> ReceiverTest:
    """Send a test notification to every receiver of the configuration."""
    settings, at = alert_settings(config), now or present()
    attempts = []
    for receiver in settings.receivers.values():
        sample = notification(_sample(settings, receiver.name, at), "test", at)
        error = try_delivery(receiver, sample)
        attempts.append(attempt_of(receiver.name, sample, "delivered" if error is None else "failed", error))
    return ReceiverTest(attempts)


def _sample(settings: AlertSettings, receiver: str, at: datetime) -> Alert:
    return Alert(
        id=uuid.uuid4().hex,
        rule="test",
        kind="test",
        filesystem=None,
        subject="test",
        severity="info",
        state="firing",
        since=at,
        fired_at=at,
        resolved_at=None,
        checked_at=at,
        value=None,
        threshold=0.0,
        clear=0.0,
        unit="%",
        why="This is a test of iolens alerts. Nothing is wrong.",
        who=None,
        window_start=at,
        window_end=at,
        link=settings.link,
        command="iolens alerts list",
        receivers=[receiver],
    )

"""What a check changes: from pending to firing to resolved, and when targets and agents last reported."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from iolens.alerts.notifications import Event, Notification, command_of, link_of
from iolens.alerts.results import Alert, NotEvaluatedRule
from iolens.alerts.rule import EVERY_SUBJECT, AlertRule, CheckedWindow, Condition, Level
from iolens.alerts.settings import AlertSettings

# From pending to firing to resolved -----------------------------------------------------------------------------------
# What becomes of an alert at a check, from its state before and what is seen.

Sent = Literal["nothing", "firing", "resolved"]


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """An alert with what the next check needs: when it was first seen, since when it is clear, and what was sent."""

    alert: Alert
    seen_at: datetime
    clear_at: datetime | None = None
    sent: Sent = "nothing"
    sent_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether the condition has ended."""
        return self.alert.state == "resolved"


def next_record(
    rule: AlertRule, before: AlertRecord | None, condition: Condition, new: Alert, at: datetime
) -> AlertRecord | None:
    """The record after a check at `at`; None where there is nothing to keep.

    `new` is the alert as the condition describes it. A pending alert whose condition does not hold is forgotten; an
    unknown condition leaves the state as it is.
    """
    if condition.level == "unknown":
        return None if before is None else with_unknown(before, condition.why, at)
    if before is None:
        return _fired_if_due(rule, AlertRecord(new, at), at) if condition.level == "reached" else None
    record = replace(before, alert=_updated(before.alert, new))
    if record.alert.state == "pending":
        return _fired_if_due(rule, record, at) if condition.level == "reached" else None
    if condition.level != "clear":
        return replace(record, clear_at=None)
    clear_at = before.clear_at or at
    if (at - clear_at).total_seconds() < rule.clear_for_s:
        return replace(record, clear_at=clear_at)
    return resolved(record, at)


def resolved(record: AlertRecord, at: datetime, why: str | None = None) -> AlertRecord:
    """The record of an alert that has ended."""
    alert = replace(record.alert, state="resolved", resolved_at=at, why=why or record.alert.why)
    return replace(record, alert=alert)


def _fired_if_due(rule: AlertRule, record: AlertRecord, at: datetime) -> AlertRecord:
    if (at - record.seen_at).total_seconds() < rule.for_s:
        return record
    return replace(record, alert=replace(record.alert, state="firing", fired_at=at))


def _updated(before: Alert, new: Alert) -> Alert:
    """What is seen now of an alert that goes on; when it began, and who was seen last, stay."""
    return replace(
        new,
        id=before.id,
        state=before.state,
        since=min(before.since, new.since),
        fired_at=before.fired_at,
        who=new.who if new.who is not None else before.who,
    )


def with_unknown(before: AlertRecord, why: str, at: datetime) -> AlertRecord:
    """The same state, and since when and why nothing is known."""
    since = before.alert.unknown_since or at
    return replace(before, alert=replace(before.alert, unknown_since=since, unknown_why=why), clear_at=None)


# When targets and agents last reported --------------------------------------------------------------------------------
# And what of agents is not in the store: what rules ask about silence.


@dataclass(frozen=True, slots=True)
class NewestRows:
    """End of the newest row of each target, by file system, and of each agent; those with none in the window lack."""

    targets: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)
    agents: Mapping[str, datetime] = field(default_factory=dict)

    def of(self, filesystem: str) -> Mapping[str, datetime]:
        """Targets of one file system."""
        return self.targets.get(filesystem, {})


@dataclass(frozen=True, slots=True)
class SegmentsAside:
    """How many segments of one agent lie in `late/` and `bad/` of the hub, and when the first of them arrived."""

    host: str
    late: int
    bad: int
    since: datetime | None


# What a check changes -------------------------------------------------------------------------------------------------
# Records of alerts after what was seen, and the notifications that they owe.

Key = tuple[str, str, str]  # rule, file system, subject
NO_RULE = "The rule is no longer in the configuration."
NOT_STORED = "The store holds nothing of its file system."
NOT_CONCERNED = "The rule no longer concerns it."


@dataclass(frozen=True, slots=True)
class Seen:
    """What a rule saw of one file system, or of the whole store."""

    rule: AlertRule
    window: CheckedWindow
    conditions: Sequence[Condition]


@dataclass(slots=True)
class AlertChanges:
    """Records to write and to forget, and what could not be evaluated; `ended` before, but the end was not sent."""

    kept: dict[Key, AlertRecord] = field(default_factory=dict)
    forgotten: list[AlertRecord] = field(default_factory=list)
    ended: list[AlertRecord] = field(default_factory=list)
    not_evaluated: list[NotEvaluatedRule] = field(default_factory=list)

    def alerts(self, *states: str) -> list[Alert]:
        """Alerts in these states, in the order in which they began."""
        alerts = [record.alert for record in self.kept.values() if record.alert.state in states]
        return sorted(alerts, key=lambda alert: (alert.since, alert.rule, alert.subject))

    def mark_silenced(self, reason: Callable[[Alert], str | None]) -> None:
        """Note why alerts are not sent."""
        self.kept = {key: _with_silence(record, reason) for key, record in self.kept.items()}
        self.ended = [_with_silence(record, reason) for record in self.ended]


def _with_silence(record: AlertRecord, reason: Callable[[Alert], str | None]) -> AlertRecord:
    return replace(record, alert=replace(record.alert, silenced_by=reason(record.alert)))


def changes_of(
    settings: AlertSettings, before: Iterable[AlertRecord], seen: Iterable[Seen], at: datetime
) -> AlertChanges:
    """Every record that goes on, after what was seen at `at`."""
    records = {key_of(record.alert): record for record in before}
    changes = AlertChanges()
    for part in seen:
        changes.not_evaluated += _not_evaluated(part)
        for condition in _with_absent(part, records):
            _take(changes, settings, part, condition, records, at)
    rules = {rule.name: rule for rule in settings.rules}
    for record in records.values():
        _put(changes, record, _left_over(record, rules.get(record.alert.rule), at))
    return changes


def _left_over(record: AlertRecord, rule: AlertRule | None, at: datetime) -> AlertRecord | None:
    """Of an alert that no rule saw: its file system is not in the store, or the configuration is another one."""
    alert = record.alert
    if rule is not None and rule.concerns(alert.filesystem or "") and rule.watches(alert.subject):
        return with_unknown(record, NOT_STORED, at)
    if alert.state != "firing":
        return None
    return resolved(record, at, NO_RULE if rule is None else NOT_CONCERNED)


def _take(
    changes: AlertChanges, settings: AlertSettings, part: Seen, condition: Condition, records: dict[Key, AlertRecord],
    at: datetime,
) -> None:  # fmt: skip
    if condition.subject is EVERY_SUBJECT or not part.rule.watches(condition.subject):
        return
    alert = described(settings, part, condition, at)
    if key_of(alert) in changes.kept:  # two subjects with one name: the first counts
        return
    before = records.pop(key_of(alert), None)
    _put(changes, before, next_record(part.rule, before, condition, alert, at))


def _put(changes: AlertChanges, before: AlertRecord | None, after: AlertRecord | None) -> None:
    if after is not None:
        changes.kept[key_of(after.alert)] = after
    elif before is not None:
        changes.forgotten.append(before)


def _with_absent(part: Seen, records: Mapping[Key, AlertRecord]) -> list[Condition]:
    """The conditions, and one for each alert whose subject was not seen."""
    whole = next((condition for condition in part.conditions if condition.subject is EVERY_SUBJECT), None)
    level: Level = "unknown" if whole is not None else part.rule.kind.absent
    why = whole.why if whole is not None else part.rule.kind.absent_why
    here = {(_filesystem(part, condition), condition.subject) for condition in part.conditions}
    absent = [
        Condition(subject, level, why, filesystem=filesystem or None)
        for rule, filesystem, subject in records
        if rule == part.rule.name
        and (part.rule.kind.of_store or filesystem == part.window.filesystem)
        and (filesystem, subject) not in here
    ]
    return [*part.conditions, *absent]


def _filesystem(part: Seen, condition: Condition) -> str:
    return (condition.filesystem or "") if part.rule.kind.of_store else part.window.filesystem


def _not_evaluated(part: Seen) -> list[NotEvaluatedRule]:
    return [
        NotEvaluatedRule(
            part.rule.name, _filesystem(part, condition) or None, condition.subject, condition.why,
            not part.rule.optional,
        )
        for condition in part.conditions
        if condition.level == "unknown" and (condition.subject is None or part.rule.watches(condition.subject))
    ]  # fmt: skip


def described(settings: AlertSettings, part: Seen, condition: Condition, at: datetime) -> Alert:
    """The alert that a condition would begin: pending, with an id of its own."""
    rule, subject = part.rule, condition.subject or ""
    filesystem = _filesystem(part, condition) or None
    stretch = condition.stretch or (part.window.start, part.window.end)
    if condition.since is not None and condition.stretch is None:
        stretch = min(condition.since - timedelta(hours=1), stretch[1]), stretch[1]
    return Alert(
        id=uuid.uuid4().hex,
        rule=rule.name,
        kind=rule.kind.name,
        filesystem=filesystem,
        subject=subject,
        severity=rule.severity,
        state="pending",
        since=condition.since or at,
        fired_at=None,
        resolved_at=None,
        checked_at=at,
        value=condition.value,
        threshold=rule.threshold,
        clear=rule.clear,
        unit=rule.kind.unit,
        why=condition.why,
        who=None if condition.who is None else list(condition.who),
        window_start=stretch[0],
        window_end=stretch[1],
        link=link_of(settings.link, rule.kind.page, filesystem, subject, stretch),
        command=command_of(rule.kind, filesystem, stretch),
        receivers=settings.receivers_of(rule),
    )


def owed(record: AlertRecord, rule: AlertRule | None, at: datetime) -> tuple[AlertRecord, Notification | None]:
    """The notification that the record owes its receivers now, and the record once it is written down.

    A silenced alert owes nothing until the silence ends; one that ended before anybody heard of it owes nothing.
    """
    state, sent = record.alert.state, record.sent
    if state == "resolved" and sent == "nothing":
        return replace(record, sent="resolved"), None
    if record.alert.silenced_by is not None or state == "pending":
        return record, None
    if state == "resolved":
        return replace(record, sent="resolved", sent_at=at), notification(record.alert, "resolved", at)
    if sent == "nothing":
        return replace(record, sent="firing", sent_at=at), notification(record.alert, "firing", at)
    if _is_repeat_due(record, rule, at):
        return replace(record, sent_at=at), notification(record.alert, "repeat", at)
    return record, None


def _is_repeat_due(record: AlertRecord, rule: AlertRule | None, at: datetime) -> bool:
    if rule is None or rule.repeat_s is None or record.sent_at is None:
        return False
    return at - record.sent_at >= timedelta(seconds=rule.repeat_s)


def notification(alert: Alert, event: Event, at: datetime) -> Notification:
    """A notification with an id that is the same whenever it is sent."""
    is_single = event in ("firing", "resolved")
    number = alert.id if is_single else f"{alert.id}-{at:%Y%m%dT%H%M%S}"
    return Notification(f"{number}-{event}", event, at, alert)


def key_of(alert: Alert) -> Key:
    """What tells alerts apart that go on."""
    return alert.rule, alert.filesystem or "", alert.subject

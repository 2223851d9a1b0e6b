"""From pending to firing to resolved: what becomes of an alert at a check, from its state before and what is seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from iolens.alerts.conditions import Condition
from iolens.alerts.results import Alert
from iolens.alerts.rule import AlertRule

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

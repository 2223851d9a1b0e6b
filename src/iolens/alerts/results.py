"""What alerts are, as checks and lists show them, and thresholds with their units."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from iolens.units import DAY_S, parse_duration

# Thresholds and measured values with their units ----------------------------------------------------------------------
# Per cent, multiples, durations and counts.

Unit = Literal["%", "x", "s", "n"]
EXAMPLES: Final[dict[Unit, str]] = {"%": "80%", "x": "3x", "s": "15min", "n": "3"}
_NUMBER: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(%|x)")
_LENGTHS: Final = ((float(DAY_S), "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def parse_quantity(text: str, unit: Unit) -> float:
    """The number of `80%`, `3x` or `15min`; ValueError where the unit is missing or another one."""
    if unit == "s":
        if text.strip()[-1:].isalpha():
            return parse_duration(text)
    elif unit == "n" and (text := text.strip()).isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    elif (match := _NUMBER.fullmatch(text.strip())) is not None and match[2] == unit:
        return float(match[1])
    raise ValueError(f"{text!r}: write a number with its unit, such as {EXAMPLES[unit]}")


def quantity_text(value: float | None, unit: Unit) -> str:
    """`82.3 %`, `3.2 times`, `4.5 min`; `unknown` of what is not known."""
    if value is None:
        return "unknown"
    if unit == "%":
        return f"{value:.1f} %"
    if unit == "n":
        return f"{value:,.0f}"
    return f"{value:.3g} times" if unit == "x" else duration_text(value)


def duration_text(seconds: float) -> str:
    """`58 s`, `4.5 min`, `3 h`, `12 d`."""
    size, name = next((pair for pair in _LENGTHS if abs(seconds) >= pair[0]), _LENGTHS[-1])
    return f"{seconds / size:.3g} {name}" if abs(seconds) < 1000 * size else f"{seconds / size:,.0f} {name}"


# What alerts are, as checks and lists show them; field names are the JSON keys ----------------------------------------

State = Literal["pending", "firing", "resolved"]
Severity = Literal["info", "warning", "critical"]
Outcome = Literal["delivered", "failed", "given up"]


@dataclass(frozen=True, slots=True)
class WhoTook:
    """A job and its share of the disk time of the stretch."""

    name: str
    user: str | None
    share_pct: float


@dataclass(frozen=True, slots=True)
class Alert:
    """One occurrence of a rule's condition on one subject (target, agent, drive, job); `id` is its own.

    `filesystem` is null where the subject is of the whole store. `value`, `threshold` and `clear` are in `unit`.
    """

    id: str
    rule: str
    kind: str
    filesystem: str | None
    subject: str
    severity: Severity
    state: State
    since: datetime
    fired_at: datetime | None
    resolved_at: datetime | None
    checked_at: datetime  # last time that something was known
    value: float | None
    threshold: float
    clear: float
    unit: Unit
    why: str
    who: list[WhoTook] | None
    window_start: datetime
    window_end: datetime
    link: str | None
    command: str
    receivers: list[str]
    unknown_since: datetime | None = None
    unknown_why: str | None = None
    silenced_by: str | None = None


@dataclass(frozen=True, slots=True)
class NotEvaluatedRule:
    """A rule of which nothing was known; `counts` is false where it is optional and there is no such data."""

    rule: str
    filesystem: str | None
    subject: str | None
    why: str
    counts: bool


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One notification to one receiver; `error` is why it failed."""

    receiver: str
    notification: str
    event: str
    rule: str
    filesystem: str | None
    subject: str
    outcome: Outcome
    error: str | None


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A notification that waits for its receiver, or was given up."""

    receiver: str
    notification: str
    event: str
    rule: str
    filesystem: str | None
    subject: str
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None
    given_up_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Silence:
    """Alerts of these rules, file systems and subjects (patterns) are not sent until a time."""

    id: int
    rule: str
    filesystem: str
    subject: str
    until: datetime
    author: str
    comment: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AlertCheck:
    """What one check saw, changed and sent; of a dry run, what it would change."""

    checked_at: datetime
    dry_run: bool
    rules: int
    alerts: list[Alert]  # pending and firing
    fired: list[Alert]
    resolved: list[Alert]
    not_evaluated: list[NotEvaluatedRule]
    deliveries: list[DeliveryAttempt]

    @property
    def exit_code(self) -> int:
        """4: something fires; 3: something could not be evaluated or delivered; 0: neither."""
        if any(alert.state == "firing" for alert in self.alerts):
            return 4
        failed = any(attempt.outcome != "delivered" for attempt in self.deliveries)
        return 3 if failed or any(rule.counts for rule in self.not_evaluated) else 0


@dataclass(frozen=True, slots=True)
class AlertList:
    """Alerts now and of the last day, silences, and what was not delivered; `checked_at`: the last check."""

    listed_at: datetime
    checked_at: datetime | None
    alerts: list[Alert]
    resolved: list[Alert]
    silences: list[Silence]
    undelivered: list[Undelivered]
    not_evaluated: list[NotEvaluatedRule]


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule with everything that is in force."""

    name: str
    kind: str
    filesystem: str
    subject: str
    condition: str
    clear: str
    window_s: float
    for_s: float
    clear_for_s: float
    severity: Severity
    receivers: list[str]
    repeat_s: float | None
    optional: bool
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleList:
    """All rules in force; `built_in` where the configuration has none."""

    built_in: bool
    rules: list[RuleLine]


@dataclass(frozen=True, slots=True)
class ReceiverTest:
    """A test notification to every receiver."""

    deliveries: list[DeliveryAttempt]

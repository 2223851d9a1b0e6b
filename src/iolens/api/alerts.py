"""Alerts of a store: what rules ask of it, check them, list them, silence them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from getpass import getuser
from pathlib import Path
from typing import Any, Final

from iolens.alerts import outbox as silences
from iolens.alerts.changes import (
    AlertChanges,
    AlertRecord,
    NewestRows,
    Seen,
    SegmentsAside,
    changes_of,
    notification,
    owed,
)
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
    WhoTook,
    quantity_text,
)
from iolens.alerts.rule import AlertRule, CheckedWindow, Condition, EvidenceQuestion, unknown
from iolens.alerts.settings import AlertSettings, alert_settings
from iolens.alerts.state_file import NAME, StateFile, sole_check
from iolens.analyses import analysis_names
from iolens.analyses.calibration_drift import SlowTargets
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.calibration_estimate import slow_targets_at
from iolens.api.store_analyses import StoreAnalyses
from iolens.config import Config
from iolens.errors import IolensError, UsageError, unexpected
from iolens.hub.hub_state import hub_state
from iolens.messages import detail
from iolens.nearest_names import not_among
from iolens.store.duckdb_engine import query
from iolens.store.scope import Scope
from iolens.times import present, utc_time
from iolens.units import DAY_S, format_bytes_si, from_epoch_us, iso

# What rules of alerts ask of a store, asked once for all of them ------------------------------------------------------

TABLES: Final = ("target_io", "target_sizes", "metadata_ops")  # rows of targets
HEALTH: Final = "agent_health"
NAMED: Final = 3  # jobs that an alert names
BY_JOB_STATS: Final = "job_stats"
EVERY_FILESYSTEM: Final = "*"
EPOCH: Final = date(1970, 1, 1)


@dataclass(slots=True)
class Evidence:
    """A store at one time, and the answers it gave."""

    opened: StoreAnalyses
    at: datetime
    state: Path | None = None  # of the server: what its agents sent is there too
    answers: dict[tuple[str, EvidenceQuestion], Any] = field(default_factory=dict)  # by file system
    blamed: dict[Scope, tuple[WhoTook, ...] | None] = field(default_factory=dict)

    def seen(self, rules: Sequence[AlertRule]) -> Iterator[Seen]:
        """What each rule sees of each file system that it concerns."""
        names = sorted(self.opened.store.targets_by_filesystem())
        pairs = [(rule, name) for rule in rules for name in _concerned(rule, names)]
        for filesystem in dict.fromkeys(name for _, name in pairs):
            self._ask([rule for rule, name in pairs if name == filesystem], filesystem)
        for rule, filesystem in pairs:
            window = CheckedWindow(filesystem, self.at - timedelta(seconds=rule.window_s), self.at)
            yield Seen(rule, window, [self._with_who(rule, window, part) for part in self._conditions(rule, window)])
        for rule in rules:
            if not rule.kind.of_store and not any(map(rule.concerns, names)):
                window = CheckedWindow("", self.at - timedelta(seconds=rule.window_s), self.at)
                yield Seen(rule, window, [unknown(f"The store has no file system {rule.filesystem}.")])

    def _conditions(self, rule: AlertRule, window: CheckedWindow) -> list[Condition]:
        answers, refusals = {}, []
        for question in rule.kind.questions(rule):
            answer = self.answers[window.filesystem, question]
            if isinstance(answer, IolensError):
                refusals.append(str(answer))
            else:
                answers[question.name] = answer
        if rule.kind.questions(rule)[0].name not in answers:  # others only add to it
            return [unknown(refusals[0])]
        return [_doubted(rule, condition, answers) for condition in rule.kind.conditions(rule, answers, window)]

    def _ask(self, rules: Sequence[AlertRule], filesystem: str) -> None:
        """All questions about one file system: analyses of the same window together."""
        asked = list(dict.fromkeys(question for rule in rules for question in rule.kind.questions(rule)))
        rounds: dict[tuple[float, int], list[EvidenceQuestion]] = {}
        for place, question in enumerate(asked):
            if question.name in analysis_names():
                same = sum(
                    other.name == question.name and other.window_s == question.window_s for other in asked[:place]
                )
                rounds.setdefault((question.window_s, same), []).append(question)
            else:
                self._keep(filesystem, question)
        for questions in rounds.values():
            self._keep_together(filesystem, questions)

    def _keep_together(self, filesystem: str, questions: Sequence[EvidenceQuestion]) -> None:
        by_name = {question.name: question for question in questions}
        options = {name: dict(question.options) for name, question in by_name.items()}
        try:
            for name, answer in self.opened.together(options, self.scope(filesystem, questions[0])):
                self.answers[filesystem, by_name[name]] = answer
        except Exception as error:  # a fault of one question is no reason to leave others without an answer
            detail(unexpected(error))
            for question in questions:
                if (filesystem, question) not in self.answers:
                    self._keep(filesystem, question)

    def _keep(self, filesystem: str, question: EvidenceQuestion) -> None:
        """The answer to one question; why there is none, otherwise."""
        try:
            self.answers[filesystem, question] = OTHERS.get(question.name, _analysis)(self, filesystem, question)
        except IolensError as error:
            self.answers[filesystem, question] = error
        except Exception as error:
            self.answers[filesystem, question] = IolensError(unexpected(error))

    def scope(self, filesystem: str, question: EvidenceQuestion) -> Scope:
        """The window of a question."""
        return Scope(filesystem, self.at - timedelta(seconds=question.window_s), self.at)

    def _with_who(self, rule: AlertRule, window: CheckedWindow, condition: Condition) -> Condition:
        """The first names of blame, where the threshold is reached and job_stats are there."""
        if not rule.kind.has_who or condition.level != "reached" or condition.stretch is None:
            return condition
        scope = Scope(window.filesystem, *condition.stretch)
        if scope not in self.blamed:
            self.blamed[scope] = self._blamed(scope)
        return replace(condition, who=self.blamed[scope])

    def _blamed(self, scope: Scope) -> tuple[WhoTook, ...] | None:
        try:
            result = blame_of(self.opened, scope, BlameOptions(top=NAMED))
        except IolensError:
            return None
        if result.method != BY_JOB_STATS:
            return None
        return tuple(WhoTook(share.name, share.user, share.share_pct) for share in result.who)


def _doubted(rule: AlertRule, condition: Condition, answers: Mapping[str, Any]) -> Condition:
    """With the warnings of the answers that it rests on; those of a forecast where it is one."""
    from iolens.views.render.doubts import unsaid, warned, warnings

    used = [answer for answer in answers.values() if rule.kind.forecasts or not hasattr(answer, "too_little_data")]
    lines = dict.fromkeys(line for answer in used for line in warnings(answer))
    return replace(condition, why=" ".join([condition.why, *map(warned, unsaid(list(lines), [condition.why]))]))


def _concerned(rule: AlertRule, names: Sequence[str]) -> list[str]:
    return [""] if rule.kind.of_store else [name for name in names if rule.concerns(name)]


def _analysis(evidence: Evidence, filesystem: str, question: EvidenceQuestion) -> Any:
    return evidence.opened.analyse(question.name, evidence.scope(filesystem, question), **dict(question.options))


def _blame(evidence: Evidence, filesystem: str, question: EvidenceQuestion) -> Any:
    return blame_of(evidence.opened, evidence.scope(filesystem, question), BlameOptions(by="job"))


def _newest(evidence: Evidence, _: str, question: EvidenceQuestion) -> Any:
    """Of all file systems, so that it is asked once."""
    if (EVERY_FILESYSTEM, question) not in evidence.answers:
        rows = newest_rows(evidence.opened, evidence.at, question.window_s)
        evidence.answers[EVERY_FILESYSTEM, question] = rows
    return evidence.answers[EVERY_FILESYSTEM, question]


def _put_aside(evidence: Evidence, _: str, __: EvidenceQuestion) -> list[SegmentsAside]:
    if evidence.state is None:
        return []
    agents = hub_state(evidence.state, evidence.at).agents
    return [SegmentsAside(agent.host, agent.late_segments, agent.bad_segments, agent.aside_since) for agent in agents]


def newest_rows(opened: StoreAnalyses, at: datetime, window_s: float) -> NewestRows:
    """Of every target that the store knows, day by day backwards until each has one or the window is over."""
    known = opened.store.targets_by_filesystem()
    since = at - timedelta(seconds=window_s)
    last = (at.date() - EPOCH).days
    days = range(last, last - int(window_s // DAY_S) - 2, -1)
    newest: dict[str, dict[str, datetime]] = {name: {} for name in known}
    missing = _brought_since(opened, since)
    for day in days:
        if not missing:
            break
        for name, target, time in _newest_of_day(opened, day, at, window_s):
            if (name, target) in missing and (target not in newest[name] or time > newest[name][target]):
                newest[name][target] = time
        missing -= {(name, target) for name, targets in newest.items() for target in targets}
    return NewestRows(newest, _agents(opened, at, window_s, days))


def _brought_since(opened: StoreAnalyses, since: datetime) -> set[tuple[str, str]]:
    """File systems and targets of batches with rows of after a time, or that do not say of when theirs are."""
    handle = opened.store.tables.load("batches")
    if handle is None:
        return set()
    sql = "SELECT DISTINCT filesystems FROM stored WHERE last_time IS NULL OR last_time > ?"
    texts = query(opened.store.tables, handle, "batches", sql, [since])
    return {
        (name, target) for (text,) in texts for name, targets in json.loads(text or "{}").items() for target in targets
    }


def _newest_of_day(
    opened: StoreAnalyses, day: int, at: datetime, window_s: float
) -> Iterator[tuple[str, str, datetime]]:
    for table in TABLES:
        sql = "SELECT filesystem, target, max(epoch_us(time)) FROM stored WHERE time <= ? AND time > ? GROUP BY ALL"
        for name, target, time_us in _stored(opened, table, sql, at, window_s, [day]):
            yield name, target, from_epoch_us(time_us)


def _agents(opened: StoreAnalyses, at: datetime, window_s: float, days: Sequence[int]) -> Mapping[str, datetime]:
    sql = "SELECT host, max(epoch_us(time)) FROM stored WHERE time <= ? AND time > ? GROUP BY ALL"
    rows = _stored(opened, HEALTH, sql, at, window_s, days)
    return {host: from_epoch_us(time_us) for host, time_us in rows if host is not None}


def _stored(
    opened: StoreAnalyses, table: str, sql: str, at: datetime, window_s: float, days: Sequence[int]
) -> list[tuple[Any, ...]]:
    tables = opened.store.tables
    handle = tables.load(table)
    if handle is None:
        return []
    return query(tables, handle, table, sql, [at, at - timedelta(seconds=window_s)], days)


def _slow_targets(evidence: Evidence, filesystem: str, _: EvidenceQuestion) -> SlowTargets:
    """Of whole days, so that it is made once a day."""
    return slow_targets_at(evidence.opened, filesystem, evidence.at)


OTHERS: Final[Mapping[str, Callable[[Evidence, str, EvidenceQuestion], Any]]] = {
    "blame": _blame, "newest": _newest, "put_aside": _put_aside, "slow_targets": _slow_targets,
}  # fmt: skip


# Alerts of a store ----------------------------------------------------------------------------------------------------
# Check them, list them, silence them, and try the receivers.

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

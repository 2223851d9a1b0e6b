"""What rules of alerts ask of a store, asked once for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from iolens.alerts.changes import NewestRows, Seen, SegmentsAside
from iolens.alerts.results import WhoTook
from iolens.alerts.rule import AlertRule, CheckedWindow, Condition, EvidenceQuestion, unknown
from iolens.analyses import analysis_names
from iolens.analyses.calibration_drift.results import SlowTargets
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.calibration_drift import slow_targets_at
from iolens.errors import IolensError, unexpected
from iolens.hub.hub_state import hub_state
from iolens.messages import detail
from iolens.store.duckdb_engine import query
from iolens.store.scope import Scope
from iolens.units import DAY_S, from_epoch_us

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

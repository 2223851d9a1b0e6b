"""Alerts as tables: those that go on, those that ended, silences, and what was not evaluated or delivered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from iolens.alerts.kinds import get_kind
from iolens.alerts.notifications import link_of
from iolens.alerts.results import AlertCheck, AlertList, ReceiverTest, RuleList, quantity_text
from iolens.views.render import tables as t
from iolens.views.render.section import Fact, OverviewLine, OverviewLines, Severity
from iolens.views.render.shown_times import time_with_zone
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.alerts.results import Alert, DeliveryAttempt, NotEvaluatedRule, WhoTook
    from iolens.views.render.tables import TableView


def tables(result: AlertCheck | AlertList | RuleList | ReceiverTest) -> list[TableView]:
    """Alerts first; tables that would be empty are left out."""
    if isinstance(result, AlertCheck):
        return _check(result)
    if isinstance(result, AlertList):
        return _list(result)
    return [_rules(result)] if isinstance(result, RuleList) else [_deliveries(result.deliveries, "Test notifications")]


def _check(result: AlertCheck) -> list[TableView]:
    said = f"{counted(result.rules, 'rule')} checked at {t.show_time(result.checked_at)}."
    note = f"{said} A dry run: nothing was changed or sent." if result.dry_run else said
    views = [_alerts(result.alerts, "Alerts", "alerts", note)]
    if result.resolved:
        views.append(_alerts(result.resolved, "Resolved now", "resolved"))
    views += _not_evaluated(result.not_evaluated)
    return [*views, *([_deliveries(result.deliveries, "Notifications")] if result.deliveries else [])]


def _list(result: AlertList) -> list[TableView]:
    last = None if result.checked_at is None else t.show_time(result.checked_at)
    note = "Never checked: run `iolens alerts check`." if last is None else f"Last checked at {last}."
    views = [_alerts(result.alerts, "Alerts", "alerts", note)]
    if result.resolved:
        views.append(_alerts(result.resolved, "Resolved lately", "resolved"))
    if result.silences:
        views.append(_silences(result))
    if result.undelivered:
        views.append(_undelivered(result))
    return [*views, *_not_evaluated(result.not_evaluated)]


def _alerts(alerts: Sequence[Alert], title: str, name: str, note: str = "") -> TableView:
    columns = (
        t.text("state", "State"), t.text("severity", "Severity"), t.text("rule", "Rule"),
        t.text("filesystem", "File system"), t.text("subject", "Subject"), t.time("since", "Since"),
        t.text("value", "Value"), t.text("why", "Why"), t.text("who", "Who"), t.text("silenced_by", "Not sent"),
        t.text("unknown_why", "Not known"), t.time("resolved_at", "Resolved"), t.text("command", "Command"),
        t.text("link", "Link"), t.text("id", "Id"),
    )  # fmt: skip
    rows = [
        t.row_of(alert, columns, {"value": quantity_text(alert.value, alert.unit), "who": _who(alert)})
        for alert in alerts
    ]
    if not alerts and not note:
        note = "None."
    return t.TableView(title if alerts else "No alert", columns, rows, note, name=name, keep=("why",))


def _who(alert: Alert) -> list[str] | None:
    if alert.who is None:
        return None
    return [f"{took.name} {t.show_percent(took.share_pct)} %" for took in alert.who]


def _silences(result: AlertList) -> TableView:
    columns = (
        t.count("id", "Id"), t.text("rule", "Rule"), t.text("filesystem", "File system"), t.text("subject", "Subject"),
        t.time("until", "Until"), t.text("author", "Author"), t.text("comment", "Comment"),
    )  # fmt: skip
    return t.TableView("Silences", columns, t.rows_of(result.silences, columns), name="silences")


def _undelivered(result: AlertList) -> TableView:
    columns = (
        t.text("receiver", "Receiver"), t.text("event", "Event"), t.text("rule", "Rule"), t.text("subject", "Subject"),
        t.count("attempts", "Attempts"), t.time("next_attempt_at", "Next attempt"), t.time("given_up_at", "Given up"),
        t.text("error", "Error"), t.time("created_at", "Written"), t.text("filesystem", "File system"),
        t.text("notification", "Id"),
    )  # fmt: skip
    rows = t.rows_of(result.undelivered, columns)
    return t.TableView("Not delivered", columns, rows, name="undelivered", keep=("given_up_at", "error"))


def _not_evaluated(lines: Sequence[NotEvaluatedRule]) -> list[TableView]:
    columns = (
        t.text("rule", "Rule"), t.text("filesystem", "File system"), t.text("subject", "Subject"), t.text("why", "Why"),
        t.text("counts", "Optional"),
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        t.row_of(line, columns, {"counts": "no" if line.counts else "yes"}) for line in lines
    ]
    return [t.TableView("Not evaluated", columns, rows, name="not_evaluated", keep=("why",))] if lines else []


def _deliveries(attempts: Sequence[DeliveryAttempt], title: str) -> TableView:
    columns = (
        t.text("receiver", "Receiver"), t.text("event", "Event"), t.text("rule", "Rule"), t.text("subject", "Subject"),
        t.text("outcome", "Outcome"), t.text("error", "Error"), t.text("notification", "Id"),
    )  # fmt: skip
    note = "" if attempts else "The configuration has no receiver."
    return t.TableView(title, columns, t.rows_of(attempts, columns), note, name="deliveries", keep=("outcome", "error"))


def _rules(result: RuleList) -> TableView:
    columns = (
        t.text("name", "Rule"), t.text("kind", "Kind"), t.text("filesystem", "File system"),
        t.text("condition", "Fires"), t.text("clear", "Ends"), t.text("window_s", "Window"), t.text("for_s", "For"),
        t.text("clear_for_s", "Clear for"), t.text("severity", "Severity"), t.text("receivers", "Receivers"),
        t.text("repeat_s", "Repeat"), t.text("optional", "Optional"), t.text("subject", "Subjects"),
        t.text("options", "Options"),
    )  # fmt: skip
    rows = []
    for rule in result.rules:
        durations = {name: getattr(rule, name) for name in ("window_s", "for_s", "clear_for_s", "repeat_s")}
        shown = {name: None if seconds is None else t.show_seconds(seconds) for name, seconds in durations.items()}
        options = "; ".join(f"{name} = {text}" for name, text in rule.options.items()) or None
        cells = {**shown, "optional": "yes" if rule.optional else "no", "options": options}
        rows.append(t.row_of(rule, columns, cells))
    origin = "Built-in rules: the configuration has none." if result.built_in else "Rules of the configuration."
    return t.TableView("Rules", columns, rows, origin, name="rules", keep=("condition", "clear"))


# Alerts as lines of a page --------------------------------------------------------------------------------------------
# What fires first, with why, since when, who, and where to look.

MARKS: Final[dict[str, Severity]] = {"critical": "high", "warning": "warn", "info": "info"}


def report_lines(result: AlertList) -> Iterator[OverviewLines]:
    """Alerts by their state; nothing where there is none and none was."""
    states = {"Firing": "firing", "Pending": "pending"}
    groups = [(label, [alert for alert in result.alerts if alert.state == state]) for label, state in states.items()]
    groups.append(("Resolved", list(result.resolved)))
    shown = [(label, tuple(map(_line, _worst_first(alerts)))) for label, alerts in groups if alerts]
    if shown:
        yield OverviewLines(tuple(shown))


def report_words(result: AlertList) -> Iterator[str]:
    """How it stands."""
    if result.checked_at is None:
        yield "Not checked yet."
        return
    firing = sum(alert.state == "firing" for alert in result.alerts)
    words = "No alert fires" if not firing else f"{firing} alert{'s fire' if firing != 1 else ' fires'}"
    yield f"{words}, as of {time_with_zone(result.checked_at)}."


def report_now(result: AlertList) -> Iterator[Fact]:
    """How many fire and how many are pending."""
    if result.checked_at is None:
        yield Fact(t.MISSING, "alerts", "not checked yet")
        return
    firing, pending = (sum(alert.state == state for alert in result.alerts) for state in ("firing", "pending"))
    yield Fact(f"{firing:,}", "alert fires" if firing == 1 else "alerts fire", f"{pending:,} pending")


def _worst_first(alerts: Sequence[Alert]) -> list[Alert]:
    return sorted(alerts, key=lambda alert: (list(MARKS).index(alert.severity), alert.since))


def _line(alert: Alert) -> OverviewLine:
    ended = "" if alert.resolved_at is None else f" Resolved {time_with_zone(alert.resolved_at)}."
    silent = f" Not sent: {alert.silenced_by.rstrip('.')}." if alert.silenced_by else ""
    unknown = f" Not known now: {alert.unknown_why.rstrip('.')}." if alert.unknown_why else ""
    words = f"{alert.why} Since {time_with_zone(alert.since)}.{ended}{_reported_who(alert)}{silent}{unknown}"
    stretch = alert.window_start, alert.window_end
    page = link_of("", get_kind(alert.kind).page, alert.filesystem, alert.subject, stretch)
    severity = None if alert.resolved_at is not None else MARKS[alert.severity]
    return OverviewLine(words, command=alert.command, severity=severity, address=page or "")


def _reported_who(alert: Alert) -> str:
    if not alert.who:
        return ""
    return f" Most disk time: {', '.join(map(_taken, alert.who))}."


def _taken(took: WhoTook) -> str:
    return f"{took.name}{f' ({took.user})' if took.user else ''} {t.show_percent(took.share_pct)} %"

"""Alerts as lines of a page: what fires first, with why, since when, who, and where to look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.alerts.kinds import get_kind
from iolens.alerts.notifications import link_of
from iolens.views.render import tables as t
from iolens.views.render.section import Fact, OverviewLine, OverviewLines, Severity
from iolens.views.render.shown_times import time_with_zone

if TYPE_CHECKING:
    from iolens.alerts.results import Alert, AlertList, WhoTook

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
    words = f"{alert.why} Since {time_with_zone(alert.since)}.{ended}{_who(alert)}{silent}{unknown}"
    stretch = alert.window_start, alert.window_end
    page = link_of("", get_kind(alert.kind).page, alert.filesystem, alert.subject, stretch)
    severity = None if alert.resolved_at is not None else MARKS[alert.severity]
    return OverviewLine(words, command=alert.command, severity=severity, address=page or "")


def _who(alert: Alert) -> str:
    if not alert.who:
        return ""
    return f" Most disk time: {', '.join(map(_taken, alert.who))}."


def _taken(took: WhoTook) -> str:
    return f"{took.name}{f' ({took.user})' if took.user else ''} {t.show_percent(took.share_pct)} %"

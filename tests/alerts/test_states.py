"""From pending to resolved: what becomes of an alert, check by check, with hysteresis, waiting times and unknowns."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from iolens.alerts.changes import AlertChanges, AlertRecord, Seen, changes_of, owed
from iolens.alerts.kinds import get_kind
from iolens.alerts.rule import AlertRule, CheckedWindow, Condition, Level, unknown
from iolens.alerts.settings import AlertSettings
from tests.alerts.centres import minute

RULE = AlertRule("busy", get_kind("fsu"), 80.0, 70.0, 900.0, 600.0, 600.0, "warning")
SETTINGS = AlertSettings((RULE,), {})


def step(records: list[AlertRecord], at: datetime, *conditions: Condition, rule: AlertRule = RULE) -> AlertChanges:
    window = CheckedWindow("scratch", at - timedelta(minutes=15), at)
    return changes_of(replace(SETTINGS, rules=(rule,)), records, [Seen(rule, window, conditions)], at)


def states(values: list[float | None], rule: AlertRule = RULE) -> str:
    """The first letters of the states after values seen every five minutes, None: unknown; `-`: no alert."""
    records: list[AlertRecord] = []
    letters = ""
    for number, value in enumerate(values):
        seen = (
            unknown("no rows", "scratch")
            if value is None
            else Condition("scratch", rule.level(value), "because", value)
        )
        changes = step(records, minute(5 * number), seen, rule=rule)
        letters += next((record.alert.state[0] for record in changes.kept.values()), "-")
        records = [record for record in changes.kept.values() if not record.is_over]
    return letters


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([90, 90, 90, 90], "ppff", id="fires after it has held for ten minutes"),
        pytest.param([90, 90, 75, 90, 90, 90], "pp-ppf", id="a condition that did not hold is waited for anew"),
        pytest.param([90, 90, 90, 75, 75, 75, 75], "ppfffff", id="between the two levels it goes on"),
        pytest.param([90, 90, 90, 60, 60, 60, 60], "ppfffr-", id="it ends when it has been clear for ten minutes"),
        pytest.param([90, 90, 90, 60, 75, 60, 60, 60], "ppfffffr", id="clear again from the start"),
        pytest.param([90, 90, 90, None, None, 90], "ppffff", id="unknown keeps it firing"),
        pytest.param([90, None, 90], "ppf", id="unknown keeps it pending"),
        pytest.param([90, 90, 90, 60, None, 60, 60, 60], "ppfffffr", id="unknown is not clear"),
        pytest.param([None, 50, 79.9], "---", id="nothing begins without the threshold"),
        pytest.param([90, 90, 90, 60, 60, 60, 90, 90, 90], "ppfffrppf", id="a second time is another alert"),
    ],
)
def test_states(values: list[float | None], expected: str) -> None:
    assert states(values) == expected


def test_without_waiting_times_it_fires_and_ends_at_once() -> None:
    assert states([90, 75, 60, 90], replace(RULE, for_s=0.0, clear_for_s=0.0)) == "ffrf"


def test_a_threshold_from_above_is_reached_from_above() -> None:
    days = replace(RULE, kind=get_kind("full-date"), threshold=14.0, clear=21.0)
    levels: list[Level] = [days.level(value) for value in (30, 21, 15, 14, 0)]
    assert levels == ["clear", "between", "between", "reached", "reached"]


def fired() -> list[AlertRecord]:
    rule = replace(RULE, for_s=0.0)
    return list(step([], minute(0), Condition("scratch", "reached", "because", 90), rule=rule).kept.values())


def test_what_is_not_known_is_noted_with_its_reason_and_since_when() -> None:
    records = fired()
    for number in (5, 10):
        changes = step(records, minute(number), unknown("no rows"))
        records = list(changes.kept.values())
    assert [(line.rule, line.filesystem, line.why) for line in changes.not_evaluated] == [
        ("busy", "scratch", "no rows")
    ]
    (alert,) = changes.alerts("firing")
    assert (alert.unknown_since, alert.unknown_why, alert.checked_at) == (minute(5), "no rows", minute(0))
    (known,) = step(records, minute(15), Condition("scratch", "reached", "again", 91)).alerts("firing")
    assert (known.unknown_since, known.unknown_why, known.why) == (None, None, "again")


def test_an_alert_of_a_rule_that_is_gone_ends() -> None:
    changes = changes_of(replace(SETTINGS, rules=()), fired(), [], minute(5))
    assert [alert.why for alert in changes.alerts("resolved")] == ["The rule is no longer in the configuration."]


def test_an_alert_of_a_file_system_that_the_store_lost_keeps_its_state() -> None:
    (kept,) = changes_of(SETTINGS, fired(), [], minute(5)).kept.values()
    assert (kept.alert.state, kept.alert.unknown_why) == ("firing", "The store holds nothing of its file system.")
    other = replace(SETTINGS, rules=(replace(RULE, filesystem="home"),))
    assert [alert.why for alert in changes_of(other, fired(), [], minute(5)).alerts("resolved")] == [
        "The rule no longer concerns it."
    ]


def test_a_subject_that_is_not_seen_any_more_counts_as_its_kind_says() -> None:
    (kept,) = step(fired(), minute(30)).kept.values()
    assert (kept.alert.state, kept.alert.unknown_why) == ("firing", "Nothing is stored of it in the window.")
    gone = replace(RULE, kind=get_kind("job-share"), clear_for_s=0.0)
    assert [record.alert.state for record in step(fired(), minute(30), rule=gone).kept.values()] == ["resolved"]


def test_notifications_are_what_the_state_is_ahead_of_what_was_sent() -> None:
    (record,) = fired()
    silenced = replace(record, alert=replace(record.alert, silenced_by="silence 1"))
    assert owed(silenced, RULE, minute(0)) == (silenced, None)
    sent, notification = owed(record, RULE, minute(5))
    assert notification is not None
    assert (notification.event, notification.id, sent.sent) == ("firing", f"{record.alert.id}-firing", "firing")
    assert owed(sent, RULE, minute(500)) == (sent, None)
    often = replace(RULE, repeat_s=3600.0)
    assert owed(sent, often, minute(64))[1] is None
    repeated = owed(sent, often, minute(65))[1]
    assert repeated is not None
    assert repeated.event == "repeat"
    over = replace(sent, alert=replace(sent.alert, state="resolved"))
    ended, last = owed(over, RULE, minute(90))
    assert last is not None
    assert (last.event, ended.sent) == ("resolved", "resolved")
    unheard = replace(over, sent="nothing")
    assert owed(unheard, RULE, minute(90)) == (replace(unheard, sent="resolved"), None)

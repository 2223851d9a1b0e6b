"""Alerts as tables: every fact of an alert is shown, hostile names are not obeyed, and each key is documented."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iolens.alerts.changes import notification
from iolens.alerts.outbox import attempt_of
from iolens.alerts.receivers import DeliveryError
from iolens.alerts.results import (
    Alert,
    AlertCheck,
    AlertList,
    NotEvaluatedRule,
    ReceiverTest,
    RuleList,
    Silence,
    Undelivered,
)
from iolens.api.alerts import rule_list
from iolens.config import Config, load_config
from iolens.views.render import tables as t
from iolens.views.render.formats import tables_of
from tests.alerts.centres import minute
from tests.alerts.samples import alert
from tests.hostile_names import SOURCES_OF_TROUBLE
from tests.views.documented import undocumented

SAMPLE = Path(__file__).parent.parent.parent / "contrib" / "iolens.toml"
NOT_EVALUATED = NotEvaluatedRule("worn", "scratch", None, "No drive of scratch reports its wear in the window.", True)


def resolved() -> Alert:
    return replace(alert(), state="resolved", resolved_at=minute(40))


def check() -> AlertCheck:
    failed = attempt_of("mail", notification(alert(), "firing", minute(10)), "failed", DeliveryError("refused", True))
    silent = replace(alert(), subject="home", who=None, silenced_by="silence 1 of ana until …", state="pending")
    return AlertCheck(
        minute(10), False, 3, [alert(), silent], [alert()], [resolved()], [NOT_EVALUATED], [failed],
    )  # fmt: skip


def nothing() -> AlertCheck:
    return AlertCheck(minute(10), True, 3, [], [], [], [], [])


def listed() -> AlertList:
    silence = Silence(1, "dead", "*", "scratch-OST0001", minute(90), "ana", "new board", minute(0))
    waiting = Undelivered(
        "chat", "abc-firing", "firing", "busy", "scratch", "scratch", minute(0), 3, minute(9), None, "HTTP 500"
    )
    given_up = replace(waiting, next_attempt_at=None, given_up_at=minute(99))
    return AlertList(
        minute(20), minute(10), [alert()], [resolved()], [silence], [waiting, given_up], [NOT_EVALUATED]
    )  # fmt: skip


def rules() -> RuleList:
    return rule_list(Config())


def tried() -> ReceiverTest:
    sample = notification(alert(), "test", minute(10))
    return ReceiverTest([attempt_of("chat", sample, "delivered", None)])


def text(result: object) -> str:
    return t.to_terminal(tables_of(result))


def test_a_check_shows_what_fires_and_what_went_wrong() -> None:
    shown = text(check())
    assert "The mean FSU of scratch is 91.2 %." in shown
    assert "4711 61.0 %" in shown
    assert "3 rules checked at 2026-03-02 00:10:00." in shown
    assert "No drive of scratch reports its wear" in shown
    assert "refused" in shown
    assert "A dry run: nothing was changed or sent." in text(nothing())


def test_a_list_shows_silences_and_what_was_given_up() -> None:
    shown = text(listed())
    assert "new board" in shown
    assert "2026-03-02 01:39:00" in shown  # given up
    assert "HTTP 500" in shown
    assert "Never checked" in text(replace(listed(), checked_at=None))


def test_rules_are_shown_with_everything_in_force() -> None:
    shown = text(rules())
    assert "mean FSU over the window at least 80.0 %" in shown
    assert "full = 90.0 %" in shown
    assert "Built-in rules: the configuration has none." in shown
    assert "time until the projection reaches the fullness at most 14 d" in text(rule_list(load_config(SAMPLE)))


@pytest.mark.parametrize("name", SOURCES_OF_TROUBLE)
def test_hostile_names_are_not_obeyed(name: str) -> None:
    hostile = replace(alert(), rule=name, subject=name, filesystem=name, why=name, command=name)
    shown = text(replace(check(), alerts=[hostile]))
    assert "\x1b" not in shown
    assert "\r" not in shown


@pytest.mark.parametrize("result", [AlertCheck, AlertList])
def test_every_key_is_documented(result: type) -> None:
    assert undocumented(result, "alerts.md") == []


@pytest.mark.parametrize(("result", "code"), [(nothing(), 0), (check(), 4), (replace(check(), alerts=[]), 3)])
def test_exit_codes(result: AlertCheck, code: int) -> None:
    assert result.exit_code == code

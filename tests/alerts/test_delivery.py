"""Exactly once: receivers that are down, silences, two checks at once, and processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from iolens.alerts.state_file import StateFile, sole_check
from iolens.api.alerts import add_silence, alert_list, check_alerts, remove_silence
from iolens.config import load_config
from iolens.errors import AlertsBusyError, StoreError, UsageError
from tests.alerts import centres
from tests.alerts.centres import OSTS, Centre, minute, rule, webhook
from tests.alerts.hook import Hook
from tests.cli.command import iolens

DEAD = rule("dead-target", "dead")  # fires from the 80th minute on, ends at the 130th


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return centres.store_of(tmp_path_factory.mktemp("store"), centres.silent())


@pytest.fixture
def centre(store: Path, tmp_path: Path) -> Centre:
    """A target is silent from the 60th to the 120th minute."""
    made = Centre.__new__(Centre)
    made.store, made.state, made.config = store, tmp_path / "state", tmp_path / "iolens.toml"
    return made


# A receiver that is down for a while


def test_a_webhook_that_was_down_hears_of_everything_once_and_in_order(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        hook.stop()
        down = centre.checks((80, 81, 90, 130))
        assert [[attempt.outcome for attempt in check.deliveries] for check in down] == [["failed"]] * 4
        listed = alert_list(load_config(centre.config), centre.state, minute(131)).undelivered
        assert [(line.event, line.attempts) for line in listed] == [("firing", 4), ("resolved", 0)]
        assert "Connection refused" in (listed[0].error or "")
        hook.start()
        assert centre.check(132).deliveries == []  # the pause after the fourth failure is four minutes
        assert centre.check(134).exit_code == 0
        centre.check(140)
    assert hook.events == ["firing", "resolved"]
    assert alert_list(load_config(centre.config), centre.state, minute(141)).undelivered == []


def test_pauses_grow_and_in_the_end_it_is_given_up(centre: Centre) -> None:
    centre.configure('[alerts]\ngive_up_after = "40min"\n' + DEAD + webhook("http://localhost:1"))
    checks = centre.checks(range(80, 122))
    *tries, end = [check for check in checks if check.deliveries]
    tried = [check.checked_at for check in tries]
    assert [(time - minute(80)).total_seconds() / 60 for time in tried] == [0, 1, 2, 4, 8, 16, 32, 40]
    assert [attempt.outcome for attempt in tries[-1].deliveries] == ["given up"]
    assert [(attempt.event, attempt.outcome) for attempt in end.deliveries] == [("resolved", "failed")]
    given_up, waiting = alert_list(load_config(centre.config), centre.state, minute(131)).undelivered
    assert (given_up.event, given_up.given_up_at, given_up.next_attempt_at) == ("firing", minute(120), None)
    assert (waiting.event, waiting.given_up_at) == ("resolved", None)
    assert end.exit_code == 3


def test_a_refused_notification_does_not_hold_up_others(centre: Centre) -> None:
    with Hook() as refusing, Hook() as taking:
        refusing.status = 400
        centre.configure(DEAD + webhook(refusing.url, "a") + webhook(taking.url, "b"))
        check = centre.check(80)
        refusing.status = 200
        centre.check(81)
    assert [(attempt.receiver, attempt.outcome) for attempt in check.deliveries] == [
        ("a", "failed"),
        ("b", "delivered"),
    ]
    assert refusing.events == taking.events == ["firing"]
    assert refusing.posts[0]["id"] == taking.posts[0]["id"]


def test_a_receiver_that_is_gone_from_the_configuration_is_named(centre: Centre) -> None:
    centre.configure(DEAD + webhook("http://localhost:1"))
    centre.check(80)
    centre.configure(DEAD)
    (attempt,) = centre.check(90).deliveries
    assert attempt.error == "the configuration has no such receiver"


def test_repeats_come_as_often_as_asked(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(rule("dead-target", "dead", repeat="20min") + webhook(hook.url))
        centre.checks(range(80, 135, 5))
    assert hook.events == ["firing", "repeat", "repeat", "resolved"]
    assert len({post["id"] for post in hook.posts}) == 4


def test_alertmanager_is_reminded_while_an_alert_fires(centre: Centre) -> None:
    with Hook() as hook:
        manager = f'\n[[alerts.receivers]]\nname = "am"\nkind = "alertmanager"\nurl = "{hook.url}"\nrenew = "10min"\n'
        centre.configure(DEAD + manager)
        hook.posts = []
        centre.checks(range(80, 135, 5))
    ends = [post[0]["endsAt"][11:16] for post in hook.posts]  # type: ignore[index]
    assert ends == ["01:20", "01:30", "01:40", "01:50", "02:00", "02:05"]  # of the next day, and the end itself
    with StateFile(centre.state) as file:
        assert file.execute("SELECT event FROM outbox ORDER BY number") == [("firing",), ("renewal",), ("resolved",)]


# Silences


def test_a_silenced_alert_is_sent_when_the_silence_ends(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        config = load_config(centre.config)
        silence = add_silence(
            config, centre.state, "de*", subject="*-OST0002", until=minute(105), comment="new board", author="ana",
            now=minute(70),
        )  # fmt: skip
        (alert,) = centre.check(80).alerts
        assert (alert.state, alert.silenced_by) == ("firing", f"silence {silence.id} of ana until 2026-03-02T01:45:00Z")
        assert hook.events == []
        (listed,) = alert_list(config, centre.state, minute(90)).silences
        assert (listed.comment, listed.subject) == ("new board", "*-OST0002")
        centre.check(110)
        assert hook.events == ["firing"]
        centre.check(130)
    assert hook.events == ["firing", "resolved"]


def test_an_alert_that_begins_and_ends_in_silence_is_never_sent(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        add_silence(load_config(centre.config), centre.state, "*", until=minute(180), comment="", now=minute(70))
        centre.checks((80, 130, 190))
    assert hook.events == []
    (past,) = alert_list(load_config(centre.config), centre.state, minute(190)).resolved
    assert (past.subject, past.resolved_at) == (OSTS[2], minute(130))


def test_the_end_of_an_alert_that_was_sent_is_sent_after_the_silence(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        centre.check(80)
        silence = add_silence(
            load_config(centre.config), centre.state, "*", until=minute(180), comment="", now=minute(81)
        )
        centre.check(130)
        assert hook.events == ["firing"]
        remove_silence(centre.state, silence.id, minute(131))
        centre.checks((140, 150))
    assert hook.events == ["firing", "resolved"]


def test_a_silence_for_others_changes_nothing(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + rule("fsu", "busy") + webhook(hook.url))
        config = load_config(centre.config)
        add_silence(config, centre.state, "busy", until=minute(180), comment="", now=minute(70))
        add_silence(config, centre.state, "dead", subject="*OST0001", until=minute(180), comment="", now=minute(70))
        add_silence(config, centre.state, "dead", filesystem="home", until=minute(180), comment="", now=minute(70))
        centre.check(80)
    assert hook.events == ["firing"]


def test_maintenance_is_a_silence(centre: Centre) -> None:
    with Hook() as hook:
        maintenance = "\n[[filesystems.scratch.maintenance]]\nfrom = 2026-03-02T01:00:00Z\nto = 2026-03-02T01:45:00Z\n"
        centre.configure(DEAD + webhook(hook.url) + maintenance)
        (alert,) = centre.check(80).alerts
        assert alert.silenced_by == "maintenance until 2026-03-02T01:45:00Z"
        assert hook.events == []
        centre.check(110)
    assert hook.events == ["firing"]


@pytest.mark.parametrize(
    ("pattern", "problem"), [("deda", "no rule is called 'deda'; did you mean dead"), ("dead", "would be over already")]
)
def test_a_silence_that_would_do_nothing_is_refused(centre: Centre, pattern: str, problem: str) -> None:
    centre.configure(DEAD)
    until = minute(80) if pattern == "deda" else minute(60)
    with pytest.raises(UsageError, match=problem):
        add_silence(load_config(centre.config), centre.state, pattern, until=until, comment="", now=minute(70))
    with pytest.raises(UsageError, match="holds no alerts"):
        remove_silence(centre.state, 7, minute(70))


# Checks at once, and processes that die


def command(centre: Centre, number: int) -> list[str]:
    words = ("alerts", "check", "--store", centre.store, "--state", centre.state, "--config", centre.config, "--now")
    return [sys.executable, "-m", "iolens.cli.main", *map(str, words), minute(number).isoformat()]


def test_checks_at_once_send_once(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        running = [subprocess.Popen(command(centre, 80), stdout=subprocess.DEVNULL) for _ in range(3)]
        assert [process.wait(120) for process in running] == [4, 4, 4]
    assert hook.events == ["firing"]


def test_a_check_that_cannot_begin_says_so(centre: Centre) -> None:
    with (
        sole_check(centre.state),
        pytest.raises(AlertsBusyError, match="another check has run for 0 s") as refused,
        sole_check(centre.state, 0.0),
    ):
        pass
    assert refused.value.exit_code == 3


KILLER = """
import json, os, signal, sys
notification = json.load(sys.stdin)
if sys.argv[2] == "after":
    open(sys.argv[1], "a").write(notification["id"] + "\\n")
os.kill(os.getppid(), signal.SIGKILL)
"""
KEEPER = 'import json, sys; open(sys.argv[1], "a").write(json.load(sys.stdin)["id"] + "\\n")'


def argv(centre: Centre, text: str, *more: str) -> str:
    script = centre.config.parent / "receiver.py"
    script.write_text(text)
    words = [sys.executable, str(script), str(centre.config.parent / "taken"), *more]
    return f'\n[[alerts.receivers]]\nname = "page"\nkind = "command"\nargv = {json.dumps(words)}\n'


@pytest.mark.parametrize(("place", "taken"), [("before", 1), ("after", 2)])
def test_a_check_that_is_killed_at_a_delivery_loses_nothing(centre: Centre, place: str, taken: int) -> None:
    """Killed with the state written and nothing delivered: sent later. Killed after: sent again under the same id."""
    centre.configure(DEAD + argv(centre, KILLER, place))
    assert subprocess.run(command(centre, 80), capture_output=True, check=False).returncode == -signal.SIGKILL
    (waiting,) = alert_list(load_config(centre.config), centre.state, minute(80)).undelivered
    assert (waiting.event, waiting.attempts) == ("firing", 0)
    centre.configure(DEAD + argv(centre, KEEPER))
    centre.checks((81, 82, 130))
    lines = (centre.config.parent / "taken").read_text().split()
    assert [line.rpartition("-")[2] for line in lines] == [*["firing"] * taken, "resolved"]
    assert len(set(lines)) == 2


def test_killed_at_any_time_it_fires_once(centre: Centre) -> None:
    """Four kills, from its start to its end; what a kill after a delivery repeats has the same id."""
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        for delay in (0.3, 0.6, 0.9, 1.2):
            process = subprocess.Popen(command(centre, 80), stdout=subprocess.DEVNULL)
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
            process.wait()
        centre.checks((81, 90))
    assert len({post["id"] for post in hook.posts}) == 1
    assert set(hook.events) == {"firing"}


# State


def test_time_goes_one_way(centre: Centre) -> None:
    centre.configure(DEAD)
    centre.check(80)
    with pytest.raises(UsageError, match="the last check was for 2026-03-02T01:20:00Z, after 2026-03-02T01:19:00Z"):
        centre.check(79)


def test_a_dry_run_changes_nothing_and_sends_nothing(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        check = check_alerts(centre.opened, centre.state, minute(80), dry_run=True)
        assert (check.exit_code, len(check.fired), check.deliveries) == (4, 1, [])
        assert not centre.state.exists()
        centre.check(70)
        before = (centre.state / "alerts.sqlite").read_bytes()
        assert check_alerts(centre.opened, centre.state, minute(80), dry_run=True).exit_code == 4
        assert (centre.state / "alerts.sqlite").read_bytes() == before
    assert hook.events == []


def test_the_state_is_private_and_a_damaged_one_is_refused(centre: Centre) -> None:
    centre.configure(DEAD)
    centre.check(80)
    path = centre.state / "alerts.sqlite"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match=r"alerts.sqlite: the state of alerts: file is not a database"):
        centre.check(90)
    path.unlink()
    with StateFile(centre.state) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="version 99 of another iolens"):
        centre.check(90)


def test_old_alerts_are_forgotten_after_three_months(centre: Centre) -> None:
    centre.configure(DEAD)
    centre.checks((80, 130))
    later = minute(130) + timedelta(days=91)
    config = load_config(centre.config)
    assert len(alert_list(config, centre.state, later, day_s=1e7).resolved) == 1
    centre.check(later)
    assert alert_list(config, centre.state, later, day_s=1e7).resolved == []


# The command


def test_the_verbs(centre: Centre) -> None:
    with Hook() as hook:
        centre.configure(DEAD + webhook(hook.url))
        place = ("--state", centre.state, "--config", centre.config)
        done = iolens("alerts", "check", "--store", centre.store, *place, "--now", minute(80).isoformat())
        assert done.code == 4, done.err
        assert "has not reported since 2026-03-02T01:00:00Z" in done.out
        listed = json.loads(iolens("alerts", "list", *place, "--format", "json", "--now", "2026-03-02T02:00").out)
        assert [alert["subject"] for alert in listed["alerts"]] == [OSTS[2]]
        assert listed["alerts"][0] == hook.posts[0]["alert"]
        assert "dead-target" in iolens("alerts", "list", *place, "--rules").out
        silenced = iolens("alerts", "silence", "dead", "--for", "2h", "--comment", "board", *place)
        assert (silenced.code, silenced.out.split()[:2]) == (0, ["silence", "1"])
        assert "board" in iolens("alerts", "list", *place).out
        assert iolens("alerts", "unsilence", "1", *place).code == 0
        assert iolens("alerts", "unsilence", "1", *place).code == 2
        assert iolens("alerts", "silence", "dead", "--comment", "x", *place).code == 2
        tried = iolens("alerts", "test", "--config", centre.config)
        assert (tried.code, hook.events) == (0, ["firing", "test"])
        hook.stop()
        assert iolens("alerts", "test", "--config", centre.config).code == 3
        done = iolens("alerts", "check", "--store", centre.store, *place, "--now", minute(130).isoformat())
        assert (done.code, "failed" in done.out) == (3, True)
    centre.configure(rule("fsu", above="80"))
    assert iolens("alerts", "check", "--store", centre.store, *place).code == 1
    assert iolens("alerts", "check", "--store", centre.state / "nowhere", *place).code == 1

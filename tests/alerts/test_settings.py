"""The section [alerts]: rules in three lines, and one clear sentence for each thing that is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens.alerts.kinds import get_kind, kind_names
from iolens.alerts.results import duration_text, quantity_text
from iolens.alerts.settings import RULE_KEYS, AlertSettings, alert_settings
from iolens.config import Config, load_config
from iolens.errors import InputError
from tests.alerts.centres import rule, webhook

REPOSITORY = Path(__file__).parent.parent.parent


def settings(folder: Path, text: str) -> AlertSettings:
    path = folder / "iolens.toml"
    path.write_text(text)
    return alert_settings(load_config(path))


def test_a_rule_in_three_lines(tmp_path: Path) -> None:
    (written,) = settings(tmp_path, rule("fsu", above="85 %")).rules
    assert (written.threshold, written.clear, written.window_s) == (85.0, pytest.approx(85 * 70 / 80), 900.0)
    assert (written.for_s, written.severity, written.filesystem, written.receivers) == (600.0, "warning", "*", None)


def test_every_key_of_a_rule(tmp_path: Path) -> None:
    text = rule(
        "full-date", "soon", filesystem="scratch*", subject="bytes", below="3w", clear="30d", window="60d",
        clear_for="2d", severity="critical", repeat="1d", optional=True, full="95%",
    )  # fmt: skip
    text += 'of = ["bytes"]\nfor = "0s"\nreceivers = ["hook"]\n' + webhook("http://localhost:1")
    (written,) = settings(tmp_path, text).rules
    assert (written.threshold, written.clear) == (21 * 86_400, 30 * 86_400)
    assert (written.window_s, written.for_s, written.clear_for_s, written.repeat_s) == (
        60 * 86_400,
        0,
        2 * 86_400,
        86_400,
    )
    assert (written.number("full"), written.words("of")) == (95.0, ("bytes",))
    assert (written.receivers, written.optional, written.severity) == (("hook",), True, "critical")


def test_without_a_rule_there_are_built_in_ones() -> None:
    known = alert_settings(Config())
    assert known.is_built_in
    assert [written.name for written in known.rules if not written.optional] == ["silent-agent"]
    assert len(known.rules) == 11


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[alerts]\nevry = '5min'", "unknown key alerts.evry; expected one of every, link"),
        ("[alerts]\nlink = 'iolens.example.org'", "is no address; expected such as"),
        ("[alerts]\nevery = '0s'", "alerts.every = '0s' is too short"),
        ("[[alerts.rules]]\nkind = 'fsu'", "[[alerts.rules]] lacks name"),
        (rule("fsi"), "'fsi' is no kind of rule; expected one of dead-target, drive-wear"),
        (rule("fsu", above=80), "alerts.rules 'rule'.above = 80 has the wrong type or range"),
        (rule("fsu", above="80"), "write a number with its unit, such as 80%"),
        (rule("fsu", below="80%"), "fsu has no below; expected above"),
        (rule("fsu", above="60%", clear="70%"), "leave no way back; expected clear at or below above"),
        (rule("full-date", below="14d", clear="7d"), "leave no way back; expected clear at or above below"),
        (rule("fsu", severity="loud"), "severity = 'loud'; expected one of info, warning, critical"),
        (rule("fsu", threshold="80%"), "unknown key alerts.rules 'rule'.threshold"),
        (rule("fsu") + 'receivers = ["mail"]', "no receiver is called 'mail'"),
        (rule("fullness") + 'of = ["blocks"]', "= 'blocks'; expected some of bytes, inodes"),
        (rule("fullness") + "of = []", "expected some of bytes, inodes"),
        (rule("imbalance", least="10"), "10 of what? write 10GB/s"),
        (rule("fsu") + rule("fsu"), "two [[alerts.rules]] have the name 'rule'"),
        (webhook("localhost:80"), "is no address"),
        (webhook("http://user:secret@localhost/"), "has a name or password in it; expected token_env"),
        (webhook("http://localhost/", timeout="1h"), "at most 300s"),
        (webhook("http://localhost/", token="x"), "unknown key alerts.receivers 'hook'.token"),
        ("[[alerts.receivers]]\nname = 'a'\nkind = 'pager'", "kind = 'pager'; expected one of alertmanager, command"),
        ("[[alerts.receivers]]\nname = 'a'\nkind = 'command'\nargv = 'page me'", "argv = 'page me' has the wrong type"),
        ("[[alerts.receivers]]\nname = 'a'\nkind = 'command'\nargv = []", "lacks argv"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        settings(tmp_path, text)
    assert problem in str(refused.value)
    assert "iolens.toml" in str(refused.value)
    assert "\n" not in str(refused.value)


MAIL = "[[alerts.receivers]]\nname = 'm'\nkind = 'smtp'\nhost = 'localhost'\nfrom = 'iolens@example.org'\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "lacks to"),
        ("to = ['a@example.org']\nuser = 'me'", "user and password do not go alone"),
        ("to = ['a@example.org']\nuser = 'me'\npassword_env = 'P'\ntls = 'none'", "sent in the clear"),
        ("to = ['a@example.org']\ntls = 'maybe'", "one of starttls, tls, none"),
        ("to = []", "lacks to"),
        ('to = ["a@example.org\\r\\nBcc: b@example.org"]', "is no mail address"),
        ("to = ['nobody']", "is no mail address"),
        ("to = ['a@example.org']\npassword = 'x'", "unknown key"),
    ],
)
def test_mail_that_cannot_be_sent_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        settings(tmp_path, MAIL + text)
    assert problem in str(refused.value)


def toml_blocks(path: Path) -> list[str]:
    return re.findall(r"```toml\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


def test_the_examples_of_the_page_are_valid_and_there_is_one_of_each_kind(tmp_path: Path) -> None:
    single, rules, receivers = toml_blocks(REPOSITORY / "docs" / "alerts.md")
    assert len(settings(tmp_path, single).rules) == 1
    written = settings(tmp_path, receivers + rules)
    assert {known.kind.name for known in written.rules} == set(kind_names())
    assert {receiver.kind for receiver in written.receivers.values()} == {"alertmanager", "command", "smtp", "webhook"}


def test_the_defaults_that_the_page_lists_are_those_in_force() -> None:
    page = (REPOSITORY / "docs" / "alerts.md").read_text("utf-8")
    for name in kind_names():
        kind = get_kind(name)
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` | "))
        default, ends, window, waits = (cell.strip() for cell in row.strip("|").split("|")[3:])
        shown = [quantity_text(value, kind.unit).replace(".0 %", " %") for value in (kind.threshold, kind.clear)]
        assert [default, ends, window] == [*shown, duration_text(kind.window_s)], name
        assert waits == " / ".join(f"{seconds / 60:g}" for seconds in (kind.for_s, kind.clear_for_s)) + (
            " min" if kind.for_s or kind.clear_for_s else ""
        ), name


def test_the_sample_configuration_is_valid() -> None:
    sample = load_config(REPOSITORY / "contrib" / "iolens.toml")
    assert len(alert_settings(sample).receivers) == 4
    assert set(RULE_KEYS) <= {key for section in sample.alerts["rules"] for key in section}

"""The page for users whose I/O is slow prints what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.findings import rule_codes
from iolens.views.runs_summary.words import STRATEGIES
from tests.console_examples import examples, missing, run

DOCS = Path(__file__).parent.parent / "docs"
COMMANDS = list(examples(DOCS / "slow-io.md"))


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command.split()[2] for command, _ in COMMANDS])
def test_a_command_prints_what_is_shown_below_it(command: str, shown: list[str], tmp_path: Path) -> None:
    for path in (DOCS / "examples").iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert missing(shown, run(command, tmp_path).stdout.splitlines()) == []


def test_every_verb_of_one_run_is_on_the_page() -> None:
    assert [command.split()[2] for command, _ in COMMANDS] == ["summary", "timeline", "advise", "compare"]


def test_every_rule_and_strategy_is_documented() -> None:
    findings = (DOCS / "findings.md").read_text("utf-8")
    assert [code for code in rule_codes() if f"| `{code}` |" not in findings] == []
    page = (DOCS / "run-summary.md").read_text("utf-8")
    assert [name for name in STRATEGIES if name is not None and f"| `{name}` |" not in page] == []

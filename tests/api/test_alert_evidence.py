"""What rules ask of a store: each question once, and a question that fails alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from iolens.alerts.settings import alert_settings
from iolens.api import OpenStore
from iolens.api.alerts import Evidence, newest_rows
from iolens.config import load_config
from tests.alerts import centres
from tests.alerts.centres import OSTS, minute, rule
from tests.chosen_calibration import CONFIGURED


class CountingStore(OpenStore):
    """Counts the analyses that it is asked, and breaks at some."""

    def __init__(self, *args: Any, broken: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked, self.broken = Counter[str](), broken

    def analyse(self, name: str, *args: Any, **options: Any) -> Any:
        self.asked[name] += 1
        if name == self.broken:
            raise ZeroDivisionError("of nothing")
        return super().analyse(name, *args, **options)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return centres.store_of(tmp_path_factory.mktemp("store"), centres.silent())


def seen(folder: Path, store: Path, text: str, **options: Any) -> tuple[CountingStore, dict[str, list[str]]]:
    """The store after it was asked, and levels by rule."""
    (folder / "iolens.toml").write_text(f"{CONFIGURED}{text}")
    rules = alert_settings(load_config(folder / "iolens.toml")).rules
    with CountingStore(str(store), config=str(folder / "iolens.toml"), workers=1, **options) as opened:
        parts = list(Evidence(opened, minute(90)).seen(rules))
    return opened, {part.rule.name: [condition.level for condition in part.conditions] for part in parts}


def test_rules_over_the_same_window_ask_once(tmp_path: Path, store: Path) -> None:
    text = "".join(rule("fsu", f"fsu {number}", above=f"{number}%", window="1h") for number in (10, 50, 90))
    text += rule("plateau") + rule("imbalance", "uneven") + rule("dead-target", "dead")
    opened, levels = seen(tmp_path, store, text)
    assert opened.asked == {"utilization": 1, "imbalance": 1}
    assert [levels[f"fsu {number}"] for number in (10, 50, 90)] == [["reached"], ["clear"], ["clear"]]
    assert levels["dead"] == ["clear", "clear", "reached", "clear"]


def test_an_analysis_that_breaks_leaves_only_its_own_rules_without_an_answer(tmp_path: Path, store: Path) -> None:
    text = rule("fsu", window="1h") + rule("imbalance", "uneven") + rule("dead-target", "dead")
    _, levels = seen(tmp_path, store, text, broken="utilization")
    assert levels["rule"] == ["unknown"]
    assert "unknown" not in levels["uneven"]
    _, levels = seen(tmp_path, store, text, broken="imbalance")
    assert levels["uneven"] == ["unknown"]
    assert levels["dead"] == ["clear", "clear", "reached", "clear"]  # what targets moved only adds to it


def test_a_rule_without_a_file_system_is_not_evaluated(tmp_path: Path, store: Path) -> None:
    _, levels = seen(tmp_path, store, rule("fsu", filesystem="home*"))
    assert levels == {"rule": ["unknown"]}


def test_newest_rows_are_those_before_the_time(store: Path) -> None:
    with OpenStore(str(store)) as opened:
        times = newest_rows(opened, minute(90), 86_400.0).of("scratch")
        assert times == {**dict.fromkeys(OSTS, minute(90)), OSTS[2]: minute(60)}
        assert newest_rows(opened, minute(90 + 8 * 1440), 86_400.0).targets == {"scratch": {}}

"""Dashboard and rules of `contrib/`: names that the exporter serves, and no level of FSU without a calibration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from iolens.agent.exporter.metrics import METRICS
from iolens.models.transaction_time import CalibrationState

CONTRIB: Final = Path(__file__).parents[3] / "contrib"
DASHBOARD: Final = json.loads((CONTRIB / "grafana-dashboard.json").read_text("utf-8"))
RULES: Final = [
    rule
    for group in yaml.safe_load((CONTRIB / "prometheus-alerts.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
RECORDED: Final = {rule["record"] for rule in RULES if "record" in rule}
NAME: Final = re.compile(r"\b(?:iolens[:_][\w:]+|lustre_\w+|recovery_status\w*|process_\w+)(?=[{\s\[)]|$)")
FSU: Final = re.compile(r"iolens_fsu_percent|iolens_target_busy_seconds_total|iolens:\w+_fsu_percent:")
CALIBRATED: Final = ("iolens_calibration_state{", "iolens_calibration_refuted{")


def panels() -> Iterator[tuple[str, dict]]:
    """Title and query."""
    for panel in DASHBOARD["panels"]:
        for query in panel.get("targets", ()):
            yield panel["title"], query


def expressions() -> list[str]:
    return [query["expr"] for _, query in panels()] + [rule["expr"] for rule in RULES]


def test_every_name_is_one_that_the_exporter_serves_or_a_rule_records() -> None:
    named = {name for expression in expressions() for name in NAME.findall(expression)}
    assert len(named) > 40
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in named} - METRICS.keys() - RECORDED == set()


def test_the_state_of_the_calibration_comes_first() -> None:
    first = DASHBOARD["panels"][0]
    assert (first["title"], first["gridPos"]["y"]) == ("State of the calibration", 0)
    assert all(panel["gridPos"]["y"] >= first["gridPos"]["h"] for panel in DASHBOARD["panels"][1:])
    words = [query["legendFormat"] for title, query in panels() if title == first["title"]]
    assert words == [
        "{{filesystem}}: {{state}}",
        "{{filesystem}}: not calibrated",
        "{{filesystem}}: calibration refuted by the data",
    ]


def test_fsu_without_a_level_is_called_so_wherever_it_is_drawn() -> None:
    drawn = [(title, query) for title, query in panels() if FSU.search(query["expr"])]
    assert {title for title, _ in drawn} == {
        "FSU by file system",
        "FSU by target",
        "FSU by target, not calibrated",
    }
    for _, query in drawn:
        condition = query["expr"].partition(" on (filesystem) (")
        has_level = condition[0].endswith(" and")
        assert all(name in condition[2] for name in CALIBRATED)
        assert has_level is not query["legendFormat"].endswith("not calibrated"), query["expr"]


def test_colours_of_levels_are_those_of_calibrated_targets_alone() -> None:
    for panel in DASHBOARD["panels"]:
        if "thresholds" in panel.get("fieldConfig", {}).get("defaults", {}):
            for query in panel["targets"]:
                assert not FSU.search(query["expr"]) or "} unless on (filesystem)" in query["expr"]
                assert "not calibrated" not in query["legendFormat"]


@pytest.mark.parametrize("rule", [rule for rule in RULES if "alert" in rule], ids=lambda rule: rule["alert"])
def test_no_alert_looks_at_an_fsu_without_a_level(rule: dict) -> None:
    if FSU.search(rule["expr"]):
        assert ":calibrated" in rule["expr"] or "iolens:filesystem_calibrated:count" in rule["expr"]


def test_what_is_calibrated_names_every_state_but_assumed() -> None:
    (record,) = (rule["expr"] for rule in RULES if rule.get("record") == "iolens:filesystem_calibrated:count")
    states = re.search(r'state=~"([^"]+)"', record)
    assert states is not None
    assert set(states[1].split("|")) == set(CalibrationState) - {CalibrationState.ASSUMED}
    assert 'unless on (filesystem) iolens_calibration_refuted{model="histogram"} == 1' in record

"""The outcome of a suite as tables, JSON and CSV."""

from __future__ import annotations

import json

from iolens.models.acceptance import Acceptance, Limit, LimitCheck, StepResult
from iolens.views.acceptance import shown
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.json_text import to_json
from iolens.views.render.tables import to_csv, to_markdown, to_terminal
from tests.views.documented import undocumented

LIMITS = [
    ("read-bandwidth", Limit("read_bytes_per_s", 2e9, None, "95th percentile"), 3e9),
    ("read-operations", Limit("read_ops_per_s", 5_000.0, None, "95th percentile"), 12.5),
    ("workload", Limit("read_p99_s", None, 0.05, "given"), 0.0125),
    ("workload", Limit("served_pct", 92.0, None, "served"), None),
]


def outcome(passed: bool = False) -> Acceptance:
    steps = [
        StepResult("read-bandwidth", "bandwidth", "fio", read_bytes_per_s=3e9, read_ops_per_s=2861.0),
        StepResult("ior", "script", "ior", trouble="ior is not on PATH: left out"),
    ]
    return Acceptance(
        filesystem="lake", suite="suite", place="/new", ssi=3.0, share=0.125, percentile=95.0, passed=passed,
        score=None if not passed else 6.0, bandwidth_gib_per_s=4.0, thousand_ops_per_s=9.0,
        checks=[LimitCheck.of(*item) for item in LIMITS], steps=steps, notes=["ior: ior is not on PATH: left out"],
    )  # fmt: skip


def test_every_limit_has_a_line_with_units() -> None:
    text = to_terminal(tables_of(outcome()))
    assert "Acceptance of /new: not passed" in text
    lines = {line.split()[1]: line for line in text.splitlines() if line.split()[1:2]}
    assert "3 GB/s" in lines["read_bytes_per_s"]
    assert "2 GB/s" in lines["read_bytes_per_s"]
    assert "1.50" in lines["read_bytes_per_s"]
    assert "12.5/s" in lines["read_ops_per_s"]
    assert "5,000/s" in lines["read_ops_per_s"]
    assert "fail" in lines["read_ops_per_s"]
    assert "12.5 ms" in lines["read_p99_s"]
    assert "50 ms" in lines["read_p99_s"]
    assert "not measured" in lines["served_pct"]
    assert "No score" in text
    assert "Score 6" in to_markdown(tables_of(outcome(passed=True)))


def test_machines_get_numbers() -> None:
    rows = [line.split(",") for line in to_csv(tables_of(outcome())[0]).splitlines()]
    assert rows[0][:5] == ["step", "measure", "measured", "at_least", "at_most"]
    assert rows[1][2:5] == ["3000000000.0", "2000000000.0", ""]
    assert rows[4][2] == ""
    plain = json.loads(to_json(outcome()))
    assert plain["checks"][2] == {
        "step": "workload", "measure": "read_p99_s", "measured": 0.0125, "at_least": None, "at_most": 0.05,
        "ratio": 4.0, "verdict": "pass", "reason": "given",
    }  # fmt: skip
    assert plain["score"] is None


def test_units_follow_from_the_measure() -> None:
    assert shown("served_pct", 99.25) == "99.2 %"
    assert shown("size_deviation_points", 1.234) == "1.2 points"
    assert shown("write_ops_per_s", 12_345.6) == "12,346/s"


def test_an_outcome_has_no_figure() -> None:
    assert figures_of(outcome()) == {}


def test_every_json_key_is_documented() -> None:
    assert undocumented(Acceptance, "acceptance.md") == []

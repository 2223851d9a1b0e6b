"""The comparison for people, for machines, and in the documentation."""

from __future__ import annotations

from dataclasses import replace

from iolens.analyses.workload.match import MatchedQuantity, WorkloadMatch
from iolens.views.render import json_text
from iolens.views.render import tables as t
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.workload_match import verdict
from tests.views.documented import undocumented

MATCH = WorkloadMatch(
    "fs", "the model spider", None, None, 48, 48, 1,
    [
        MatchedQuantity("bandwidth alpha", "read", "", 1.24, 1.25, 0.806, "%", 5.0, False),
        MatchedQuantity("idle mean", "write", "s", 12.0, None, None, "%", 5.0, True),
        MatchedQuantity("reads among requests", None, "%", 42.2, 42.0, -0.2, "points", 0.5, False),
    ],
)  # fmt: skip


def test_a_line_for_every_quantity() -> None:
    text = t.to_terminal(tables_of(MATCH))
    assert "fs: synthetic against the model spider" in text
    assert "1 of 3 quantities is beyond its limit." in text
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert lines["bandwidth alpha"][-6:] == ["1.24", "1.25", "+0.81", "%", "5", "within"]
    assert lines["idle mean"][-6:] == ["12", "–", "–", "%", "5", "beyond"]


def test_the_verdict() -> None:
    fine = replace(MATCH, beyond=0, synthetic_targets=8)
    assert verdict(fine).startswith(
        "All 3 quantities are within their limits. The original has 48 targets, this one 8:"
    )


def test_machines_get_numbers() -> None:
    assert '"deviation": null' in json_text.to_json(MATCH)
    rows = t.to_csv(tables_of(MATCH)[0]).splitlines()
    assert rows[0].startswith("quantity,direction,unit,original,synthetic,deviation")
    assert rows[1].startswith("bandwidth alpha,read,,1.24,1.25,0.806")


def test_it_has_no_figures_of_its_own() -> None:
    assert figures_of(MATCH) == {}


def test_every_key_is_documented() -> None:
    assert undocumented(WorkloadMatch, "synthesis.md") == []

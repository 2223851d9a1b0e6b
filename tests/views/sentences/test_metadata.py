"""Metadata load: how busy, and how much of that is assumed."""

from __future__ import annotations

from hypothesis import given

from iolens.analyses.metadata import Metadata
from iolens.views.metadata import coverage, headline, verdict

from .generated import QUICK, check, results_of


@QUICK
@given(results_of(Metadata))
def test_the_verdict_is_the_table(result: Metadata) -> None:
    said = verdict(result)
    check(said, headline(result), coverage(result), also={"30"})
    known = bool(result.samples) and result.mean_mdu_pct is not None and result.busy_time_pct is not None
    share, _, after = said.partition(" % of the window: ")
    complete = result.coverage.complete_pct
    partly = bool(result.samples) and complete is not None and 0 < complete < 95
    assert share.startswith("With data for ") == partly
    words = after if partly else said
    assert words.lower().startswith("never busy") == (known and result.busy_time_pct == 0)
    assert words.lower().startswith("busy") == (known and result.busy_time_pct != 0)
    assert words[0].islower() == partly
    assert ("is assumed" in said) == (known and bool(result.assumed_time_pct))

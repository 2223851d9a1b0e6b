"""Metadata load: how busy, and how much of that is assumed."""

from __future__ import annotations

from hypothesis import given

from iolens.analyses.metadata.analysis import Metadata
from iolens.views.metadata.tables import headline, verdict

from .generated import QUICK, check, results_of


@QUICK
@given(results_of(Metadata))
def test_the_verdict_is_the_table(result: Metadata) -> None:
    said = verdict(result)
    check(said, headline(result), also={"30"})
    known = bool(result.samples) and result.mean_mdu_pct is not None and result.busy_time_pct is not None
    assert ("Never busy" in said) == (known and result.busy_time_pct == 0)
    assert said.startswith("Busy") == (known and result.busy_time_pct != 0)
    assert ("is assumed" in said) == (known and bool(result.assumed_time_pct))

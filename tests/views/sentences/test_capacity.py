"""Capacity: how full, how fast it fills, and when the threshold is reached; and daily growth."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.capacity.analysis import ByteProjection, Capacity
from iolens.analyses.growth import DayGrowth, Growth
from iolens.views.capacity import headline, projections, verdict
from iolens.views.growth import daily
from iolens.views.growth import headline as growth_headline
from iolens.views.render import tables as t

from .generated import AMOUNTS, QUICK, check, check_language, lists_of, numbers, results_of

STATES = st.sampled_from(["reached", "projected", "not growing", "more than a century away", "unknown"])
TOO_LITTLE = st.sampled_from(["too little data: 1 day of 7", "too little data: 19 readings of 20"])
THRESHOLDS = st.sampled_from([50.0, 87.5, 90.0])
SLOPES = st.one_of(AMOUNTS, AMOUNTS.map(lambda value: -value))


@st.composite
def capacities(draw: st.DrawFn) -> Capacity:
    """With lines through the readings, or without and then with the reason."""
    if draw(st.booleans()):
        return draw(without_lines())
    line = draw(results_of(ByteProjection, threshold_state=STATES, slope_bytes_per_day=SLOPES))
    own = {name: st.just(getattr(line, name)) for name in ("method", "threshold_state", "threshold_date",
                                                            "threshold_ci95")}  # fmt: skip
    return draw(
        results_of(
            Capacity,
            **own,
            projections=st.just([line]),
            slope_bytes_per_day=st.just(line.slope_bytes_per_day),
            too_little_data=st.none(),
            threshold_pct=THRESHOLDS,
        )
    )


def without_lines() -> st.SearchStrategy[Capacity]:
    """Nothing but what is known at the last reading."""
    lines = ("slope_bytes_per_day", "slope_ci95", "threshold_date", "threshold_ci95")
    return results_of(
        Capacity,
        threshold_state=st.sampled_from(["reached", "unknown"]),
        too_little_data=TOO_LITTLE,
        threshold_pct=THRESHOLDS,
        **dict.fromkeys(lines, st.none()),
    )


@QUICK
@given(capacities())
def test_the_verdict_is_the_tables(result: Capacity) -> None:
    said = verdict(result)
    dates = {number for end in (result.threshold_date, *(result.threshold_ci95 or ())) for number in numbers(str(end))}
    reason = set(numbers(result.too_little_data or ""))
    check(said, headline(result), projections(result), also={"95", f"{result.threshold_pct:g}", *dates, *reason})
    if result.used_bytes is None:
        assert said == "No readings of capacity in this window."
        return
    if result.slope_bytes_per_day is None:
        assert f"; {result.too_little_data}." in said
        assert not re.search(r" a day|expected|never", said)
        assert ("is reached" in said) == (result.threshold_state == "reached")
        return
    assert ("−" in said) == (result.slope_bytes_per_day < 0)
    assert ("never reached" in said) == (result.threshold_state == "not growing")
    assert (" was reached on " in said) == (result.threshold_state == "reached" and result.threshold_date is not None)
    assert (" is expected on " in said) == (result.threshold_state == "projected" and result.threshold_date is not None)


@QUICK
@given(results_of(Growth, daily=lists_of(DayGrowth, 14, fate=st.sampled_from(["kept", "shrank"])),
                  too_little_data=st.none() | TOO_LITTLE))  # fmt: skip
def test_growth_says_how_many_days_are_shown(result: Growth) -> None:
    table = daily(result)
    kept = [day for day in result.daily if day.fate == "kept"]
    assert (table.note == "No day of growth is known.") == (not kept)
    assert ("JSON has them all" in table.note) == (len(kept) > len(table.rows))
    assert set(numbers(table.note)) <= {str(len(kept)), str(len(table.rows))}
    note = growth_headline(result).note
    is_enough = result.too_little_data is None
    assert ("No day of growth is known." in note) == (is_enough and not result.days_with_growth)
    assert ("Too little data: " in note) == (not is_enough)
    for text in (table.note, note):
        check_language(text)
    assert t.to_terminal([table])

"""Drives: write amplification, writes per day, wear, and whether low use explains a high amplification."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.drives.analysis import Drives, DriveSpread, WafOutliers
from iolens.views.drives import headline, outliers, spreads, verdict, years_left
from iolens.views.render.tables import is_missing, show_percent

from .generated import AMOUNTS, COUNTS, QUICK, check, check_language, numbers, results_of

KNOWN = st.lists(AMOUNTS, min_size=5, max_size=5).map(sorted)


@st.composite
def spread(draw: st.DrawFn) -> DriveSpread:
    if draw(st.booleans()):
        return DriveSpread(None, None, None, None, None, 0)
    low, median, p95, high, mean = draw(KNOWN)
    return DriveSpread(low, median, p95, high, mean, 5)


@st.composite
def high_ones(draw: st.DrawFn) -> WafOutliers:
    low_use, unexplained, unknown = (draw(st.sampled_from([0, 1, 2, 7])) for _ in range(3))
    total = low_use + unexplained + unknown
    made = draw(results_of(WafOutliers, waf_above=st.one_of(st.none(), AMOUNTS)))
    return dataclasses.replace(made, drives=total, low_use=low_use, not_explained=unexplained, use_not_known=unknown)


FLEETS = results_of(Drives, **{name: spread() for name in ("waf", "dwpd", "wear_pct", "rated_used_pct")},
                    outliers=high_ones(), drives=COUNTS)  # fmt: skip


@QUICK
@given(FLEETS)
def test_the_numbers_are_those_of_the_tables(result: Drives) -> None:
    said = verdict(result)
    high = result.outliers
    tables = [headline(result), spreads(result)]
    also = {str(count) for count in (high.drives, high.low_use)}
    for value in (high.waf_above, high.median_drive_writes, high.others_median_drive_writes):
        if value is not None:
            also |= set(numbers(headline(dataclasses.replace(result, fleet_waf=value)).columns[10].cell(value)))
    if result.wear_pct.max:
        also.add(show_percent(result.wear_pct.max))
    check(said, *tables, also=also)


@QUICK
@given(FLEETS)
def test_low_use_explains_exactly_what_it_explains(result: Drives) -> None:
    said, high = verdict(result), result.outliers
    if not result.drives or not high.drives or high.waf_above is None:
        assert "a WAF above" not in said
        return
    assert ("because of low use" in said) == bool(high.low_use)
    assert ("does not explain" in said) == (not high.low_use and high.use_not_known < high.drives)
    assert ("of them because" in said) == (0 < high.low_use < high.drives)
    assert ("1 drive has a WAF" in said) == (high.drives == 1)
    check_language(outliers(result).note)


@QUICK
@given(FLEETS)
def test_what_is_not_known_of_the_rating_is_not_nothing(result: Drives) -> None:
    note = years_left(result).note
    if not is_missing(result.rated_dwpd):
        assert ("not known" in note) == (result.rated_used_pct.max is None)
    check_language(note)

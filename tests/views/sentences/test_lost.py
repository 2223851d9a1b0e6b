"""Core-hours lost: the sum, the finding that costs most, and ties."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.lost import LostByName, LostCoreHours, PayingFix
from iolens.views.lost import lost_words, notes, tables
from iolens.views.runs import shown_number

from .generated import AMOUNTS, COUNTS, QUICK, check, check_language, lists_of, results_of

HOURS = st.sampled_from([0.0, 0.004, 1.0, 12.34, 99.97, 1504.0])
CODES = ["rank-imbalance", "small-io", "metadata-bound"]


@st.composite
def losses(draw: st.DrawFn) -> LostCoreHours:
    fixes = [
        draw(results_of(PayingFix, code=st.just(code), core_hours_lost=HOURS,
                        core_hours_regained=st.one_of(st.none(), HOURS)))
        for code in draw(st.lists(st.sampled_from(CODES), unique=True))
    ]  # fmt: skip
    fixes.sort(key=lambda fix: (-(fix.core_hours_regained or 0.0), -fix.core_hours_lost, fix.code))
    total = draw(st.one_of(st.none(), AMOUNTS))
    own = {"applications": lists_of(LostByName), "projects": lists_of(LostByName), "runs_judged": COUNTS}
    return draw(results_of(LostCoreHours, fixes=st.just(fixes), core_hours_lost=st.just(total), **own))


@QUICK
@given(losses())
def test_the_sentence_is_the_table(result: LostCoreHours) -> None:
    said = lost_words(result)
    if result.core_hours_lost is None:
        assert "not known" in said
        return
    *_, fixes = tables(result)
    check(said, fixes, also={shown_number(result.core_hours_lost).replace(",", "")})
    assert (";" in said) == bool(result.fixes and result.core_hours_lost)


@QUICK
@given(losses())
def test_findings_that_cost_the_same_are_named_together(result: LostCoreHours) -> None:
    said = lost_words(result)
    if ";" not in said:
        return
    first = result.fixes[0]
    regained = first.core_hours_regained
    if regained:
        same = [fix for fix in result.fixes if fix.core_hours_regained == regained]
        assert "would pay most" in said
    else:
        same = [fix for fix in result.fixes if fix.core_hours_lost == first.core_hours_lost]
        assert "would pay" not in said
    assert [code for code in CODES if code in said] == [code for code in CODES if code in {fix.code for fix in same}]
    if "most of all by" in said:
        assert len({fix.executable for fix in same}) == 1


@QUICK
@given(losses())
def test_notes(result: LostCoreHours) -> None:
    for said in notes(result):
        check_language(said)

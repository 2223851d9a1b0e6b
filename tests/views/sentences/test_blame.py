"""Who made it busy: the first name, its shares, and what nobody is to blame for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.blame import Blame, BlameCoverage, WhoShare
from iolens.views.blame import coverage, share_of_bytes, verdict, warnings, who
from iolens.views.render.tables import show_percent

from .generated import QUICK, check, check_language, lists_of, results_of

LINES = lists_of(WhoShare).map(lambda lines: sorted(lines, key=lambda line: -line.share_pct))
BLAMES = results_of(
    Blame,
    who=LINES,
    others=st.one_of(st.none(), results_of(WhoShare)),
    coverage=results_of(BlameCoverage, targets_without_job_stats=st.lists(st.just("OST0001"), max_size=2)),
)


@QUICK
@given(BLAMES)
def test_the_first_has_the_share_of_the_table(result: Blame) -> None:
    said = verdict(result)
    assert said.startswith("No ") == (not result.who)
    if not result.who:
        return
    share = share_of_bytes(result, result.who[0])
    check(said, who(result), also=set() if share is None else {show_percent(share)})
    assert f"{show_percent(result.who[0].share_pct)} % of the" in said
    assert (" but moved " in said) == (
        share is not None and result.basis == "disk" and result.who[0].share_pct > 3 * share
    )
    if share is not None:
        assert 0 <= share <= 100


@QUICK
@given(BLAMES)
def test_warnings_hold_the_numbers_of_the_tables(result: Blame) -> None:
    for said in warnings(result):
        ids = (result.coverage.incomplete_ids, result.coverage.contradictory_ids)
        check(said, who(result), coverage(result), also={"2", "1", *map(str, ids)})
        check_language(said)
    is_much = any("is unattributed" in said and "%" in said for said in warnings(result))
    assert is_much == (result.unattributed_pct >= 20)

"""Utilization: how busy, how busy as 1 MiB I/Os, and bandwidth against its peak."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from iolens.views.render.tables import show_percent
from iolens.views.utilization.tables import SAME_FACTOR, bandwidth, tables, verdict
from tests.views.results import busy_day

from .generated import AMOUNTS, PERCENTS, QUICK, check, check_language, numbers

RESULT = busy_day("scratch", 300, targets=4)
MAYBE = st.one_of(st.none(), st.just(float("nan")), PERCENTS)


@QUICK
@given(MAYBE, st.one_of(st.none(), st.just(0.0), st.just(float("nan")), st.floats(1e-6, 1), st.just(1.0)))
def test_the_verdict_is_the_table(busy: float | None, share: float | None) -> None:
    optimal = None if busy is None or share is None else busy * share
    factor = busy / optimal if busy and optimal else None
    result = replace(RESULT, busy_time_pct=busy, optimal_busy_time_pct=optimal, under_report_factor=factor)
    said = verdict(result)
    known = busy is not None and busy == busy  # NaN is not
    assert ("Never busy" in said) == (known and busy == 0)
    assert ("never have kept it busy" in said) == (known and busy != 0 and optimal == 0)
    assert optimal is None or busy is None or not optimal > busy
    assert said.startswith("Busy") == (known and busy != 0)
    is_less = "× less" in said
    assert is_less == (
        known and bool(busy) and bool(optimal) and optimal == optimal and factor is not None and factor >= SAME_FACTOR
    )
    if said.startswith("Busy"):
        check(said, tables(result)[0], also={"1"})
    check_language(said)


@QUICK
@given(PERCENTS, AMOUNTS, st.sampled_from(["given", "configured", "largest tick"]))
def test_bandwidth(share: float, peak: float, origin: str) -> None:
    result = replace(RESULT, bandwidth_busy_time_pct=share, peak_bytes_per_s=peak, peak_origin=origin)
    said = bandwidth(result)
    assert ("not known" in said) == (origin == "largest tick")
    assert show_percent(share) in numbers(said)
    check(said, tables(result)[0], also={"30"})

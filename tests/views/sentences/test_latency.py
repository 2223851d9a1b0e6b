"""Latency: how long I/Os took, and who was slower, by the tables beside it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.latency.analysis import DirectionLatency, Latency, TargetLatency
from iolens.analyses.latency.part import SlownessEvidence
from iolens.views.latency import coverage, headline, shown_ms, slowness, verdict
from iolens.views.render.tables import show_percent, show_seconds

from .generated import AMOUNTS, COUNTS, PERCENTS, QUICK, check, check_language, numbers, results_of

TARGETS = [f"OST{place:04x}" for place in range(9)]


def evidence() -> st.SearchStrategy[SlownessEvidence]:
    tail = st.tuples(AMOUNTS, PERCENTS, PERCENTS)
    return st.one_of(
        tail.flatmap(
            lambda known: results_of(SlownessEvidence, tail_ms=st.just(known[0]), beyond_twice_pct=st.just(known[1]),
                                     peers_beyond_pct=st.just(known[2]))
        ),
        results_of(SlownessEvidence, beyond_twice_pct=st.none()),
    )  # fmt: skip


@st.composite
def latencies(draw: st.DrawFn) -> Latency:
    whole = [draw(results_of(DirectionLatency, direction=st.just(word))) for word in ("read", "write")]
    lines: list[Any] = []
    for name in draw(st.lists(st.sampled_from(TARGETS), unique=True, max_size=3)):
        known = {"target": st.just(name), "direction": st.sampled_from(["read", "write"]), "evidence": evidence()}
        lines.append(draw(results_of(TargetLatency, mean_wait_ratio=st.floats(0, 1e6), **known)))
    return draw(results_of(Latency, whole=st.just(whole), per_target=st.just(lines)))


@QUICK
@given(latencies())
def test_how_long_ios_took_is_that_of_the_table(result: Latency) -> None:
    said = verdict(result)
    if not result.samples:
        assert said == "No data in this window."
        return
    sentence = said.partition(".  ")[0]
    known = [line for line in result.whole if line.p99_ms is not None]
    for line in known:
        assert line.p99_ms is not None
        assert f"99 % of {line.direction}s took at most {shown_ms(line.p99_ms)} ms".lower() in sentence.lower()
    begins = said[: said.find(" OST")] if " OST" in said else said
    check(begins, headline(result), coverage(result), also={"99"})
    nothing = all(line.p99_ms is None and line.mean_wait_ms is None for line in result.whole)
    assert ("No I/O was timed" in said) == nothing


@QUICK
@given(latencies())
def test_who_is_slower_is_who_the_table_calls_slower(result: Latency) -> None:
    said = verdict(result)
    slow = sorted((line for line in result.per_target if line.finding == "slower"), key=slowness, reverse=True)
    if not result.samples or not slow:
        assert "slower than" not in said
        return
    assert ("is far slower than its peers" in said) == (len(slow) == 1)
    assert ("are far slower than their peers" in said) == (len(slow) > 1)
    assert all(line.target in said for line in slow[:6])
    usual = [line.target for line in result.per_target if line.finding != "slower"]
    assert not any(f"{name} " in said or f"{name}," in said for name in usual)
    first = slow[0].evidence
    assert first is not None
    reason = said.partition(" peers: ")[2]
    assert f"slower in {first.periods_slower} of " in reason
    assert reason.endswith(f" of {show_seconds(result.period_s)}.")
    if first.beyond_twice_pct is not None:
        assert f"{show_percent(first.beyond_twice_pct)} % of {slow[0].target}'s {slow[0].direction}s" in reason
        assert first.tail_ms is not None
        assert f"more than {shown_ms(2 * first.tail_ms)} ms" in reason
    check_language(said)


@QUICK
@given(AMOUNTS, COUNTS)
def test_milliseconds_are_never_nothing_for_something(value: float, count: int) -> None:
    assert (float(numbers(shown_ms(value))[0]) == 0) == (value == 0)
    assert shown_ms(float(count % 1000)) == f"{count % 1000}"

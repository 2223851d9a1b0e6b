"""Imbalance: how often, how long, who is hot, and who is not like the others."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.imbalance.analysis import HotTarget, Imbalance, ImbalanceThreshold
from iolens.analyses.imbalance.part import PeerTarget
from iolens.analyses.imbalance.spreads import Durations
from iolens.views.imbalance.tables import coverage, extremes, hot_targets, peers, thresholds, verdict
from iolens.views.render import tables as t

from .generated import QUICK, check, check_language, lists_of, results_of

TARGETS = [f"OST{place:04x}" for place in range(9)]
HOURS = st.sampled_from([0.0, 0.5, 1.0, 24.0])


@st.composite
def imbalances(draw: st.DrawFn) -> Imbalance:
    chosen = [
        draw(results_of(ImbalanceThreshold, name=st.just(name), percentile=st.just(percentile)))
        for name, percentile in (("p80", 80.0), ("p95", 95.0))
    ]
    lengths = st.tuples(st.floats(1, 1e7), st.floats(0, 1e7)).map(lambda ends: {"p90_s": ends[0], "max_s": sum(ends)})
    lasted = {item.name: Durations(item.periods, 1.0, 1.0, p99_s=1.0, **draw(lengths)) for item in chosen}
    hot = draw(lists_of(HotTarget, 4, threshold=st.just("p80"), target=st.sampled_from(TARGETS), hours=HOURS))
    unique = list({item.target: item for item in hot}.values())
    own: dict[str, Any] = {
        "thresholds": st.just(chosen),
        "lifetimes": st.just(lasted),
        "distances": st.just(lasted),
        "hot_targets": st.just(sorted(unique, key=lambda item: -item.hours)),
        "peers": st.lists(st.sampled_from(TARGETS), unique=True, max_size=4).flatmap(
            lambda names: st.tuples(*(results_of(PeerTarget, target=st.just(name)) for name in names)).map(list)
        ),
        "series": st.none(),
    }
    return draw(results_of(Imbalance, **own))


@QUICK
@given(imbalances())
def test_the_numbers_are_those_of_the_tables(result: Imbalance) -> None:
    said = verdict(result)
    spread = [t.rate("", "").cell(value) for value in (result.std_p80_bytes_per_s, result.std_p95_bytes_per_s)]
    also = {"80", "95", *(text.split()[0] for text in spread)}
    names = {str(len(result.peers) - 6), str(len(result.hot_targets) - 6)}
    check(said, thresholds(result), hot_targets(result), extremes(result), coverage(result), also=also | names)
    for text in spread:
        assert f"at most {text}" in said


@QUICK
@given(imbalances())
def test_once_is_once_and_never_is_not_said_to_have_lasted(result: Imbalance) -> None:
    said = verdict(result)
    for threshold in result.thresholds:
        rate = t.rate("", "").cell(threshold.std_bytes_per_s)
        if not threshold.periods:
            continue
        assert f"It reached {rate} {'once' if threshold.periods == 1 else f'{threshold.periods:,} times'}" in said
    reached = sum(threshold.periods > 0 for threshold in result.thresholds)
    assert said.count("It reached") == reached
    assert said.count("nine in ten") == sum(threshold.periods > 1 for threshold in result.thresholds)


@QUICK
@given(imbalances())
def test_equally_hot_targets_are_named_together(result: Imbalance) -> None:
    said = verdict(result)
    most = max((hot.hours for hot in result.hot_targets), default=None)
    first = [hot.target for hot in result.hot_targets if hot.hours == most]
    assert ("Most often hot" in said) == bool(first)
    sentence = said.partition("Most often hot")[2].partition(" target. ")[0]
    assert all(name in sentence for name in first[:6])
    assert ("equally long" in said) == (len(first) > 1)


@QUICK
@given(imbalances())
def test_who_is_not_like_the_others_is_named_as_in_the_table(result: Imbalance) -> None:
    said = verdict(result)
    rows = {row[0]: row[1] for row in t.body(peers(result))} if result.peers else {}
    for finding, words in (("dead", "nothing while"), ("high", "far more than"), ("low", "far less than")):
        names = [peer.target for peer in result.peers if peer.finding == finding]
        sentences = [sentence for sentence in said.split(". ") if words in sentence and "It reached" not in sentence]
        assert len(sentences) == bool(names)
        for name in names[:6]:
            assert name in sentences[0]
            assert words in rows[name]
        assert all((" their peers" in text) == (len(names) > 1) for text in sentences)
    check_language(said)

"""Why a run was slow: the sentence against the table of factors."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.explain.analysis import RunExplanation
from iolens.analyses.explain.history import FEWEST
from iolens.analyses.explain.results import ExplainedFactor, LikeHistory, RunNeighbour, RunPerformance
from iolens.views.brief_page import SHORT, verdict_sentence
from iolens.views.explain import LABELS, neighbour_words, notes, ordinal, tables, verdict_words
from iolens.views.runs import shown_number

from .generated import AMOUNTS, COUNTS, NAMES, PERCENTS, QUICK, check_language, lists_of, numbers, results_of, shown

HEADS = ("own", "system", "both")
NUMERIC = sorted(set(LABELS) - {"strategy", "opens", "bytes"})


def factors() -> st.SearchStrategy[ExplainedFactor]:
    values = {"value": AMOUNTS, "percentile": PERCENTS, "rho": st.floats(-1, 1), "named": st.booleans()}
    values |= {"target": st.none(), "change": st.none()}
    return st.one_of(
        results_of(ExplainedFactor, factor=st.sampled_from(NUMERIC), **values),
        results_of(ExplainedFactor, factor=st.sampled_from(["opens", "bytes"]), **{**values, "value": COUNTS}),
    )


def histories(runs: int) -> st.SearchStrategy[LikeHistory]:
    """Of so many runs; some are after the run only where too few came before it."""
    after = st.just(0) | st.integers(max(0, runs - FEWEST + 1), runs)
    return results_of(LikeHistory, runs=st.just(runs), after=after)


EXPLANATIONS = results_of(
    RunExplanation,
    own=st.lists(factors(), max_size=2),
    system=st.lists(factors(), max_size=2),
    neighbours=lists_of(RunNeighbour),
    history=st.integers(0, 300).flatmap(histories),
    performance=results_of(RunPerformance, unit=st.just("MiB/s"), history_percentile=st.one_of(st.none(), PERCENTS)),
    targets_from=st.just("log"),
    job_id=NAMES,
).filter(lambda result: result.verdict not in HEADS or any(line.named for line in (*result.own, *result.system)))


@QUICK
@given(EXPLANATIONS)
def test_evidence_has_the_values_of_the_table(result: RunExplanation) -> None:
    said = verdict_words(result)
    check_language(said)
    if result.verdict in HEADS:
        beside = shown(*tables(result))
        for line in (*result.own, *result.system):
            assert isinstance(line.value, (int, float))
            if line.named and line.factor not in (
                "bytes",
                "opens",
                "mean_access_bytes",
                "imbalance",
                "coverage_factor",
            ):
                assert shown_number(line.value) in said
                assert shown_number(line.value).replace(",", "") in beside


@QUICK
@given(EXPLANATIONS)
def test_more_than_all_is_more_than_all(result: RunExplanation) -> None:
    said = verdict_words(result)
    named = [line for line in (*result.own, *result.system) if line.named]
    if result.verdict in HEADS:
        assert said.count("more than in all") == sum(line.percentile == 100 for line in named)
        assert said.count("less than in all") == sum(line.percentile == 0 for line in named)
        falls = sum(line.rho is not None and line.rho < 0 for line in named)
        assert said.count("performance falls") == falls
    for place in re.findall(r"(\d+)(?:st|nd|rd|th) percentile", said):
        exact = {line.percentile for line in (*result.own, *result.system)} | {result.performance.history_percentile}
        assert 0 < int(place) < 100 or float(place) in exact


@QUICK
@given(PERCENTS)
def test_ordinals(percentile: float) -> None:
    text = ordinal(percentile)
    ending = {"11": "th", "12": "th", "13": "th"}.get(text[:-2], {"1": "st", "2": "nd", "3": "rd"}.get(text[-3], "th"))
    assert text.endswith(ending)
    assert text[:-2] not in ("0", "100") or percentile == float(text[:-2])


@QUICK
@given(EXPLANATIONS)
def test_notes_and_the_sentence_of_a_page(result: RunExplanation) -> None:
    for said in (*notes(result), verdict_sentence(result), neighbour_words(result) or ""):
        check_language(said)
    assert verdict_sentence(result).startswith("It was") == (result.verdict in SHORT)
    words = neighbour_words(result)
    if words is not None:
        assert set(numbers(words)) <= shown(tables(result)[1])

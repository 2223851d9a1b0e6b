"""Runs: coverage, files, projects, sizes, variance, scaling, strategy, activity, and two runs side by side."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.runs.compare import ComparedMeasure
from iolens.analyses.runs.timeline import IoPhase, RunTimeline
from iolens.analyses.runs_coverage import RunCoverage
from iolens.analyses.runs_files import RunFileCounts
from iolens.analyses.runs_projects import ProjectVolume, RunProjects
from iolens.analyses.runs_scaling import RunScaling
from iolens.analyses.runs_sizes import RunSizes, SizeOfAccesses
from iolens.analyses.runs_variance import RunVariance
from iolens.units import format_bytes_si
from iolens.views import runs_coverage as coverage
from iolens.views import runs_files as files
from iolens.views import runs_projects as projects
from iolens.views import runs_scaling as scaling
from iolens.views import runs_sizes as sizes
from iolens.views import runs_variance as variance
from iolens.views.render.tables import show_percent, show_whole_percent
from iolens.views.runs import joined_words, shown_number
from iolens.views.runs_compare import factor_text, verdict
from iolens.views.runs_summary.words import STRATEGIES, gain_words, strategy_words
from iolens.views.runs_timeline import activity_words

from .generated import AMOUNTS, COUNTS, PERCENTS, QUICK, check, check_language, lists_of, numbers, results_of

SAME_BYTES = st.one_of(st.none(), st.sampled_from([0, 1, 5 * 10**9]))


@QUICK
@given(results_of(RunCoverage))
def test_coverage(result: RunCoverage) -> None:
    said = coverage.coverage_words(result)
    if not result.jobs or result.jobs_pct is None:
        assert said.startswith("No job")
        return
    expected = [str(result.jobs_with_log), str(result.jobs), show_percent(result.jobs_pct)]
    if result.core_hours_pct is not None:
        hours = (result.core_hours_with_log, result.core_hours)
        expected += [shown_number(amount).replace(",", "") for amount in hours]
        expected.append(show_percent(result.core_hours_pct))
    assert numbers(said) == numbers(" ".join(expected))
    for note in coverage.notes(result):
        check_language(note)


@QUICK
@given(results_of(RunCoverage))
def test_how_runs_were_matched(result: RunCoverage) -> None:
    said, joined = joined_words(result.joined), result.joined
    counts = [count for count in (joined.by_id, joined.by_user_executable_time, joined.without_job) if count]
    assert numbers(said) == [str(count) for count in counts]
    assert said.endswith(": none.") == (not counts)
    check_language(said)


@QUICK
@given(results_of(RunFileCounts))
def test_files(result: RunFileCounts) -> None:
    said = files.notes(result)
    assert (len(said) == 2) == (result.new_files_pct is not None)
    if result.new_files_pct is not None:
        expected = [str(result.written_files or 0), show_percent(result.new_files_pct)]
        assert numbers(said[1]) == numbers(" ".join(expected))
    for note in said:
        check_language(note)


VOLUMES = lists_of(ProjectVolume, read_bytes=SAME_BYTES, write_bytes=SAME_BYTES)


@QUICK
@given(results_of(RunProjects, top_projects=VOLUMES))
def test_who_moved_most_is_named_with_those_that_moved_as_much(result: RunProjects) -> None:
    said = projects.most_words(result)
    moved = [(line.read_bytes or 0) + (line.write_bytes or 0) for line in result.top_projects]
    most = max(moved, default=0)
    assert said.startswith("No project") == (not most)
    assert ("moved most" in said) == (bool(most) and moved.count(most) == 1)
    assert ("Equally" in said) == (bool(most) and moved.count(most) > 1)
    check(said, projects.volumes(result))
    for note in (*projects.notes(result), *projects.warnings(result), projects.volumes(result).note):
        check_language(note)
    assert format_bytes_si(most)


@QUICK
@given(results_of(RunScaling, by=st.just("nodes")))
def test_scaling(result: RunScaling) -> None:
    if result.verdict.processes_min is not None and result.verdict.processes_max is not None:
        (said,) = scaling.notes(result)
        assert ("undecided," in said) == (result.verdict.slope is None)
        check_language(said)


SIZES = st.lists(
    results_of(SizeOfAccesses, direction=st.sampled_from(["read", "write"]), accesses=st.sampled_from([0, 1, 7])),
    max_size=5,
)


@QUICK
@given(results_of(RunSizes, sizes=SIZES))
def test_the_most_popular_sizes(result: RunSizes) -> None:
    said = sizes.notes(result)
    (table,) = sizes.tables(result)
    for direction in ("read", "write"):
        own = [line.accesses for line in result.sizes if line.direction == direction]
        words = [note for note in said if f"most popular {direction}" in note]
        assert len(words) == bool(max(own, default=0))
        for note in words:
            assert ("equally" in note) == (own.count(max(own)) > 1)
            check(note, table, also=set(numbers(" ".join(sizes.bin_name(line.from_bytes) for line in result.sizes))))
    check_language(said[0])


@QUICK
@given(results_of(RunVariance))
def test_variance(result: RunVariance) -> None:
    for note in variance.notes(result):
        check_language(note)


# One run, and two.


@QUICK
@given(
    results_of(
        RunTimeline,
        phases=lists_of(IoPhase),
        active_time_pct=st.one_of(st.none(), PERCENTS),
        mean_active_ranks_pct=st.one_of(st.none(), PERCENTS),
    )
)
def test_activity(result: RunTimeline) -> None:
    said = activity_words(result)
    assert said.startswith("No I/O") == (not result.phases)
    if not result.phases:
        return
    expected = [] if result.active_time_pct is None else [show_whole_percent(result.active_time_pct)]
    expected.append(str(len(result.phases)))
    if result.mean_active_ranks_pct is not None and (result.nprocs or 1) > 1:
        expected.append(show_whole_percent(result.mean_active_ranks_pct))
        assert ("not coordinated" in said) == (not result.coordinated)
    assert [number for number in numbers(said) if number != "13"] == expected
    check_language(said)


SHARES = ("collective_pct", "busiest_rank_pct", "shared_pct", "partially_shared_pct", "unique_pct")


@QUICK
@given(
    st.sampled_from(list(STRATEGIES)),
    st.fixed_dictionaries(
        {name: st.one_of(st.none(), PERCENTS) for name in SHARES} | {"io_ranks": st.sampled_from([None, 0, 1, 2, 12])}
    ),
    st.sampled_from([None, 1, 2, 12]),
)
def test_strategy(strategy: str | None, seen: dict[str, Any], processes: int | None) -> None:
    run: Any = SimpleNamespace(strategy=strategy, strategy_evidence=seen, nprocs=processes)
    said = strategy_words(run)
    assert not [number for number in numbers(said) if number == "100" and 100.0 not in seen.values()]
    if "move bytes" in said.partition("(")[2] or "moves bytes" in said.partition("(")[2]:
        assert ("moves bytes" in said) == (seen["io_ranks"] == 1)
    check_language(said)


@QUICK
@given(st.one_of(st.none(), st.floats(1, 1e6)), st.sampled_from(["study", "like_runs", None]))
def test_gain(gain: float | None, origin: str | None) -> None:
    said = gain_words(gain, origin)
    assert (said == "") == (gain is None or f"{gain:.3g}" == "1")
    if gain is not None and said:
        assert float(numbers(said)[0]) == pytest.approx(gain, rel=0.006)


FACTORS = st.one_of(st.none(), st.sampled_from([0.5, 0.9996, 1.0, 1.0004, 2.0, 728.0]), st.floats(1e-6, 1e6))


@QUICK
@given(FACTORS, FACTORS, st.sampled_from([True, False, None]))
def test_a_comparison(time_factor: float | None, rate: float | None, same: bool | None) -> None:
    result: Any = SimpleNamespace(
        measures=[ComparedMeasure("mib_per_s", None, None, rate)], io_time_factor=time_factor, same_work=same
    )
    said = verdict(result)
    factor = time_factor if same and time_factor else rate
    if factor is None:
        assert "no factor" in said
        return
    text = factor_text(max(factor, 1 / factor))
    is_same = text == "1"
    assert ("equally fast" in said or "is the same after" in said) == is_same
    assert ("faster" in said or "times as high" in said) == (factor > 1 and not is_same)
    assert ("slower" in said or "of what it was" in said) == (factor < 1 and not is_same)
    assert ("not the same" in said) == (same is False)
    assert ("is not known" in said) == (same is None)
    if not is_same:
        assert text.replace(",", "") in numbers(said.replace("1/", ""))


@QUICK
@given(COUNTS, AMOUNTS)
def test_factors_have_no_false_one(count: int, amount: float) -> None:
    assert factor_text(float(count)).replace(",", "") == str(count) or count < 100 or count >= 10**15
    assert "e+" not in factor_text(amount)

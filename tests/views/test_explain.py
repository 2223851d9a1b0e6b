"""Words of an explained run: from its numbers, and from names that may hold anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from iolens.analyses.explain.analysis import RunExplanation
from iolens.analyses.explain.results import (
    OWN,
    SYSTEM,
    ExplainedFactor,
    HistorySeries,
    LastingChange,
    LikeHistory,
    RunNeighbour,
    RunPerformance,
    UnknownFactor,
)
from iolens.findings.rule import Finding
from iolens.views.explain import figures, neighbour_words, notes, ordinal, tables, verdict_words


def line(factor: str, value: Any = None, percentile: float | None = 50.0, rho: float | None = None, **more: Any) -> Any:
    numbers = {"p": None, "p_holm": None, "rho_runs": 38, "named": False}
    return ExplainedFactor(factor, value, percentile, rho, **{**numbers, **more})


def explained(**more: Any) -> RunExplanation:
    """A run that met busy disks."""
    system = [line("fsu_others_pct", 71.2, 97.4, -0.823, p=1e-8, p_holm=1e-7, named=True), *map(line, SYSTEM[1:])]
    values: dict[str, Any] = {
        "run": "ab" * 32, "verdict": "system", "slow": True,
        "performance": RunPerformance(12.34, "MiB/s/CN", 2.6, 30.0, 40.0), "own": [*map(line, OWN)], "system": system,
        "neighbours": [RunNeighbour("88", 61.5, "bob", "tiny")], "neighbours_on": [], "core_hours_lost": 1234.5,
        "fall": None,
        "history": LikeHistory(38, relaxed=False, program_runs=40, left_out=0), "filesystem": "scratch", "job_id": "17",
        "user": "ada", "project": None, "executable": "app", "window_start": datetime(2026, 1, 1, tzinfo=UTC),
        "window_end": datetime(2026, 1, 1, 1, tzinfo=UTC), "io_time_s": 300.0, "history_median_io_time_s": 100.0,
        "cores": 64, "targets": ["scratch-OST0000", "scratch-OST0001"], "targets_known": True, "targets_from": "log",
        "method": "job_stats",
        "calibrations": ["own"], "not_known": [UnknownFactor("fullness_pct", "no reading")], "notes": ["a note"],
    }  # fmt: skip
    return RunExplanation(**{**values, **more})


def test_the_sentence_that_is_promised() -> None:
    assert verdict_words(explained()) == (
        "slow because of the system: the disks of its OSTs were 71.2 % busy for others (97th percentile of 38 like"
        " runs; performance falls with it, ρ = −0.82)."
    )


def test_notes_say_what_was_lost_where_and_what_is_not_known() -> None:
    assert list(notes(explained())) == [
        "12.3 MiB/s/CN, the 3rd percentile of 38 like runs; their median is 40.",
        "1,234 core-hours lost: 300 s of I/O instead of 100 s in the median, on 64 cores.",
        "OSTs of its files: scratch-OST0000 and scratch-OST0001.",
        "Others on its OSTs, by their share of the disk time: 88 (61.5 %).",
        "Not known: fullness of its fullest OST (%): no reading.",
        "A note.",
    ]


def test_neighbours_are_on_what_the_verdict_names() -> None:
    storm = RunNeighbour("9", 97.0, "eve", "stat", "metadata_operations")
    result = explained(neighbours=[storm, RunNeighbour("88", 61.5, "bob", "tiny")], neighbours_on=["scratch-OST0001"])
    assert neighbour_words(result) == (
        "Others on the metadata servers, by their share of the metadata operations: 9 (97.0 %)."
        " Others on scratch-OST0001, by their share of the disk time: 88 (61.5 %)."
    )
    assert tables(result)[1].rows == [("9", 97.0, "metadata operations"), ("88", 61.5, "disk time")]


def test_a_lasting_change_is_named_with_its_target_and_time() -> None:
    since = datetime(2025, 12, 30, 8, tzinfo=UTC)
    full = line(
        "fullness_pct", 96.65, 60.0, -0.7, named=True, target="scratch-OST0001",
        change=LastingChange(since, 54.2, 96.6, 9, 0.0005),
    )  # fmt: skip
    result = explained(system=[full], fall=LastingChange(since, 40.0, 20.0, 9, 0.0005))
    assert verdict_words(result) == (
        "slow because of the system: its fullest OST, scratch-OST0001, was 96.7 % full (lastingly since 2025-12-30"
        " 08:00:00 UTC, 54.2 before; performance fell with it)."
    )
    assert [*notes(result)][1] == (
        "Performance fell lastingly, from 40 to 20 MiB/s/CN in the median, with the run of 2025-12-30 08:00:00 UTC"
        " (p = 0.0005)."
    )
    assert tables(result)[0].rows[-1][:3] == ("system", "fullness of its fullest OST (%): scratch-OST0001", 96.65)


def test_a_slow_ost_is_named_first() -> None:
    slow = Finding("slow-ost", "high", "files on OST 14 took 547 s each, 47.4 times as long", {}, "ask", "a study")
    said = verdict_words(explained(slow_osts=[slow]))
    assert said.startswith("slow because of the system: files on OST 14 took 547 s each, 47.4 times as long; the disks")
    assert "Files on OST 14" not in " ".join(notes(explained(slow_osts=[slow])))
    first, *_ = notes(explained(verdict="too little history", slow=None, slow_osts=[slow]))
    assert first == "Files on OST 14 took 547 s each, 47.4 times as long."


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("not slow", "not slow: 12.3 MiB/s/CN, the 3rd percentile of 38 like runs; their median is 40."),
        (
            "too little history",
            "too little history: 38 like runs, and at least 5 are needed to say whether it was slow.",
        ),
        ("no log", "no Darshan log of job 17 is stored: whether it was slow, and what it did itself, is not known."),
    ],
)
def test_other_verdicts(verdict: Any, words: str) -> None:
    assert verdict_words(explained(verdict=verdict)) == words


def test_what_is_unusual_but_good_is_no_excuse() -> None:
    """More bytes of its own go with faster runs: that does not belong into a list of suspects."""
    good = line("coverage_factor", 0.9, 99.0, 0.8, p=1e-9, p_holm=1e-8)
    odd = line("opens", 4000, 99.0)
    result = explained(verdict="unexplained", own=[odd], system=[good])
    assert verdict_words(result) == (
        "slow, and not explained. Unusual, but not known to make runs slower: it opened files 4,000 times"
        " (99th percentile)."
    )
    assert verdict_words(explained(verdict="unexplained", own=[], system=[])) == (
        "slow, and nothing that was measured was unusual."
    )


def test_a_strategy_is_named() -> None:
    named = line("strategy", "file_per_process", 95.0, -0.7, named=True)
    assert verdict_words(explained(verdict="own", own=[named], system=[])) == (
        "slow because of what it did itself: its strategy is file per process (unlike most of 38 like runs; runs"
        " with it are slower, ρ = −0.70)."
    )
    rows = tables(explained(own=[named]))[0].rows
    assert rows[0][:3] == ("own", "strategy: file_per_process", None)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0th"), (1, "1st"), (2.4, "2nd"), (11, "11th"), (22, "22nd"), (93, "93rd")]
)
def test_ordinals(number: float, text: str) -> None:
    assert ordinal(number) == text


def test_figures_without_load_or_history_say_so() -> None:
    drawn = {name: describe() for name, describe in figures(explained()).items()}
    assert [panel.message for panel in drawn["timeline"].panels] == [
        "the load of its targets is not known", "no activity of the run is known",
    ]  # fmt: skip
    assert drawn["factors"].panels[0].message == "no like runs"


def test_a_panel_for_each_factor_that_varies() -> None:
    values = {"opens": np.ones(4), "fsu_others_pct": np.array([1.0, 2.0, np.nan, 70.0])}
    series = HistorySeries(np.arange(4), np.array([0, 0, 0, 1]), np.array([30.0, 31.0, 32.0, 12.0]), values)
    panels = figures(replace(explained(), series=series))["factors"]().panels
    assert [panel.title for panel in panels] == ["performance (MiB/s/CN)", "FSU of others (%)"]


def test_a_run_of_which_nothing_is_known_has_a_figure_too() -> None:
    series = HistorySeries(np.arange(2), np.array([0, 1]), np.array([30.0, np.nan]), {"opens": np.full(2, np.nan)})
    assert figures(replace(explained(), series=series))["factors"]().panels[0].message == "no like runs"

"""`bench latency`: its points, its refusals, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks.studies import latency_study
from iolens.benchmarks.studies.latency_study import (
    KIND,
    LOOP_NOTE,
    STRACE_NOTE,
    CallTimes,
    LatencyParameters,
    call_row,
    percentile,
    tracer_notes,
)
from iolens.benchmarks.studies.plan import PointSite, StudyPlace, StudyPlan, TimeUp, new_folder
from iolens.benchmarks.studies.run import run_study
from iolens.benchmarks.studies.traced_program import CALLS
from iolens.errors import UsageError

NO_STRACE = "strace is not on PATH"


def plan_of(*places: Path, repeats: int = 2, **values: Any) -> StudyPlan:
    named = tuple(StudyPlace(place.name, place) for place in places)
    return StudyPlan("latency-test", "latency", named, LatencyParameters(**values), repeats=repeats)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    first, second = tmp_path / "home", tmp_path / "scratch"
    first.mkdir()
    second.mkdir()
    return first, second


def test_a_point_is_a_place_and_a_repeat(places: tuple[Path, Path]) -> None:
    points = KIND.points(plan_of(*places, operations=100))
    assert [point.key for point in points] == ["home/0", "scratch/0", "home/1", "scratch/1"]
    assert (points[0].files, points[0].bytes_written, points[0].bytes_read) == (100, 800, 800)
    assert points[0].operations == 1700  # 8 calls to write, 7 to read, and one beside each


def test_the_loop_leaves_a_row_for_every_call_and_no_file(places: tuple[Path, Path], tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "study", plan_of(*places, operations=4, tracer="loop"))
    outcome = run_study(folder)
    assert outcome.is_whole
    assert outcome.notes == [LOOP_NOTE]
    assert [list(place.iterdir()) for place in places] == [[], []]
    for rows in folder.journal().rows.values():
        for direction in ("write", "read"):
            mine = {row["call"]: row for row in rows if row["direction"] == direction}
            assert list(mine) == ["getppid", *CALLS[direction]]
            assert {row["operations"] for row in mine.values()} == {4}
            assert {row["tool"] for row in mine.values()} == {"loop"}
            assert {call for call, row in mine.items() if "bytes" in row} == {direction}
            assert mine[direction]["bytes"] == 32
        assert {row["page_cache"] for row in rows if row["direction"] == "read"} == {"dropped"}


def test_files_may_stay_in_the_page_cache(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency_study, "drop_from_cache", lambda path: pytest.fail(f"{path} was dropped"))
    plan = plan_of(places[0], operations=2, tracer="loop", drop_cache=False)
    rows = list(KIND.run(plan, KIND.points(plan)[0], PointSite(places[0])))
    assert {row["page_cache"] for row in rows if row["direction"] == "read"} == {"warm"}


def test_time_that_is_up_ends_the_point(places: tuple[Path, Path]) -> None:
    plan = plan_of(places[0], operations=2, tracer="loop")
    with pytest.raises(TimeUp):
        list(KIND.run(plan, KIND.points(plan)[0], PointSite(places[0], deadline=0.0)))


def test_how_times_are_taken_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency_study, "strace_trouble", lambda: None)
    assert tracer_notes("auto") == tracer_notes("strace") == [STRACE_NOTE]
    assert tracer_notes("loop") == [LOOP_NOTE]
    assert "include the cost of tracing" in STRACE_NOTE


def test_without_strace_auto_takes_the_loop_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency_study, "strace_trouble", lambda: NO_STRACE)
    assert tracer_notes("auto") == [f"{NO_STRACE}; {LOOP_NOTE}"]
    assert latency_study.chosen_timer("auto").tool == "loop"
    with pytest.raises(UsageError, match=f"{NO_STRACE}; without a tracer"):
        tracer_notes("strace")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"transfer_bytes": 0}, "1 byte to 1 MiB, not of 0"),
        ({"transfer_bytes": 2 << 20}, "not of 2097152"),
        ({"operations": 0}, "operations: 1 to 100,000, not 0"),
        ({"operations": 100_001}, "not 100,001"),
        ({"tracer": "gdb"}, "tracer = 'gdb': auto, strace, loop"),
    ],
)
def test_what_makes_no_sense_is_refused(places: tuple[Path, Path], values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        KIND.check(plan_of(*places, **values))


def test_a_row_has_the_statistics_of_its_call() -> None:
    row = call_row("strace", "write", CallTimes("write", [1.0, 2.0, 3.0, 10.0], 32), LatencyParameters(operations=4))
    assert (row["operations"], row["duration_s"], row["bytes"]) == (4, 16.0, 32)
    assert (row["latency_mean_s"], row["latency_median_s"]) == (4.0, 2.5)
    assert row["latency_p99_s"] == pytest.approx(9.79)  # at 2.97 of 0 … 3: 3 + 0.97 · 7


def test_percentiles_interpolate() -> None:
    assert percentile([4.0], 0.99) == 4.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([0.0, 10.0], 0.99) == pytest.approx(9.9)

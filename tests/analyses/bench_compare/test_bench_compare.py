"""Two studies side by side: what changed, in which direction, and whether the runs overlap."""

from __future__ import annotations

import pytest

from iolens.analyses.bench_compare import study_comparison
from iolens.errors import UsageError
from iolens.units import KIB
from tests.analyses.study_rows import metadata_rows, repeats, run


def test_best_against_best_and_beyond_noise_where_no_runs_overlap() -> None:
    before = [*repeats("write", [90e6, 100e6]), *repeats("read", [200e6, 400e6])]
    after = [*repeats("write", [150e6, 120e6]), *repeats("read", [300e6, 200e6])]
    result = study_comparison("old", before, "new", after)
    write, read = result.changes
    assert (write.before, write.after, write.change_pct) == pytest.approx((100e6, 150e6, 50.0))
    assert read.change_pct == pytest.approx(-25.0)
    assert [write.beyond_noise, read.beyond_noise] == [True, False]
    assert [(line.direction, line.cases, line.cases_beyond_noise) for line in result.directions] == [
        ("write", 1, 1), ("read", 1, 0),
    ]  # fmt: skip


def test_a_single_run_says_nothing_of_noise() -> None:
    (change,) = study_comparison("a", [run("write", 1e8)], "b", repeats("write", [9e8, 8e8])).changes
    assert change.beyond_noise is None


def test_cases_of_one_study_only_are_counted() -> None:
    before = [run("write", 1e8), run("write", 1e8, transfer_bytes=KIB)]
    after = [run("write", 2e8), run("write", 1e8, transfer_bytes=2 * KIB), run("read", 1e8)]
    result = study_comparison("a", before, "b", after)
    assert (len(result.changes), result.only_before, result.only_after) == (1, 1, 2)


def test_no_case_in_common_is_one_line() -> None:
    with pytest.raises(UsageError) as caught:
        study_comparison("a", [run("write", 1e8)], "b", [run("write", 1e8, tasks=7)])
    assert str(caught.value) == "a and b have no case in common: other sizes, tasks, stripes or operations"


def test_file_systems_of_other_names_are_compared_all_the_same() -> None:
    assert len(study_comparison("a", [run("write", 1e8)], "b", [run("write", 1e8, place="pond")]).changes) == 1


def test_places_count_where_both_studies_have_several() -> None:
    def two(rate: float) -> list[dict[str, object]]:
        return [run("write", rate), run("write", 3 * rate, place="pond")]

    result = study_comparison("a", two(1e8), "b", two(2e8))
    assert [(change.place, change.change_pct) for change in result.changes] == [("lake", 100.0), ("pond", 100.0)]


def test_places_of_one_study_that_are_taken_together_are_warned_of() -> None:
    several = [run("write", 1e8), run("write", 3e8, place="pond")]
    result = study_comparison("a", several, "b", [run("write", 3e8)])
    assert result.warnings == ["places of a are taken together: lake, pond"]


def test_rates_of_operations_and_latencies_have_their_units() -> None:
    names = study_comparison(
        "a", metadata_rows({("file_stat", 1): [100, 110]}), "b", metadata_rows({("file_stat", 1): [220, 230]})
    )
    assert names.changes[0].unit == "operations/s"
    assert names.changes[0].change_pct == pytest.approx(100 * 120 / 110)

    def call(seconds: float) -> dict[str, object]:
        return {**run("write", 1e8), "call": "write", "latency_mean_s": seconds}

    calls = study_comparison("a", [call(4e-6), call(5e-6)], "b", [call(1e-6), call(2e-6)])
    (change,) = calls.changes
    assert (change.unit, change.before, change.after) == ("s", 4e-6, 1e-6)  # the shortest is the best
    assert change.change_pct == pytest.approx(-75.0)
    assert change.beyond_noise is True


def test_what_else_differs_is_said() -> None:
    result = study_comparison("a", [run("write", 1e8)], "b", [run("write", 1e8, host="n2", tool="ior", api="MPIIO")])
    assert result.warnings == [
        "other machines: n1 before, n2 after",
        "other benchmarks: sequential before, ior after",
        "other interfaces: POSIX before, MPIIO after",
    ]

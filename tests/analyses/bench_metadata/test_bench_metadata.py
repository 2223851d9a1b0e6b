"""Rates of metadata operations by number of tasks."""

from __future__ import annotations

import pytest

from iolens.analyses.bench_metadata import metadata_study
from iolens.errors import UsageError
from tests.analyses.study_rows import metadata_rows


def test_best_median_and_spread_by_operation_and_tasks() -> None:
    rows = metadata_rows({("file_creation", 1): [100, 400, 200], ("file_creation", 4): [900], ("file_stat", 1): [5000]})
    result = metadata_study(rows)
    first, second, third = result.rates
    assert (first.operation, first.tasks, first.runs) == ("file_creation", 1, 3)
    assert (first.best_ops_per_s, first.median_ops_per_s, first.spread_pct) == (400, 200, 150)
    assert (second.tasks, second.spread_pct) == (4, None)
    assert third.operation == "file_stat"
    assert (result.study, result.hosts, result.warnings) == ("names", ["n1"], [])


def test_places_are_kept_apart_and_machines_are_warned_of() -> None:
    rows = metadata_rows({("file_stat", 1): [10]}) + metadata_rows({("file_stat", 1): [20]}, place="pond", host="n2")
    result = metadata_study(rows)
    assert [(rate.place, rate.best_ops_per_s) for rate in result.rates] == [("lake", 10), ("pond", 20)]
    assert result.warnings == ["the runs were made on 2 machines: n1, n2"]


def test_runs_without_rates_are_refused() -> None:
    with pytest.raises(UsageError, match="no run of this study has a rate of operations"):
        metadata_study([{"direction": "file_stat", "reported_ops_per_s": None}])

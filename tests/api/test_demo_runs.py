"""The applications of the demo: read back as they truly are, and left out where Darshan is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from iolens.api import OpenStore
from iolens.api import demo as demo_runs
from iolens.api.demo import DemoRuns, demo_workload, loaded_runs
from iolens.api.run_analyses import run_analysis
from iolens.cli.demo import _loaded
from iolens.errors import UsageError
from iolens.simulator.activity import Activity
from iolens.simulator.darshan_jobs import Application, _application
from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.units import parse_time
from tests.simulator.stated_runs import NEEDS_DARSHAN

OSTS, SEED, END = 2, 5, parse_time("2026-01-07")
ACTIVITY = Activity(load_workload("scratch"), OSTS, SEED)


@NEEDS_DARSHAN
def test_runs_are_read_back_and_explain_all_but_one_stream(tmp_path: Path) -> None:
    """Jobs of weights 5, 3, 8 and 2 of 19 have logs: they explain 18/19 of what the OSTs moved."""
    store = str(tmp_path / "store")
    simulate_telemetry(order_of(store, load_workload("scratch"), start=parse_time("2026-01-06"), days=1, osts=OSTS,
                                seed=SEED, with_jobs=False), workers=1)  # fmt: skip
    runs = loaded_runs(store, ACTIVITY, END, lambda text: None, hours=24)
    assert runs is not None
    assert (runs.jobs, runs.runs, runs.same_bytes, runs.same_strategy) == (48, 24, 24, 24)
    assert _loaded(runs) == "24 of 48 jobs left a Darshan log"
    with OpenStore(store) as opened:
        coverage = run_analysis(opened, "coverage")
    assert (coverage.jobs, coverage.jobs_with_log, coverage.joined.by_id) == (48, 24, 24)
    (scratch,) = coverage.explained
    assert scratch.explained_pct == pytest.approx(100 * 18 / 19, abs=0.1)


def test_without_the_library_the_demo_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> NoReturn:
        raise UsageError("not installed")

    monkeypatch.setattr(demo_runs, "library_path", missing)
    runs: DemoRuns | None = loaded_runs(str(tmp_path / "store"), ACTIVITY, END, lambda text: None)
    assert runs is None
    assert "pip install 'iolens[darshan]'" in _loaded(runs)
    assert not (tmp_path / "store").exists()


def test_the_culprit_writes_at_random_offsets_as_its_story_says() -> None:
    activity = Activity(demo_workload(parse_time("2026-01-05"), 2), OSTS, SEED)
    culprit = _application(activity, len(activity.workload.jobs))
    assert culprit == Application("assemble.x", "shared", is_random=True)

"""An answer of every view, made up: for what must hold of the tables of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from bench.estimates import estimated
from bench.limited_centre import CentreOrder, random_centre

import iolens
from iolens.analyses.calibration.classes import shipped_classes
from iolens.analyses.calibration.fit import calibration_fit
from iolens.analyses.calibration.stored import KnownCalibrations, drift, known_calibrations
from iolens.analyses.job_applications import job_applications
from iolens.analyses.runs.advise import run_advice
from iolens.analyses.runs.asked import RunConditions
from iolens.analyses.runs.compare import run_comparison
from iolens.analyses.runs.timeline import run_timeline
from iolens.api.jobs import listed_jobs, search_jobs
from iolens.api.lost import lost_hours
from iolens.api.run_analyses import NAMES, run_analysis
from iolens.api.scan import scan_tree
from iolens.api.store_state import centre_state, ingest_log, source_list
from iolens.config import Config
from iolens.models.transaction_time import GRACE_2012
from iolens.plans.cases import value
from iolens.plans.endurance import plan_endurance
from iolens.plans.performance import plan_performance
from iolens.schema import BATCHES
from iolens.store.jobs import JobFilter
from iolens.store.rows import to_arrow
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.store.tables import BatchPart
from tests.analyses.calibration.test_calibration_fit import stored as stored_calibration
from tests.analyses.job_compare.test_job_compare import planted
from tests.analyses.like_jobs import five_applications, stored_like_jobs
from tests.analyses.load_rows import spider
from tests.analyses.lost.test_lost import made_up as made_up_losses
from tests.analyses.metadata.test_metadata import CALIBRATION
from tests.analyses.page_centre import filled, page_centre
from tests.analyses.run_rows import fill_runs
from tests.analyses.runs.one_run import run_record
from tests.analyses.runs.test_run_analyses import made_up_runs
from tests.analyses.telemetry import made_up_devices, made_up_io_times, made_up_metadata, table_of
from tests.analyses.workload_rows import made_up_centre
from tests.api import test_source_list
from tests.plans.designs import from_telemetry, published
from tests.plans.test_capacity import grown
from tests.plans.test_endurance import HIGH, LOW, measured
from tests.plans.test_performance import SSI3, asked
from tests.simulator.device import SimulatedDevice
from tests.views import (
    test_acceptance,
    test_alerts,
    test_bench_imitate,
    test_bench_latency,
    test_blame,
    test_calibration_drift,
    test_capacity,
    test_contents,
    test_drives,
    test_explain,
    test_hub_state,
    test_imbalance,
    test_latency,
    test_one_run,
    test_plan_capacity,
    test_plan_metadata,
    test_top_session,
    test_validation,
    test_workload_match,
)
from tests.views.bench_answers import STUDY_ANSWERS
from tests.views.results import busy_day, compared, empty, long_window

Answers = dict[str, Callable[[Path], Iterator[Any]]]


def _of(*made: Callable[[], Any]) -> Callable[[Path], Iterator[Any]]:
    return lambda folder: (make() for make in made)


def _imbalance() -> Any:
    load = spider(1, ticks=300, targets=12)
    load[200:, 8] = 0.0
    return test_imbalance.of(load, np.where(np.arange(12) == 4, 1e5, 0.0) * np.ones((300, 1)))


def _calibrations() -> KnownCalibrations:
    rows = [
        stored_calibration(name, datetime(2012 + year, 1, 1, tzinfo=UTC), 551e6 / (1 + year), fullness_pct=20.0 * year)
        for year, name in enumerate(("new", "half-full", "full", "after-the-repair"))
    ]
    known = known_calibrations(rows, Config())
    return KnownCalibrations(known, drift(known))


def _run(**values: Any) -> Any:
    return test_one_run.page(metadata_s=7200.0, write_s=3600.0, **values)


def _jobs(folder: Path) -> Iterator[Any]:
    stored_like_jobs(Store(folder / "jobs"), five_applications())
    with iolens.open(str(folder / "jobs")) as opened:
        yield listed_jobs(opened, Scope("scratch"), JobFilter())


def _of_store(question: Callable[[Any], Any]) -> Callable[[Path], Iterator[Any]]:
    """Asked of a store with telemetry, jobs, a report of an agent and refused input."""

    def asked_of(folder: Path) -> Iterator[Any]:
        filled(Store(folder), page_centre())
        test_source_list.written(folder, "agent_health", [test_source_list.health("oss1", "a", 5)])
        refused = test_source_list.batch(1, "ltop", "/captures/a", 0, refused=1, problems='["line 1: not understood"]')
        Store(folder).tables.append("batches", {BatchPart("made-up/1", 1): to_arrow(BATCHES, [refused])})
        with iolens.open(str(folder)) as opened:
            yield question(opened)

    return asked_of


def _lost(folder: Path) -> Iterator[Any]:
    runs, jobs = made_up_losses(1)
    fill_runs(Store(folder / "lost"), runs, jobs)
    with iolens.open(str(folder / "lost")) as opened:
        yield lost_hours(opened)


def _runs(name: str) -> Callable[[Path], Iterator[Any]]:
    def asked_of(folder: Path) -> Iterator[Any]:
        runs, jobs = made_up_runs(3, 150)
        fill_runs(Store(folder / name), runs, jobs[:140])
        like = RunConditions(projects=["*"]) if name == "scaling" else RunConditions()
        with iolens.open(str(folder / name)) as opened:
            yield run_analysis(opened, name, Scope(), like)

    return asked_of


def _scan(folder: Path) -> Iterator[Any]:
    for place in range(3):
        (folder / "tree" / f"d{place}").mkdir(parents=True)
        (folder / "tree" / f"d{place}" / "file").write_bytes(bytes(1000 * place))
    yield scan_tree(folder / "tree", state=folder / "state")


ANSWERS: Answers = {
    "acceptance": _of(test_acceptance.outcome),
    "hub_state": _of(test_hub_state.state, test_hub_state.idle),
    "alerts": _of(test_alerts.check, test_alerts.nothing, test_alerts.listed, test_alerts.rules, test_alerts.tried),
    "bench_imitate": _of(test_bench_imitate.planned, test_bench_imitate.measured),
    "bench_latency": _of(test_bench_latency.compared, test_bench_latency.one_place, test_bench_latency.two_tools),
    "blame": _of(lambda: test_blame.RESULT),
    "calibration_classes": _of(shipped_classes),
    "calibration_drift": _of(test_calibration_drift.drifted, test_calibration_drift.nothing),
    "calibration_estimate": _of(lambda: estimated(random_centre(CentreOrder(1, days=2, ticks_a_day=200, targets=2)))),
    "calibration_fit": _of(lambda: calibration_fit(SimulatedDevice(GRACE_2012).sweep(repeats=2))),
    "calibration_stored": _of(_calibrations),
    "centre_state": _of_store(centre_state),
    "capacity": _of(test_capacity.filled, test_capacity.nothing),
    "contents": _of(*test_contents.CASES.values()),
    "drives": _of(test_drives.fleet, test_drives.one_drive, test_drives.nothing),
    "explain": _of(test_explain.explained),
    "growth": _of(grown),
    "imbalance": _of(_imbalance),
    "job_applications": _of(lambda: job_applications("scratch", five_applications())),
    "job_compare": _of(planted),
    "job_list": _jobs,
    "job_search": _of_store(lambda opened: search_jobs(opened, Scope("scratch"))),
    "latency": _of(
        lambda: test_latency.of(target_histograms=made_up_io_times(1, ticks=120, targets=5)),
        lambda: test_latency.of(target_io=made_up_devices(1, ticks=200, devices=4)),
    ),
    "live": _of(lambda: test_top_session.reading(test_top_session.some_lines())),
    "lost": _lost,
    "metadata": _of(
        lambda: iolens.metadata(
            metadata_ops=table_of("metadata_ops", made_up_metadata(1, ticks=200, targets=2)), costs=CALIBRATION
        )
    ),
    "plan_capacity": _of(test_plan_capacity.given, test_plan_capacity.measured),
    "plan_endurance": _of(lambda: plan_endurance([LOW, HIGH]), measured),
    "plan_metadata": _of(test_plan_metadata.plan),
    "plan_performance": _of(lambda: plan_performance([SSI3, value("ssi", 4, "test")], asked())),
    "plan_rationale": _of(published, from_telemetry),
    "runs_advise": _of(lambda: run_advice([_run(), test_one_run.page()], left_out=3)),
    "runs_compare": _of(lambda: run_comparison([_run()], [test_one_run.page()])),
    "runs_timeline": _of(lambda: run_timeline(run_record())),
    **{f"runs_{name}": _runs(name) for name in NAMES},
    "scan_summary": _scan,
    "source_list": _of_store(source_list),
    "ingest_log": _of_store(ingest_log),
    "utilization": _of(busy_day, compared, long_window, empty),
    "validation": _of(test_validation.result),
    "workload": _of(
        lambda: iolens.workload(
            filesystem="spider", resamples=2, **made_up_centre(1, targets=5, ticks=1500, missing=0.02).tables
        )
    ),
    "workload_match": _of(lambda: test_workload_match.MATCH),
    **STUDY_ANSWERS,
}

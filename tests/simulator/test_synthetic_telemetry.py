"""Telemetry of a model in a store: `workload` finds the model again, and a model of that gives the same once more."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pytest

from iolens.analyses.workload.analysis import Workload, workload
from iolens.analyses.workload.fit import FittedWorkload, fit_workload
from iolens.analyses.workload.match import match_workloads
from iolens.errors import UsageError
from iolens.models.workload_model import WorkloadModel
from iolens.simulator.synthetic import load_model
from iolens.simulator.synthetic_telemetry import SyntheticOrder, order_of, synthesize_telemetry
from iolens.simulator.telemetry import order_of as disks_order
from iolens.simulator.telemetry import simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.store.store import Store
from tests.models.test_workload_model import model

START = datetime(2012, 10, 22, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PAPER = {
    "read_bandwidth": 1.24,
    "write_bandwidth": 2.6,
    "read_interarrival": 1.17,
    "write_interarrival": 1.72,
    "read_idle": 1.36,
    "write_idle": 1.43,
}


def rows(store: str, table: str) -> Any:
    return next(iter(Store(store).select().chunks(table))).frame(table).collect(backend="pyarrow")


def made(folder: Path, of: WorkloadModel, **how: Any) -> SyntheticOrder:
    """A store of its own, written."""
    usual: dict[str, Any] = {"start": START, "days": 0.05, "seed": 1}
    order = order_of(str(folder / "store"), of, **usual | how)
    synthesize_telemetry(order)
    return order


def characterised(store: str, timezone: str) -> tuple[Workload, FittedWorkload]:
    selection = Store(store).select()
    result = workload(selection, timezone=timezone)
    return result, fit_workload(selection, result)


@pytest.fixture(scope="module")
def spider(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workload, FittedWorkload]:
    """Eight of its controllers for two days."""
    order = made(tmp_path_factory.mktemp("spider"), load_model("spider"), days=2, targets=8)
    return characterised(order.store, "America/New_York")


def test_the_papers_model_is_found_again(spider: tuple[Workload, FittedWorkload]) -> None:
    result = spider[0]
    assert set(result.models) == set(PAPER)
    for name, alpha in PAPER.items():
        fit = result.models[name]
        curve = fit.quantised if name.endswith("idle") else fit.paper  # idle times are multiples of 2 s
        assert curve is not None
        assert fit.mle is not None
        assert curve.alpha == pytest.approx(alpha, rel=0.05)
        assert fit.mle.alpha == pytest.approx(alpha, rel=0.05)
        assert curve.r2 >= 0.98
        assert fit.best_model in ("pareto", "truncated_pareto")
    assert result.aggregate is not None
    assert 100.0 - (result.aggregate.write_requests_pct or 0.0) == pytest.approx(42.2, abs=0.5)
    shares = {(size.direction, size.size_bytes): size.pdf for size in result.sizes}
    assert (shares["read", 16384], shares["write", 16384]) == pytest.approx((0.2, 0.5), abs=1e-3)


def test_a_fit_gives_the_model_back(spider: tuple[Workload, FittedWorkload]) -> None:
    shipped, fitted = load_model("spider").balanced(), spider[1].model
    for direction in ("read", "write"):
        mine, other = shipped.of(direction), fitted.of(direction)
        assert other.bandwidth.alpha == pytest.approx(mine.bandwidth.alpha, rel=0.02)
        assert other.bandwidth.xm == pytest.approx(mine.bandwidth.xm, rel=0.001)
        assert other.busy_run_s == pytest.approx(mine.busy_run_s, rel=0.03)
    assert fitted.correlation == pytest.approx(0.3, abs=0.02)
    assert fitted.hours == pytest.approx(shipped.hours, abs=0.03)
    assert spider[1].notes[0].startswith("read bandwidth: Pareto, alpha 1.2")


def test_once_more_round(spider: tuple[Workload, FittedWorkload], tmp_path: Path) -> None:
    """Characterise, synthesize, characterise: parameters within 5 %, percentiles within 10 %."""
    original, fitted = spider
    order = made(tmp_path, fitted.model, days=2, seed=2)
    again, refitted = characterised(order.store, fitted.model.timezone)
    match = match_workloads(fitted.model, refitted.model, again, original)
    assert [quantity for quantity in match.quantities if quantity.is_beyond] == []
    names = {quantity.quantity for quantity in match.quantities}
    assert {"bandwidth alpha", "idle xm", "target p99, median", "all targets p95", "idle alpha, as paper S"} <= names
    assert {quantity.limit for quantity in match.quantities if quantity.deviation_unit == "%"} == {5.0, 10.0}


def test_a_workload_that_is_not_pareto_comes_again(tmp_path: Path) -> None:
    """Disks with background and bursts on all of them at once: nothing a Pareto distribution describes."""
    disks = str(tmp_path / "disks")
    simulate_telemetry(disks_order(disks, load_workload("scratch"), start=START, days=2, osts=6, with_jobs=False))
    original, fitted = characterised(disks, "UTC")
    assert fitted.model.read.bandwidth.model == "quantiles"
    assert fitted.model.correlation > 0.8
    order = made(tmp_path, replace(fitted.model, filesystem="again"), days=2)
    again, refitted = characterised(order.store, "UTC")
    match = match_workloads(fitted.model, refitted.model, again, original)
    assert [quantity for quantity in match.quantities if quantity.is_beyond] == []


def test_requests_by_size_add_up_to_the_requests(tmp_path: Path) -> None:
    order = made(tmp_path, model())
    io, sizes = rows(order.store, "target_io"), rows(order.store, "target_histograms")
    for direction in ("read", "write"):
        mine = sizes.filter(nw.col("direction") == direction)
        assert mine["count"].sum() == io[f"{direction}_ops"].sum()
        window = mine.filter(nw.col("target") == "controller02").group_by("time").agg(nw.col("count").sum())
        for end, count in window.head(5).iter_rows():
            inside = (nw.col("time") <= end) & (nw.col("start") >= end - MINUTE)
            asked = io.filter(inside, nw.col("target") == "controller02")
            assert asked[f"{direction}_ops"].sum() == count
    assert set(sizes["duration_s"].to_list()) == {60.0}
    assert set(sizes["histogram"].to_list()) == {"request_size"}


def test_every_tick_of_every_target_is_there_once(tmp_path: Path) -> None:
    io = rows(made(tmp_path, model(), targets=3).store, "target_io")
    assert io.shape[0] == 3 * 2160
    assert io.select("time", "target").is_duplicated().sum() == 0
    assert set(io["target"].to_list()) == {"controller01", "controller02", "controller03"}
    assert set(io["target_kind"].to_list()) == {"controller"}
    assert io["time"].min() == START.replace(second=2)


def test_asking_again_adds_nothing(tmp_path: Path) -> None:
    order = made(tmp_path, model())
    before = rows(order.store, "target_io").shape[0]
    synthesize_telemetry(order)
    assert rows(order.store, "target_io").shape[0] == before
    truth = json.loads((tmp_path / "store" / "truth-made-up.json").read_text())
    assert truth["read_requests"] == rows(order.store, "target_io")["read_ops"].sum()
    assert truth["model"]["read"]["interarrival"]["maximum"] is None


def test_another_of_the_same_hours_is_refused(tmp_path: Path) -> None:
    order = made(tmp_path, model())
    for other in (replace(order, seed=2), replace(order, first_tick=order.first_tick + 5)):
        with pytest.raises(UsageError, match=r"another simulation of made-up, .* 4 targets"):
            synthesize_telemetry(other)
    synthesize_telemetry(replace(order, first_tick=order.first_tick + order.ticks))


def test_what_was_measured_is_not_mixed_with_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    known = {"time": [START], "start": [START], "duration_s": [5.0], "date": [START.date()], "source": ["lmt-db"]}
    store.append("target_io", pa.table(known | {"filesystem": ["made-up"], "target": ["OST0001"], "read_bytes": [1]}))
    with pytest.raises(UsageError, match=r"telemetry of made-up \(OST0001"):
        made(tmp_path, model())
    made(tmp_path, model(filesystem="other"))


@pytest.mark.parametrize(("tick_s", "every_s"), [(16.0, 64.0), (300.0, 300.0), (0.5, 60.0)])
def test_any_tick(tmp_path: Path, tick_s: float, every_s: float) -> None:
    start = datetime.fromtimestamp(START.timestamp() // tick_s * tick_s, UTC)
    order = made(tmp_path, model(tick_s=tick_s), start=start, targets=1, days=0.04 if tick_s < 300 else 1)
    io, sizes = rows(order.store, "target_io"), rows(order.store, "target_histograms")
    assert io["read_ops"].sum() == sizes.filter(nw.col("direction") == "read")["count"].sum()
    assert sizes["duration_s"].max() == every_s


def test_across_midnight(tmp_path: Path) -> None:
    """A row belongs to the day in which its interval starts."""
    order = made(tmp_path, model(), start=datetime(2012, 10, 22, 23, 59, tzinfo=UTC), days=0.002)
    dates = Store(order.store).select().frame("target_io").group_by("date").agg(nw.len()).collect(backend="pyarrow")
    assert {str(day): count for day, count in dates.iter_rows()} == {"2012-10-22": 4 * 30, "2012-10-23": 4 * 56}


def test_orders_are_checked(tmp_path: Path) -> None:
    place = str(tmp_path)
    with pytest.raises(UsageError, match="a whole tick of 2 s"):
        order_of(place, model(), start=START.replace(second=1), days=1)
    with pytest.raises(UsageError, match="less than one tick"):
        order_of(place, model(), start=START, days=1e-6)
    with pytest.raises(UsageError, match="at least one target"):
        order_of(place, model(), start=START, days=1, targets=0)
    never = replace(model().read, idle=None)
    impossible = order_of(place, model(read=never, write=never, read_requests_pct=90.0), start=START, days=1)
    with pytest.raises(UsageError, match="90 % reads cannot come"):
        synthesize_telemetry(impossible)

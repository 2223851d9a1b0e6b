"""Estimates of calibrations that nobody asked for: after ingest and rollup, where nobody calibrated and days came."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bench.limited_centre import FIRST_US, CentreOrder

import iolens
from iolens.api.calibration_estimate import estimate_by_itself, is_due
from iolens.api.store_state import stored_days
from iolens.models.transaction_time import CalibrationState
from tests.cli.captures import T0, snapshot
from tests.cli.command import iolens as run
from tests.cli.test_calibrate_estimate import made_store

DAY_S = 86_400


@pytest.fixture(scope="module")
def six_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At its limit with small and large I/Os, and never calibrated."""
    return made_store(tmp_path_factory.mktemp("six-days") / "store", CentreOrder(1, days=6, ticks_a_day=200, targets=2))


@pytest.fixture
def store(six_days: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(six_days, tmp_path / "store"))


def test_an_estimate_takes_the_place_of_the_default_and_comes_once(store: Path) -> None:
    opened = iolens.open(str(store))
    assert opened.utilization().calibration_state == "assumed"
    assert stored_days(opened) == {"scratch": 5}
    (sentence,) = estimate_by_itself(opened)
    assert sentence.startswith("scratch: what a disk I/O costs was estimated from its own telemetry and stored as")
    (row,) = opened.store.calibrations()
    assert row["name"] in sentence
    assert (row["state"], row["method"], row["valid_from"]) == ("estimated", "frontier", FIRST_US)
    result = opened.utilization()
    assert (result.calibration_state, result.calibration.name) == ("estimated", row["name"])
    assert result.busy_time_pct is not None
    assert list(estimate_by_itself(opened)) == []  # it would say the same
    assert len(opened.store.calibrations()) == 1


def test_an_estimate_that_says_something_else_is_stored_beside(store: Path) -> None:
    opened = iolens.open(str(store))
    list(estimate_by_itself(opened))
    (row,) = opened.store.calibrations()
    aged = {name: 2 * row[name] for name in ("write_latency_s", "write_latency_low_s", "write_latency_high_s")}
    opened.store.add_calibration({**row, **aged, "name": "aged", "time": row["time"] + 1})
    assert len(list(estimate_by_itself(opened))) == 1
    assert opened.utilization().calibration.name == row["name"]  # the last one


@pytest.mark.parametrize("state", [CalibrationState.MEASURED, CalibrationState.CLASS])
def test_nothing_is_estimated_where_a_person_calibrated(store: Path, state: CalibrationState) -> None:
    from iolens.api.calibration import add_calibration

    opened = iolens.open(str(store))
    add_calibration(opened.store, "ours", (1e-3, 1e-9), (1e-3, 1e-9), filesystem="scratch", state=state, evidence="us")
    assert list(estimate_by_itself(opened)) == []


def test_nor_where_the_configuration_names_one(store: Path, tmp_path: Path) -> None:
    settings = tmp_path / "iolens.toml"
    settings.write_text('[filesystems.scratch]\ncalibration = "grace-2012"\n')
    assert list(estimate_by_itself(iolens.open(str(store), config=str(settings)))) == []


def test_what_never_reached_its_limit_stays_without_levels(tmp_path: Path) -> None:
    order = CentreOrder(1, reaches_limit=False, days=3, ticks_a_day=120, targets=1)
    opened = iolens.open(str(made_store(tmp_path / "store", order)))
    assert list(estimate_by_itself(opened)) == []
    assert opened.utilization().calibration_state == "assumed"


def capture(store: Path, folder: Path, day: float) -> object:
    """Load two snapshots of a server, a minute apart, that many days after the first row of the store."""
    begins_s = FIRST_US / 1e6 - T0 + day * DAY_S
    for number, counts in enumerate(({("write", 4096): 1000}, {("write", 4096): 1100, ("read", 1 << 20): 50})):
        (folder / f"{number}.txt").write_text(snapshot(begins_s + 60 * number, counts))
    return run("ingest", "lustre-lctl", folder / "0.txt", folder / "1.txt", "--store", store)


def test_ingest_estimates_when_days_came(store: Path, tmp_path: Path) -> None:
    done = capture(store, tmp_path, 5.9)  # the fifth day goes on
    assert "what a disk I/O costs" not in done.out
    assert iolens.open(str(store)).store.calibrations() == []
    done = capture(store, tmp_path, 7.5)
    assert "scratch: what a disk I/O costs was estimated from its own telemetry" in done.out
    assert iolens.open(str(store)).utilization().calibration_state == "estimated"


def test_rollup_estimates(store: Path) -> None:
    done = run("store", "rollup", "--store", store)
    assert "scratch: what a disk I/O costs was estimated" in done.out
    assert "estimated" not in run("store", "rollup", "--store", store).out


def test_each_day_of_the_first_week_then_each_week() -> None:
    due = [days for days in range(1, 30) if is_due(days - 1, days)]
    assert due == [1, 2, 3, 4, 5, 6, 7, 14, 21, 28]
    assert is_due(0, 400)
    assert not is_due(0, 0)
    assert is_due(13, 15)
    assert not is_due(14, 14)

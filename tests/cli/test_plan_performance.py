"""`iolens plan performance`: a store, demand from elsewhere, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.store.store import Store
from tests.analyses.telemetry import Telemetry, made_up
from tests.cli.command import iolens

DAY_TICKS = 17_280


def plan(*arguments: object) -> dict[str, Any]:
    done = iolens("plan", "performance", *arguments, "--format", "json")
    assert done.code == 0, done.err
    by_name: dict[str, Any] = json.loads(done.out)
    return by_name


@pytest.fixture(scope="module")
def telemetry() -> Telemetry:
    parts = [made_up(day, 80, 2, first_tick=day * DAY_TICKS, missing=0.0) for day in range(3)]
    return Telemetry([row for part in parts for row in part.sizes], [row for part in parts for row in part.io])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, telemetry: Telemetry) -> Path:
    folder = tmp_path_factory.mktemp("store")
    for name in ("target_io", "target_sizes"):
        Store(folder).append(name, telemetry.table(name))
    return folder


def test_demand_of_the_store_times_speed(store: Path, telemetry: Telemetry) -> None:
    result = plan("--store", store, "--ssi", "3,4", "--percentile", "99")
    rates: dict[int, float] = {}
    for row in telemetry.io:
        rates[row["time"]] = rates.get(row["time"], 0.0) + (row["read_bytes"] + row["write_bytes"]) / row["duration_s"]
    level = float(np.percentile(list(rates.values()), 99))
    mine = [case for case in result["cases"] if case["measure"] == "bytes_per_s"]
    assert [(case["ssi"], case["percentile"]) for case in mine] == [(3, 99), (4, 99)]
    assert [case["required"] for case in mine] == pytest.approx([3 * level, 4 * level])
    assert mine[0]["ci95"] is not None
    assert {case["measure"] for case in result["cases"]} >= {"ops_per_s", "disk_ios_per_s"}
    assert result["tick_s"] == 5


def test_a_window_and_a_target(store: Path) -> None:
    result = plan("--store", store, "--from", "2020-09-15", "--to", "2020-09-16", "--target", "scratch-OST0001")
    assert {item["ticks"] for item in result["demand"]} == {80}
    assert result["window_start"] == "2020-09-15T00:00:00Z"


def test_demand_that_is_given_needs_no_store(tmp_path: Path) -> None:
    done = iolens(
        "plan", "performance", "--ssi", "4", "--demand", "write_bytes_per_s=90GB/s", "--format", "csv", cwd=tmp_path
    )
    assert done.code == 0, done.err
    assert (
        done.out.splitlines()[1]
        == "4.0,write_bytes_per_s,,90000000000.0,360000000000.0,360000000000.0,360000000000.0,,"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--demand", "bandwidth"], "write MEASURE=VALUE"),
        (["--demand", "bytes_per_s=fast"], "'fast'"),
        (["--demand", "ops_per_s=fast"], "'fast' is not a number"),
        (["--demand", "ops_per_s=1", "--ssi", "0"], "ssi must be above 0"),
        (["--demand", "ops_per_s=1", "--ssi", ""], "is not a number"),
        (["--demand", "ops_per_s=1", "--percentile", "42"], "no percentile 42"),
        (["--demand", "ops_per_s=1", "--percentile", ","], "name at least one, such as 95"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], message: str) -> None:
    done = iolens("plan", "performance", *arguments)
    assert (done.code, message in done.err) == (2, True), done.err
    assert len(done.err.splitlines()) == 1


def test_figures(store: Path, tmp_path: Path) -> None:
    assert iolens("plan", "performance", "--store", store, "--figure", "list").out.split() == ["demand", "required"]
    assert iolens("plan", "performance", "--store", store, "--figure", tmp_path / "demand.png").code == 0
    assert (tmp_path / "demand.png").read_bytes().startswith(b"\x89PNG")

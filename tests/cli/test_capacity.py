"""`iolens capacity`: formats, figures, windows and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from iolens.store.store import Store
from tests.analyses.capacity_rows import readings, table_of
from tests.cli.command import iolens


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    used = 200_000 + 1000 * np.arange(100)
    used[60:] -= 60_000
    Store(folder).append("target_capacity", table_of(readings(range(100), used)))
    return folder


def test_json_has_the_keys_of_the_interface(store: Path) -> None:
    done = iolens("capacity", "--store", store, "--format", "json", "--method", "theil-sen", "--threshold", "80")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["used"][0] == {"time": "2020-09-14T00:00:00Z", "bytes": 200_000}
    assert len(result["used"]) == 100
    assert result["method"] == "theil-sen"
    assert result["threshold_bytes"] == 1_600_000
    assert set(result["events"][0]) == {"kind", "start", "end", "bytes"}
    assert result["events"] == [
        {"kind": "purge", "start": "2020-11-12T00:00:00Z", "end": "2020-11-13T00:00:00Z", "bytes": -59_000}
    ]
    assert result["threshold_date"] > "2021"
    assert isinstance(result["slope_bytes_per_day"], float)


def test_a_window(store: Path) -> None:
    window = ("--from", "2020-10-01", "--to")
    done = iolens("capacity", "--store", store, *window, "2020-10-23", "--format", "json")
    result = json.loads(done.out)
    assert len(result["used"]) == 22
    assert result["slope_bytes_per_day"] == pytest.approx(1000)
    few = json.loads(iolens("capacity", "--store", store, *window, "2020-10-11", "--format", "json").out)
    assert (few["slope_bytes_per_day"], few["threshold_date"]) == (None, None)
    assert few["too_little_data"] == "too little data: 10 readings of 20"
    assert result["window_start"] == "2020-10-01T00:00:00Z"


def test_tables_and_figures(store: Path, tmp_path: Path) -> None:
    done = iolens(
        "capacity", "--store", store, "--figure", tmp_path / "usage.svg", "--figure", f"targets={tmp_path}/t.png"
    )
    assert done.code == 0, done.err
    assert "Purges and surges" in done.out
    assert (tmp_path / "usage.svg").stat().st_size > 1000
    assert (tmp_path / "t.png").stat().st_size > 1000
    assert iolens("capacity", "--store", store, "--figure", "list").out.split() == ["usage", "targets", "inodes"]
    assert iolens("capacity", "--store", store, "--format", "csv").out.startswith("filesystem,window_start,")


def test_errors_are_one_message(store: Path, tmp_path: Path) -> None:
    nothing = iolens("capacity", "--store", tmp_path / "none")
    assert (nothing.code, nothing.out) == (1, "")
    assert "holds no data yet" in nothing.err
    other = iolens("capacity", "--store", store, "-f", "home")
    assert other.code == 2
    assert "scratch" in other.err
    assert iolens("capacity", "--store", store, "--threshold", "0").code == 2

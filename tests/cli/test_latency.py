"""`iolens latency`: formats, buckets, figures and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolens.store.store import Store
from tests.analyses.telemetry import made_up_devices, made_up_io_times, table_of
from tests.cli.command import iolens

KEYS = [
    "resolution", "days_only_in_rollups",
    "filesystem", "window_start", "window_end", "bucket_s", "period_s", "targets", "samples", "ios", "whole",
    "by_size", "per_target", "bucket_starts", "over_time", "coverage",
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    opened.append("target_histograms", table_of("target_histograms", made_up_io_times(1, 150, 4)))
    opened.append("target_io", table_of("target_io", made_up_devices(2, 100, 3)))
    return folder


def test_json_has_the_documented_keys_in_order(store: Path) -> None:
    done = iolens("latency", "--store", store, "-f", "scratch", "--every", "1h", "--format", "json")
    result = json.loads(done.out)
    assert list(result) == KEYS
    assert result["bucket_s"] == 3600
    assert len(result["bucket_starts"]) == 3
    assert all(len(series["p99_ms"]) == 3 for series in result["over_time"])
    assert [series["target"] for series in result["over_time"][:2]] == [None, None]
    assert "NaN" not in done.out


def test_tables_and_figures(store: Path, tmp_path: Path) -> None:
    base = ("latency", "--store", store, "-f", "scratch")
    done = iolens(*base, "--figure", tmp_path / "a.png", "--figure", f"heatmap={tmp_path / 'b.html'}")
    assert done.code == 0, done.err
    assert "scratch-OST0001 is far slower than its peers" in done.out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert iolens(*base, "--figure", "list").out.split() == ["latency", "heatmap"]


def test_devices_have_mean_waits(store: Path) -> None:
    result = json.loads(iolens("latency", "--store", store, "-f", "node1", "--format", "json").out)
    assert result["ios"] is None
    assert all(line["p99_ms"] is None and line["mean_wait_ms"] > 0 for line in result["per_target"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "scratch", "--every", "7min"], "does not divide a day"),
        (["-f", "scratch", "--every", "1s"], "more than 5,000"),
        (["-f", "nowhere"], "node1, scratch"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], message: str) -> None:
    done = iolens("latency", "--store", store, *arguments)
    assert done.code == 2, done.err
    assert message in done.err
    assert "Traceback" not in done.err

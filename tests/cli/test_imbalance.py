"""`iolens imbalance`: formats, thresholds, times, figures and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from iolens.store.store import Store
from tests.analyses.load_rows import rows_of, spider
from tests.analyses.telemetry import table_of
from tests.cli.command import iolens

KEYS = [
    "resolution", "days_only_in_rollups",
    "filesystem", "window_start", "window_end", "tick_s", "samples", "targets", "std_p80_bytes_per_s",
    "std_p95_bytes_per_s", "thresholds", "lifetimes", "distances", "hot_targets", "extremes", "background",
    "dispersion", "snapshots", "peers", "coverage",
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    load = spider(1, ticks=400, targets=6)
    rows = rows_of(load, background=np.full(load.shape, 5e4) * np.arange(6))
    alone = [{**row, "filesystem": "alone"} for row in rows_of(load[:10, :1])]
    Store(folder).append("target_io", table_of("target_io", [*rows, *alone]))
    return folder


def test_json_has_the_documented_keys_in_order(store: Path) -> None:
    done = iolens("imbalance", "--store", store, "-f", "scratch", "--format", "json")
    result = json.loads(done.out)
    assert list(result) == KEYS
    assert list(result["lifetimes"]) == list(result["distances"]) == ["p80", "p95"]
    assert {"p50_s", "p90_s", "max_s"} <= set(result["lifetimes"]["p80"])
    assert result["background"]["included"] is True
    assert result["tick_s"] == 2.0
    assert "NaN" not in done.out


def test_thresholds_by_value_by_percentile_or_both(store: Path) -> None:
    base = ("imbalance", "--store", store, "-f", "scratch", "--format", "json")
    by_value = json.loads(iolens(*base, "--threshold", "1MB/s,2MiB/s", "--without-background").out)
    assert list(by_value["lifetimes"]) == ["1000000_bytes_per_s", "2097152_bytes_per_s"]
    assert by_value["background"]["included"] is False
    both = json.loads(iolens(*base, "--threshold", "1MB/s", "--percentiles", "99.5").out)
    assert [item["name"] for item in both["thresholds"]] == ["p99.5", "1000000_bytes_per_s"]


def test_times_are_in_the_zone_that_is_named(store: Path) -> None:
    base = ("imbalance", "--store", store, "-f", "scratch", "--format", "json", "--timezone", "Europe/Berlin")
    result = json.loads(iolens(*base, "--at", "2020-09-14T02:00:10,2020-09-14T00:01:00Z").out)
    assert [item["time"] for item in result["snapshots"]] == ["2020-09-14T00:00:12Z", "2020-09-14T00:01:02Z"]


def test_tables_and_figures(store: Path, tmp_path: Path) -> None:
    base = ("imbalance", "--store", store, "-f", "scratch")
    done = iolens(*base, "--figure", tmp_path / "a.png", "--figure", f"hot-targets={tmp_path / 'b.html'}")
    assert done.code == 0, done.err
    assert "Most often hot: c03" in done.out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert iolens(*base, "--figure", "list").out.split() == [
        "snapshot", "extremes", "std-cdf", "dispersion", "lifetimes", "distances", "hot-targets",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "scratch", "--percentiles", "100"], "above 0 and below 100"),
        (["-f", "scratch", "--percentiles", "eighty"], "eighty"),
        (["-f", "scratch", "--percentiles", ""], "--percentiles"),
        (["-f", "scratch", "--threshold", "112B/s"], None),
        (["-f", "scratch", "--threshold", "112"], "112 of what?"),
        (["-f", "scratch", "--threshold", "0"], "above zero"),
        (["-f", "scratch", "--threshold", "5MB/h"], "per second"),
        (["-f", "scratch", "--at", "2019-01-01"], "no two targets report at 2019-01-01T00:00:00Z"),
        (["-f", "scratch", "--at", "noon"], "not a time"),
        (["-f", "alone"], "only c00 reports"),
        (["-f", "nowhere"], "alone, scratch"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], message: str | None) -> None:
    done = iolens("imbalance", "--store", store, *arguments)
    assert "Traceback" not in done.err
    assert done.code == (0 if message is None else 2), done.err
    assert message is None or message in done.err

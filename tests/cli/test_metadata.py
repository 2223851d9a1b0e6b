"""`iolens metadata`: formats, calibration, figures and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolens.store.store import Store
from tests.analyses.metadata.test_metadata import run
from tests.analyses.telemetry import made_up, made_up_metadata, table_of
from tests.cli.command import iolens

KEYS = [
    "resolution", "days_only_in_rollups",
    "filesystem", "window_start", "window_end", "targets", "samples", "target_samples", "operations", "mean_ops_per_s",
    "p50_ops_per_s", "p95_ops_per_s", "p99_ops_per_s", "percentile_error_pct", "peak_ops_per_s", "peak_ops_time",
    "mean_mdu_pct", "busy_time_pct", "peak_mdu_pct", "peak_mdu_time", "mean_mdu_service_pct", "assumed_ops_pct",
    "assumed_time_pct", "mix", "daily", "per_target", "calibration", "coverage", "timezone",
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    opened.append("metadata_ops", table_of("metadata_ops", made_up_metadata(1, 100, 2)))
    opened.append("target_io", made_up(1, 5, 1, filesystem="home").table("target_io"))
    opened.append("benchmark_runs", table_of("benchmark_runs", [run(), run(filesystem="testbed", run_id="r2")]))
    return folder


def test_json_has_the_documented_keys_in_order(store: Path) -> None:
    done = iolens("metadata", "--store", store, "-f", "scratch", "--format", "json")
    result = json.loads(done.out)
    assert list(result) == KEYS
    assert result["calibration"]["name"] == "mdtest:scratch"
    assert result["peak_ops_time"].endswith("Z")
    assert "NaN" not in done.out


def test_tables_figures_and_buckets(store: Path, tmp_path: Path) -> None:
    base = ("metadata", "--store", store, "-f", "scratch", "--calibration", "mdtest:testbed", "--every", "5min")
    done = iolens(*base, "--figure", tmp_path / "a.png", "--figure", f"mdu={tmp_path / 'b.html'}")
    assert done.code == 0, done.err
    assert "Calibration mdtest:testbed" in done.out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert iolens(*base, "--figure", "list").out.split() == ["operations", "mdu"]


def test_a_file_system_without_metadata_says_so(store: Path) -> None:
    done = iolens("metadata", "--store", store, "-f", "home")
    assert (done.code, done.out) == (2, "")
    assert done.err == "iolens: home: nothing is stored that metadata reads\n"


@pytest.mark.parametrize("verb", ["metadata", "utilization", "latency", "capacity", "workload", "blame"])
def test_a_window_without_data_is_one_message_that_says_what_is_stored(store: Path, verb: str) -> None:
    window = () if verb == "capacity" else ("--from", "2030-01-01")
    done = iolens(verb, "--store", store, "-f", "scratch", *window)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("iolens: scratch: ")
    assert len(done.err.splitlines()) == 1
    assert ("stored is 20" in done.err) is (verb in ("metadata", "blame"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "scratch", "--calibration", "mdtest:nowhere"], "there are: r1, r2, scratch, testbed"),
        (["-f", "scratch", "--calibration", "grace-2012"], "mdtest:NAME"),
        (["-f", "scratch", "--every", "7h"], "does not divide a day"),
        (["-f", "scratch", "--every", "often"], "'--every': 'often'"),
        ([], "home, scratch"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], message: str) -> None:
    done = iolens("metadata", "--store", store, *arguments)
    assert done.code == 2, done.err
    assert message in done.err
    assert "Traceback" not in done.err

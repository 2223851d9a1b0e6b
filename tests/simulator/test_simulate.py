"""`iolens simulate` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolens.records import Problem
from iolens.sources.lustre.lustre_proc import read_tree
from tests.cli.command import iolens


def test_telemetry_and_its_truth(tmp_path: Path) -> None:
    options = ("--workload", "scratch2", "--osts", 3, "--days", 0.05, "--seed", 4, "--store", tmp_path / "store")
    done = iolens("simulate", "telemetry", *options)
    assert (done.code, done.err) == (0, "")
    assert "true mean FSU" in done.out
    truth = json.loads(iolens("simulate", "telemetry", *options, "--format", "json").out)
    assert truth == json.loads((tmp_path / "store/truth-scratch2.json").read_text())
    result = json.loads(iolens("utilization", "--store", tmp_path / "store", "--format", "json").out)
    assert result["mean_fsu_pct"] == pytest.approx(truth["mean_fsu_pct"], rel=1e-6)
    assert result["busy_time_pct"] == pytest.approx(truth["busy_time_pct"], rel=1e-6)


def test_a_live_server_for_a_while(tmp_path: Path) -> None:
    done = iolens(
        "simulate", "lustre", "--root", tmp_path / "one", "--root2", tmp_path / "two", "--version", "2.15",
        "--osts", 3, "--mdts", 1, "--speed", 100, "--duration", "2min", "--reset-at", "30s", "--dead-ost",
        "OST0000@40s", "--failover", "OST0001@1min",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "24 ticks" in done.out
    targets = {name: set() for name in ("one", "two")}
    for name, target in targets.items():
        items = list(read_tree(tmp_path / name, None))
        assert not any(isinstance(item, Problem) for item in items)
        target |= {item.target for item in items if hasattr(item, "target") and item.table != "server_ops"}
    assert targets == {"one": {"scratch-OST0002", "scratch-MDT0000"}, "two": {"scratch-OST0001"}}


def test_mistakes_are_usage_errors(tmp_path: Path) -> None:
    wrong = iolens("simulate", "lustre", "--root", tmp_path / "r", "--failover", "OST0001@1min")
    assert (wrong.code, "--root2" in wrong.err) == (2, True)
    missing = iolens("simulate", "telemetry", "--workload", "nothing.toml", "--store", tmp_path / "s")
    assert (missing.code, "scratch, scratch2" in missing.err) == (1, True)
    assert "Example" in iolens("simulate", "telemetry", "--help").out
    assert "simulate" in iolens("--help").out

"""`iolens simulate` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.records import Problem
from iolens.simulator.workload import FOLDER
from iolens.sources.lustre import lustre_client_proc
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


def test_a_workload_with_planted_jobs_and_what_is_true_of_them(tmp_path: Path) -> None:
    text = (FOLDER / "scratch.toml").read_text()
    words = "user = 'eve'\nproject = 'rogue'\nexecutable = 'tiny.x'\nnodes = 2\nlevel_pct = 30\nwrite = { 4KiB = 1 }"
    times = "start = 2012-10-22T10:40:00Z\nend = 2012-10-22T11:40:00Z"
    workload = tmp_path / "mine.toml"
    workload.write_text(f"{text}\n[[planted]]\njob_id = 'eve-1'\n{words}\n{times}\n")
    done = iolens(
        "simulate", "lustre", "--root", tmp_path / "oss", "--workload", workload, "--osts", 2, "--mdts", 1,
        "--speed", 1000, "--start", "2012-10-22T10:40:00Z", "--duration", "2min", "--clients", 8,
        "--truth", tmp_path / "true.json",
    )  # fmt: skip
    assert done.code == 0, done.err
    truth = json.loads((tmp_path / "true.json").read_text())
    assert (truth["from"], truth["to"]) == ("2012-10-22T10:40:00Z", "2012-10-22T10:42:00Z")
    assert truth["samples"] == 24
    job = next(job for job in truth["jobs"] if job["job_id"] == "eve-1")
    assert job["disk_s"] == pytest.approx(0.30 * 120 * 2, rel=0.02)
    assert sum(job["disk_s"] for job in truth["jobs"]) == pytest.approx(truth["mean_fsu_pct"] / 100 * 120 * 2)
    on_nodes = {job["jobid"]: job for job in json.loads((tmp_path / "oss/clients/jobs.json").read_text())["jobs"]}
    assert on_nodes["eve-1"]["write_bytes"] == job["write_bytes"]
    assert on_nodes["eve-1"]["nodes"] == ["node0007", "node0008"]
    assert "eve-1|tiny.x|eve|rogue|" in (tmp_path / "oss/clients/sacct.txt").read_text()


def test_clients_beside_a_server(tmp_path: Path) -> None:
    root = tmp_path / "oss1"
    done = iolens(
        "simulate", "lustre", "--root", root, "--osts", 2, "--mdts", 1, "--start", "2012-10-22T10:40:00Z",
        "--speed", 1000, "--duration", "1min", "--clients", 3, "--client-version", "2.15,2.5",
        "--client-page-size", "65536,4096", "--reboot", "node0003@30s",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert f"3 clients, Lustre 2.15, 2.5, under {root}/clients" in done.err
    assert [path.name for path in sorted((root / "clients").glob("node*"))] == ["node0001", "node0002", "node0003"]
    samples = [
        next(item for item in lustre_client_proc.read_tree(path, None) if getattr(item, "table", "") == "client_rpcs")
        for path in sorted((root / "clients").glob("node*"))
    ]
    assert [sample.labels["page_bytes"] for sample in samples] == ["65536", "4096", "65536"]
    assert (root / "clients/node0003/proc/uptime").read_text().startswith("30.00 ")
    jobs = json.loads((root / "clients/jobs.json").read_text())["jobs"]
    assert {job["user"]: job["nodes"] for job in jobs}["chandra"] == ["node0003"]
    assert not list(lustre_proc_problems(root))


def lustre_proc_problems(root: Path) -> Iterator[Problem]:
    return (item for item in read_tree(root, None) if isinstance(item, Problem))


def test_mistakes_about_clients_are_usage_errors(tmp_path: Path) -> None:
    for options, message in (
        (("--reboot", "node0001@1min"), "ask for some with --clients"),
        (("--clients", 2, "--client-version", "3.0"), "there are: 2.5, 2.10, 2.12, 2.15"),
        (("--clients", 2, "--client-page-size", "4k"), "4k are not numbers of bytes"),
        (("--clients", 2, "--reboot", "node0007@1min"), "they are node0001 … node0002"),
    ):
        wrong = iolens("simulate", "lustre", "--root", tmp_path / message[:4], "--osts", 1, *options)
        assert (wrong.code, message in wrong.err) == (2, True), wrong.err


def test_mistakes_are_usage_errors(tmp_path: Path) -> None:
    wrong = iolens("simulate", "lustre", "--root", tmp_path / "r", "--failover", "OST0001@1min")
    assert (wrong.code, "--root2" in wrong.err) == (2, True)
    missing = iolens("simulate", "telemetry", "--workload", "nothing.toml", "--store", tmp_path / "s")
    assert (missing.code, "scratch, scratch2" in missing.err) == (1, True)
    assert "Example" in iolens("simulate", "telemetry", "--help").out
    assert "simulate" in iolens("--help").out

"""`iolens top`: one reading for scripts, what it agrees with, and what it refuses."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from iolens.agent.sampling.sampler import Health, Sampler
from iolens.agent.sampling.spool import Spool
from iolens.analyses.live.analysis import LiveReading
from iolens.analyses.live.target_lines import TargetLine
from iolens.cli.main import iolens as command
from iolens.errors import IolensError
from iolens.simulator.activity import Activity
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import OPERATIONS, SIZES, load_workload
from iolens.units import MIB, parse_time
from tests.agent.server import Server
from tests.cli.command import iolens

REPOSITORY = Path(__file__).parent.parent.parent
WORKLOAD = load_workload("scratch")
START = 1350900000
KEYS = [
    "target", "target_kind", "state", "fsu_pct", "fsu_bytes_pct", "util_pct", "read_bytes_per_s", "write_bytes_per_s",
    "iops", "small_io_pct", "latency_s", "latency_kind", "used_pct", "metadata_ops_per_s", "after_reset", "age_s",
]  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A configuration with the true coefficients of the simulated disks."""
    disks = WORKLOAD.disks
    path = tmp_path / "iolens.toml"
    path.write_text(
        "[calibrations.true]\n"
        f"write_latency_s = {disks.write.latency_s!r}\nwrite_s_per_byte = {disks.write.s_per_byte!r}\n"
        f"read_latency_s = {disks.read.latency_s!r}\nread_s_per_byte = {disks.read.s_per_byte!r}\n"
    )
    return path


def top(*arguments: object) -> Result:
    """In this process."""
    return CliRunner().invoke(command, ["top", *map(str, arguments)])


def reading(*arguments: object) -> dict[str, Any]:
    done = top(*arguments, "--once", "--format", "json")
    assert done.exception is None, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("version", ["1.8", "2.10", "2.12", "2.15"])
def test_a_simulated_server_gives_its_truth(
    tmp_path: Path, settings: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Two samples a minute (of the server's clock) apart, against what the simulator did in that minute."""
    tree = Tree(tmp_path / "root", version, WORKLOAD, start_s=START, osts=4, mdts=1, seed=3)
    monkeypatch.setattr(time, "sleep", lambda seconds: tree.advance_to(START + 60))
    result = reading("--root", tree.root, "--calibration", "true", "--config", settings, "-f", "scratch")
    block = Activity(WORKLOAD, 4, seed=3).block(START // 5, 12)
    osts = [line for line in result["targets"] if line["target_kind"] == "ost"]
    assert result["interval_s"] == pytest.approx(60.0)
    assert [line["target"] for line in osts] == [f"scratch-OST{n:04x}" for n in range(4)]
    assert result["mean_fsu_pct"] == pytest.approx(block.fsu_pct.mean(), rel=0.01)
    for number, line in enumerate(osts):
        ios = block.counts[:, :, :, number].sum(axis=2)
        assert line["fsu_pct"] == pytest.approx(block.fsu_pct[:, number].mean(), rel=0.01)
        assert line["iops"] == pytest.approx(ios.sum() / 60, rel=0.01)
        assert line["read_bytes_per_s"] == pytest.approx(ios[0] @ SIZES / 60, rel=0.01)
        assert line["write_bytes_per_s"] == pytest.approx(ios[1] @ SIZES / 60, rel=0.01)
        small = ios[:, : SIZES.index(MIB)].sum()
        assert line["small_io_pct"] == pytest.approx(100 * small / ios.sum(), rel=0.01)
        assert line["latency_kind"] == "p95_io_time"
        assert 40 < line["used_pct"] < 80
    (mdt,) = (line for line in result["targets"] if line["target_kind"] == "mdt")
    done = Activity(WORKLOAD, 4, seed=3).metadata(START // 3600, 1)[:, START % 3600 // 5 :][:, :12]
    assert mdt["metadata_ops_per_s"] == pytest.approx(done.sum() / 60, rel=0.1 if version == "1.8" else 0.01)
    assert len(OPERATIONS) == done.shape[0]


def test_the_keys_are_an_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path / "root", "2.15", WORKLOAD, start_s=START, osts=1, mdts=1, seed=3)
    monkeypatch.setattr(time, "sleep", lambda seconds: tree.advance_to(START + 5))
    result = reading("--root", tree.root)
    assert list(result)[:4] == ["calibration_state", "calibration_evidence", "fsu_band_pct", "fsu_is_upper_bound"]
    assert list(result)[4:7] == ["time", "interval_s", "filesystem"]
    assert list(result["targets"][0]) == KEYS
    mdt = result["targets"][0]
    assert (mdt["target"], mdt["fsu_pct"], mdt["util_pct"], mdt["read_bytes_per_s"]) == (
        "scratch-MDT0000", None, None, None,
    )  # fmt: skip
    assert parse_time(result["time"])
    assert "NaN" not in json.dumps(result)


def test_every_key_is_documented() -> None:
    page = (REPOSITORY / "docs" / "top.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+)`", page))
    for result in (LiveReading, TargetLine):
        keys = {field.name for field in dataclasses.fields(result) if field.metadata.get("json", True)}
        assert sorted(keys - named) == []


def test_csv_has_every_column_and_the_table_what_says_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path / "root", "2.15", WORKLOAD, start_s=START, osts=2, mdts=1, seed=3)
    monkeypatch.setattr(time, "sleep", lambda seconds: tree.advance_to(tree.second + 5))
    rows = list(csv.DictReader(io.StringIO(top("--root", tree.root, "--once", "--format", "csv").stdout)))
    assert list(rows[0]) == KEYS
    assert rows[0]["fsu_pct"] == ""
    assert float(rows[1]["fsu_pct"]) > 0
    shown = top("--root", tree.root, "--once").stdout
    assert "scratch-OST0001" in shown
    assert "Mean FSU" in shown
    assert "Util (%)" not in shown
    assert "calibrate your own disks" in shown


def test_a_store_agrees_with_utilization_over_the_same_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    made = iolens("simulate", "telemetry", "--osts", 5, "--days", 1 / 48, "--seed", 4, "--store", store)
    assert made.code == 0, made.err
    for since, until in (("00:10:00", "00:10:05"), ("00:28:35", "00:28:40")):
        result = reading("--store", store, "--at", f"2012-10-22T{until}")
        window = ("--from", f"2012-10-22T{since}", "--to", f"2012-10-22T{until}")
        expected = json.loads(iolens("utilization", "--store", store, *window, "--format", "json").out)
        assert result["time"] == f"2012-10-22T{until}Z"
        assert result["calibration"] == expected["calibration"]["name"]
        assert result["mean_fsu_pct"] == pytest.approx(expected["mean_fsu_pct"], rel=1e-9)
        lines = {line["target"]: line for line in result["targets"]}
        assert expected["per_target"]
        for target in expected["per_target"]:
            line = lines[target["target"]]
            assert line["fsu_pct"] == pytest.approx(target["mean_fsu_pct"], rel=1e-9)
            assert line["read_bytes_per_s"] * 5 == pytest.approx(target["read_bytes"])
    monkeypatch.setattr(time, "time_ns", lambda: 1_350_865_803 * 10**9)  # three seconds after the last tick
    newest = reading("--store", store)
    assert newest["time"] == "2012-10-22T00:30:00Z"
    assert newest["targets_reporting"] == newest["targets_known"] == 6
    assert (newest["age_s"], newest["stale"]) == (3.0, False)


def test_a_store_that_nobody_writes_any_more_does_not_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data 300 days old were shown as `reporting`."""
    store = tmp_path / "store"
    assert iolens("simulate", "telemetry", "--osts", 2, "--days", 1 / 96, "--seed", 4, "--store", store).code == 0
    last_s = 1_350_864_900
    for age_s, states in ((590, {"reporting"}), (606, {"late"}), (610, {"silent"}), (300 * 86_400, {"silent"})):
        monkeypatch.setattr(time, "time_ns", lambda age_s=age_s: (last_s + age_s) * 10**9)
        result = reading("--store", store)
        assert (result["time"], result["age_s"]) == ("2012-10-22T00:15:00Z", age_s)
        assert {line["state"] for line in result["targets"]} == states, age_s
        assert result["stale"] == (states == {"silent"})
    assert (result["targets_reporting"], result["targets_known"], len(result["missing_targets"])) == (0, 3, 3)
    assert (result["mean_fsu_pct"], result["read_bytes_per_s"], result["interval_s"]) == (None, None, None)
    assert {line[key] for line in result["targets"] for key in KEYS[3:14]} == {None}
    assert "No data for 300 d." in top("--store", store, "--once").stdout
    then = reading("--store", store, "--at", "2012-10-22T00:15:00")  # the past is what it was
    assert {line["state"] for line in then["targets"]} == {"reporting"}


def test_a_spool_gives_its_last_complete_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_012 * 10**9)
    server = Server(tmp_path / "root", osts=2)
    with Spool.open(tmp_path / "spool", 1 << 30, host="oss1") as spool:
        sampler = Sampler(server.root, spool, Health("oss1", spool.run), 60_000_000)
        for number in range(3):
            server.work(10, 1_700_000_000.0 + 5 * number)
            sampler.sample((1_700_000_000 + 5 * number) * 1_000_000)
        result = reading("--spool", spool.directory)
    assert result["time"] == "2023-11-14T22:13:30Z"
    assert [line["iops"] for line in result["targets"]] == [None, 2.0, 4.0]


def test_a_dead_target_is_named_and_has_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_036 * 10**9)
    server = Server(tmp_path / "root", osts=2)
    with Spool.open(tmp_path / "spool", 1 << 30, host="oss1") as spool:
        sampler = Sampler(server.root, spool, Health("oss1", spool.run), 60_000_000)
        for number in range(8):
            if number == 4:
                for file in (tmp_path / "root").rglob("scratch-OST0001/*"):
                    file.unlink()
                server.osts = 1
            server.work(10, 1_700_000_000.0 + 5 * number)
            sampler.sample((1_700_000_000 + 5 * number) * 1_000_000)
        result = reading("--spool", spool.directory)
    assert result["missing_targets"] == ["scratch-OST0001"]
    assert (result["targets_known"], result["targets_reporting"]) == (3, 2)
    dead = next(line for line in result["targets"] if line["target"] == "scratch-OST0001")
    assert dead["state"] == "silent"
    assert {dead[key] for key in KEYS[3:14]} == {None}


def test_this_machine_has_disks_or_says_that_it_has_none() -> None:
    done = iolens("top", "--root", "/", "--once", "--interval", "0.2s", "--format", "json")
    if done.code == 0:
        assert {line["target_kind"] for line in json.loads(done.out)["targets"]} <= {"device", "ost", "mdt"}
    else:
        assert "no Lustre target and no disk" in done.err or "no interval" in done.err


# What is refused --------------------------------------------------------------------------------------------------


def test_several_file_systems_must_be_named(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for workload in ("scratch", "scratch2"):
        options = ("--workload", workload, "--osts", 1, "--mdts", 0, "--days", 1 / 720, "--no-jobs")
        assert iolens("simulate", "telemetry", *options, "--store", store).code == 0
    done = iolens("top", "--store", store, "--once")
    assert done.code == 2
    assert "--filesystem: scratch, scratch2" in done.err
    assert reading("--store", store, "-f", "scratch2")["filesystem"] == "scratch2"
    missing = iolens("top", "--store", store, "--once", "-f", "lost")
    assert missing.code == 2
    assert "no file system 'lost'; there are: scratch, scratch2" in missing.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--root", "absent", "--once"], 1, "no such directory"),
        (["--root", ".", "--once"], 1, "no Lustre target and no disk"),
        (["--spool", "absent", "--once"], 1, "No such file or directory"),
        (["--spool", ".", "--once"], 1, "no interval yet"),
        (["--store", "absent", "--once"], 1, "holds no data yet"),
        (["--root", "."], 2, "not a terminal: use --once"),
        (["--root", ".", "--spool", ".", "--once"], 2, "give one"),
        (["--root", ".", "--from", "2012-10-22", "--once"], 2, "only a store can be played back"),
        (["--store", ".", "--to", "2012-10-22", "--once"], 2, "--to ends what --from begins"),
        (["--store", ".", "--from", "2012-10-22", "--at", "2012-10-22", "--once"], 2, "give one"),
        (["--root", ".", "--interval", "0s", "--once"], 2, "at least 0.1 s"),
        (["--root", ".", "--calibration", "lost", "--once"], 2, "no calibration is called 'lost'"),
        (["--root", ".", "--timezone", "Mars", "--from", "2012-10-22", "--once"], 2, "no time zone"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_sentence(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    done = iolens("top", *arguments, cwd=tmp_path)
    assert message in done.err
    assert done.code == code
    assert "Traceback" not in done.err


def test_a_server_without_a_second_sample_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Server(tmp_path / "root", osts=1).work(1, 1_700_000_000.0)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    done = top("--root", tmp_path / "root", "--once")
    assert isinstance(done.exception, IolensError)
    assert "no interval of scratch yet; expected two samples that differ in time" in str(done.exception)


def test_a_time_without_data_says_so(tmp_path: Path) -> None:
    options = ("--osts", 1, "--mdts", 0, "--days", 1 / 720, "--no-jobs", "--store", tmp_path)
    assert iolens("simulate", "telemetry", *options).code == 0
    done = iolens("top", "--store", tmp_path, "--once", "--at", "2012-11-01")
    assert done.code == 1
    assert "no interval of scratch in the ten minutes before 2012-11-01T00:00:00Z" in done.err


def test_a_calibration_of_the_store_serves_a_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    options = ("--osts", 1, "--mdts", 0, "--days", 1 / 720, "--no-jobs", "--store", store)
    assert iolens("simulate", "telemetry", *options).code == 0  # brings the calibration of its disks
    tree = Tree(tmp_path / "root", "2.15", WORKLOAD, start_s=START, osts=1, mdts=0, seed=3)
    monkeypatch.setattr(time, "sleep", lambda seconds: tree.advance_to(tree.second + 5))
    assert reading("--root", tree.root)["calibration"] == "grace-2012"
    result = reading("--root", tree.root, "--store", store)
    assert (result["calibration"], result["notes"]) == ("simulated-scratch", [])

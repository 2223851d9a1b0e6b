"""`iolens doctor`: what can be read, what cannot and why, in words and in JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iolens.agent.doctor import READABLE, diagnose
from tests.agent.server import Server
from tests.cli.command import iolens


@pytest.fixture
def server(tmp_path: Path) -> Server:
    made = Server(tmp_path / "root")
    made.work()
    return made


def test_all_is_well(tmp_path: Path, server: Server) -> None:
    done = iolens("doctor", "--root", server.root, "--spool", tmp_path / "spool", "--store", tmp_path / "store")
    assert done.code == 0, done.out
    assert "Lustre 2.15.4" in done.out
    assert "scratch-OST0001 (ost): stats, brw_stats, job_stats, capacity readable" in done.out
    assert "scratch-MDT0000 (mdt): md_stats, job_stats, capacity readable" in done.out


def test_json(tmp_path: Path, server: Server) -> None:
    done = iolens(
        "doctor", "--root", server.root, "--spool", tmp_path / "s", "--store", tmp_path / "c", "--format", "json"
    )
    found = json.loads(done.out)
    assert found["exit_code"] == done.code == 0
    assert found["lustre_version"] == "2.15.4"
    assert [target["target"] for target in found["targets"]] == [
        "scratch-MDT0000",
        "scratch-OST0000",
        "scratch-OST0001",
    ]
    assert {"subject", "status", "detail"} == set(found["findings"][0])


def test_an_empty_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    done = iolens("doctor", "--root", tmp_path / "root", "--spool", tmp_path / "s", "--store", tmp_path / "c")
    assert done.code == 1
    assert "not a Lustre server" in done.out


def test_something_is_missing(tmp_path: Path, server: Server) -> None:
    (server.root / "sys/kernel/debug/lustre/osd-ldiskfs/scratch-OST0000/brw_stats").unlink()
    found = diagnose(server.root, None, tmp_path / "spool")
    assert found.exit_code == 3
    states = {target.target: target.files["brw_stats"] for target in found.targets if target.kind == "ost"}
    assert states == {"scratch-OST0000": "not found", "scratch-OST0001": READABLE}


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, server: Server) -> None:
    path = server.root / "proc/fs/lustre/obdfilter/scratch-OST0000/stats"
    path.unlink()
    path.mkdir()  # unreadable for root too
    found = diagnose(server.root, None, tmp_path / "spool")
    assert found.exit_code == 3
    assert found.targets[1].files["stats"] == f"{path}: Is a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_closed_debugfs(tmp_path: Path, server: Server) -> None:
    hidden = server.root / "sys/kernel/debug"
    hidden.chmod(0)
    found = diagnose(server.root, None, tmp_path / "spool")
    hidden.chmod(0o755)
    assert found.exit_code == 3
    assert "closed to this user" in found.targets[1].files["brw_stats"]


def test_job_stats_that_are_off(tmp_path: Path, server: Server) -> None:
    (server.root / "sys/fs/lustre/jobid_var").write_text("disable\n")
    found = diagnose(server.root, None, tmp_path / "spool")
    assert any(one.subject == "job_stats" and "off on this server" in one.detail for one in found.findings)
    assert found.exit_code == 3


def test_a_store_and_a_spool_that_cannot_be_used(tmp_path: Path, server: Server) -> None:
    (tmp_path / "file").write_text("")
    found = diagnose(server.root, str(tmp_path / "file"), tmp_path / "file" / "spool")
    wrong = {one.subject for one in found.findings if one.status == "missing"}
    assert wrong == {"store", "spool"}
    assert found.exit_code == 3


def test_segments_put_aside_are_pointed_out(tmp_path: Path, server: Server) -> None:
    (tmp_path / "spool" / "bad").mkdir(parents=True)
    (tmp_path / "spool" / "bad" / "x.seg").write_text("")
    found = diagnose(server.root, None, tmp_path / "spool")
    assert any("1 segments in" in one.detail for one in found.findings)

"""`iolens doctor`: what can be read, what cannot and why, in words and in JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iolens.agent.doctor import READABLE, DiagnosisLine, diagnose
from iolens.light.__main__ import main as light
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
    result = json.loads(done.out)
    assert result["exit_code"] == done.code == 0
    assert result["lustre_version"] == "2.15.4"
    assert [target["target"] for target in result["targets"]] == [
        "scratch-MDT0000",
        "scratch-OST0000",
        "scratch-OST0001",
    ]
    assert {"subject", "status", "detail"} == set(result["findings"][0])


def test_latency_by_size_and_the_devices_behind_targets(tmp_path: Path, server: Server) -> None:
    """Nothing is wrong where a version has no latencies and no device is named; the server says what there is."""
    details = {finding.subject: (finding.status, finding.detail) for finding in diagnosed(server, tmp_path)}
    assert details["latency"] == ("note", "no io_latency_stats: Lustre before 2.17 does not time I/Os by size")
    assert details["target devices"][0] == "note"
    for number, target in enumerate(server.targets):
        folder = server.root / "sys/kernel/debug/lustre/osd-ldiskfs" / target
        (folder / "io_latency_stats").write_text("io_latency_by_size:\nsnapshot_time: 1.5\n")
        (server.root / "sys/fs/lustre/osd-ldiskfs" / target).mkdir(parents=True, exist_ok=True)
        (server.root / "sys/fs/lustre/osd-ldiskfs" / target / "mntdev").write_text(f"/dev/sd{'bc'[number]}\n")
    (server.root / "sys/class/block/sdb").mkdir(parents=True)
    (server.root / "sys/class/block/sdb/stat").write_text("1 0 8 1 1 0 8 1 0 2 2\n")
    details = {finding.subject: (finding.status, finding.detail) for finding in diagnosed(server, tmp_path)}
    assert details["latency"] == ("ok", "io_latency_stats of 2 of 2 targets readable")
    on = "scratch-OST0000 on /dev/sdb, scratch-OST0001 on /dev/sdc"
    assert details["target devices"] == ("note", f"busy time of 1 of 2: {on}")


def diagnosed(server: Server, folder: Path) -> list[DiagnosisLine]:
    return diagnose(server.root, None, folder / "spool").findings


def test_an_empty_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    done = iolens("doctor", "--root", tmp_path / "root", "--spool", tmp_path / "s", "--store", tmp_path / "c")
    assert done.code == 1
    assert "not a Lustre server" in done.out


def test_something_is_missing(tmp_path: Path, server: Server) -> None:
    (server.root / "sys/kernel/debug/lustre/osd-ldiskfs/scratch-OST0000/brw_stats").unlink()
    result = diagnose(server.root, None, tmp_path / "spool")
    assert result.exit_code == 3
    states = {target.target: target.files["brw_stats"] for target in result.targets if target.kind == "ost"}
    assert states == {"scratch-OST0000": "not found", "scratch-OST0001": READABLE}


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, server: Server) -> None:
    path = server.root / "proc/fs/lustre/obdfilter/scratch-OST0000/stats"
    path.unlink()
    path.mkdir()  # unreadable for root too
    result = diagnose(server.root, None, tmp_path / "spool")
    assert result.exit_code == 3
    assert result.targets[1].files["stats"] == f"{path}: Is a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_closed_debugfs(tmp_path: Path, server: Server) -> None:
    hidden = server.root / "sys/kernel/debug"
    hidden.chmod(0)
    result = diagnose(server.root, None, tmp_path / "spool")
    hidden.chmod(0o755)
    assert result.exit_code == 3
    assert "closed to this user" in result.targets[1].files["brw_stats"]


def test_job_stats_that_are_off(tmp_path: Path, server: Server) -> None:
    (server.root / "sys/fs/lustre/jobid_var").write_text("disable\n")
    result = diagnose(server.root, None, tmp_path / "spool")
    assert any(finding.subject == "job_stats" and "off on this server" in finding.detail for finding in result.findings)
    assert result.exit_code == 3


def test_a_store_and_a_spool_that_cannot_be_used(tmp_path: Path, server: Server) -> None:
    (tmp_path / "file").write_text("")
    result = diagnose(server.root, str(tmp_path / "file"), tmp_path / "file" / "spool")
    wrong = {finding.subject for finding in result.findings if finding.status == "missing"}
    assert wrong == {"store", "spool"}
    assert result.exit_code == 3


def test_segments_put_aside_are_pointed_out(tmp_path: Path, server: Server) -> None:
    (tmp_path / "spool" / "bad").mkdir(parents=True)
    (tmp_path / "spool" / "bad" / "x.seg").write_text("")
    result = diagnose(server.root, None, tmp_path / "spool")
    assert any("1 segments in" in finding.detail for finding in result.findings)


class TestBlockDevices:
    def disks(self, root: Path) -> Path:
        (root / "proc").mkdir(parents=True, exist_ok=True)
        (root / "etc").mkdir(exist_ok=True)
        (root / "etc/hostname").write_text("oss1\n")
        lines = [f"8 {number} {name} {' 1' * 11}" for number, name in enumerate(("sda", "sda1", "sdb", "loop0"))]
        (root / "proc/diskstats").write_text("\n".join(lines) + "\n")
        return root

    def test_a_machine_without_lustre_is_all_right(self, tmp_path: Path) -> None:
        root = self.disks(tmp_path / "root")
        done = iolens("doctor", "--root", root, "--spool", tmp_path / "s", "--store", tmp_path / "c")
        assert done.code == 0, done.out
        assert "block devices: oss1:sda, oss1:sdb" in done.out
        assert "left out by rule: sda1 (partition of sda), loop0 (not a disk)" in done.out
        assert "2 of 4 block devices are sampled" in done.out

    def test_the_rule_is_the_configurations(self, tmp_path: Path) -> None:
        root = self.disks(tmp_path / "root")
        (tmp_path / "iolens.toml").write_text(f'[agent]\nroot = "{root}"\n[devices]\nexclude = ["sd*"]\n')
        done = iolens(
            "doctor", "--config", tmp_path / "iolens.toml", "--spool", tmp_path / "s", "--store", tmp_path / "c"
        )
        assert done.code == 1
        assert "all 4 block devices are left out by rule" in done.out

    def test_beside_lustre_they_are_on_offer(self, tmp_path: Path, server: Server) -> None:
        self.disks(server.root)
        result = diagnose(server.root, None, tmp_path / "spool")
        assert result.exit_code == 0
        (finding,) = [finding for finding in result.findings if finding.subject == "devices"]
        assert (finding.status, finding.detail[:30]) == ("note", "2 block devices are sampled wi")
        result = diagnose(server.root, None, tmp_path / "spool", with_devices=True)
        assert [finding.status for finding in result.findings if finding.subject == "devices"] == ["ok"]

    def test_a_list_that_cannot_be_understood(self, tmp_path: Path) -> None:
        root = self.disks(tmp_path / "root")
        (root / "proc/diskstats").write_text("8 0 sda 1 2\n")
        result = diagnose(root, None, tmp_path / "spool")
        assert result.exit_code == 1
        assert any(finding.subject == "devices" and "5 columns" in finding.detail for finding in result.findings)


def test_what_several_targets_lack_is_said_once_in_words_that_both_programs_print(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    for target in server.targets:
        (server.root / f"sys/kernel/debug/lustre/osd-ldiskfs/{target}/brw_stats").unlink()
    words = ["doctor", "--root", str(server.root), "--spool", str(tmp_path / "spool")]
    assert light([*words]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert "  missing brw_stats of scratch-OST0000, scratch-OST0001: not found" in lines
    assert lines[-1] == "Exit code 3: what is called missing above."
    full = iolens(*words, "--store", tmp_path / "store")
    assert set(lines) <= set(full.out.splitlines())

"""Which disk carries a path, what it counted, and when that is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolens.benchmarks.device_counters import (
    BlockDeviceCounters,
    Counts,
    DeviceMovement,
    LustreTargetCounters,
    device_of_number,
    underlying_device,
    users_of_device,
)
from iolens.errors import IolensError
from iolens.units import KIB, MIB


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """/sys and /proc of a machine: sda with two partitions, a volume on one of them, a mirror over sdb and sdc."""
    devices = tmp_path / "sys/devices"
    for path, number in {
        "sda": "8:0", "sda/sda1": "8:1", "sda/sda2": "8:2", "sdb": "8:16", "sdc": "8:32", "sdd": "8:48",
        "virtual/dm-0": "253:0", "virtual/md0": "9:0",
    }.items():  # fmt: skip
        folder = devices / path
        (folder / "slaves").mkdir(parents=True)
        (folder / "holders").mkdir()
        (folder / "dev").write_text(number + "\n")
        link = tmp_path / "sys/dev/block" / number
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder)
    for part in ("sda1", "sda2"):
        (devices / "sda" / part / "partition").write_text("1\n")
    (devices / "virtual/dm-0/slaves/sda2").symlink_to(devices / "sda/sda2")
    (devices / "sda/sda2/holders/dm-0").symlink_to(devices / "virtual/dm-0")
    for disk in ("sdb", "sdc"):
        (devices / "virtual/md0/slaves" / disk).symlink_to(devices / disk)
        (devices / disk / "holders/md0").symlink_to(devices / "virtual/md0")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:40 / /over rw - overlay overlay rw\n"
        "24 22 253:0 / /data rw - xfs /dev/mapper/vg-data rw\n"
    )
    (tmp_path / "proc/swaps").write_text("Filename Type Size Used Priority\n/dev/sdd partition 1 0 -2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("number", "device", "words"),
    [
        ("8:0", "sda", "disk sda"),
        ("8:1", "sda", "disk sda"),
        ("253:0", "sda", "below dm-0"),
        ("9:0", "md0", "spreads over sdb, sdc"),
        ("0:40", None, "overlay has no block device"),
        ("0:99", None, "not known"),
        ("7:7", None, "knows no block device 7:7"),
    ],
)
def test_from_a_path_down_to_the_disk(machine: Path, number: str, device: str | None, words: str) -> None:
    result = device_of_number(number, machine)
    assert result.device == device
    assert words in result.why


@pytest.mark.parametrize(
    ("device", "number", "users"),
    [
        ("/dev/sda", "8:0", ["mounted on /", "part of dm-0"]),
        ("/dev/sda1", "8:1", ["mounted on /"]),
        ("/dev/sdb", "8:16", ["part of md0"]),
        ("/dev/sdd", "8:48", ["used for swap as /dev/sdd"]),
        ("/dev/mapper/vg-data", "253:0", ["mounted on /data"]),
    ],
)
def test_a_device_in_use_is_known_to_be(machine: Path, device: str, number: str, users: list[str]) -> None:
    assert users_of_device(device, number, machine) == users


def test_this_machine_has_a_disk_or_says_why_not(tmp_path: Path) -> None:
    result = underlying_device(tmp_path)
    assert result.why
    if result.device is not None:
        counts = BlockDeviceCounters(result.device).read()
        assert counts.bytes is not None
        assert counts.bytes["write"] >= 0


def diskstats(root: Path, reads: int, writes: int, busy: int = 0) -> None:
    line = f"   8       0 sda {reads} 0 {reads * 8} 0 {writes} 0 {writes * 16} 0 0 {busy} 0\n"
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/diskstats").write_text("   8      16 sdaa 1 1 1 1 1 1 1 1 1 1 1\n" + line)


def test_what_moved_between_two_readings(tmp_path: Path) -> None:
    counters = BlockDeviceCounters("sda", tmp_path)
    diskstats(tmp_path, 10, 20, 5)
    before = counters.read()
    diskstats(tmp_path, 110, 23, 905)
    seen = DeviceMovement(before, counters.read(), 1.5)
    assert seen.columns("sda", "read") == {
        "device": "sda", "device_window_s": 1.5, "device_ops": 100, "device_bytes": 100 * 8 * 512,
        "device_other_ops": 3, "device_other_bytes": 3 * 16 * 512, "device_busy_us": 900_000,
    }  # fmt: skip
    assert seen.columns("sda", "write")["device_ops"] == 3
    assert seen.sizes("read") is None


def test_a_counter_that_ran_backwards_is_no_observation() -> None:
    before = Counts({"read": 9, "write": 9}, {"read": 9, "write": 9})
    seen = DeviceMovement(before, Counts({"read": 1, "write": 10}, {"read": 1, "write": 10}), 1.0)
    columns = seen.columns("sda", "read")
    assert "device_ops" not in columns
    assert columns["device_other_ops"] == 1


def test_a_device_that_is_gone_is_an_error(tmp_path: Path) -> None:
    diskstats(tmp_path, 1, 1)
    with pytest.raises(IolensError, match="no device is called nvme0n1"):
        BlockDeviceCounters("nvme0n1", tmp_path).read()


def brw_stats(root: Path, target: str, reads: dict[str, int]) -> None:
    folder = root / "proc/fs/lustre/osd-ldiskfs" / target
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{label}:\t\t {count} 50 50   | 7 50 50\n" for label, count in reads.items())
    (folder / "brw_stats").write_text(
        "snapshot_time:         1700000000.1 (secs.usecs)\n\n                           read      |     write\n"
        f"disk I/O size          ios   % cum % |  ios         % cum %\n{rows}\n"
    )


def test_the_histograms_of_lustre_targets_add_up(tmp_path: Path) -> None:
    counters = LustreTargetCounters(("fs-OST0000", "fs-OST0001"), tmp_path)
    for target in counters.targets:
        brw_stats(tmp_path, target, {"4K": 100, "1M": 10})
    before = counters.read()
    brw_stats(tmp_path, "fs-OST0001", {"4K": 150, "1M": 17})
    seen = DeviceMovement(before, counters.read(), 1.0)
    assert seen.sizes("read") == {4 * KIB: 50, MIB: 7}
    assert seen.sizes("write") == {}
    assert seen.columns(counters.name, "read")["device"] == "fs-OST0000+fs-OST0001"
    json.dumps(seen.sizes("read"))


def test_a_target_without_histogram_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IolensError, match="no brw_stats of a target called fs-OST0009"):
        LustreTargetCounters(("fs-OST0009",), tmp_path).read()
    brw_stats(tmp_path, "fs-OST0009", {})
    (tmp_path / "proc/fs/lustre/osd-ldiskfs/fs-OST0009/brw_stats").write_text("")
    with pytest.raises(IolensError, match="disk I/O size"):
        LustreTargetCounters(("fs-OST0009",), tmp_path).read()

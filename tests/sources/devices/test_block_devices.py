"""The rule for block devices: every I/O is counted once, on disks that hold data, and what is left out says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.sources.devices.block_devices import (
    Choice,
    DeviceSeries,
    choose,
    devices_by_name,
    devices_by_sysfs,
    host_of,
    refuse_settings,
    system_disks,
)
from iolens.sources.reading.options import ReadOptions


def by_name(names: str, **rule: object) -> Choice:
    return choose(devices_by_name(names.split()), DeviceRule(**rule))  # type: ignore[arg-type]


def plant(root: Path, **disks: str) -> Path:
    """A /sys/block with disks; the value names what each is stacked on, `=NAME` its device-mapper name."""
    for disk, text in disks.items():
        folder = root / "sys/block" / disk.replace("_", "-")
        (folder / "slaves").mkdir(parents=True)
        (folder / "size").write_text("2048\n")
        for word in text.split():
            if word.startswith("="):
                (folder / "dm").mkdir()
                (folder / "dm/name").write_text(f"{word[1:]}\n")
            else:
                (folder / "slaves" / word).mkdir()
    return root


@pytest.mark.parametrize(
    ("partition", "disk"),
    [("sda1", "sda"), ("vdb12", "vdb"), ("nvme0n1p2", "nvme0n1"), ("mmcblk0p1", "mmcblk0"), ("md0p1", "md0"),
     ("cciss/c0d0p1", "cciss/c0d0"), ("ata-DISK-part1", "ata-DISK")],
)  # fmt: skip
def test_a_partition_beside_its_disk_is_left_out(partition: str, disk: str) -> None:
    assert by_name(f"{disk} {partition}").left_out == {partition: f"partition of {disk}"}


@pytest.mark.parametrize("name", ["sda1", "nvme0n1p1"])
def test_a_partition_without_its_disk_is_all_there_is(name: str) -> None:
    assert by_name(f"{name} sdb").kept == {name: name, "sdb": "sdb"}


@pytest.mark.parametrize(("disk", "other"), [("nvme0n1", "nvme0n10"), ("sda", "sdaa"), ("nvme0n1", "nvme0n12")])
def test_disks_with_alike_names_are_no_partitions(disk: str, other: str) -> None:
    assert by_name(f"{disk} {other}").left_out == {}


def test_what_is_no_disk_is_left_out() -> None:
    result = by_name("loop0 ram1 zram0 sr0 fd0 scd0 nvme0c0n1 sda")
    assert set(result.kept) == {"sda"}
    assert set(result.left_out.values()) == {"not a disk"}


@pytest.mark.parametrize("name", ["dm-0", "md127", "centos-root", "mpatha", "emcpowera", "zd16", "bcache0", "drbd1"])
def test_stacked_devices_are_left_out_beside_disks(name: str) -> None:
    assert by_name(f"sda {name}").left_out == {name: "lies over other devices"}
    assert by_name(name).kept == {name: name}  # in a guest it may be the disk


def test_patterns_choose() -> None:
    names = "sda sda1 sdb nvme0n1 dm-0"
    assert set(by_name(names, include=("nvme*", "sdb")).kept) == {"nvme0n1", "sdb"}
    assert set(by_name(names, exclude=("sd*",)).kept) == {"nvme0n1"}
    assert set(by_name(names, include=("sd*",)).kept) == {"sda", "sdb"}  # no partition by a pattern that happens to fit
    assert set(by_name(names, include=("sda1",)).kept) == {"sda1"}  # but by its name
    assert set(by_name(names, include=("sd*", "dm-*")).kept) == {"sda", "sdb", "dm-0"}
    assert by_name(names, include=("sdb",), exclude=("sdb",)).kept == {}
    assert by_name("sda", exclude=("sd?",)).left_out == {"sda": "excluded by 'sd?'"}


def test_sysfs_tells_what_lies_over_what(tmp_path: Path) -> None:
    root = plant(tmp_path, sda="", sdb="", md0="sda1 sdb1", dm_0="md0 =vg-data", sdc="")
    devices = devices_by_sysfs(root, ["sda", "sda1", "sdb", "sdb1", "md0", "dm-0", "sdc"])
    result = choose(devices, DeviceRule())
    assert set(result.kept) == {"sda", "sdb", "sdc"}
    assert result.left_out["sda1"] == "partition of sda"
    assert result.left_out["dm-0"] == "lies over md0, sda, sda1, sdb, sdb1"


def test_a_stacked_device_that_is_asked_for_takes_the_place_of_its_members(tmp_path: Path) -> None:
    root = plant(tmp_path, sda="", sdb="", sdc="", dm_0="sda sdb =mpatha")
    devices = devices_by_sysfs(root, ["sda", "sdb", "sdc", "dm-0"])
    result = choose(devices, DeviceRule(include=("mpath*", "sd*")))
    assert result.kept == {"dm-0": "mpatha", "sdc": "sdc"}
    assert result.left_out == {"sda": "carries the I/O of mpatha", "sdb": "carries the I/O of mpatha"}


def test_what_lies_over_loop_devices_is_kept_for_they_are_not(tmp_path: Path) -> None:
    root = plant(tmp_path, loop0="", dm_0="loop0 =crypt")
    result = choose(devices_by_sysfs(root, ["loop0", "dm-0"]), DeviceRule())
    assert result.kept == {"dm-0": "crypt"}


def test_a_drive_without_a_medium_is_left_out(tmp_path: Path) -> None:
    root = plant(tmp_path, nbd0="", sda="")
    (root / "sys/block/nbd0/size").write_text("0\n")
    result = choose(devices_by_sysfs(root, ["nbd0", "sda"]), DeviceRule())
    assert result.left_out == {"nbd0": "has no medium"}


def mounted(root: Path, line: str) -> None:
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/mountinfo").write_text(f"22 27 0:21 / /proc rw - proc proc rw\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "27 1 8:2 / / rw,relatime - ext4 /dev/root rw",  # by number
        "27 1 0:31 /@ / rw - btrfs /dev/sda2 rw,subvol=/@",  # a number of no device: by name
    ],
)
def test_the_disk_that_holds_the_root(tmp_path: Path, line: str) -> None:
    root = plant(tmp_path, sda="", sdb="")
    mounted(root, line)
    numbers = {"8:0": "sda", "8:2": "sda2", "8:16": "sdb"}
    devices = devices_by_sysfs(root, numbers.values())
    held = system_disks(root, devices, numbers)
    assert held == {"sda", "sda2"}
    assert set(choose(devices, DeviceRule(), held).kept) == {"sdb"}
    assert choose(devices, DeviceRule(), held).left_out["sda"] == "holds /"
    assert set(choose(devices, DeviceRule(system=True), held).kept) == {"sda", "sdb"}
    assert set(choose(devices, DeviceRule(include=("sda", "sdb")), held).kept) == {"sda", "sdb"}  # named in full
    assert set(choose(devices, DeviceRule(include=("sd*",)), held).kept) == {"sdb"}


def test_a_root_on_a_mirror_of_logical_volumes(tmp_path: Path) -> None:
    root = plant(tmp_path, sda="", sdb="", sdc="", md0="sda2 sdb2", dm_0="md0 =vg-root")
    mounted(root, "27 1 253:9 / / rw - xfs /dev/mapper/vg-root rw")
    devices = devices_by_sysfs(root, ["sda", "sda2", "sdb", "sdb2", "sdc", "md0", "dm-0"])
    assert {"sda", "sdb", "dm-0"} <= system_disks(root, devices, {})
    assert set(choose(devices, DeviceRule(), system_disks(root, devices, {})).kept) == {"sdc"}


def test_where_there_is_no_other_disk_the_system_disk_is_kept(tmp_path: Path) -> None:
    root = plant(tmp_path, vda="")
    mounted(root, "27 1 254:0 / / rw - ext4 /dev/root rw")
    devices = devices_by_sysfs(root, ["vda"])
    held = system_disks(root, devices, {"254:0": "vda"})
    assert set(choose(devices, DeviceRule(), held).kept) == {"vda"}
    assert choose(devices, DeviceRule(system=False), held).kept == {}


def test_no_mount_table_means_no_system_disk(tmp_path: Path) -> None:
    root = plant(tmp_path, sda="")
    assert system_disks(root, devices_by_sysfs(root, ["sda"]), {"8:0": "sda"}) == set()
    mounted(root, "garbage")
    assert system_disks(root, devices_by_sysfs(root, ["sda"]), {"8:0": "sda"}) == set()


def test_the_host_is_that_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").write_text("oss7\n")
    assert host_of(tmp_path) == "oss7"
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/hostname").write_text("oss8\n")
    assert host_of(tmp_path) == "oss8"
    assert host_of(tmp_path / "nowhere")  # this machine


def test_a_series_masks_what_was_not_readable() -> None:
    series = DeviceSeries("fs", "oss1")
    series.add("sda", 1, 1, {"read_ops": 5, "read_bytes": 2**63})
    series.add("sda", 2, 2, {"read_ops": 6, "read_bytes": 512})
    assert list(series.take()) == []  # too few yet
    (samples,) = series.take(at_end=True)
    assert (samples.target, dict(samples.labels)) == ("oss1:sda", {"target_kind": "device"})
    assert samples.counters["read_bytes"].mask.tolist() == [True, False]  # type: ignore[attr-defined]
    assert samples.counters["read_ops"].tolist() == [5, 6]
    assert "busy_us" not in samples.counters
    assert list(series.take(at_end=True)) == []


def test_a_setting_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown setting sources\.pcp\.hosts"):
        refuse_settings(ReadOptions(settings={"hosts": 1}), "pcp", "x")

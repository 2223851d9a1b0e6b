"""The block device behind a target: found through what is mounted; busy time and facts, nothing where it is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.records import Item, Problem, Row, Sample
from iolens.sources.lustre.capacity import busy_us, device_of, facts_of
from iolens.sources.lustre.lustre_proc import SOURCE, read_tree
from iolens.sources.lustre.parameters import SLOW_LEAVES
from iolens.sources.reading.options import ReadOptions

STATS = "snapshot_time 1600000000.500000000 secs.nsecs\nwrite_bytes 3 samples [bytes] 1 1 3\n"
STAT = "100 0 800 30 50 0 400 70 2 1234 100 0 0 0 0 0 0\n"
FACTS = ("device", "device_rotational", "device_queue_requests", "device_scheduler")


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def disk(
    name: str, *, rotational: str = "1", requests: str = "256", scheduler: str = "[mq-deadline] none"
) -> dict[str, str]:
    folder = f"sys/class/block/{name}"
    return {
        f"{folder}/stat": STAT,
        f"{folder}/queue/rotational": f"{rotational}\n",
        f"{folder}/queue/nr_requests": f"{requests}\n",
        f"{folder}/queue/scheduler": f"{scheduler}\n",
    }


def oss(root: Path, mounted: str, files: dict[str, str]) -> Path:
    """A server with one OST on that device."""
    return plant(
        root,
        {
            "sys/kernel/debug/lustre/obdfilter/fs-OST0000/stats": STATS,
            "sys/fs/lustre/osd-ldiskfs/fs-OST0000/mntdev": f"{mounted}\n",
            **files,
        },
    )


def read(root: Path, skip: frozenset[str] = frozenset()) -> tuple[int | None, tuple[object, ...]]:
    """Busy time of the OST, and the facts."""
    items: list[Item] = list(read_tree(root, None, skip=skip))
    assert [str(item) for item in items if isinstance(item, Problem)] == []
    (sample,) = [item for item in items if isinstance(item, Sample) and item.table == "target_io"]
    (row,) = [item for item in items if isinstance(item, Row) and item.table == "target_state"]
    assert sample.sets[""].counters["write_bytes"] == 3
    return sample.sets[""].counters.get("busy_us"), tuple(row.values[name] for name in FACTS)


def test_a_disk_and_a_path_with_a_link(tmp_path: Path) -> None:
    facts = (True, 256, "mq-deadline")
    assert read(oss(tmp_path / "a", "/dev/sdb", disk("sdb"))) == (1_234_000, ("/dev/sdb", *facts))
    root = oss(tmp_path / "b", "/dev/disk/by-id/wwn-0x5", disk("sdb"))
    (root / "dev/disk/by-id").mkdir(parents=True)
    (root / "dev/disk/by-id/wwn-0x5").symlink_to("../../sdb")
    assert read(root) == (1_234_000, ("/dev/disk/by-id/wwn-0x5", *facts))


def test_through_device_mapper_and_md_to_the_disk_below(tmp_path: Path) -> None:
    """Busy time and the flag are the device's own; queue and scheduler those of the first disk below."""
    below = disk("nvme0n1", rotational="0", requests="1023", scheduler="[none] mq-deadline kyber")
    root = oss(
        tmp_path / "root",
        "/dev/mapper/ost0",
        {
            **below,
            "sys/class/block/dm-3/dm/name": "ost0\n",
            "sys/class/block/dm-3/stat": STAT.replace("1234", "77"),
            "sys/class/block/dm-3/queue/rotational": "0\n",
            "sys/class/block/dm-3/queue/scheduler": "none\n",
            "sys/class/block/dm-3/slaves/md127/x": "",
            "sys/class/block/md127/slaves/nvme0n1/x": "",
            "sys/class/block/md127/slaves/sdz/x": "",  # not there itself
        },
    )
    assert read(root) == (77_000, ("/dev/mapper/ost0", False, 1023, "none"))


def test_a_partition_has_its_own_busy_time_and_the_queue_of_its_disk(tmp_path: Path) -> None:
    whole = {name.replace("class/block", "devices/pci0"): text for name, text in disk("sdb").items()}
    root = oss(tmp_path / "root", "/dev/sdb1", {**whole, "sys/devices/pci0/sdb/sdb1/stat": STAT})
    (root / "sys/class/block").mkdir(parents=True)
    (root / "sys/class/block/sdb1").symlink_to("../../devices/pci0/sdb/sdb1")
    assert read(root) == (1_234_000, ("/dev/sdb1", True, 256, "mq-deadline"))


@pytest.mark.parametrize("mounted", ["/dev/sdb", "/dev/mapper/gone", "ost00/ost00", "/dev/../etc"])
def test_what_is_absent_is_unknown(tmp_path: Path, mounted: str) -> None:
    assert read(oss(tmp_path / "root", mounted, {})) == (None, (mounted, None, None, None))


def test_between_the_ticks_of_slow_files_only_busy_time_is_read(tmp_path: Path) -> None:
    root = oss(tmp_path / "root", "/dev/sdb", disk("sdb"))
    assert read(root, SLOW_LEAVES) == (1_234_000, ("/dev/sdb", None, None, None))


def test_a_copied_tree_has_them_and_another_device_is_another_capture(tmp_path: Path) -> None:
    root = oss(tmp_path / "root", "/dev/sdb", disk("sdb"))
    (before,) = SOURCE.captures([root], ReadOptions())
    (sample,) = [item for item in before.items() if isinstance(item, Sample) and item.table == "target_io"]
    assert sample.sets[""].counters["busy_us"] == 1_234_000
    plant(root, {"sys/class/block/sdb/stat": STAT.replace("1234", "1235")})
    (after,) = SOURCE.captures([root], ReadOptions())
    assert after.identity != before.identity


@pytest.mark.parametrize(
    ("stat", "expected"),
    [
        (STAT, 1_234_000), ("0 0 0 0 0 0 0 0 0 0 0\n", 0), ("", None), ("1 2 3", None), ("x " * 11, None),
        ("100 0 800 30 50 0 400 70 2 0 100", None),  # sectors and no time: this kernel does not count it
        ("-1 " * 11, None), ("1 " * 9 + "99999999999999999999999 1", None),
    ],
)  # fmt: skip
def test_busy_time_or_nothing(stat: str, expected: int | None) -> None:
    assert busy_us(stat.encode()) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"rotational": b"0\n"}, {"device_rotational": False}),
        ({"rotational": b"2\n"}, {"device_rotational": None}),
        ({"nr_requests": b"many"}, {"device_queue_requests": None}),
        ({"scheduler": b"none\n"}, {"device_scheduler": "none"}),
        ({"scheduler": b"none [kyber] bfq\n"}, {"device_scheduler": "kyber"}),
        ({"scheduler": b"[a] [b]\n"}, {"device_scheduler": None}),
        ({"scheduler": b"\xff\x00 b c"}, {"device_scheduler": None}),
    ],
)
def test_facts_or_nothing(texts: dict[str, bytes], expected: dict[str, object]) -> None:
    assert facts_of(texts) == expected


def test_what_is_mounted() -> None:
    assert device_of(b"/dev/mapper/ost0\n") == "/dev/mapper/ost0"
    assert [device_of(text) for text in (b"pool/ost", b"", b"/dev/a b", b"/dev/../sda", b"\xff")] == [None] * 5

"""/proc/diskstats: every column count the kernel has had, live under a root and saved with stamps."""

from __future__ import annotations

import gzip
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Sample, Samples
from iolens.sources import recognise
from iolens.sources.devices.diskstats import SOURCE, BlockDevices, parse_line
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store

T0 = datetime(2026, 1, 5, 12, tzinfo=UTC)
OPTIONS = ReadOptions(target="oss1")
S = 1_000_000


def line(name: str, reads: int = 100, writes: int = 10, *, number: str = "8 0", more: str = " 1 2 3 4 5 6") -> str:
    """A line with 8 KiB per read, 64 KiB per write, 2 ms each, half of it busy."""
    sectors, busy = (reads * 16, writes * 128), reads + writes
    return (
        f" {number:>7} {name} {reads} 3 {sectors[0]} {2 * reads} {writes} 4 {sectors[1]} {2 * writes} 7 {busy}"
        f" {2 * busy}{more}\n"
    )


def items(text: str, tmp_path: Path, options: ReadOptions = OPTIONS) -> list[Item]:
    path = tmp_path / "saved.txt"
    path.write_text(text)
    return [item for capture in SOURCE.captures([path], options) for item in capture.items()]


def series(results: list[Item]) -> dict[str, Samples]:
    return {item.target: item for item in results if isinstance(item, Samples)}


def problems(results: list[Item]) -> list[str]:
    return [str(item) for item in results if isinstance(item, Problem) and not isinstance(item, Note)]


EXPECTED = {
    "read_ops": 100, "read_bytes": 100 * 8192, "read_wait_us": 200_000,
    "write_ops": 10, "write_bytes": 10 * 65536, "write_wait_us": 20_000,
    "busy_us": 110_000, "queue_us": 220_000,
}  # fmt: skip


@pytest.mark.parametrize("more", ["", " 1 2 3 4", " 1 2 3 4 5 6", " 1 2 3 4 5 6 7 8 9"])
def test_columns_of_every_kernel(more: str) -> None:
    result = parse_line(line("sda", more=more))
    assert result is not None
    assert (result.number, result.name, result.counters) == ("8:0", "sda", EXPECTED)


def test_a_partition_of_an_old_kernel_has_four_counters() -> None:
    assert parse_line("   8    1 sda1 10 20 30 40") is None


@pytest.mark.parametrize("text", ["8 0 sda 1 2 3", "8 0 sda " + "1 " * 10 + "x", "8 0 sda " + "-1 " * 11, "rubbish"])
def test_other_lines_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"columns|whole number"):
        parse_line(text)


class TestLive:
    def root(self, tmp_path: Path, text: str) -> Path:
        (tmp_path / "proc").mkdir(exist_ok=True)
        (tmp_path / "proc/diskstats").write_text(text)
        (tmp_path / "etc").mkdir(exist_ok=True)
        (tmp_path / "etc/hostname").write_text("oss1")
        return tmp_path

    def test_one_sample_per_disk(self, tmp_path: Path) -> None:
        root = self.root(tmp_path, line("sda") + line("sda1", number="8 1") + line("loop0", number="7 0"))
        (result,) = BlockDevices(root, now_us=lambda: 7 * S).read(5 * S)
        assert isinstance(result, Sample)
        assert (result.table, result.filesystem, result.target) == ("target_io", "oss1", "oss1:sda")
        assert (result.time_us, result.snapshot_us) == (5 * S, 7 * S)
        assert result.sets[""].counters == EXPECTED
        assert result.labels == {"target_kind": "device"}

    def test_the_rule_and_the_file_system_are_the_users(self, tmp_path: Path) -> None:
        root = self.root(tmp_path, line("sda") + line("sdb"))
        result = list(BlockDevices(root, DeviceRule(exclude=("sda",)), "scratch").read(0))
        assert [(item.filesystem, item.target) for item in result if isinstance(item, Sample)] == [
            ("scratch", "oss1:sdb")
        ]

    def test_a_new_disk_is_noticed(self, tmp_path: Path) -> None:
        devices = BlockDevices(self.root(tmp_path, line("sda")))
        assert len(list(devices.read(0))) == 1
        self.root(tmp_path, line("sda") + line("sdb", number="8 16"))
        assert len(list(devices.read(1))) == 2

    def test_what_cannot_be_read_is_a_problem(self, tmp_path: Path) -> None:
        (result,) = BlockDevices(tmp_path).read(0)
        assert "No such file" in str(result)
        (result, good) = BlockDevices(self.root(tmp_path, "8 0 sda cut\n" + line("sdb"))).read(0)
        assert str(result).endswith("proc/diskstats:1: 4 columns, expected at least 14")
        assert isinstance(good, Sample)

    def test_this_machine(self) -> None:
        if not Path("/proc/diskstats").exists():
            pytest.skip("no /proc/diskstats here")
        devices = BlockDevices(Path("/"))
        result = list(devices.read(0))
        assert all(isinstance(item, Sample) for item in result)
        assert len(result) == len(devices.choice.kept)


STAMPS = [
    "# 2026-01-05T12:00:0{}Z", "# 2026-01-05 12:00:0{}+00:00", "176761440{}", "#176761440{}", "BEGIN 176761440{}",
    "=== 2026-01-05T12:00:0{}Z ===", "2026-01-05T13:00:0{}+01:00", "--- 176761440{}.0",
]  # fmt: skip


@pytest.mark.parametrize("stamp", STAMPS)
def test_stamps_between_copies(tmp_path: Path, stamp: str) -> None:
    text = f"{stamp.format(0)}\n{line('sda')}{stamp.format(5)}\n{line('sda', 150)}"
    samples = series(items(text, tmp_path))["oss1:sda"]
    assert samples.snapshot_us.tolist() == [1767614400 * S, 1767614405 * S]
    assert samples.counters["read_ops"].tolist() == [100, 150]
    assert samples.filesystem == "oss1"


def test_times_without_a_zone_need_one(tmp_path: Path) -> None:
    text = f"2026-01-05T12:00:00\n{line('sda')}"
    with pytest.raises(InputError, match="name no zone"):
        items(text, tmp_path)
    berlin = ReadOptions(target="oss1", timezone="Europe/Berlin")
    assert series(items(text, tmp_path, berlin))["oss1:sda"].snapshot_us.tolist() == [1767610800 * S]


def test_copies_without_stamps_need_a_time(tmp_path: Path) -> None:
    text = line("sda") + line("sdb") + line("sda", 150) + line("sdb", 170)
    with pytest.raises(InputError, match="supply --at"):
        items(text, tmp_path)
    only_at = items(text, tmp_path, ReadOptions(target="oss1", at=T0))
    assert series(only_at)["oss1:sda"].snapshot_us.tolist() == [1767614400 * S]
    assert "supply --interval" in problems(only_at)[0]
    both = items(text, tmp_path, ReadOptions(target="oss1", at=T0, interval_s=60))
    assert series(both)["oss1:sdb"].snapshot_us.tolist() == [1767614400 * S, 1767614460 * S]


def test_the_server_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not tell its server; expected --target SERVER"):
        items(f"1767614400\n{line('sda')}", tmp_path, ReadOptions())


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    result = items(f"1767614400\n{line('sda')}{line('sda1')}{line('dm-0')}", tmp_path)
    assert set(series(result)) == {"oss1:sda"}
    (note,) = [item for item in result if isinstance(item, Note)]
    assert "2 devices left out by rule: dm-0 (lies over other devices), sda1 (partition of sda)" in str(note)


def test_damage_costs_its_line(tmp_path: Path) -> None:
    text = f"1767614400\r\n{line('sda').strip()}\r\n\x00\xff rubbish\r\n1767614405\n{line('sda', 150)}8 16 sdb 12 3"
    result = items(text, tmp_path)
    assert series(result)["oss1:sda"].counters["read_ops"].tolist() == [100, 150]
    assert len(problems(result)) == 2
    assert problems(result)[1].endswith("saved.txt:6: not a line of diskstats: 5 columns, expected at least 14")


@pytest.mark.parametrize("text", ["", "\n\n", "rubbish\n", "1767614400\n"])
def test_files_without_a_device(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        items(text, tmp_path)


def test_numbers_no_column_holds_are_unknown(tmp_path: Path) -> None:
    huge = f" 8 0 sda {2**64 - 1} 0 {2**64 - 1} 0 1 0 8 0 0 0 0\n"
    samples = series(items(f"1767614400\n{huge}1767614405\n{line('sda')}", tmp_path))["oss1:sda"]
    assert samples.counters["read_bytes"].mask.tolist() == [True, False]  # type: ignore[attr-defined]
    assert samples.counters["write_ops"].tolist() == [1, 10]


def test_it_is_recognised_plain_and_packed(tmp_path: Path) -> None:
    text = f"# 2026-01-05T12:00:00Z\n{line('sda')}"
    (tmp_path / "a").write_text(text)
    (tmp_path / "b.gz").write_bytes(gzip.compress(text.encode()))
    assert recognise(tmp_path / "a").name == recognise(tmp_path / "b.gz").name == "diskstats"
    samples = [item for capture in SOURCE.captures([tmp_path / "b.gz"], OPTIONS) for item in capture.items()]
    assert len(series(samples)["oss1:sda"]) == 1


def load(store: Store, path: Path, options: ReadOptions = OPTIONS) -> dict[str, int]:
    captures = list(SOURCE.captures([path], options))
    tally = store.ingest([pickle.loads(pickle.dumps(capture)) for capture in captures], "diskstats")
    return {"rows": tally.rows["target_io"], "present": tally.already_present, "resets": tally.resets,
            "glitches": tally.glitches}  # fmt: skip


def test_totals_in_the_store_and_twice_adds_nothing(tmp_path: Path) -> None:
    path, store = tmp_path / "saved", Store(tmp_path / "store")
    copies = [f"{1767614400 + 5 * n}\n{line('sda', 100 + 7 * n, 10 + n)}" for n in range(20)]
    path.write_text("".join(copies[:12]))
    assert load(store, path) == {"rows": 11, "present": 0, "resets": 0, "glitches": 0}
    assert load(store, path)["present"] == 1
    path.write_text("".join(copies))  # it has grown
    assert load(store, path)["rows"] == 8
    rows = store.tables.load("target_io").to_pyarrow_table().to_pylist()  # type: ignore[union-attr]
    assert sum(row["read_bytes"] for row in rows) == 19 * 7 * 8192
    assert sum(row["busy_us"] for row in rows) == 19 * 8 * 1000
    assert {(row["duration_s"], row["target_kind"], row["target"]) for row in rows} == {(5.0, "device", "oss1:sda")}


def test_a_counter_of_milliseconds_that_wraps_costs_its_interval_and_nothing_else(tmp_path: Path) -> None:
    """32 bits of milliseconds are 49.7 days of queueing: at the wrap one interval of that one counter is unknown."""
    near = 2**32 - 3000
    texts = []
    for n in range(4):
        queued = (near + 2000 * n) % 2**32
        texts.append(
            f"{1767614400 + 5 * n}\n 8 0 sda {100 + n} 0 {800 + 8 * n} {50 + n} 5 0 40 9 0 {30 + n} {queued}\n"
        )
    path, store = tmp_path / "saved", Store(tmp_path / "store")
    path.write_text("".join(texts))
    assert load(store, path) == {"rows": 3, "present": 0, "resets": 0, "glitches": 1}
    rows = store.tables.load("target_io").to_pyarrow_table().sort_by("time").to_pylist()  # type: ignore[union-attr]
    assert [row["queue_us"] for row in rows] == [2_000_000, 0, 2_000_000]
    assert [row["read_ops"] for row in rows] == [1, 1, 1]


def test_a_reboot_is_a_reset(tmp_path: Path) -> None:
    path, store = tmp_path / "saved", Store(tmp_path / "store")
    counts = [(1000, 500), (1100, 510), (20, 5), (30, 6)]
    path.write_text("".join(f"{1767614400 + 5 * n}\n{line('sda', *count)}" for n, count in enumerate(counts)))
    assert load(store, path)["resets"] == 1
    rows = store.tables.load("target_io").to_pyarrow_table().sort_by("time").to_pylist()  # type: ignore[union-attr]
    assert [row["read_ops"] for row in rows] == [100, 20, 10]
    assert [row["after_reset"] for row in rows] == [False, True, False]

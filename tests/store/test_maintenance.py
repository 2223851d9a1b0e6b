"""Looking after a store: nothing that is needed is lost, everything that is broken is found."""

from __future__ import annotations

import csv
import json
import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from iolens.cli.main import iolens
from iolens.errors import StoreError, UsageError
from iolens.records import CounterSet, Item, Row
from iolens.store.maintenance import compact_store, export_table, store_info, vacuum_store, verify_store
from iolens.store.rollup import roll_up
from iolens.store.snapshot import Snapshot
from iolens.store.store import Store
from tests.store.samples import T0, capture, io_sample, sample
from tests.store.writers import append_one_by_one

MIDNIGHT = 86400 - T0 % 86400
DAYS = ("2020-09-13", "2020-09-14")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of two targets in four captures, so that each day of a table has several files."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    for part in range(4):
        Store(folder).ingest([capture(items(part), f"part {part}")], "test")
    return folder


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Store:
    shutil.copytree(filled, tmp_path / "store")
    return Store(tmp_path / "store")


def items(part: int) -> Iterator[Item]:
    begin = MIDNIGHT - 20 if part < 2 else MIDNIGHT
    for tick in range(4):
        second = begin + 5 * tick + 20 * (part % 2) - (0 if part >= 2 else 20)
        for target in ("OST0000", "OST0001"):
            yield io_sample(second, 100 * (second + 1000), 0, target=target)
            yield sample(
                "target_histograms", second, {"pages": CounterSet({"read:1": second, "write:2": second})}, target
            )
            time_us = round((T0 + second) * 1e6)
            yield Row(
                "target_capacity",
                {"time": time_us, "filesystem": "scratch", "target": f"scratch-{target}", "used_bytes": tick},
            )


def contents(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the tables that hold telemetry."""
    result = {}
    for name in ("target_io", "target_histograms", "target_capacity"):
        frame = store.select("scratch").frame(name).collect(backend="pyarrow").to_native()
        result[name] = sorted((tuple(row.values()) for row in frame.to_pylist()), key=str)
    return result


def paths(store: Store, name: str) -> list[Path]:
    return [Path(store.url) / name / path for path in Snapshot.of(store.tables.load(name)).paths]


def on_disk(store: Store) -> set[Path]:
    return {path for path in Path(store.url).rglob("*.parquet") if "_delta_log" not in path.parts}


def live(store: Store) -> set[Path]:
    names = [table["name"] for table in store_info(store)["tables"]]
    return {path for name in names for path in paths(store, name)}


def test_info_tells_rows_files_bytes_and_span_of_each_table(store: Store) -> None:
    reported = store_info(store)
    assert reported["filesystems"] == {"scratch": 2}
    by_name = {table["name"]: table for table in reported["tables"]}
    assert set(by_name) == {"target_io", "target_histograms", "target_capacity", "baselines", "batches"}
    io = by_name["target_io"]
    assert (io["rows"], io["days"], io["files"]) == (30, 2, len(paths(store, "target_io")))
    assert io["bytes"] == sum(path.stat().st_size for path in paths(store, "target_io"))
    assert (io["first_time"], io["last_time"]) == ("2020-09-13T23:59:25Z", "2020-09-14T00:00:35Z")


def test_info_opens_no_data_file_but_those_of_batches(store: Store) -> None:
    before = store_info(store)
    for name in ("target_io", "target_histograms", "target_capacity", "baselines"):
        for path in paths(store, name):
            path.write_bytes(b"garbage")
    assert store_info(store) == before


def test_info_of_a_store_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert store_info(Store(tmp_path / "none"))["tables"] == []


def test_compaction_keeps_every_row_and_leaves_one_file_per_day(store: Store) -> None:
    before = contents(store)
    done = compact_store(store)
    assert done.files_before > done.files_after > 0
    assert contents(store) == before
    for name in ("target_io", "target_histograms", "target_capacity"):
        assert [path.parent.name for path in paths(store, name)] == [f"date={day}" for day in DAYS]


def test_a_compacted_file_is_in_time_order(store: Store) -> None:
    compact_store(store)
    for name in ("target_io", "target_histograms", "target_capacity"):
        for path in paths(store, name):
            rows = pq.ParquetFile(path).read(["time", "target"]).to_pylist()
            keys = [(row["time"], row["target"]) for row in rows]
            assert len(keys) > 2
            assert keys == sorted(keys)


def test_a_compacted_store_verifies_and_its_new_files_have_checksums(store: Store) -> None:
    compact_store(store)
    checked = verify_store(store)
    assert (checked.faults, checked.unrecorded, checked.unchecked) == ([], 0, [])


def test_compacting_twice_changes_nothing(store: Store) -> None:
    compact_store(store)
    before = [path for path in live(store) if "batches" not in path.parts]
    assert compact_store(store).days == 0
    assert [path for path in live(store) if "batches" not in path.parts] == before


def test_a_compacted_store_takes_the_next_sample(store: Store) -> None:
    compact_store(store)
    store.ingest([capture([io_sample(MIDNIGHT + 100, 100 * (MIDNIGHT + 1100), 0)], "next")], "test")
    frame = store.select("scratch", targets=["scratch-OST0000"]).frame("target_io").select("read_bytes")
    assert sum(frame.collect(backend="pyarrow").to_native().column("read_bytes").to_pylist()) == 100 * 140


def test_a_table_without_files_is_compacted_verified_and_reported_of(store: Store) -> None:
    handle = store.tables.load("target_io")
    assert handle is not None
    handle.delete()
    compact_store(store)
    assert verify_store(store).faults == []
    assert {table["name"]: table["rows"] for table in store_info(store)["tables"]}["target_io"] == 0


def test_compaction_while_another_process_appends_loses_nothing(tmp_path: Path) -> None:
    store, folder = Store(tmp_path / "store"), tmp_path / "meeting"
    store.ingest([capture([io_sample(-5, 0, 0)], "before")], "test")
    folder.mkdir()
    (folder / "compactor").touch()
    process = get_context("spawn").Process(target=append_one_by_one, args=(store.url, folder, 1))
    process.start()
    try:
        compactions, deadline = 0, time.monotonic() + 60
        while not (folder / "done").exists() and process.is_alive() and time.monotonic() < deadline:
            compactions += compact_store(store).files_before > 0
    finally:
        process.join(60)
        process.kill()
    assert process.exitcode == 0
    assert compactions > 0
    compact_store(store)
    frame = store.select("scratch").frame("target_io").sort("epoch_us").select("read_bytes").collect(backend="pyarrow")
    assert frame.to_native().column("read_bytes").to_pylist() == [0, *[100] * 11]
    assert verify_store(store).faults == []


def test_vacuum_removes_what_a_crash_and_a_compaction_left_and_no_live_file(store: Store) -> None:
    before = contents(store)
    orphan = Path(store.url) / "target_io" / f"date={DAYS[0]}" / "part-00000-never-committed-c000.zstd.parquet"
    orphan.write_bytes(paths(store, "target_io")[0].read_bytes())
    compact_store(store)
    dead = on_disk(store) - live(store)
    assert orphan in dead
    assert len(dead) > 5
    assert vacuum_store(store, 0, dry_run=True) == len(dead)
    assert dead <= on_disk(store)
    assert vacuum_store(store, 0, force=True) == len(dead)  # nobody else uses this store
    assert on_disk(store) == live(store)
    assert contents(store) == before
    assert verify_store(store).faults == []


def test_vacuum_leaves_files_younger_than_asked(store: Store) -> None:
    orphan = Path(store.url) / "target_io" / f"date={DAYS[0]}" / "part-00000-young-c000.zstd.parquet"
    orphan.write_bytes(b"being written")
    compact_store(store)
    assert vacuum_store(store, 0.5, force=True) == 0  # half an hour is not rounded down to nothing
    assert vacuum_store(store, 1) == 0
    assert orphan.exists()
    an_hour_ago = time.time() - 3700
    os.utime(orphan, (an_hour_ago, an_hour_ago))
    assert vacuum_store(store, 1) == 1
    assert not orphan.exists()


@pytest.mark.parametrize("hours", [0, 0.5, 0.99])
def test_vacuum_does_not_take_files_that_may_be_in_use_unless_forced(hours: float, store: Store) -> None:
    """Or it would delete from under an ingest what that is about to commit, or has committed meanwhile."""
    orphan = Path(store.url) / "target_io" / f"date={DAYS[0]}" / "part-00000-being-written-c000.zstd.parquet"
    orphan.write_bytes(b"being written")
    with pytest.raises(UsageError, match="--force"):
        vacuum_store(store, hours)
    assert orphan.exists()
    assert vacuum_store(store, hours, dry_run=True) in (0, 1)
    assert orphan.exists()


def test_verify_finds_a_missing_file(store: Store) -> None:
    gone = paths(store, "target_io")[0]
    gone.unlink()
    assert verify_store(store).faults == [f"{gone}: missing"]


def test_verify_finds_a_file_that_was_cut_short(store: Store) -> None:
    short = paths(store, "target_capacity")[0]
    size = short.stat().st_size
    short.write_bytes(short.read_bytes()[:-7])
    assert verify_store(store).faults == [f"{short}: altered: {size - 7} bytes long, written with {size}"]


@pytest.mark.parametrize("name", ["target_io", "target_histograms", "target_capacity", "baselines"])
def test_verify_finds_a_single_flipped_bit(name: str, store: Store) -> None:
    flipped = paths(store, name)[0]
    content = bytearray(flipped.read_bytes())
    content[len(content) // 3] ^= 1
    flipped.write_bytes(content)
    assert verify_store(store).faults == [f"{flipped}: altered: its checksum is not the recorded one"]


def test_verify_finds_a_damaged_file_of_batches_though_it_has_no_checksum(store: Store) -> None:
    damaged = paths(store, "batches")[0]
    content = bytearray(damaged.read_bytes())
    content[8:200] = bytes(192)
    damaged.write_bytes(content)
    faults = verify_store(store).faults
    assert any(fault.startswith(f"{damaged}: altered") for fault in faults)


@pytest.mark.parametrize("name", ["target_io", "batches"])
@pytest.mark.parametrize("damage", ["garbage", "missing", "cut"])
def test_verify_finds_a_damaged_log(name: str, damage: str, store: Store) -> None:
    log = Path(store.url) / name / "_delta_log" / "00000000000000000001.json"
    if damage == "garbage":
        log.write_bytes(b"\x00garbage\n")
    elif damage == "missing":
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[:-40])
    faults = verify_store(store).faults
    assert len(faults) >= 1
    assert any(fault.startswith(f"{store.url}/{name}") for fault in faults)


def test_a_damaged_log_is_a_store_error_for_those_who_read_it(store: Store) -> None:
    (Path(store.url) / "target_io" / "_delta_log" / "00000000000000000001.json").write_bytes(b"\x00garbage\n")
    with pytest.raises(StoreError, match="target_io: cannot be opened"):
        store.tables.load("target_io")


def test_a_damaged_file_that_an_ingest_needs_is_a_store_error_that_names_it(store: Store) -> None:
    damaged = paths(store, "baselines")[0]
    damaged.write_bytes(b"garbage " * 64)
    with pytest.raises(StoreError, match=f"claim baselines: .*{damaged.name}"):
        store.ingest([capture([io_sample(MIDNIGHT + 100, 0, 0)], "next")], "test")


def test_verify_on_the_command_line_exits_with_1_when_something_is_wrong(store: Store) -> None:
    good = CliRunner().invoke(iolens, ["store", "verify", "--store", store.url], standalone_mode=False)
    assert good.return_value == 0
    paths(store, "target_io")[0].unlink()
    bad = CliRunner().invoke(iolens, ["store", "verify", "--store", store.url], standalone_mode=False)
    assert bad.return_value == 1
    assert "1 fault" in bad.output


def test_a_table_is_exported_whole_to_parquet_in_time_order(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    assert export_table(store, "target_io", target) == 30
    times = pq.read_table(target).column("time").to_pylist()
    assert times == sorted(times)
    assert len(times) == 30


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_window_is_exported_by_the_start_of_its_intervals(suffix: str, store: Store, tmp_path: Path) -> None:
    since = datetime.fromtimestamp(T0 + MIDNIGHT - 10, UTC)
    target = tmp_path / f"out{suffix}"
    written = export_table(store, "target_io", target, "scratch", since, since + timedelta(seconds=20))
    if suffix == ".parquet":
        rows = pq.read_table(target).to_pylist()
        starts = {row["start"] for row in rows}
    else:
        rows = list(csv.DictReader(target.open()))
        starts = {datetime.fromisoformat(row["start"]) for row in rows}
        assert rows[0]["write_wait_us"] == ""
    assert written == len(rows) == 8
    assert starts == {since + timedelta(seconds=5 * n) for n in range(4)}


def test_records_are_exported_by_their_start_and_file_system(store: Store, tmp_path: Path) -> None:
    def job(number: int, filesystem: str) -> Row:
        timestamp = (T0 + number) * 1_000_000
        return Row(
            "jobs",
            {
                "time": timestamp,
                "filesystem": filesystem,
                "cluster": "c",
                "job_id": str(number),
                "start": timestamp - 1,
            },
        )

    store.ingest([capture([job(1, "scratch"), job(2, "home"), job(3, "scratch"), job(4, "scratch")], "jobs")], "test")
    target = tmp_path / "jobs.csv"
    assert export_table(store, "jobs", target) == 4
    until = datetime.fromtimestamp(T0 + 4, UTC)
    assert export_table(store, "jobs", target, "scratch", until - timedelta(seconds=3), until) == 2
    assert [row["job_id"] for row in csv.DictReader(target.open())] == ["3", "4"]  # 1 began before the window


def test_a_rollup_can_be_exported(store: Store, tmp_path: Path) -> None:
    roll_up(store)
    assert export_table(store, "target_io", tmp_path / "out.csv", resolution="60s") == 4


def test_an_export_that_cannot_be_made_says_why_and_leaves_nothing(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    with pytest.raises(UsageError, match="no table is called 'nonsense'; there are: target_io"):
        export_table(store, "nonsense", folder / "out.csv")
    with pytest.raises(UsageError, match=r"out.xlsx: write to FILE.parquet or FILE.csv"):
        export_table(store, "target_io", folder / "out.xlsx")
    with pytest.raises(UsageError, match="no rollups"):
        export_table(store, "target_capacity", folder / "out.csv", resolution="60s")
    assert list(folder.iterdir()) == []


def test_an_export_is_readable_by_others_as_the_umask_allows(store: Store, tmp_path: Path) -> None:
    plain, exported = tmp_path / "plain", tmp_path / "out.csv"
    plain.touch()
    export_table(store, "target_io", exported)
    assert exported.stat().st_mode == plain.stat().st_mode


def test_batches_tell_what_each_capture_brought(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "batches.csv"
    export_table(store, "batches", target)
    rows = [row for row in csv.DictReader(target.open()) if row["source"] == "test"]
    assert [json.loads(row["rows_by_table"])["target_io"] for row in rows] == [6, 8, 8, 8]

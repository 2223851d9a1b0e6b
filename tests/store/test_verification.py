"""`store verify`: what batches say was written must be there, whoever took it away and however; and `store repair`."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from iolens.errors import StoreError
from iolens.store import delta_log
from iolens.store.durable import MARKER
from iolens.store.maintenance import compact_store, vacuum_store, verify_store
from iolens.store.rollup import retain_raw, roll_up
from iolens.store.snapshot import Snapshot
from iolens.store.store import Store
from iolens.store.tables import _in_one_line
from iolens.store.verification import repair_store
from tests.cli.command import Finished, iolens
from tests.store.samples import capture, io_sample
from tests.store.test_maintenance import contents, items, paths

NEXT = 86_400 + 43_200 + 200  # seconds after T0, past all samples of `items`


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of two targets in four captures."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    for part in range(4):
        Store(folder).ingest([capture(items(part), f"part {part}")], "test")
    return folder


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Store:
    shutil.copytree(filled, tmp_path / "store")
    return Store(tmp_path / "store")


def entries(store: Store, name: str) -> list[Path]:
    """Log entries of a table, oldest first."""
    return sorted((Path(store.url) / name / "_delta_log").glob("*.json"))


def faults(store: Store) -> list[str]:
    """By a fresh look."""
    return verify_store(Store(store.url)).faults


def alter(entry: Path, pattern: bytes, replacement: bytes) -> None:
    """Change what an entry says, in all places."""
    text = entry.read_bytes()
    assert re.search(pattern, text)
    entry.write_bytes(re.sub(pattern, replacement, text))


def test_a_whole_store_has_no_faults_and_nothing_is_left_unchecked(store: Store) -> None:
    checked = verify_store(store)
    assert (checked.faults, checked.unchecked, checked.unrecorded) == ([], [], 0)
    names = ("target_io", "target_histograms", "target_capacity", "baselines", "batches")
    assert checked.files == sum(len(paths(store, name)) for name in names)


def test_a_store_that_was_looked_after_has_no_faults_either(store: Store) -> None:
    compact_store(store)
    roll_up(store)
    store.ingest([capture([io_sample(NEXT, 10_000_000, 0)], "next")], "test")
    compact_store(store)
    roll_up(store)
    retain_raw(store, 86400.0)
    vacuum_store(store, 0, force=True)
    checked = verify_store(store)
    assert (checked.faults, checked.unchecked, checked.unrecorded) == ([], [], 0)


@pytest.mark.parametrize("name", ["target_io", "target_capacity", "target_histograms"])
def test_a_last_commit_that_was_deleted_is_noticed_with_its_batch_and_rows(name: str, store: Store) -> None:
    before = {file.name for file in paths(store, name)}
    entries(store, name)[-1].unlink()
    (lost,) = before - {file.name for file in paths(store, name)}
    result = faults(store)
    rows = {"target_io": 8, "target_capacity": 8, "target_histograms": 16}[name]
    assert any(re.search(rf"{name}: lost {rows} rows of batch file/part 3 part 1000001", fault) for fault in result)
    assert any(f"{name}: written, and not in the table any more: " in fault and lost in fault for fault in result)
    assert len(result) == 2


def test_a_last_commit_of_the_baselines_that_was_deleted_is_noticed(store: Store) -> None:
    entries(store, "baselines")[-1].unlink()
    (fault,) = faults(store)
    assert "baselines: written, and not in the table any more" in fault


@pytest.mark.parametrize("name", ["target_io", "batches"])
@pytest.mark.parametrize("which", [-1, 2])
def test_a_commit_that_was_emptied_is_noticed(name: str, which: int, store: Store) -> None:
    entry = entries(store, name)[which]
    entry.write_bytes(b"")
    assert f"{entry}: torn after 0 bytes" in faults(store)


@pytest.mark.parametrize("name", ["target_io", "target_capacity", "baselines"])
def test_a_table_that_was_deleted_is_noticed(name: str, store: Store) -> None:
    shutil.rmtree(Path(store.url) / name)
    assert faults(store) == [f"{store.url}/{name}: the table is missing, and by batches it has rows"]


def test_batches_that_were_deleted_are_noticed(store: Store) -> None:
    shutil.rmtree(Path(store.url) / "batches")
    (fault,) = faults(store)
    assert fault.startswith(f"{store.url}/batches: cannot be read or is missing")
    assert verify_store(Store(store.url)).unchecked == []  # nobody is at work: the list itself is gone


def test_a_last_commit_of_batches_that_was_deleted_is_noticed_and_later_batches_do_not_hide_it(store: Store) -> None:
    entries(store, "batches")[-1].unlink()
    assert faults(store) == [f"{store.url}/batches: its last 1 log entries are missing, by {MARKER}"]
    for number in range(3):
        again = Store(store.url)
        again.ingest([capture([io_sample(NEXT + number, 10_000_000 + number, 0)], f"later {number}")], "test")
        (fault,) = faults(store)
        assert "is altered: its checksum is not that of" in fault


@pytest.mark.parametrize("name", ["batches", "target_io"])
@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
def test_a_single_flipped_bit_is_noticed_also_in_batches(name: str, place: float, store: Store) -> None:
    flipped = paths(store, name)[0]
    content = bytearray(flipped.read_bytes())
    content[int(len(content) * place)] ^= 1
    flipped.write_bytes(content)
    assert f"{flipped}: altered: its checksum is not the recorded one" in faults(store)


def test_a_number_of_rows_that_was_altered_in_the_log_is_noticed(store: Store) -> None:
    entry = entries(store, "target_io")[2]
    alter(entry, rb'\\"numRecords\\": 8', rb'\\"numRecords\\": 9')
    assert [fault.rpartition(": ")[2] for fault in faults(store)] == ["it says 9 rows, the file has 8"]


def test_an_extreme_that_was_altered_in_the_log_is_noticed_since_files_are_passed_over_by_it(store: Store) -> None:
    entry = entries(store, "target_io")[2]
    alter(entry, rb'\\"minValues\\": \{\\"time\\": \\"2020-', rb'\\"minValues\\": {\\"time\\": \\"1999-')
    (fault,) = faults(store)
    assert "the log is altered: it says min time 1999-" in fault


def test_a_day_that_was_altered_in_the_log_is_noticed(store: Store) -> None:
    entry = entries(store, "target_io")[2]
    alter(entry, rb'"partitionValues":\{"date":"2020-09-13"', rb'"partitionValues":{"date":"1999-09-13"')
    assert any("the log is altered: it says date 1999-09-13" in fault for fault in faults(store))


@pytest.mark.parametrize(
    ("pattern", "replacement", "fault"),
    [
        (rb"read_bytes\b", b"read_bytez", "it has a column read_bytez, which no version has"),
        (rb'(read_bytes\\",\\"type\\":\\")long', rb"\1double", "read_bytes is double, not int64"),
    ],
)
def test_a_schema_that_was_altered_is_noticed(store: Store, pattern: bytes, replacement: bytes, fault: str) -> None:
    alter(entries(store, "target_io")[0], pattern, replacement)
    assert f"{store.url}/target_io: the schema is altered: {fault}" in faults(store)


def test_an_entry_of_two_objects_on_a_line_is_named_with_its_line(store: Store) -> None:
    entry = next(path for path in entries(store, "target_io") if b'{"txn"' in path.read_bytes())
    lines = entry.read_bytes().splitlines()
    number = next(number for number, line in enumerate(lines) if line.startswith(b'{"txn"'))
    lines[number] *= 2
    entry.write_bytes(b"\n".join(lines))
    named = [fault for fault in faults(store) if entry.name in fault]
    assert len(named) == 1
    assert "\n" not in named[0]


def test_what_a_library_says_of_its_stack_is_not_shown() -> None:
    error = OSError("Kernel error: torn\n\nStack backtrace:\n   0: std::backtrace\n  12: start_thread\n  13: clone3")
    assert _in_one_line(error) == "Kernel error: torn"


def test_a_file_lost_after_compaction_is_noticed_though_the_file_that_was_written_is_long_gone(store: Store) -> None:
    compact_store(store)
    vacuum_store(store, 0, force=True)
    name = "target_io"
    entry = next(entry for entry in entries(store, name)[::-1] if b'"remove"' in entry.read_bytes())
    note = json.dumps({"commitInfo": {"operation": "RECOVERY", "iolensActions": 0}}).encode()
    entry.write_bytes(note)  # as if somebody had replaced it
    assert any(fault.endswith(": missing") for fault in faults(store))


def test_rollups_that_stand_for_dropped_rows_must_be_there(store: Store) -> None:
    roll_up(store)
    retain_raw(store, 86400.0)
    assert faults(store) == []
    shutil.rmtree(Path(store.url) / "60s" / "target_io")
    result = faults(store)
    assert f"{store.url}/60s/target_io: the table is missing, and by batches it has rows" in result


def test_a_store_of_0_1_verifies_with_what_it_has_and_says_what_could_not_be_checked(
    store: Store, tmp_path: Path
) -> None:
    """As 0.1 left them: files named by delta-rs, no marker, nothing noted of what a compaction replaced."""
    compact_store(store)
    old = as_of_0_1(Path(store.url), tmp_path / "old")
    checked = verify_store(old)
    assert checked.faults == []
    assert any("no iolens-store.json" in line for line in checked.unchecked)
    assert any("replaced without a note" in line for line in checked.unchecked)
    assert checked.unrecorded == len(paths(old, "batches"))
    damaged = paths(old, "target_io")[0]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 1
    damaged.write_bytes(content)
    assert verify_store(old).faults == [f"{damaged}: altered: its checksum is not the recorded one"]
    entries(old, "target_io")[-1].unlink()
    Store(old.url).ingest([capture([io_sample(NEXT, 10_000_000, 0)], "by the new one")], "test")
    assert (Path(old.url) / MARKER).exists()


def as_of_0_1(new: Path, old: Path) -> Store:
    """The same rows as iolens 0.1 would have stored them."""
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake

    from iolens.schema import TABLES
    from iolens.store.tables import VERSION_MARK

    files: dict[str, dict[str, str]] = {}
    for name in ("target_io", "target_histograms", "target_capacity", "baselines", "batches"):
        rows = DeltaTable(str(new / name)).to_pyarrow_table()
        if name == "batches":
            keep = [row for row in rows.to_pylist() if row["source"] == "test"]
            noted = [
                {**row, "checksums": re.sub(r"-[0-9a-f]{64}\.zstd", "-c000.zstd", row["checksums"])} for row in keep
            ]
            compacted = {"batch": "compact/x", "part": 1, "time": keep[-1]["time"], "source": "compact",
                         "checksums": json.dumps(files)}  # fmt: skip
            rows = pa.Table.from_pylist([*noted, compacted], schema=rows.schema).drop_columns(["replaced"])
        elif name == "target_io":
            rows = rows.sort_by("time")
        write_deltalake(
            str(old / name),
            rows,
            partition_by=["date"] if TABLES[name].partitioned else None,
            description=f"{VERSION_MARK}1",
            writer_properties=WriterProperties(compression="ZSTD"),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(f"file/part {part}", 1_000_001) for part in range(4)]
            ),
        )
        made = Store(old)
        files[name] = {path: made.tables.checksum(name, path) for path in Snapshot.of(made.tables.load(name)).paths}
    return Store(old)


def test_repair_puts_back_what_only_the_log_lost(store: Store) -> None:
    before = contents(store)
    for name in ("target_io", "target_capacity"):
        entries(store, name)[-1].unlink()
    result = repair_store(Store(store.url))
    assert result.lost == []
    assert [line for line in result.done if line.startswith("target_")] == [
        "target_io: 0 files that cannot be read taken out, 1 put back",
        "target_capacity: 0 files that cannot be read taken out, 1 put back",
    ]
    assert contents(Store(store.url)) == before
    assert faults(store) == []
    again = Store(store.url).ingest([capture(items(3), "part 3")], "test")
    assert (again.already_present, contents(Store(store.url))) == (1, before)


def test_repair_takes_out_dead_files_in_a_commit_and_says_which_rows_and_batches_are_lost(store: Store) -> None:
    dead, other = paths(store, "target_io")[0], paths(store, "target_io")[-1]
    dead.write_bytes(b"")
    other.unlink()
    would = repair_store(Store(store.url), dry_run=True)
    assert dead.exists()
    result = repair_store(Store(store.url))
    assert result == would
    assert result.done == ["target_io: 2 files that cannot be read taken out, 0 put back"]
    reported = "\n".join(result.lost)
    assert dead.name in reported
    assert other.name in reported
    assert "2020-09-13" in reported
    assert re.search(r"brought by batch file/part \d part 1000001 from part \d, 2020-09-1", reported)
    assert not dead.exists()
    assert faults(store) == []
    assert 0 < len(reads(store)) < 30


def test_what_repair_took_out_can_be_sent_again_with_rebuild(store: Store) -> None:
    before = contents(store)
    lost = paths(store, "target_io")[-1]
    lost.unlink()
    repair_store(Store(store.url))
    assert contents(Store(store.url)) != before
    Store(store.url).ingest([capture([*items(2), *items(3)], "again")], "test", rebuild=True)
    assert contents(Store(store.url))["target_io"] == before["target_io"]


def test_a_target_whose_newest_counters_are_lost_begins_anew_and_counts_nothing_twice(store: Store) -> None:
    """Differenced against counters that are older than the stored rows, it would count those rows again."""
    before = sum(reads(store))
    newest = max(paths(store, "baselines"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(b"")
    repair_store(Store(store.url))
    samples = [io_sample(NEXT, 10_000_000, 0), io_sample(NEXT + 5, 10_000_500, 0)]
    assert Store(store.url).ingest([capture(samples, "next")], "test").baselines == 1
    assert sum(reads(store)) == before + 500


def reads(store: Store) -> list[int]:
    """Bytes read in each stored interval."""
    frame = Store(store.url).select("scratch").frame("target_io").select("read_bytes").collect(backend="pyarrow")
    values: list[int] = frame.to_native().column("read_bytes").to_pylist()
    return values


def test_a_log_entry_torn_in_the_middle_stops_readers_and_repair_puts_its_rows_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_log, "STILL_WRITTEN_S", 0.3)  # it is young, and waited for
    before = contents(store)
    entry = entries(store, "target_io")[2]
    entry.write_bytes(entry.read_bytes()[:100])
    for later in entries(store, "target_io")[3:]:
        hours_later = later.stat().st_mtime + 7200
        os.utime(later, (hours_later, hours_later))
    with pytest.raises(StoreError, match="target_io: cannot be opened"):
        Store(store.url).tables.load("target_io")
    result = repair_store(Store(store.url))
    assert (result.lost, contents(Store(store.url))) == ([], before)
    assert faults(store) == []
    kept = list((Path(store.url) / "target_io" / "_damaged").iterdir())
    assert [len(item.read_bytes()) for item in kept] == [100]


def test_a_missing_log_entry_is_filled_in_by_repair(store: Store) -> None:
    before = contents(store)
    entries(store, "target_io")[2].unlink()
    assert any("gap" in fault for fault in faults(store))
    assert repair_store(Store(store.url)).lost == []
    assert (contents(Store(store.url)), faults(store)) == (before, [])


def test_repair_of_a_whole_store_does_nothing(store: Store) -> None:
    before = sorted(Path(store.url).rglob("*"))
    result = repair_store(store)
    assert (result.done, result.lost) == ([], [])
    assert sorted(Path(store.url).rglob("*")) == before


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_dead_file_is_named_by_those_who_need_it_and_repaired_on_the_command_line(
    damage: Callable[[Path], None], store: Store
) -> None:
    dead = paths(store, "target_io")[0]
    damage(dead)

    def run(*words: str) -> Finished:
        return iolens(*words, "--store", store.url)

    for words in (
        ("store", "compact"),
        ("store", "export", "target_io", "-o", f"{store.url}.csv"),
        ("store", "rollup"),
    ):
        done = run(*words)
        assert (done.code, "Traceback" in done.err, dead.name in done.err) == (1, False, True), done.err
        assert "iolens store repair" in done.err
    repaired = run("store", "repair")
    assert repaired.code == 1  # rows are lost
    assert "send again" in repaired.err
    assert run("store", "verify").code == 0
    assert run("store", "compact").code == 0

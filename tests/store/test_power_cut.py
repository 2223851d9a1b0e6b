"""A power cut at any time: what was shipped is there, the store opens, and the agent goes on shipping.

Once on a real ext4 file system, whose image is copied without a sync, and once on a model of what any file system may
lose, at every system call. `make soak` goes through all of them.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iolens.agent.sampling.shipper import ship
from iolens.agent.sampling.spool import waiting
from iolens.errors import StoreError
from iolens.store import delta_log
from iolens.store.delta_log import ASIDE, DeltaLog
from iolens.store.maintenance import compact_store, verify_store
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from tests.agent import truth
from tests.agent.sampling.test_shipper import fill
from tests.store.power_cuts import LONG_AGO, Disk, Tree, has_strace, lay_out, recorded, states
from tests.store.samples import capture, io_sample
from tests.store.test_maintenance import contents, items

SEGMENTS = (range(4), range(4, 8), range(8, 12))
SHIPPED = 110  # bytes written over the ticks of all segments
needs_strace = pytest.mark.skipif(not has_strace(), reason="strace is not installed")


# A real file system.


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    """An image as a directory."""
    folder.mkdir()
    if subprocess.run(["mount", "-o", "loop", image, folder], check=False, capture_output=True).returncode:
        pytest.skip("mounting an image is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An ext4 file system of its own."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("only root may mount an image, and mkfs.ext4 must be there")
    image = tmp_path / "image"
    image.touch()
    os.truncate(image, 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    with mounted(image, tmp_path / "disk") as folder:
        yield folder


@contextmanager
def after_a_power_cut(disk: Path) -> Iterator[Path]:
    """The file system as the next boot finds it: what the image holds now, without what is only in memory."""
    copy, folder = disk.with_name(f"copy-{time.time_ns()}"), disk.with_name(f"after-{time.time_ns()}")
    subprocess.run(["cp", "--sparse=always", disk.with_name("image"), copy], check=True)
    with mounted(copy, folder) as result:
        yield result
    copy.unlink()


def write_the_journal(disk: Path) -> None:
    """Have all names on disk, as happens by itself every five seconds; contents follow half a minute later."""
    with (disk / "unrelated").open("wb") as stream:
        os.fsync(stream.fileno())


@pytest.mark.parametrize("is_journal_written", [True, False])
def test_what_was_shipped_outlives_a_power_cut(is_journal_written: bool, disk: Path) -> None:
    fill(disk / "spool", *SEGMENTS)
    os.sync()
    assert ship(disk / "spool", str(disk / "store")).shipped == 3
    if is_journal_written:
        write_the_journal(disk)
    with after_a_power_cut(disk) as result:
        assert is_journal_written == (waiting(result / "spool") == [])
        fill(result / "spool", range(12, 14), run="r2")
        check(result, SHIPPED + 20)


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_while_the_shipper_is_at_work_loses_nothing(seed: int, disk: Path) -> None:
    fill(disk / "spool", *SEGMENTS)
    os.sync()
    command = [sys.executable, "-m", "iolens.agent.sampling.shipper", str(disk / "spool"), str(disk / "store")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not list((disk / "store").glob("*/_delta_log/*1.json")) and process.poll() is None:
            time.sleep(0.005)
        time.sleep(random.Random(seed).uniform(0.0, 0.3))
        process.send_signal(signal.SIGSTOP)
        write_the_journal(disk)
        with after_a_power_cut(disk) as result:
            make_old(result)
            check(result, SHIPPED)
    finally:
        process.kill()
        process.wait()


def make_old(folder: Path) -> None:
    """A machine takes its time to boot."""
    for path in folder.rglob("*.json"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def check(folder: Path, total: int = SHIPPED) -> None:
    """The agent ships what is left; then every tick is there once, and the store is whole."""
    while waiting(folder / "spool"):
        assert ship(folder / "spool", str(folder / "store")).bad == 0
    assert truth.total(folder / "store") == total
    assert truth.breaks(folder / "store") == []
    assert verify_store(Store(folder / "store")).faults == []


# A model of any file system.


def check_states(
    disk: Disk, trace: Path, work: Path, seed: int, share: float, check_one: Callable[[Path], None]
) -> int:
    """Check what a power cut may leave, at a share of the times; how many states there were.

    Cuts that leave the same are checked once.
    """
    number = 0
    known: set[frozenset[tuple[str, bytes | None]]] = set()
    for number, (label, tree) in enumerate(states(disk, trace, random.Random(seed), share), 1):
        if (state := frozenset(tree.items())) in known:
            continue
        known.add(state)
        folder = work / f"state {number}"
        lay_out(tree, folder)
        try:
            check_one(folder)
        except Exception as error:
            raise AssertionError(f"after a power cut at {label}: {error}; see {folder}") from error
        shutil.rmtree(folder)
    return number


def shipping(folder: Path) -> list[object]:
    """The command that ships what is in a folder's spool."""
    return [sys.executable, "-m", "iolens.agent.sampling.shipper", folder / "spool", folder / "store"]


def check_shipping(work: Path, seed: int, share: float) -> int:
    """Cut the power while segments are shipped."""
    root = work / "disk"
    root.mkdir()
    fill(root / "spool", *SEGMENTS)
    return check_states(recorded(shipping(root), root, work / "trace"), work / "trace", work, seed, share, check)


def check_recovery(work: Path, seed: int, share: float) -> int:
    """Cut the power while segments are shipped, and again while what that left is put right."""
    root = work / "disk"
    root.mkdir()
    fill(root / "spool", *SEGMENTS)
    first = recorded(shipping(root), root, work / "first")
    torn: list[Tree] = [tree for _, tree in states(first, work / "first", random.Random(seed)) if _has_torn_entry(tree)]
    chosen = random.Random(seed).sample(torn, min(len(torn), max(1, round(share * 20))))
    count = 0
    for number, tree in enumerate(chosen):
        place = work / f"torn {number}"
        lay_out(tree, place)
        second = recorded(shipping(place), place, work / "second")
        count += check_states(second, work / "second", work, seed, share / 2, check)
        shutil.rmtree(place)
    return count


def _has_torn_entry(tree: Tree) -> bool:
    return any(path.endswith("1.json") and not content for path, content in tree.items())


UPKEEP = """
import sys
from iolens.store.maintenance import compact_store
from iolens.store.rollup import roll_up
from iolens.store.store import Store
compact_store(Store(sys.argv[1]))
roll_up(Store(sys.argv[1]))
import os
os._exit(0)
"""


def check_upkeep(work: Path, seed: int, share: float) -> int:
    """Cut the power while a store is compacted and rolled up: nothing may be missing or there twice."""
    root = work / "disk"
    root.mkdir()
    for part in range(4):
        Store(root / "store").ingest([capture(items(part), f"part {part}")], "test")
    before = contents(Store(root / "store"))

    def check_one(folder: Path) -> None:
        store = Store(folder / "store")
        store.ingest([], "test")
        assert contents(store) == before
        compact_store(store)
        roll_up(store)
        assert contents(store) == before
        assert verify_store(store).faults == []

    disk = recorded([sys.executable, "-c", UPKEEP, root / "store"], root, work / "trace")
    return check_states(disk, work / "trace", work, seed, share, check_one)


@needs_strace
def test_at_whatever_call_the_power_is_cut_nothing_that_was_spooled_is_lost_or_doubled(tmp_path: Path) -> None:
    assert check_shipping(tmp_path, seed=3, share=0.08) > 20


@needs_strace
def test_a_power_cut_during_the_recovery_from_a_power_cut_is_harmless(tmp_path: Path) -> None:
    assert check_recovery(tmp_path, seed=1, share=0.05) > 5


@needs_strace
def test_at_whatever_call_of_compaction_and_rollup_the_power_is_cut_every_row_is_there_once(tmp_path: Path) -> None:
    assert check_upkeep(tmp_path, seed=5, share=0.008) > 10


# What is done about a log that was torn.


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    for number in range(3):
        made.ingest([capture([io_sample(5 * number, 100 * number, 0)], f"{number}")], "test")
    return made


def newest_entry(store: Store, name: str) -> Path:
    return max((Path(store.url) / name / "_delta_log").glob("*.json"))


def tear(entry: Path, content: bytes) -> bytes:
    """What a power cut leaves of an entry, some time ago."""
    whole = entry.read_bytes()
    entry.write_bytes(content)
    os.utime(entry, (LONG_AGO, LONG_AGO))
    for other in entry.parent.glob("*.json"):
        os.utime(other, (LONG_AGO, LONG_AGO))
    return whole


def reads(store: Store) -> list[int]:
    frame = Store(store.url).select("scratch").frame("target_io").sort("epoch_us").select("read_bytes")
    values: list[int] = frame.collect(backend="pyarrow").to_native().column("read_bytes").to_pylist()
    return values


@pytest.mark.parametrize("left", ["nothing", "a beginning", "zeros", "a beginning and zeros", "all lines but the last"])
@pytest.mark.parametrize("name", ["target_io", "baselines", "batches"])
def test_a_newest_entry_that_is_torn_is_put_aside_and_sending_again_completes_it(
    name: str, left: str, store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    entry = newest_entry(store, name)
    whole = entry.read_bytes()
    content = {
        "nothing": b"",
        "a beginning": whole[: len(whole) // 2],
        "zeros": bytes(len(whole)),
        "a beginning and zeros": whole[:100] + bytes(len(whole) - 100),
        "all lines but the last": whole.rpartition(b"\n")[0],
    }[left]
    tear(entry, content)
    if name != "batches":  # which is written last: had it been there, all others would be
        tear(newest_entry(store, "batches"), b"")
    again = Store(store.url)
    again.ingest([capture([io_sample(10, 200, 0)], "2")], "test")
    assert reads(store) == [100, 100]
    again.ingest([capture([io_sample(15, 300, 0)], "3")], "test")
    assert reads(store) == [100, 100, 100]
    (kept,) = (Path(store.url) / name / ASIDE).iterdir()
    assert (kept.name.startswith(entry.name), kept.read_bytes()) == (True, content)
    assert f"{entry}: torn after {len(content)} bytes" in capfd.readouterr().err


def test_a_table_whose_first_entry_is_torn_is_made_again(store: Store) -> None:
    for name in ("target_io", "batches"):
        for entry in (Path(store.url) / name / "_delta_log").glob("*.json"):
            if entry.stem.endswith("0"):
                tear(entry, b'{"commitInfo"')
            else:
                entry.unlink()
    Store(store.url).ingest([capture([io_sample(5 * n, 100 * n, 0)], f"{n}") for n in range(3)], "test")
    assert reads(store) == [100, 100]


def test_readers_recover_a_torn_log_too(store: Store) -> None:
    entry = newest_entry(store, "target_io")
    tear(entry, entry.read_bytes()[:50])
    assert reads(store) == [100]


def test_a_reader_who_may_not_write_is_reported_who_can_help(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = newest_entry(store, "target_io")
    tear(entry, entry.read_bytes()[:50])

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(entry))

    monkeypatch.setattr(delta_log, "make_directory", refuse)
    with pytest.raises(StoreError, match=r"iolens store repair.* as a user who may write there"):
        reads(store)


def test_an_entry_that_is_garbage_or_that_others_followed_long_after_is_not_put_aside_in_silence(store: Store) -> None:
    entry = newest_entry(store, "target_io")
    whole = tear(entry, b"\x00garbage\n")
    with pytest.raises(StoreError, match="cannot be opened"):
        reads(store)
    entry.write_bytes(whole)
    older = entry.with_name(f"{int(entry.stem) - 1:020}.json")
    tear(older, older.read_bytes()[:-1])
    os.utime(entry, (LONG_AGO + 3600, LONG_AGO + 3600))
    with pytest.raises(StoreError, match="cannot be opened"):
        reads(store)
    assert not (Path(store.url) / "target_io" / ASIDE).exists()


def test_an_entry_that_is_just_being_written_by_another_machine_is_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over NFS the name may be seen before the content."""
    entry = newest_entry(store, "target_io")
    whole = entry.read_bytes()
    entry.write_bytes(b"")
    pauses: list[float] = []

    def arrive(seconds: float) -> None:
        pauses.append(seconds)
        entry.write_bytes(whole)

    monkeypatch.setattr(time, "sleep", arrive)
    assert reads(store) == [100, 100]
    assert len(pauses) == 1


@pytest.mark.parametrize("damage", ["empty checkpoint", "torn checkpoint", "empty hint", "both"])
def test_a_torn_checkpoint_is_put_aside_and_the_entries_are_read(damage: str, store: Store) -> None:
    handle = store.tables.load("target_io")
    assert handle is not None
    handle.create_checkpoint()
    folder = Path(store.url) / "target_io" / "_delta_log"
    (checkpoint,) = folder.glob("*.checkpoint.parquet")
    if damage in ("empty checkpoint", "both"):
        checkpoint.write_bytes(b"")
    if damage == "torn checkpoint":
        checkpoint.write_bytes(checkpoint.read_bytes()[:-50])
    if damage in ("empty hint", "both"):
        (folder / "_last_checkpoint").write_bytes(b"")
    assert reads(store) == [100, 100]
    Store(store.url).ingest([capture([io_sample(15, 300, 0)], "3")], "test")
    assert reads(store) == [100, 100, 100]


def test_log_entries_go_only_when_the_checkpoint_that_stands_for_them_is_on_disk(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real_sync = DeltaLog.sync_checkpoint

    def sync(self: DeltaLog) -> None:
        order.append("synced")
        assert list(self.folder.glob("*.checkpoint.parquet"))
        assert len(self.versions()) == 3 + 1
        real_sync(self)

    monkeypatch.setattr(DeltaLog, "sync_checkpoint", sync)
    monkeypatch.setattr(delta_log, "CHECKPOINT_EVERY", 3)
    store.ingest([capture([io_sample(15, 300, 0)], "3")], "test")
    assert order == ["synced"] * len(order) != []
    assert reads(store) == [100, 100, 100]

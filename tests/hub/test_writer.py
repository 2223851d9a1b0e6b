"""The writer: few commits for many agents, every segment once, and none that keeps the others waiting."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from iolens.agent.sampling.hub_client import TOKEN_VARIABLE
from iolens.agent.sampling.pushing import push_spool
from iolens.agent.sampling.shipper import ship
from iolens.agent.sampling.spool import locked
from iolens.errors import StoreError
from iolens.hub.hub_config import TakeoverRules
from iolens.hub.hub_state import WRITER_LOCK
from iolens.hub.inbox import Inbox
from iolens.hub.takeovers import WriterRecord
from iolens.hub.writer import DEATHS_ALONE, BatchWriter, LoadAttempts, WriterLimits, waiting_batch
from iolens.sources import ReadOptions
from iolens.sources.spool import SOURCE, SegmentHeader, encode_header
from iolens.store.maintenance import verify_store
from iolens.store.store import Store
from tests.agent import truth
from tests.agent.sampling.test_kills import fill_up, small_disk
from tests.hub.segments import RUN, content, spool_of, stem
from tests.hub.served_hub import ServedHub
from tests.sources.test_spool import raw_tick


def inbox_of(folder: Path) -> Inbox:
    inbox = Inbox(folder / "state" / "hub")
    inbox.make()
    return inbox


def put(inbox: Inbox, host: str, numbers: range, sequence: int = 1, body: bytes | None = None) -> Path:
    """A segment that has arrived."""
    folder = inbox.segments / host
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{stem(host, sequence)}.seg"
    path.write_bytes(content(host, numbers, sequence) if body is None else body)
    return path


def writer_of(inbox: Inbox, folder: Path, **limits: Any) -> BatchWriter:
    return BatchWriter.open(inbox.directory, str(folder / "store"), WriterLimits(**limits))


def drain(inbox: Inbox, folder: Path, **limits: Any) -> WriterRecord:
    writer_of(inbox, folder, **limits).drain()
    return WriterRecord.read(inbox.directory)


def test_segments_of_many_agents_become_one_commit_per_table(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    for number in range(30):
        for sequence in (1, 2):
            put(inbox, f"oss{number:02d}", range(4 * sequence - 4, 4 * sequence), sequence)
    record = drain(inbox, tmp_path)
    store = Store(tmp_path / "store")
    for name in ("target_io", "baselines", "batches"):
        handle = store.tables.load(name)
        assert handle is not None
        assert handle.version() == 1, name  # 0 made the table
    assert (record.batches, record.segments, record.samples, record.rows) == (1, 60, 240, 210)
    assert truth.total(tmp_path / "store") == 30 * 70
    assert truth.breaks(tmp_path / "store") == []
    assert verify_store(store).faults == []
    assert not list(inbox.segments.rglob("*.seg"))


def test_a_backlog_of_one_agent_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    for sequence in range(1, 21):
        put(inbox, "backlog", range(4 * sequence, 4 * sequence + 4), sequence)
    put(inbox, "zz", range(4))
    batch = waiting_batch(inbox, 1 << 20, 5)
    assert [path.stem for path in batch.paths] == [*(stem("backlog", number) for number in range(1, 5)), stem("zz")]
    assert batch.is_full
    assert len(waiting_batch(inbox, 1, 100).paths) == 1


def test_the_store_has_a_mark_for_each_stream_not_for_each_segment(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    for sequence in range(1, 4):
        put(inbox, "oss1", range(4 * sequence - 4, 4 * sequence), sequence)
        drain(inbox, tmp_path)
    handle = Store(tmp_path / "store").tables.load("target_io")
    assert handle is not None
    assert handle.transaction_version(f"agent/oss1/{RUN}") == 3_000_001
    assert handle.transaction_version(f"agent/oss1/{RUN}/3") is None
    assert truth.total(tmp_path / "store") == 110


def test_a_segment_sent_again_adds_nothing(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    for _ in range(3):
        put(inbox, "oss1", range(4))
        put(inbox, "oss1", range(4, 8), 2)
        drain(inbox, tmp_path)
    assert truth.total(tmp_path / "store") == 70
    assert not list(inbox.segments.rglob("*.seg"))


def test_a_segment_that_comes_after_a_later_one_goes_to_late_and_can_be_rebuilt(tmp_path: Path) -> None:
    """The mark of the stream is beyond it, and yet it is not taken for one that is stored."""
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(4), 1)
    put(inbox, "oss1", range(8, 12), 3)
    drain(inbox, tmp_path)
    put(inbox, "oss1", range(4, 8), 2)
    record = drain(inbox, tmp_path)
    late = inbox.segments / "oss1" / "late"
    assert [path.stem for path in late.iterdir()] == [stem("oss1", 2)]
    assert record.agents["oss1"].late == 1
    assert len(truth.rows(tmp_path / "store", "target_io")) == 7
    tally = Store(tmp_path / "store").ingest(SOURCE.captures([late], ReadOptions()), "agent", rebuild=True)
    assert (tally.placed, tally.unplaced) == (4, 0)
    assert len(truth.rows(tmp_path / "store", "target_io")) == 11
    assert truth.total(tmp_path / "store") == 110
    assert truth.breaks(tmp_path / "store") == []


def test_an_agent_that_shipped_to_the_store_itself_may_go_on_through_the_hub(tmp_path: Path) -> None:
    """And what it shipped already is not stored again."""
    spool = spool_of(tmp_path, "oss1", range(4), range(4, 8))
    ship(spool, str(tmp_path / "store"))
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(4), 1)
    put(inbox, "oss1", range(4, 8), 2)
    put(inbox, "oss1", range(8, 12), 3)
    drain(inbox, tmp_path)
    ship(spool_of(tmp_path, "oss1", range(4), range(4, 8), range(8, 12)), str(tmp_path / "store"))
    assert truth.total(tmp_path / "store") == 110
    assert len(truth.rows(tmp_path / "store", "target_io")) == 11


def test_bad_segments_go_aside_with_the_reason_and_stop_no_other(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(4))
    put(inbox, "junk", range(4), body=b"what is this\n" * 10)
    put(inbox, "nested", range(4), body=encode_header(SegmentHeader("nested", RUN, 1)) + raw_tick(b'["x", ' * 5000))
    put(inbox, "oss2", range(4))
    record = drain(inbox, tmp_path)
    assert truth.total(tmp_path / "store") == 60
    assert {host: own.bad for host, own in record.agents.items() if own.bad} == {"junk": 1, "nested": 1}
    for host in ("junk", "nested"):
        assert sorted(path.suffix for path in (inbox.segments / host / "bad").iterdir()) == [".reason", ".seg"]


def test_a_segment_that_makes_the_store_fail_goes_aside_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure nobody foresaw, in a batch of eight: the seven others are stored."""
    inbox = inbox_of(tmp_path)
    for number in range(8):
        put(inbox, f"oss{number}", range(4))
    ingest = Store.ingest

    def failing(self: Store, captures: Any, *arguments: Any, **named: Any) -> Any:
        held = list(captures)
        if any("oss5" in capture.origin for capture in held):
            raise ZeroDivisionError("nobody foresaw this")
        return ingest(self, held, *arguments, **named)

    monkeypatch.setattr(Store, "ingest", failing)
    record = drain(inbox, tmp_path)
    assert record.segments == 7
    assert truth.total(tmp_path / "store") == 7 * 30
    (reason,) = (inbox.segments / "oss5" / "bad").glob("*.reason")
    assert "nobody foresaw this" in reason.read_text()


def test_a_segment_that_takes_the_writer_down_is_found_and_put_aside(tmp_path: Path) -> None:
    """A process that dies over one of 40 segments each time, as one that is out of memory would."""
    inbox = inbox_of(tmp_path)
    for number in range(40):
        put(inbox, f"oss{number:02d}", range(4))
    program = (
        "import os, sys\nfrom iolens.store.store import Store\ningest = Store.ingest\n"
        "def dying(self, captures, *a, **k):\n"
        "    held = list(captures)\n"
        "    if any('oss23' in capture.origin for capture in held): os.kill(os.getpid(), 9)\n"
        "    return ingest(self, held, *a, **k)\n"
        "Store.ingest = dying\nfrom pathlib import Path\n"
        "from iolens.hub.writer import BatchWriter, WriterLimits\n"
        "BatchWriter.open(Path(sys.argv[1]), sys.argv[2], WriterLimits()).drain()\n"
    )
    command = [sys.executable, "-c", program, str(inbox.directory), str(tmp_path / "store")]
    codes = []
    while not codes or codes[-1]:
        codes.append(subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode)
        assert len(codes) < 15
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert [path.stem for path in inbox.segments.rglob("bad/*.seg")] == [stem("oss23")]
    assert truth.total(tmp_path / "store") == 39 * 30
    assert not (inbox.directory / "attempt.json").exists()


def test_deaths_that_no_segment_caused_put_nothing_aside(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    path = put(inbox, "oss1", range(4))
    for _ in range(DEATHS_ALONE - 1):
        attempts = LoadAttempts.after_start(inbox.directory)
        assert attempts.deadly() is None
        attempts.begin([path])
    LoadAttempts.forget(inbox.directory)  # stopped on purpose
    drain(inbox, tmp_path)
    assert truth.total(tmp_path / "store") == 30


def test_a_damaged_note_of_attempts_is_none(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    for text in ("", "{", "[]", '{"suspects": 1}', '{"limit": "x", "suspects": [], "loading": []}'):
        (inbox.directory / "attempt.json").write_text(text)
        (inbox.directory / "writer.json").write_text(text)
        assert LoadAttempts.after_start(inbox.directory).loading == []
        assert WriterRecord.read(inbox.directory).segments == 0


def test_what_was_stored_before_a_crash_is_removed_and_late_ones_stay_late(tmp_path: Path) -> None:
    """Killed between the last commit and the removal."""
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(4), 1)
    put(inbox, "oss1", range(8, 12), 3)
    drain(inbox, tmp_path)
    put(inbox, "oss1", range(4, 8), 2)
    kept = tmp_path / "kept"
    shutil.copytree(inbox.segments, kept)
    drain(inbox, tmp_path)
    shutil.rmtree(inbox.segments)
    shutil.copytree(kept, inbox.segments)
    for folder in (inbox.segments, *inbox.segments.iterdir()):
        folder.chmod(0o700)
    drain(inbox, tmp_path)
    assert [path.stem for path in inbox.segments.rglob("late/*.seg")] == [stem("oss1", 2)]


def test_a_store_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(4))
    drain(inbox, tmp_path)
    (tmp_path / "store").rename(tmp_path / "away")
    put(inbox, "oss1", range(4, 8), 2)
    with pytest.raises(StoreError, match="the store that was here is gone"):
        drain(inbox, tmp_path)
    assert len(list(inbox.segments.rglob("*.seg"))) == 1
    (tmp_path / "away").rename(tmp_path / "store")
    drain(inbox, tmp_path)
    assert truth.total(tmp_path / "store") == 70


# --- the process


def process_of(inbox: Inbox, store: Path, memory_bytes: int = 1 << 40) -> subprocess.Popen[bytes]:
    limits = (1 << 20, 100, 0.05, memory_bytes, 1 << 20)
    rules = TakeoverRules().to_json()
    command = [sys.executable, "-m", "iolens.hub.writer", inbox.directory, store, *limits, rules]
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE)


def test_it_ends_with_its_parent_and_there_is_never_a_second(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(4))
    with locked(inbox.directory, WRITER_LOCK):
        waiting = process_of(inbox, tmp_path / "store")
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(2)
        assert list(inbox.segments.rglob("*.seg"))
    until = time.monotonic() + 60
    while list(inbox.segments.rglob("*.seg")):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert waiting.stdin is not None
    waiting.stdin.close()
    assert waiting.wait(30) == 0


def test_a_writer_that_has_grown_ends_so_that_another_begins(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    process = process_of(inbox, tmp_path / "store", 1 << 20)
    assert process.wait(30) == 0
    assert process.stdin is not None
    process.stdin.close()


# --- full disks


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_of_the_hub_is_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "agent")
    settings = {"commit_every": "100ms", "reserve": "0B"}
    with small_disk(tmp_path / "state"), ServedHub(tmp_path / "state", tmp_path / "store", settings) as hub:
        assert push_spool(spool_of(tmp_path, "oss1", range(4)), hub.address).shipped == 1
        hub.wait_until_stored()
        fill_up(tmp_path / "state" / "ballast")
        spool = spool_of(tmp_path, "oss1", range(4), range(4, 8), range(8, 12))
        done = push_spool(spool, hub.address)
        assert (done.shipped, done.left) == (0, 3)
        assert "the disk of the hub is full (HTTP 507)" in done.error
        (tmp_path / "state" / "ballast").unlink()
        assert push_spool(spool, hub.address).shipped == 3
        hub.wait_until_stored()
    assert truth.total(tmp_path / "store") == 110


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_of_the_store_is_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "agent")
    with small_disk(tmp_path / "disk"):
        store = tmp_path / "disk" / "store"
        with ServedHub(tmp_path / "state", store, {"commit_every": "100ms", "reserve": "0B"}) as hub:
            push_spool(spool_of(tmp_path, "oss1", range(4)), hub.address)
            hub.wait_until_stored()
            fill_up(tmp_path / "disk" / "ballast")
            push_spool(spool_of(tmp_path, "oss1", range(4), range(4, 8), range(8, 12)), hub.address)
            until = time.monotonic() + 60
            while not hub.now().writer.trouble:
                assert time.monotonic() < until
                time.sleep(0.05)
            assert hub.now().waiting_segments == 3
            (tmp_path / "disk" / "ballast").unlink()
            hub.wait_until_stored()
            assert not [*(tmp_path / "state" / "hub").rglob("bad/*"), *(tmp_path / "state" / "hub").rglob("late/*")]
        assert truth.total(store) == 110
        assert truth.breaks(store) == []

"""A read that does not return costs its reader the limit once, and nobody else anything."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.records import Problem, Sample
from iolens.sources.lustre import lustre_client_proc, lustre_proc
from iolens.sources.reading import limited_reads
from iolens.sources.reading.bounded_input import parameter_bytes
from iolens.sources.reading.limited_reads import bytes_within
from tests.agent.server import Server
from tests.sources.lustre.client_trees import tree_2_5

PATH = Path("a file")


class HangingReads:
    """Reads of a path whose name has these words do not return until they are let go."""

    def __init__(self) -> None:
        self.words = "a file"
        self.begun = 0
        self.free = threading.Event()
        self.returned = threading.Semaphore(0)

    def read(self, path: Path) -> bytes:
        if self.words not in str(path):
            return parameter_bytes(path)
        self.begun += 1
        self.free.wait()
        self.returned.release()
        return b"text"


@pytest.fixture
def hanging() -> Iterator[HangingReads]:
    reads = HangingReads()
    yield reads
    reads.free.set()


def test_what_is_read_in_time_is_given(tmp_path: Path) -> None:
    (tmp_path / "stats").write_bytes(b"text\0\0")
    assert bytes_within(60, parameter_bytes, tmp_path / "stats") == b"text"
    with pytest.raises(FileNotFoundError):
        bytes_within(60, parameter_bytes, tmp_path / "none")


def test_a_file_that_hangs_is_asked_again_only_when_that_read_has_returned(hanging: HangingReads) -> None:
    for _ in range(3):
        with pytest.raises(OSError, match=r"no answer within 0\.01 s") as caught:
            bytes_within(0.01, hanging.read, PATH)
        assert caught.value.errno == errno.ETIMEDOUT
    assert hanging.begun == 1
    hanging.free.set()
    assert hanging.returned.acquire(timeout=60)
    while True:  # its thread may not have said yet that it has returned
        try:
            assert bytes_within(60, hanging.read, PATH) == b"text"
        except OSError:
            continue
        break
    assert hanging.begun == 2


def test_a_thread_without_work_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_reads, "IDLE_S", 0.0)  # most end between two reads
    (tmp_path / "stats").write_bytes(b"text")
    before = set(threading.enumerate())
    for _ in range(20):
        assert bytes_within(60, parameter_bytes, tmp_path / "stats") == b"text"
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_threads_are_used_again(tmp_path: Path) -> None:
    (tmp_path / "stats").write_bytes(b"text")
    bytes_within(60, parameter_bytes, tmp_path / "stats")
    threads = threading.active_count()
    for _ in range(50):
        bytes_within(60, parameter_bytes, tmp_path / "stats")
    assert threading.active_count() == threads


def test_a_file_of_a_server_that_hangs_costs_its_target_one_sample(
    tmp_path: Path, hanging: HangingReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(tmp_path / "root")
    server.work()
    hanging.words = "scratch-OST0000/stats"
    monkeypatch.setattr(lustre_proc, "parameter_bytes", hanging.read)
    monkeypatch.setattr(lustre_proc, "READ_LIMIT_S", 0.05)
    items = list(lustre_proc.read_tree(server.root, 1_600_000_000_000_000))
    targets = {item.target for item in items if isinstance(item, Sample) and item.table == "target_io"}
    assert targets == {"scratch-OST0001"}
    problems = [item for item in items if isinstance(item, Problem) and "no answer within" in item.reason]
    assert [Path(item.place).parent.name for item in problems] == ["scratch-OST0000"]


def test_a_file_of_a_client_that_hangs_is_named(
    tmp_path: Path, hanging: HangingReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree_2_5(tmp_path / "tree")
    hanging.words = "rpc_stats"
    monkeypatch.setattr(lustre_proc, "parameter_bytes", hanging.read)
    monkeypatch.setattr(lustre_proc, "READ_LIMIT_S", 0.05)
    items = list(lustre_client_proc.read_tree(root, 1_600_000_000_000_000))
    assert any(isinstance(item, Sample) for item in items)
    assert any(isinstance(item, Problem) and "rpc_stats" in item.place for item in items)

"""A disk that is full, or a file that may not grow: a clear error, nothing damaged, and the next try completes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.errors import StoreError
from iolens.sources import ReadOptions, get_source
from iolens.store.maintenance import verify_store
from iolens.store.store import Store
from tests.store.samples import capture, io_sample

T0 = 1_600_000_000
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from iolens.cli.main import main
main()
"""


def write_capture(path: Path, first: int, ticks: int) -> Path:
    """A saved `lctl get_param` of four OSTs that write 1000 bytes in each 5 s."""
    with path.open("w") as text:
        for tick in range(first, first + ticks):
            for target in range(4):
                text.write(
                    f"obdfilter.scratch-OST{target:04x}.stats=\n"
                    f"snapshot_time             {T0 + 5 * tick}.000000000 secs.nsecs\n"
                    f"write_bytes               {tick} samples [bytes] 1 1000 {1000 * tick}\n"
                )
    return path


def ingest(store: Path, path: Path) -> None:
    Store(store).ingest(get_source("lustre-lctl").captures([path], ReadOptions()), "lustre-lctl")


def command(store: Path, path: Path, file_limit: int = -1) -> subprocess.CompletedProcess[str]:
    """The command line, in a process whose files may not grow beyond a limit."""
    arguments = [str(file_limit), "ingest", "lustre-lctl", str(path), "--store", str(store)]
    return subprocess.run([sys.executable, "-c", LIMITED, *arguments], capture_output=True, text=True, timeout=120)


def written_bytes(store: Path) -> list[int]:
    frame = Store(store).select("scratch").frame("target_io").sort("epoch_us", "target").select("write_bytes")
    return frame.collect(backend="pyarrow").to_native().column("write_bytes").to_pylist()


def assert_failed_clearly(done: subprocess.CompletedProcess[str], reason: str) -> None:
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    (message,) = [line for line in done.stderr.splitlines() if line.startswith("iolens: ")]
    assert reason in message


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a tiny file system; the limit on file sizes covers the same path")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting a tiny file system is not permitted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(folder: Path, but: int) -> Path:
    """A file that takes all the space but so many bytes."""
    ballast = folder / "ballast"
    free = os.statvfs(folder)
    ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - but))
    return ballast


@pytest.mark.parametrize("left", [0, 4096, 8192])
def test_an_ingest_onto_a_full_disk_fails_clearly_and_completes_once_there_is_space(
    left: int, tiny_disk: Path, tmp_path: Path
) -> None:
    store = tiny_disk / "store"
    early, late = write_capture(tmp_path / "early.txt", 0, 3), write_capture(tmp_path / "late.txt", 3, 300)
    ingest(store, early)
    ballast = fill_up(tiny_disk, left)
    assert_failed_clearly(command(store, late), "No space left on device")
    assert written_bytes(store)[:8] == [1000] * 8
    assert len(written_bytes(store)) in (8, 8 + 1200)  # all of a commit or nothing of it
    ballast.unlink()
    ingest(store, late)
    assert written_bytes(store) == [1000] * 1208
    assert verify_store(Store(store)).faults == []


@pytest.mark.parametrize("limit", [0, 3000])
def test_an_ingest_that_may_not_write_its_files_fails_clearly_and_completes_later(limit: int, tmp_path: Path) -> None:
    store = tmp_path / "store"
    early, late = write_capture(tmp_path / "early.txt", 0, 3), write_capture(tmp_path / "late.txt", 3, 300)
    ingest(store, early)
    assert_failed_clearly(command(store, late, limit), "File too large")
    assert written_bytes(store)[:8] == [1000] * 8
    ingest(store, late)
    assert written_bytes(store) == [1000] * 1208
    assert verify_store(Store(store)).faults == []


def test_a_full_disk_is_a_store_error_for_those_who_call(tiny_disk: Path) -> None:
    store = Store(tiny_disk / "store")
    store.ingest([capture([io_sample(0, 0, 0), io_sample(5, 10, 0)], "before")], "test")
    ballast = fill_up(tiny_disk, 0)
    late = capture([io_sample(10, 30, 0), io_sample(15, 60, 0)], "late")
    with pytest.raises(StoreError, match="No space left on device"):
        store.ingest([late], "test")
    ballast.unlink()
    store.ingest([late], "test")
    frame = store.select("scratch").frame("target_io").sort("epoch_us").select("read_bytes").collect(backend="pyarrow")
    assert frame.to_native().column("read_bytes").to_pylist() == [10, 20, 30]


def test_a_store_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = command(tmp_path / "file" / "store", write_capture(tmp_path / "one.txt", 0, 2))
    assert_failed_clearly(done, "Not a directory")

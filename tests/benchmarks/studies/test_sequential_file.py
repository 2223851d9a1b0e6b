"""One process and one file: bytes and calls are exact, and the kernel saw the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks.light_probe import direct_io_trouble
from iolens.benchmarks.studies.sequential_file import drop_from_cache, read_file, write_file
from iolens.units import KIB, MIB

MODULE = "iolens.benchmarks.studies.sequential_file"


def never() -> None:
    """Time is never up."""


def pass_over(path: Path, size: int, block: int, **given: Any) -> tuple[Any, Any]:
    written = write_file(path, size, block, **{"direct": False, "fsync": True, "check": never, **given})
    read = read_file(path, size, block, direct=given.get("direct", False), check=never)
    return written, read


@pytest.mark.parametrize(("size", "block"), [(1, 1), (64 * KIB, 4 * KIB), (3 * MIB, MIB), (5 * MIB, 5 * MIB), (99, 33)])
def test_bytes_and_calls_are_exact(tmp_path: Path, size: int, block: int) -> None:
    written, read = pass_over(tmp_path / "data", size, block)
    assert (written.bytes, written.calls) == (read.bytes, read.calls) == (size, size // block)
    assert (tmp_path / "data").stat().st_size == size
    assert written.seconds > 0 < read.seconds


def test_every_call_has_the_size_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = os.write

    def noted(descriptor: int, block: memoryview) -> int:
        sizes.append(len(block))
        return write(descriptor, block)

    monkeypatch.setattr(f"{MODULE}.os.write", noted)
    write_file(tmp_path / "data", 40 * KIB, 8 * KIB, direct=False, fsync=False, check=never)
    assert sizes == [8 * KIB] * 5


@pytest.mark.parametrize("fsync", [True, False])
def test_the_seconds_of_a_write_have_its_fsync_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(f"{MODULE}.os.fsync", synced.append)
    write_file(tmp_path / "data", KIB, KIB, direct=False, fsync=fsync, check=never)
    assert len(synced) == fsync


def test_what_is_written_does_not_compress(tmp_path: Path) -> None:
    import zlib

    pass_over(tmp_path / "data", MIB, 256 * KIB)
    assert len(zlib.compress((tmp_path / "data").read_bytes()[: 256 * KIB])) > 250 * KIB


def test_o_direct_is_used_where_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = next((each for each in (tmp_path, Path("/var/tmp")) if direct_io_trouble(each) is None), None)
    if place is None:
        pytest.skip("O_DIRECT works in no directory of this machine")
    flags: list[int] = []
    opened = os.open

    def noted(path: Path, how: int, *mode: int) -> int:
        flags.append(how)
        return opened(path, how, *mode)

    monkeypatch.setattr(f"{MODULE}.os.open", noted)
    path = place / f"iolens-direct-{os.getpid()}"
    try:
        written, read = pass_over(path, 64 * KIB, 16 * KIB, direct=True)
    finally:
        path.unlink(missing_ok=True)
    assert (written.calls, read.calls) == (4, 4)
    assert [bool(how & os.O_DIRECT) for how in flags] == [True, True]


def test_a_link_in_the_place_of_the_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    (tmp_path / "data").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        write_file(tmp_path / "data", KIB, KIB, direct=False, fsync=False, check=never)
    assert (tmp_path / "precious").read_text() == "x"


def test_a_file_that_ends_too_soon_is_an_error_not_a_speed(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(KIB))
    with pytest.raises(OSError, match="ends after 1024 of 2048 bytes"):
        read_file(tmp_path / "data", 2 * KIB, KIB, direct=False, check=never)


def test_dropping_keeps_the_content(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * MIB)
    drop_from_cache(tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == b"x" * MIB

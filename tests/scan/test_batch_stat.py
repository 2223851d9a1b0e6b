"""Many names at once: what `os.lstat` says of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iolens.scan.inodes import ROWS, BatchStat, Lookups, _device, group_key, usable
from tests.sources.trees import NAMES, grow


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    grow(tmp_path, 41, directories=3, files=100)
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 42)
    (tmp_path / "from long ago").touch()
    os.utime(tmp_path / "from long ago", (-1000, -2000))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def test_rows_are_what_lstat_says(folder: int) -> None:
    assert usable(folder)
    names = [os.fsencode(name) for name in os.listdir(folder)]
    assert any(name.startswith(os.fsencode(NAMES[3])) for name in names)
    batch = BatchStat(Lookups(1))
    assert batch.take([folder] * 5, names[:5], [7], [5]) == []
    assert batch.take([folder] * len(names[5:]), names[5:], [8, 9], [10, len(names) - 15]) == []
    rows = batch.rows()
    assert batch.held == 0
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        assert (row["inode"], row["device"], row["links"]) == (about.st_ino, about.st_dev, about.st_nlink)
        assert (row["size"], row["allocated"]) == (about.st_size, 512 * about.st_blocks)
        assert (row["atime"], row["mtime"], row["seen"]) == (about[7], about[8], 1)
        assert row["key"] == group_key(7 if place < 5 else 8 if place < 15 else 9, about.st_uid, about.st_mode >> 12)


def test_names_that_are_not_there_are_reported_and_nothing_of_them_is_kept(folder: int) -> None:
    names = [os.fsencode(name) for name in os.listdir(folder)]
    batch = BatchStat(Lookups(1))
    assert batch.take([folder] * 2, names[:2], [3], [2]) == []
    assert batch.take([folder] * 5, [b"nobody", *names[2:4], b"nobody", names[4]], [4, 5], [2, 3]) == [0, 3]
    assert batch.take([folder], names[5:6], [6], [1]) == []
    rows = batch.rows()
    expected = [os.stat(name, dir_fd=folder, follow_symlinks=False) for name in names[:6]]
    assert rows["inode"].tolist() == [about.st_ino for about in expected]
    assert rows["key"].tolist() == [
        group_key(project, about.st_uid, about.st_mode >> 12)
        for project, about in zip([3, 3, 4, 5, 5, 6], expected, strict=True)
    ]


def test_a_full_batch(folder: int) -> None:
    batch = BatchStat(Lookups(1))
    assert batch.take([folder] * ROWS, [b"huge"] * ROWS, [0], [ROWS]) == []
    assert batch.rows()["size"].tolist() == [1 << 42] * ROWS
    assert len(batch.rows()) == 0


def test_device_numbers_are_those_of_stat() -> None:
    pairs = [(0, 40), (8, 1), (253, 70_000), (5000, 300), (2**31 - 1, 2**31 - 1)]
    made = _device(*(np.array(column, np.int64) for column in zip(*pairs, strict=True))).view(np.uint64)
    assert made.tolist() == [os.makedev(*pair) for pair in pairs]


def test_not_usable_where_the_library_lacks_it(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.PyDLL", lambda name: object())
    assert not usable(folder)


def test_not_usable_where_it_answers_otherwise(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        @staticmethod
        def statx(*arguments: object) -> int:
            return 0  # says it did, and wrote nothing

    monkeypatch.setattr("ctypes.PyDLL", lambda name: Library())
    assert not usable(folder)

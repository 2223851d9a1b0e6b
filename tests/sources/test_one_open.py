"""`iolens ingest` opens a captured file once and parses it once: it is recognised, hashed and read from one opening."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from iolens.errors import InputError
from iolens.open_files import each_file_opened_once
from iolens.records import Problem
from iolens.sources import get_source, recognise
from iolens.sources.reading.bounded_input import blocks_of
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT
from iolens.store.readers import guarded, read_ahead
from tests.cli.captures import snapshot
from tests.cli.command import iolens
from tests.fuzz.corpus import Example, examples
from tests.sources.test_contract import SUPPLIED, plain, real_captures

OPENED: Counter[str] = Counter()
WATCHED: list[str] = []
TWICE = {
    "iostat text": "03/04/26 is a day in March or in April: the other dates of the file tell",
    "controller bandwidth": "the heading, then the rows through Arrow",
    "controller wide": "the same",
    "controller long": "the same",
    "scan": "the header of a part, then the part",
}
"""Examples whose bytes are gone through a second time, from the same opening (docs/decisions.md)."""


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and WATCHED and isinstance(arguments[0], str | bytes | os.PathLike):
        path = os.fsdecode(arguments[0])
        if path.startswith(WATCHED[0]) and Path(path).is_file():
            OPENED[path] += 1


sys.addaudithook(_note)


@contextmanager
def opens_counted(folder: Path) -> Iterator[None]:
    """Opens of files below a folder, in OPENED."""
    OPENED.clear()
    WATCHED.append(str(folder))
    try:
        yield
    finally:
        WATCHED.clear()


@contextmanager
def passes_counted() -> Iterator[list[FrameType]]:
    """A frame for each time that the bytes of a text are gone through."""
    passes: list[FrameType] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is blocks_of.__code__ and not any(frame is other for other in passes):
            passes.append(frame)

    sys.setprofile(profile)
    try:
        yield passes
    finally:
        sys.setprofile(None)


def recognised(path: Path) -> bool:
    try:
        return bool(recognise(path))
    except InputError:
        return False  # the columns of controllers are reported by the configuration


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_each_file_is_opened_once_and_parsed_once(tmp_path: Path, example: Example) -> None:
    paths = example.write(tmp_path)
    with each_file_opened_once(), opens_counted(tmp_path), passes_counted() as passes:
        assert [recognised(path) for path in paths]
        for capture in get_source(example.source).captures(paths, example.options):
            assert [item for item in guarded(capture) if not isinstance(item, Problem)]
    assert set(OPENED.values()) == {1}, OPENED
    assert len(passes) <= (2 if example.name in TWICE else 1) * len(example.files)


def snapshots(folder: Path, count: int) -> list[Path]:
    """So many samples of one OST, a file each."""
    folder.mkdir()
    paths = [folder / f"{number:03}.txt" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(snapshot(5 * number, {("write", 1 << 20): 10 * number}))
    return paths


def test_the_files_of_a_directory_are_opened_once_each(tmp_path: Path) -> None:
    paths = snapshots(tmp_path / "captured", 30)
    with opens_counted(tmp_path / "captured"), passes_counted() as passes:
        done = iolens("ingest", tmp_path / "captured", "--store", tmp_path / "store", "--workers", 1)
    assert "29 target_io" in done.out
    assert Counter(map(str, paths)) == OPENED
    assert len(passes) == len(paths)


def test_the_bytes_that_were_hashed_are_those_that_are_read_by_another_process_too(tmp_path: Path) -> None:
    """A file that is overwritten after it was listed gives the rows its identity stands for."""
    paths = snapshots(tmp_path / "captured", 30)
    lctl = get_source("lustre-lctl")
    expected = [plain(item) for capture in lctl.captures(paths, ReadOptions()) for item in capture.items()]
    with each_file_opened_once():
        captures = list(lctl.captures(paths, ReadOptions()))
        for path in paths:
            path.write_text("overwritten\n")
        done = [item for read in read_ahead(captures, lambda _: True, workers=2) for item in read.items or ()]
    assert [plain(item) for item in done] == expected


def test_a_larger_file_stays_open_and_what_is_looked_at_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no memory for contents files are read through their descriptors, and with none of those opened again."""
    paths = snapshots(tmp_path / "captured", 4)
    expected = [plain(item) for capture in _captures(paths) for item in capture]
    for limits, opens in (({"LARGEST_HELD": 0}, 1), ({"LARGEST_HELD": 0, "MOST_DESCRIPTORS": 0, "MOST_KEPT": 0}, 3)):
        for name, value in limits.items():
            monkeypatch.setattr(f"iolens.open_files.{name}", value)
        with each_file_opened_once(), opens_counted(tmp_path / "captured"):
            for path in paths:
                assert recognise(path).name == "lustre-lctl"
            assert [plain(item) for capture in _captures(paths) for item in capture] == expected
            assert set(OPENED.values()) == {opens}


def _captures(paths: list[Path]) -> Iterator[Iterator[object]]:
    for capture in get_source("lustre-lctl").captures(paths, ReadOptions()):
        yield iter(capture.items())


@pytest.mark.parametrize("name", ["lustre-lctl", "ltop", "iostat", "lfs-df", "collectd", "mmperfmon", "tokio-csv"])
def test_real_captures_are_opened_once(shared_data: Path, name: str) -> None:
    files = real_captures(shared_data, name)
    if not files:
        pytest.skip(f"no capture of {name} here")
    for file in files:
        with each_file_opened_once(), opens_counted(shared_data):
            captures = recognise(file).captures([file], SUPPLIED)
            assert [item for capture in captures for item in guarded(capture)]
        assert {str(file): 1} == OPENED


def test_a_file_of_many_samples_is_opened_once_however_many_it_has(tmp_path: Path) -> None:
    """More than are looked at for the interval, so that reading goes on where looking stopped."""
    for count in (1, SAMPLES_LOOKED_AT + 50):
        path = tmp_path / f"{count}.txt"
        path.write_text("".join(snapshot(5 * n, {("write", 1 << 20): 10 * n}) for n in range(count)))
        with opens_counted(path), passes_counted() as passes:
            done = iolens("ingest", path, "--store", tmp_path / f"store {count}", "--workers", 1)
        assert f"{2 * count:,} sample" in done.out
        assert {str(path): 1} == OPENED
        assert len(passes) == 1

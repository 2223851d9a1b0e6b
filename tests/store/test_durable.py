"""New data files are on disk, with their names, before a commit tells of them; `test_power_cut.py` has what follows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iolens.store.store import Store
from tests.store.samples import capture, io_sample


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was synced, and entries of the log when they were made, in their order."""
    paths: list[Path] = []
    fsync, link = os.fsync, os.link

    def noted_sync(descriptor: int) -> None:
        paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    def noted_link(beside: Path, entry: Path) -> None:
        paths.append(Path(entry))
        link(beside, entry)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "link", noted_link)
    return paths


def added(entry: Path) -> list[Path]:
    """Data files of a commit."""
    actions = map(json.loads, entry.read_text().splitlines())
    return [entry.parent.parent / action["add"]["path"] for action in actions if "add" in action]


def test_data_files_and_the_folders_of_their_days_are_synced_before_the_commit(
    tmp_path: Path, settled: list[Path]
) -> None:
    store = Store(tmp_path / "store")
    for day in range(2):
        samples = [io_sample(86_400 * day + 5 * tick, 4096 * tick, 0) for tick in range(3)]
        store.ingest([capture(samples, f"day {day}")], "lustre")
    store.close()
    table = tmp_path / "store" / "target_io"
    commits = [entry for entry in sorted((table / "_delta_log").glob("*.json")) if added(entry)]
    assert len(commits) == 2
    for entry in commits:
        files = added(entry)
        committed = settled.index(entry)
        last = max(settled.index(file) for file in files)
        assert {file.parent for file in files} <= set(settled[last:committed])  # the files' names
        assert table in settled[last:committed]  # the names of the days

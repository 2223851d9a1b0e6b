"""A scan from Python fills the store as the verb does; parts are saved and put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iolens
from iolens.api.scan import scan_tree
from iolens.errors import InputError, OptionError
from iolens.scan.journal import Journal
from iolens.scan.workers import ScanOrder, new_progress
from tests.cli.command import iolens as verb

AT = "2026-01-05T00:00:00Z"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for owner, sizes in {"alice": [0, 100, 5000], "bob": [70_000]}.items():
        (root / owner / "deep").mkdir(parents=True)
        for number, size in enumerate(sizes):
            (root / owner / f"{number}.dat").write_bytes(b"x" * size)
    return root


def rows(store: Path) -> list[dict[str, Any]]:
    """What the store holds of contents, but for the name of the scan."""
    with iolens.open(str(store)) as opened:
        frame = opened.frame("contents", "scratch").collect("pyarrow").to_native()
    kept = [{name: value for name, value in row.items() if name != "scan"} for row in frame.to_pylist()]
    return sorted(kept, key=repr)


def test_a_scan_fills_the_store_as_the_verb_does(tree: Path, tmp_path: Path) -> None:
    options = ("-f", "scratch", "--at", AT, "--exclude", "0.dat", "--state", tmp_path / "state")
    assert verb("scan", tree, "--store", tmp_path / "verb", *options, "--project-rule", f"{tree}/{{project}}").code == 0
    with iolens.open(str(tmp_path / "python")) as store:
        summary = store.scan(
            tree, "scratch", at=AT, exclude=["0.dat"], rules=[f"{tree}/{{project}}"], state=tmp_path / "state"
        )
        assert (summary.filesystem, summary.files, summary.bytes) == ("scratch", 2, 5100)
        assert summary.walk.excluded == 2
        assert {holding.name for holding in summary.by_project} == {"alice", "bob", None}
        assert store.contents("scratch").filesystem == "scratch"
    assert rows(tmp_path / "python") == rows(tmp_path / "verb")
    assert summary.stored_rows == len(rows(tmp_path / "python"))


def test_saved_parts_are_put_together(tree: Path, tmp_path: Path) -> None:
    with iolens.open(str(tmp_path / "parts")) as store:
        saved = [tmp_path / f"{number}.json.gz" for number in (1, 2)]
        for number, path in enumerate(saved, start=1):
            part = store.scan(tree, "scratch", at=AT, part=f"{number}/2", save=path, state=tmp_path / "state")
            assert (part.stored_rows, part.saved) == (None, str(path))
        assert store.merge_scans(saved).files == 4
    with iolens.open(str(tmp_path / "whole")) as store:
        store.scan(tree, "scratch", at=AT, state=tmp_path / "state")
    assert rows(tmp_path / "parts") == rows(tmp_path / "whole")


def test_contradictions_are_refused(tree: Path, tmp_path: Path) -> None:
    with iolens.open(str(tmp_path / "store")) as store, pytest.raises(OptionError, match="--part needs --save"):
        store.scan(tree, "scratch", part=(1, 2))
    assert "scan [OPTIONS] PATH" in verb("scan", tree, "--part", "1/2").err  # with the usage of the verb


@pytest.mark.parametrize("name", ["missing", "file"])
def test_nothing_is_kept_of_a_path_that_cannot_be_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    (tmp_path / "file").touch()
    attempts: list[dict[str, Any]] = [{}, {"state": tmp_path / "state"}, {"keep_entries": tmp_path / "entries.parquet"}]
    for places in attempts:
        with pytest.raises(InputError, match="cannot be scanned"):
            scan_tree(tmp_path / name, **places)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_progress_outlives_a_root_that_is_away_for_a_while(tree: Path, tmp_path: Path) -> None:
    state, journal = tmp_path / "state", Journal(tmp_path / "state")
    order = ScanOrder(str(tree), 0)
    journal.begin(order.plain(), new_progress(order))
    journal.close()
    written = journal.path.read_bytes()
    tree.rename(tmp_path / "away")
    with pytest.raises(InputError, match="cannot be scanned"):
        scan_tree(tree, state=state, resume=True)
    assert journal.path.read_bytes() == written
    (tmp_path / "away").rename(tree)
    with pytest.warns(UserWarning, match="goes on"):
        assert scan_tree(tree, state=state, resume=True).files > 0
    assert not state.exists()

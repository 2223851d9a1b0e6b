"""The directory of a study: only what a study makes is removed, and nothing outside of it is touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from iolens.benchmarks.studies.run import (
    fullness_pct,
    make_own_directory,
    own_directory,
    remove_own_directory,
    remove_own_files,
)
from iolens.errors import IolensError, UsageError

ANOTHER_USER = 12_345


class DiskUsage(NamedTuple):
    """As `shutil.disk_usage` gives it; 20 of 100 bytes are for root alone."""

    total: int
    used: int
    free: int


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = own_directory(tmp_path, "blocks")
    make_own_directory(path)
    return path


def filled(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_it_has_the_study_s_name_and_is_for_its_user_only(own: Path, tmp_path: Path) -> None:
    assert own == tmp_path / "iolens-bench-blocks"
    assert own.stat().st_mode & 0o777 == 0o700


def test_files_of_all_studies_are_removed_with_it(own: Path) -> None:
    filled(own, "data", "data.00000001", "data-mdtest/test-dir.0-0/mdtest_tree.0/file.mdtest.0.7", "data8")
    (own / "data-mdtest/test-dir.0-0/mdtest_tree.0/dir.mdtest.0.1").mkdir()
    assert remove_own_directory(own) == []
    assert not own.exists()


def test_after_a_point_the_directory_stays(own: Path) -> None:
    filled(own, "data", "data-mdtest/test-dir.0-0/file.mdtest.0.7")
    remove_own_files(own)
    assert list(own.iterdir()) == []


@pytest.mark.parametrize("name", ["thesis.tex", "Data", "my-data", ".data", "data file", "dat", "iolens-bench-x"])
def test_a_file_of_somebody_else_stays_and_is_named(own: Path, name: str) -> None:
    filled(own, "data", name)
    assert remove_own_directory(own) == [own / name]
    assert [path.name for path in own.iterdir()] == [name]


def test_a_file_of_somebody_else_deep_among_those_of_mdtest_stays(own: Path) -> None:
    foreign = "data-mdtest/test-dir.0-0/thesis.tex"
    filled(own, foreign, "data-mdtest/test-dir.0-0/file.mdtest.0.1")
    assert remove_own_directory(own) == [own / "data-mdtest"]
    assert [path for path in own.rglob("*") if path.is_file()] == [own / foreign]


@pytest.mark.parametrize("inside", ["data", "data-mdtest/file.mdtest.0.1"])
@pytest.mark.parametrize("target", ["file", "folder"])
def test_what_a_link_points_to_survives(own: Path, tmp_path: Path, inside: str, target: str) -> None:
    filled(tmp_path, "folder/data", "folder/file.mdtest.0.0", "file")
    (own / inside).parent.mkdir(exist_ok=True)
    (own / inside).symlink_to(tmp_path / target)
    assert remove_own_directory(own) == []
    assert not own.exists()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "file", "folder/data", "folder/file.mdtest.0.0",
    ]  # fmt: skip


def test_a_link_in_the_place_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    filled(tmp_path, "precious/data")
    path = own_directory(tmp_path, "blocks")
    path.symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError, match="is there already"):
        make_own_directory(path)
    assert remove_own_directory(path) == [path]
    assert (tmp_path / "precious/data").exists()
    assert path.is_symlink()


@pytest.mark.parametrize("is_file", [True, False])
def test_what_is_there_already_is_refused(tmp_path: Path, is_file: bool) -> None:
    path = own_directory(tmp_path, "blocks")
    path.write_text("x") if is_file else path.mkdir()
    with pytest.raises(UsageError, match="not on record here: it is not touched"):
        make_own_directory(path)
    assert path.exists()


def test_a_directory_of_another_user_is_left_as_it_is(own: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another user")
    filled(own, "data")
    os.chown(own, ANOTHER_USER, ANOTHER_USER)
    assert remove_own_directory(own) == [own]
    assert (own / "data").exists()


def test_what_this_process_made_is_removed_also_where_a_server_gave_it_to_another_user(own: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another user")
    os.chown(own, ANOTHER_USER, ANOTHER_USER)
    assert remove_own_directory(own, is_made_here=True) == []
    assert not own.exists()


def test_one_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    assert remove_own_directory(tmp_path / "gone") == []
    remove_own_files(tmp_path / "gone")


def test_where_none_can_be_made_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(IolensError, match=r"iolens-bench-blocks: cannot be made: No such file or directory$"):
        make_own_directory(own_directory(tmp_path / "gone", "blocks"))


def test_how_full_a_file_system_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: DiskUsage(100, 60, 20))
    assert fullness_pct(tmp_path) == pytest.approx(75.0)  # of what users can have, not of the whole 100
    assert fullness_pct(tmp_path, 10) == pytest.approx(87.5)
    monkeypatch.setattr("shutil.disk_usage", lambda _: DiskUsage(0, 0, 0))
    assert fullness_pct(tmp_path) == 0.0

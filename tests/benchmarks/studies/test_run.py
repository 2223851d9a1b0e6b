"""Running a study: limits before anything is written, every way to stop leaves nothing, and the rest is done later."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks.studies import run as own_directory
from iolens.benchmarks.studies import run as running
from iolens.benchmarks.studies import sequential_file, sequential_study
from iolens.benchmarks.studies.plan import (
    PointSite,
    StudyFolder,
    StudyLimits,
    StudyPlace,
    StudyPlan,
    StudyPoint,
    TimeUp,
    Values,
    journal_writer,
    new_folder,
)
from iolens.benchmarks.studies.run import check_study, clean_study, expected_work, run_study
from iolens.benchmarks.studies.sequential_study import SequentialParameters
from iolens.errors import UsageError
from iolens.sources.benchmarks.study_runs import StudyJournal
from iolens.units import KIB, MIB
from tests.benchmarks.studies.killing import await_points, long_plan, started
from tests.benchmarks.studies.made_studies import made_place, sequential_folder, sequential_plan, study_directory
from tests.cli.command import iolens

STOPPED, INTERRUPTED = 3, 130


def left_in(folder: StudyFolder) -> list[Path]:
    """What there is in the places of a study."""
    return [path for place in folder.plan().places for path in place.path.iterdir()]


def test_every_point_is_measured_once_with_a_row_for_each_direction(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    said: list[str] = []
    outcome = run_study(folder, said.append)
    assert (outcome.points, outcome.points_done, outcome.stopped, outcome.left) == (4, 4, None, [])
    assert outcome.is_whole
    keys = ["scratch/block=4KiB/0", "scratch/block=16KiB/0", "scratch/block=4KiB/1", "scratch/block=16KiB/1"]
    assert said == list(folder.journal().rows) == keys
    rows = [row for rows in folder.journal().rows.values() for row in rows]
    assert [row["direction"] for row in rows] == ["write", "read"] * 4
    assert len({row["run_id"] for row in rows}) == 8
    for row in rows:
        assert row["run_id"].startswith("small/scratch/block=")
        assert (row["sweep"], row["study"], row["place"], row["repetitions"]) == ("small", "sequential", "scratch", 2)
        assert (row["complete"], row["host"]) == (True, os.uname().nodename)
        assert 0 < row["fullness_pct"] <= 100
    assert left_in(folder) == []
    assert folder.journal().directories == []


def test_what_is_on_record_is_not_measured_again(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    run_study(folder)
    before = folder.runs_path.read_bytes()
    said: list[str] = []
    assert run_study(folder, said.append).points_done == 4
    assert said == []
    assert folder.runs_path.read_bytes() == before


def test_a_folder_that_was_moved_goes_on(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path, limits=StudyLimits(max_seconds=0.0, max_fullness_pct=100))
    assert run_study(folder).points_done == 0
    (tmp_path / "elsewhere").mkdir()
    moved = StudyFolder(folder.path.rename(tmp_path / "elsewhere" / "study"))
    plan = moved.path / "plan.toml"
    plan.write_text(plan.read_text().replace("max_seconds = 0.0", "max_seconds = 60"))
    assert run_study(moved).is_whole


# Limits


def refused_without_a_trace(folder: StudyFolder, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        run_study(folder)
    assert "\n" not in str(caught.value)
    assert left_in(folder) == []
    assert folder.journal().rows == {}


def test_more_bytes_than_the_limit_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path, limits=StudyLimits(max_bytes=256 * KIB - 1, max_fullness_pct=100))
    refused_without_a_trace(folder, r"writes 256\.0 KiB in all, more than --max-bytes|writes 256 KiB in all")


def test_exactly_the_limit_is_allowed(tmp_path: Path) -> None:
    assert run_study(
        sequential_folder(tmp_path, limits=StudyLimits(max_bytes=256 * KIB, max_fullness_pct=100))
    ).is_whole


def test_a_file_system_that_would_be_fuller_than_the_limit_is_refused(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path, limits=StudyLimits(max_fullness_pct=0.0))
    refused_without_a_trace(folder, r"free and would be [\d.e+-]+ % full .*; the limit is 0 % \(--max-fullness\)")


def test_a_file_larger_than_the_space_is_refused_whatever_the_limit_says(tmp_path: Path) -> None:
    large = SequentialParameters(1 << 60, (1 << 20,))
    limits = StudyLimits(max_bytes=1 << 62, max_fullness_pct=100)
    refused_without_a_trace(sequential_folder(tmp_path, parameters=large, limits=limits), "make the files smaller")


def test_space_that_is_missing_is_not_called_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far below the limit of fullness, but less is free than the margin; raising the limit would not help."""
    monkeypatch.setattr(running, "fullness_pct", lambda *_: 50.0)
    monkeypatch.setattr(running, "free_bytes", lambda _: 32 << 20)
    with pytest.raises(UsageError, match=r"has 32 MiB free, which is not enough for the .* one run and 64 MiB") as why:
        run_study(sequential_folder(tmp_path, limits=StudyLimits(max_fullness_pct=95.0)))
    assert "limit" not in str(why.value)
    assert "--max-fullness" not in str(why.value)


def test_a_disk_that_fills_up_meanwhile_is_looked_at_before_every_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sequential_folder(tmp_path, limits=StudyLimits(max_fullness_pct=95.0))
    fullness = iter([50.0, 50.0, 50.0, 50.0, 96.0, 96.0])  # when checked, then before each point and for its rows
    monkeypatch.setattr(running, "fullness_pct", lambda *_: next(fullness))
    monkeypatch.setattr(running, "free_bytes", lambda _: 1 << 40)
    with pytest.raises(UsageError, match="would be 96 % full"):
        run_study(folder)
    assert len(folder.journal().rows) == 1
    assert left_in(folder) == []


def test_after_max_seconds_it_stops_and_goes_on_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sequential_folder(tmp_path)
    measure = sequential_study.KIND.run
    calls: list[str] = []

    def slow(plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterator[Values]:
        calls.append(point.key)
        yield from measure(plan, point, site)
        if len(calls) == 2:
            raise TimeUp

    monkeypatch.setattr(sequential_study.KIND, "run", slow, raising=False)
    outcome = run_study(folder)
    assert (outcome.stopped, outcome.points_done, outcome.is_whole) == ("max_seconds", 1, False)
    assert left_in(folder) == []
    assert len(folder.journal().rows) == 1  # a point is done or not, never in part
    assert run_study(folder).is_whole
    assert sorted(calls) == sorted([*folder.journal().rows, calls[1]])


def test_writing_itself_is_broken_off_when_the_time_is_up(tmp_path: Path) -> None:
    site = PointSite(tmp_path, deadline=0.0)
    with pytest.raises(TimeUp):
        site.check_time()
    plan = sequential_plan(made_place(tmp_path), parameters=SequentialParameters(1 << 40, (512,)))
    (point, *_) = sequential_study.KIND.points(plan)
    with pytest.raises(TimeUp):
        list(sequential_study.KIND.run(plan, point, site))
    assert (tmp_path / "data").stat().st_size < 1 << 40


def test_the_command_says_how_to_go_on_after_max_seconds(tmp_path: Path) -> None:
    place = made_place(tmp_path)
    options = ("--size", "64KiB", "--blocks", "4KiB", "--max-fullness", "100", "--folder", tmp_path / "study")
    done = iolens("bench", "sequential", place.path, *options, "--max-seconds", "0s")
    assert done.code == STOPPED
    assert "stopped after 0 s: 0 of 5 points are on record, files are removed; go on with:" in done.err
    assert done.err.endswith(f"iolens bench run {tmp_path}/study\n")
    plan = tmp_path / "study" / "plan.toml"
    plan.write_text(plan.read_text().replace("max_seconds = 0.0", "max_seconds = 60"))
    assert iolens("bench", "run", tmp_path / "study").code == 0
    assert len(StudyFolder(tmp_path / "study").journal().rows) == 5


# Signals


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_and_the_rest_is_done_later(tmp_path: Path, kind: signal.Signals) -> None:
    folder = new_folder(tmp_path / "study", long_plan(tmp_path, "stopped", repeats=200))
    with started(folder) as process:
        await_points(process, 3)
        process.send_signal(kind)
        _, said = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, said
    assert left_in(folder) == []
    journal = folder.journal()
    assert journal.directories == []
    assert f"interrupted: {len(journal.rows)} of 800 points are on record".encode() in said
    assert 2 <= len(journal.rows) < 800
    assert b"Traceback" not in said


def test_signals_while_files_are_removed_wait_until_all_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sequential_folder(tmp_path)
    remove = own_directory.remove_own_directory

    def interrupted(path: Path, **given: Any) -> list[Path]:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return remove(path, **given)

    monkeypatch.setattr(running, "remove_own_directory", interrupted)
    assert run_study(folder).is_whole
    assert left_in(folder) == []


def test_a_signal_between_a_directory_and_its_record_leaves_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sequential_folder(tmp_path)
    make = own_directory.make_own_directory

    def interrupted(path: Path) -> None:
        make(path)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(running, "make_own_directory", interrupted)
    outcome = run_study(folder)
    assert (outcome.stopped, outcome.points_done) == ("interrupted", 0)
    assert left_in(folder) == []
    assert folder.journal().directories == []


def test_signals_are_as_before_when_a_study_has_ended(tmp_path: Path) -> None:
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(kind) for kind in kinds]
    run_study(sequential_folder(tmp_path))
    assert [signal.getsignal(kind) for kind in kinds] == before


# Directories


def killed(folder: StudyFolder, *names: str) -> Path:
    """As after a kill in the middle of a point: the directory, on record, with its files."""
    directory = study_directory(folder)
    with journal_writer(folder) as (_, writer):
        writer.add_directory(directory)
    directory.mkdir()
    for name in names:
        (directory / name).write_text("x")
    return directory


def test_what_a_kill_left_is_removed_by_the_next_run(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    killed(folder, "data")
    assert run_study(folder).is_whole
    assert left_in(folder) == []


def test_clean_removes_what_a_kill_left_and_keeps_what_was_measured(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    run_study(folder)
    directory = killed(folder, "data", "data.00000000")
    done = iolens("bench", "clean", folder.path)
    assert (done.code, done.out) == (0, f"removed: {directory}\n")
    assert left_in(folder) == []
    assert len(folder.journal().rows) == 4
    assert iolens("bench", "clean", folder.path).out == "nothing was left behind\n"


def test_clean_names_what_is_not_ours_and_leaves_it(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    directory = killed(folder, "data", "thesis.tex")
    done = iolens("bench", "clean", folder.path)
    assert (done.code, done.out) == (1, "")
    assert f"not ours, left where it is: {directory}/thesis.tex" in done.err
    assert left_in(folder) == [directory]
    assert folder.journal().directories == [directory]


def test_a_file_put_into_the_directory_of_a_run_stays_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sequential_folder(tmp_path)
    make = own_directory.make_own_directory

    def visited(path: Path) -> None:
        make(path)
        (path / "thesis.tex").write_text("x")

    monkeypatch.setattr(running, "make_own_directory", visited)
    outcome = run_study(folder)
    assert outcome.is_whole
    assert outcome.left == [study_directory(folder) / "thesis.tex"]
    assert outcome.left[0].exists()


def test_a_directory_that_is_there_and_not_on_record_is_not_touched(tmp_path: Path) -> None:
    """The same plan runs from another folder, perhaps on another machine."""
    folder = sequential_folder(tmp_path)
    directory = study_directory(folder)
    directory.mkdir()
    (directory / "data").write_text("being measured")
    for _ in range(2):
        with pytest.raises(UsageError, match="is there already, and not on record here"):
            run_study(folder)
    assert (directory / "data").read_text() == "being measured"


def test_a_directory_that_stayed_because_of_a_file_of_somebody_else_is_used_again(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    directory = killed(folder, "data", "thesis.tex")
    outcome = run_study(folder)
    assert outcome.is_whole
    assert outcome.left == [directory / "thesis.tex"]
    assert [path.name for path in directory.iterdir()] == ["thesis.tex"]


def test_cleaning_what_is_clean_adds_nothing_to_the_record(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    run_study(folder)
    before = folder.runs_path.read_bytes()
    assert clean_study(folder) == ([], [])
    assert folder.runs_path.read_bytes() == before


def test_a_record_that_names_any_other_directory_is_not_believed(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data.csv").write_text("x")
    with journal_writer(folder) as (_, writer):
        writer.add_directory(precious)
    assert run_study(folder).is_whole
    assert clean_study(folder) == ([], [])
    assert (precious / "data.csv").exists()


def test_a_directory_of_another_user_with_the_study_s_name_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another user")
    folder = sequential_folder(tmp_path)
    directory = killed(folder, "data")
    os.chown(directory, 12_345, 12_345)
    with pytest.raises(UsageError, match="is there already"):
        run_study(folder)
    assert (directory / "data").exists()
    assert clean_study(folder) == ([], [directory])


def test_a_link_with_the_study_s_name_is_refused_and_what_it_points_to_survives(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "data").write_text("x")
    study_directory(folder).symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError, match="is there already"):
        run_study(folder)
    assert clean_study(folder) == ([], [study_directory(folder)])
    assert (tmp_path / "precious" / "data").exists()


# Failures


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 96 MiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a tiny file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"mounting a tiny file system is not permitted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_file_system_that_fills_up_in_the_middle_is_one_clear_line(
    tiny_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = sequential_plan(
        StudyPlace("tiny", tiny_disk), parameters=SequentialParameters(16 * MIB, (MIB, 4 * MIB)), repeats=1
    )
    folder = new_folder(tmp_path / "study", plan)
    write = sequential_file.write_file

    def crowded(path: Path, size: int, block: int, **given: Any) -> Any:
        if block == 4 * MIB:
            free = os.statvfs(tiny_disk)
            (tiny_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize - 3 * MIB))
        return write(path, size, block, **given)

    monkeypatch.setattr(sequential_study, "write_file", crowded)
    done = iolens("bench", "run", folder.path)
    assert done.code == 1
    assert done.err.splitlines()[-1] == "iolens: tiny/block=4MiB/0: No space left on device"
    assert "Traceback" not in done.err
    assert [path.name for path in tiny_disk.iterdir()] == ["ballast"]
    assert list(folder.journal().rows) == ["tiny/block=1MiB/0"]
    (tiny_disk / "ballast").unlink()
    monkeypatch.undo()
    assert run_study(folder).is_whole


def test_any_trouble_of_the_disk_names_the_point_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sequential_folder(tmp_path)

    def broken(*_: object, **__: object) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sequential_study, "read_file", broken)
    done = iolens("bench", "run", folder.path)
    assert (done.code, done.err.splitlines()[-1]) == (1, "iolens: scratch/block=4KiB/0: Input/output error")
    assert left_in(folder) == []
    assert folder.journal().rows == {}


def test_a_place_that_is_gone_is_said(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    (tmp_path / "scratch").rmdir()
    done = iolens("bench", "run", folder.path)
    assert (done.code, done.err) == (2, f"iolens: {tmp_path}/scratch: no such directory\n")


# What is to come


def test_bytes_files_and_time_to_come(tmp_path: Path) -> None:
    plan = sequential_plan(made_place(tmp_path), made_place(tmp_path, "home"))
    work = expected_work(plan, StudyJournal())
    assert (work.points, work.points_done, work.files) == (8, 0, 8)
    assert (work.bytes_written, work.bytes_read, work.bytes_at_once) == (8 * 64 * KIB, 8 * 64 * KIB, 64 * KIB)
    assert work.seconds == pytest.approx(2 * 8 * 64 * KIB / 500e6)
    assert not work.is_measured


def test_time_to_come_is_by_what_was_measured(tmp_path: Path) -> None:
    plan = sequential_plan(made_place(tmp_path))
    points = sequential_study.KIND.points(plan)
    journal = StudyJournal(rows={points[0].key: [{"duration_s": 3.0}, {"duration_s": 1.0}]})
    work = expected_work(plan, journal)
    assert (work.points_done, work.is_measured) == (1, True)
    assert work.seconds == pytest.approx(3 * 4.0)  # three points of as many bytes


@pytest.mark.parametrize("repeats", [0, -1, 10**9])
def test_repeats_have_bounds(tmp_path: Path, repeats: int) -> None:
    with pytest.raises(UsageError, match="repeats: from 1 to"):
        check_study(sequential_plan(made_place(tmp_path), repeats=repeats), StudyJournal())


@pytest.mark.parametrize("name", ["a\nb", "a\x00b", "caf\udce9", "", "x" * 5000])
def test_a_name_that_no_plan_can_say_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no name for a place in a plan") as caught:
        check_study(sequential_plan(replace(made_place(tmp_path), name=name)), StudyJournal())
    assert "\n" not in str(caught.value)


def test_two_places_of_one_name_are_refused(tmp_path: Path) -> None:
    place = made_place(tmp_path)
    with pytest.raises(UsageError, match="two places are called scratch: give each a name, as NAME=DIR"):
        check_study(sequential_plan(place, replace(place, path=tmp_path)), StudyJournal())


def test_lines_of_the_record_are_one_json_object_each(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    run_study(folder)
    lines = [json.loads(line) for line in folder.runs_path.read_text().splitlines()]
    assert [next(iter(line)) for line in lines] == ["format", "directory", *["point"] * 4, "removed"]

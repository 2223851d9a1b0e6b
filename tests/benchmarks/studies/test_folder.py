"""The folder of a study: every line is on disk or not there at all, and one process at a time goes on with it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iolens.benchmarks.studies.plan import StudyFolder, journal_writer, new_folder
from iolens.errors import InputError, IolensError, UsageError
from tests.benchmarks.studies.made_studies import made_place, sequential_folder, sequential_plan

HOLDS_IT = """
import sys
from pathlib import Path
from iolens.benchmarks.studies.plan import StudyFolder, journal_writer
with journal_writer(StudyFolder(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_new_folder_has_its_plan_and_nothing_measured(tmp_path: Path) -> None:
    plan = sequential_plan(made_place(tmp_path))
    folder = new_folder(tmp_path / "deep" / "study", plan)
    assert folder.plan() == plan
    assert folder.journal().rows == {}
    assert [path.name for path in folder.path.iterdir()] == ["plan.toml"]


def test_a_folder_that_is_there_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    with pytest.raises(UsageError, match=r"study: exists; go on with it by `iolens bench run .*study`"):
        new_folder(tmp_path / "study", sequential_plan(made_place(tmp_path)))
    assert list((tmp_path / "study").iterdir()) == []


def test_one_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(IolensError, match="file/study: cannot be made: Not a directory"):
        new_folder(tmp_path / "file" / "study", sequential_plan(made_place(tmp_path)))


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    with journal_writer(folder) as (before, writer):
        assert before.rows == {}
        writer.add_directory(tmp_path / "x")
        writer.add_directory(tmp_path / "y")
        writer.add_point("a", [{"bytes": 1}, {"bytes": 2}])
        assert folder.journal().rows == {"a": [{"bytes": 1}, {"bytes": 2}]}  # before the writer is closed
        writer.add_removed(tmp_path / "x")
    assert folder.journal().directories == [tmp_path / "y"]


def test_a_cut_line_is_gone_when_the_study_goes_on(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    with journal_writer(folder) as (_, writer):
        writer.add_point("a", [])
    whole = folder.runs_path.read_bytes()
    folder.runs_path.write_bytes(whole + b'{"point": "b", "ro')
    with journal_writer(folder) as (journal, writer):
        assert list(journal.rows) == ["a"]
        writer.add_point("b", [])
    assert list(folder.journal().rows) == ["a", "b"]
    assert folder.runs_path.read_bytes().startswith(whole)


@pytest.mark.parametrize("text", ["notes of mine", "notes of mine\n", '{"other": "format"}\n'])
def test_a_file_of_somebody_else_in_its_place_is_refused_and_stays(tmp_path: Path, text: str) -> None:
    folder = sequential_folder(tmp_path)
    folder.runs_path.write_text(text)
    with pytest.raises(InputError, match=r"runs\.jsonl:1"), journal_writer(folder):
        pass
    assert folder.runs_path.read_text() == text


def test_a_disk_that_fills_within_a_line_leaves_no_half_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sequential_folder(tmp_path)
    write = os.write

    def full(descriptor: int, octets: bytes) -> int:
        if len(octets) < 30:  # what is left of the line
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, octets[:-20])

    with journal_writer(folder) as (_, writer):
        writer.add_point("a", [])
        with monkeypatch.context() as patched:
            patched.setattr("iolens.benchmarks.studies.plan.os.write", full)
            with pytest.raises(OSError, match="No space left"):
                writer.add_point("b", [{"bytes": 1, "direction": "write"}])
        writer.add_point("c", [])  # there is space again
    assert list(folder.journal().rows) == ["a", "c"]
    assert folder.journal().cut_bytes == 0


def test_two_processes_at_once_are_refused(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    command = [sys.executable, "-c", HOLDS_IT, str(folder.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match=r"study: another process runs this study$"), journal_writer(folder):
            pass
        other.kill()
    with journal_writer(folder):
        pass  # a process that was killed holds nothing


def test_a_folder_that_may_not_be_written_to_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(IolensError, match=r"runs\.jsonl: cannot be written: "),
        journal_writer(StudyFolder(tmp_path / "gone")),
    ):
        pass


def test_not_a_number_is_never_written(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    with journal_writer(folder) as (_, writer), pytest.raises(ValueError, match="not JSON compliant"):
        writer.add_point("a", [{"bytes": float("nan")}])
    assert folder.journal().rows == {}

"""Samples of a job are nobody else's: private files, and locks that cannot hold up a prolog."""

from __future__ import annotations

import fcntl
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iolens.agent.jobs import sampling
from iolens.agent.jobs.sampling import JobContext, take_sample
from iolens.errors import IolensError
from iolens.sources.job_files import read_job_file
from tests.sources.lustre.client_trees import tree_2_5

SCRIPTS = Path(__file__).parents[3] / "contrib" / "slurm"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree_2_5(tmp_path / "tree")


def sampled(root: Path, point: str = "begin", job_id: str = "17") -> Path:
    return take_sample(point, JobContext(job_id), root.parent / "jobs", root, "n1")


@contextmanager
def locked_by_another(path: Path) -> Iterator[None]:
    """As `flock` of anybody who can open the file."""
    with path.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_SH)
        yield


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


def test_nobody_else_can_read_the_samples_of_a_job_or_lock_them(root: Path) -> None:
    path = sampled(root)
    folder = root.parent / "jobs"
    assert [mode(item) for item in (folder, folder / ".active", path.parent)] == ["700", "700", "700"]
    assert [mode(item) for item in (path, folder / ".active" / "n1")] == ["600", "600"]


def test_files_that_an_earlier_version_left_readable_are_closed(root: Path) -> None:
    path = sampled(root)
    active = root.parent / "jobs" / ".active" / "n1"
    for item in (path, active):
        item.chmod(0o644)
    sampled(root, "end")
    assert [mode(item) for item in (path, active)] == ["600", "600"]


@pytest.mark.parametrize("place", ["jobs", "jobs/17"])
def test_a_folder_that_others_can_write_to_is_refused(root: Path, place: str) -> None:
    folder = root.parent / place
    folder.mkdir(parents=True)
    (root.parent / "jobs").chmod(0o700)
    folder.chmod(0o777)
    with pytest.raises(IolensError, match=re.escape(f"{folder}: others can write there (mode 777): chmod go-w")):
        sampled(root)
    assert list(folder.rglob("*.job")) == []


def test_a_lock_that_another_holds_costs_what_it_guards_and_not_the_sample(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "LOCK_S", 0.05)
    sampled(root, job_id="16")
    with locked_by_another(root.parent / "jobs" / ".active" / "n1"):
        path = sampled(root)
    begin = read_job_file(path).begin
    assert begin is not None
    assert [item.table for item in begin.items if hasattr(item, "table")] != []
    assert begin.other_jobs == ()
    said = [item.reason for item in begin.items if hasattr(item, "reason")]
    assert any("which jobs shared the node is not known" in reason for reason in said), said
    end = read_job_file(sampled(root, "end")).end
    assert end is not None
    assert end.other_jobs == ("16",)


def test_a_sample_file_that_another_holds_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "LOCK_S", 0.05)
    path = sampled(root)
    message = f"{path}: another process has kept it locked for 0.05 s"
    with locked_by_another(path), pytest.raises(IolensError, match=re.escape(message)):
        sampled(root, "end")


@pytest.mark.parametrize("name", ["iolens-prolog", "iolens-epilog"])
def test_what_the_scripts_of_slurm_run_has_a_limit(name: str) -> None:
    lines = [line for line in (SCRIPTS / name).read_text().splitlines() if not line.lstrip().startswith("#")]
    programs = [line for line in lines if "$IOLENS job" in line or "scontrol" in line]
    assert programs
    assert [line for line in programs if not re.search(r"(^|\()\s*timeout [^|]*(\$IOLENS job|scontrol)", line)] == []

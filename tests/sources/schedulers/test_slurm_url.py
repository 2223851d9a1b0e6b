"""`iolens ingest slurm://` with a stand-in for `sacct`: what it is asked, from when on, and how failures are said."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from iolens.api.ingest import ingest_places
from iolens.config import Config
from iolens.sources import ReadOptions
from iolens.store.ingest import Tally
from iolens.store.store import Store
from tests.sources.schedulers.test_slurm import us

HEADER = (
    "JobIDRaw|JobID|Cluster|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|NNodes|AllocCPUS|NodeList|JobName"
)
ENDED = "1|1|frost|ann|m1|p|COMPLETED|2024-03-11T03:00:00|2024-03-11T04:00:00|2024-03-11T05:00:00|3600|1|8|n1|a|b"
RUNNING = "2|2|frost|ann|m1|p|RUNNING|2024-03-11T03:00:00|2024-03-11T04:30:00|Unknown|5400|1|8|n2|wave"
DONE = RUNNING.replace("RUNNING", "COMPLETED").replace("Unknown|5400", "2024-03-11T08:00:00|12600")


class StandIn:
    """A script called `sacct` on PATH that notes how it was called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
        monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))
        (folder / "tmp").mkdir()

    def does(self, script: str) -> None:
        path = self.folder / "sacct"
        path.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" "TZ=$TZ" "F=$SLURM_TIME_FORMAT" > {self.folder}/called\n{script}\n'
        )
        path.chmod(0o755)

    def prints(self, *lines: str) -> None:
        (self.folder / "output").write_text("\n".join((HEADER, *lines)) + "\n")
        self.does(f"cat {self.folder}/output")

    @property
    def called(self) -> list[str]:
        return (self.folder / "called").read_text().splitlines()


@pytest.fixture
def sacct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    (tmp_path / "bin").mkdir()
    return StandIn(tmp_path / "bin", monkeypatch)


def load(folder: Path, url: str = "slurm://", **settings: str) -> Tally:
    config = Config(sources={"slurm": settings})
    return ingest_places(Store(folder / "store"), config, [url], ReadOptions())


def test_all_jobs_then_from_the_last_on_and_twice_adds_nothing(tmp_path: Path, sacct: StandIn) -> None:
    sacct.prints(ENDED, RUNNING)
    first = load(tmp_path)
    assert (first.refused, first.rows["jobs"]) == (0, 2)
    assert "--starttime=1970-01-02T00:00:00" in sacct.called
    assert {"--allusers", "--parsable2", "--duplicates", "TZ=UTC", "F="} <= set(sacct.called)
    assert not any(item.startswith("--clusters") for item in sacct.called)
    assert (load(tmp_path).already_present, load(tmp_path).rows["jobs"]) == (1, 0)
    assert "--starttime=2024-03-11T05:00:00" in sacct.called  # the last record is of 06:00, less an hour
    sacct.prints(ENDED, RUNNING.replace("5400", "6000"))
    assert load(tmp_path).rows["jobs"] == 0
    sacct.prints(DONE)
    assert load(tmp_path, "slurm://frost", overlap="30min").rows["jobs"] == 1
    assert {"--starttime=2024-03-11T05:30:00", "--clusters=frost"} <= set(sacct.called)
    jobs = Store(tmp_path / "store").jobs()
    assert [(job["job_id"], job["name"], job["ended"], job["time"]) for job in jobs] == [
        ("1", "a|b", True, us("2024-03-11T05:00:00")),
        ("2", "wave", True, us("2024-03-11T08:00:00")),
    ]
    assert list((sacct.folder / "tmp").iterdir()) == []


def test_another_cluster_starts_at_its_own_beginning(tmp_path: Path, sacct: StandIn) -> None:
    sacct.prints(ENDED)
    load(tmp_path)
    load(tmp_path, "slurm://snow")
    assert "--starttime=1970-01-02T00:00:00" in sacct.called


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'slurmdbd: Connection refused' >&2; exit 1", "exit code 1: slurmdbd: Connection refused"),
        ("exit 3", "sacct ended with exit code 3: it printed no reason"),
        ("kill -9 $$", "sacct was ended by signal 9"),
        (f"echo '{HEADER}'; echo '{ENDED}'; echo broken >&2; exit 1", "exit code 1: broken"),
        ("echo Dear all", "neither a header nor a record of sacct: 'Dear all'"),
    ],
)
def test_a_failure_is_said_and_nothing_is_loaded(tmp_path: Path, sacct: StandIn, script: str, said: str) -> None:
    sacct.does(script)
    tally = load(tmp_path)
    assert tally.rows["jobs"] == 0
    assert any("slurm://" in str(problem) and said in str(problem) for problem in tally.problems), tally.problems
    assert list((sacct.folder / "tmp").iterdir()) == []


def test_one_that_does_not_end_is_ended(tmp_path: Path, sacct: StandIn) -> None:
    sacct.does(f"sleep 3600 & echo $! > {sacct.folder}/child; wait")
    tally = load(tmp_path, timeout="1s")
    assert "sacct did not end within 1 s" in str(tally.problems[0])
    child = Path(f"/proc/{(sacct.folder / 'child').read_text().strip()}/stat")
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_without_sacct_and_with_a_wrong_address(
    tmp_path: Path, sacct: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no sacct on PATH" in str(load(tmp_path).problems[0])
    for url in ("slurm://--help", "slurm://a b", "slurm://a/b", "slurm://$(id)"):
        assert "not an address of Slurm" in str(load(tmp_path, url).problems[0])
    assert "sources.slurm.timeout" in str(load(tmp_path, timeout="soon").problems[0])

"""`job begin` and `end --spool`: a job goes through the spool of each node into the store, once, as from a folder."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from iolens.agent.sampling.shipper import ship
from iolens.store.store import Store
from tests.cli.command import Finished, iolens
from tests.cli.test_job import assert_enzo, environment, enzo_job, reported
from tests.sources.lustre.client_trees import enzo_node
from tests.sources.stored import stored

NODES = range(4)


def spool_of(tmp_path: Path, node: int) -> Path:
    return tmp_path / f"spool-{node}"


def spooled_job(tmp_path: Path, ends: range = NODES) -> None:
    """The job of Tables I and II, each node with a spool of its own."""
    for point, nodes in (("begin", NODES), ("end", ends)):
        for node in nodes:
            root = enzo_node(tmp_path / f"{node}-{point}", node, ended=point == "end")
            words = ("job", point, "--root", root, "--spool", spool_of(tmp_path, node))
            assert iolens(*words, **environment(tmp_path / "none")) == Finished(0, "", "")


def shipped(tmp_path: Path, nodes: range = NODES) -> int:
    """Rows that the agents' shippers brought into the store."""
    return sum(ship(spool_of(tmp_path, node), str(tmp_path / "store")).rows for node in nodes)


def of_store(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return reported(4711, "--store", tmp_path / "store", IOLENS_JOBS=str(tmp_path / "none"), **more)


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    """A report less what two runs of the same job cannot share."""
    plain = {name: value for name, value in report.items() if name not in ("start", "end", "duration_s")}
    rates = ("duration_s", "read_bytes_per_s", "write_bytes_per_s")
    parts = [{name: value for name, value in part.items() if name not in rates} for part in report["filesystems"]]
    return {**plain, "filesystems": parts}


def test_shippers_bring_the_job_into_the_store_once(tmp_path: Path) -> None:
    spooled_job(tmp_path)
    assert shipped(tmp_path) > 0
    assert shipped(tmp_path) == 0
    report = of_store(tmp_path)
    assert_enzo(report)
    about = [report[name] for name in ("jobid", "cluster", "user", "name", "nodes", "missing_nodes")]
    assert about == ["4711", "pleiades", "alice", "enzo", 4, []]


def test_the_report_is_that_of_the_folder(tmp_path: Path) -> None:
    folder = enzo_job(tmp_path / "shared")
    spooled_job(tmp_path)
    shipped(tmp_path)
    of_folder = reported(4711, **environment(folder))
    assert without_times(of_store(tmp_path)) == without_times(of_folder)


def test_folder_and_spool_of_one_job_are_stored_once(tmp_path: Path) -> None:
    """The same samples on both ways: the same rows, which are stored once."""
    spooled_job(tmp_path, ends=range(0))
    for node in NODES:
        waiting = spool_of(tmp_path, node) / "jobs" / "4711"
        (tmp_path / "jobs" / "4711").mkdir(parents=True, exist_ok=True)
        root = enzo_node(tmp_path / f"{node}-end", node, ended=True)
        words = ("job", "end", "--no-report", "--root", root, "--folder", spool_of(tmp_path, node) / "jobs")
        assert iolens(*words, **environment(tmp_path / "none")).code == 0
        for file in waiting.iterdir():
            shutil.copy(file, tmp_path / "jobs" / "4711")
        from iolens.agent.jobs.spooled import spool_job

        (file,) = waiting.iterdir()
        spool_job(spool_of(tmp_path, node), file)
    assert iolens("ingest", tmp_path / "jobs", "--store", tmp_path / "store").code == 0
    assert shipped(tmp_path) == 0
    assert_enzo(of_store(tmp_path))
    of_folder = reported(4711, IOLENS_JOBS=str(tmp_path / "jobs"))
    assert of_store(tmp_path) == of_folder


def test_ingest_takes_a_spool_too_and_again_adds_nothing(tmp_path: Path) -> None:
    spooled_job(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    for node in NODES:
        for segment in spool_of(tmp_path, node).glob("*.seg"):
            shutil.copy(segment, copy)
    for _ in range(2):
        done = iolens("ingest", copy, "--store", tmp_path / "store")
        assert done.code == 0, done.err
    assert shipped(tmp_path) == 0
    assert_enzo(of_store(tmp_path))


def test_what_an_agent_samples_meanwhile_stays_apart(tmp_path: Path) -> None:
    """The agent of the node writes to the same spool; neither disturbs the other."""
    for point in ("begin", "end"):
        root = enzo_node(tmp_path / point, 0, ended=point == "end")
        spool = ("--root", root, "--spool", spool_of(tmp_path, 0))
        assert iolens("collect", "--once", "--no-ship", "--interval", "0.05s", *spool).code == 0
        time.sleep(0.1)  # to the next tick of the clock
        assert iolens("job", point, *spool, **environment(tmp_path / "none", SLURM_JOB_NODELIST="r1i0n0")).code == 0
        assert iolens("collect", "--once", "--no-ship", "--interval", "0.05s", *spool).code == 0
    shipped(tmp_path, range(1))
    rows = stored(tmp_path / "store", "nbp1", "client_io", "source", "job_id", "read_bytes")
    quarter = 54 * 10**9 // 4
    assert [row for row in rows if row[1] is not None] == [("job-files", "4711", quarter)]
    assert sum(int(str(row[2])) for row in rows if row[0] == "agent") == quarter


def test_a_node_that_died_is_missing_and_its_next_boot_says_so(tmp_path: Path) -> None:
    spooled_job(tmp_path, ends=range(3))
    root = enzo_node(tmp_path / "booted", 3, ended=False)
    (root / "proc/sys/kernel/random").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("another\n")
    first = tmp_path / "3-begin" / "proc/sys/kernel/random/boot_id"
    assert not first.exists() or first.read_text() != "another\n"
    words = ("job", "begin", "--root", root, "--spool", spool_of(tmp_path, 3), "--job-id", "4712")
    waiting = spool_of(tmp_path, 3) / "jobs"
    with_boot_id(next(waiting.glob("4711/*.job")), "the first")
    assert iolens(*words, **environment(tmp_path / "none")).code == 0
    assert [path.parent.name for path in waiting.glob("*/*.job")] == ["4712"]
    done = ship(spool_of(tmp_path, 3), str(tmp_path / "store"))
    assert "no sample at the end of the job" in " ".join(done.reasons)
    shipped(tmp_path, range(3))
    missing = of_store(tmp_path, code=3)["missing_nodes"]
    assert missing == [{"node": "r1i0n3", "reason": "no sample of it in the store"}]


def with_boot_id(path: Path, boot_id: str) -> None:
    """As if it had been sampled during that boot."""
    from dataclasses import replace

    from iolens.sources.job_files import read_job_file

    begin = read_job_file(path).begin
    assert begin is not None
    path.write_bytes(replace(begin, boot_id=boot_id).encoded())


def test_a_segment_that_was_written_and_not_noted_is_the_same_again(tmp_path: Path) -> None:
    """Killed between the segment and the removal of its samples."""
    from iolens.agent.jobs.spooled import spool_job

    for point in ("begin", "end"):
        root = enzo_node(tmp_path / point, 0, ended=point == "end")
        folder = ("--folder", spool_of(tmp_path, 0) / "jobs")
        words = ("job", point, "--root", root, *folder, *(["--no-report"] if point == "end" else []))
        assert iolens(*words, **environment(tmp_path / "none")).code == 0
    os.chmod(spool_of(tmp_path, 0), 0o700)  # noqa: PTH101
    (samples,) = (spool_of(tmp_path, 0) / "jobs").glob("4711/*.job")
    content = samples.read_bytes()
    first = spool_job(spool_of(tmp_path, 0), samples)
    assert shipped(tmp_path, range(1)) > 0
    assert not first.exists()
    samples.parent.mkdir()
    samples.write_bytes(content)
    assert spool_job(spool_of(tmp_path, 0), samples) == first
    assert shipped(tmp_path, range(1)) == 0


def test_run_reports_and_spools(tmp_path: Path) -> None:
    root = enzo_node(tmp_path / "node", 0, ended=False)
    words = ("job", "run", "--root", root, "--spool", tmp_path / "spool", "--job-id", "9", "--", "/bin/true")
    done = iolens(*words, SLURM_JOB_ID="", PBS_JOBID="")
    assert done.code == 0
    assert "open 0, close 0" in done.err
    assert ship(tmp_path / "spool", str(tmp_path / "store")).shipped == 1
    (job,) = Store(tmp_path / "store").jobs()
    assert (job["job_id"], job["name"], job["nodes"]) == ("9", "true", 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("begin", "--spool", "SPOOL", "--folder", "x"), "--folder and --spool do not go together"),
        (("end", "--spool", "SPOOL", "--append-to", "x"), "--append-to does not go with --spool"),
        (("run", "--spool", "SPOOL", "--via", "ssh", "--", "true"), "--spool and --via do not go together"),
        (("begin", "--spool", "OPEN"), "others can write there"),
    ],
)
def test_what_does_not_go_is_said(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    places = {"SPOOL": tmp_path / "spool", "OPEN": tmp_path / "open"}
    done = iolens("job", *(places.get(word, word) for word in words), **environment(tmp_path / "none"))
    assert done.code in (1, 2)
    assert message in done.err


def test_the_environment_may_name_the_spool(tmp_path: Path) -> None:
    variables = {**environment(tmp_path / "none"), "IOLENS_SPOOL": str(tmp_path / "spool")}
    for point in ("begin", "end"):
        root = enzo_node(tmp_path / point, 0, ended=point == "end")
        assert iolens("job", point, "--root", root, **variables) == Finished(0, "", "")
    assert not (tmp_path / "none").exists()
    (segment,) = (tmp_path / "spool").glob("*.seg")
    head = json.loads(segment.read_bytes().splitlines()[0][9:])
    assert (head["format"], head["sequence"]) == ("iolens-spool", 1)
    assert segment.stat().st_mode & 0o777 == 0o600

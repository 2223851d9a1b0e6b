"""Jobs on a real Slurm, sampled by the shipped prolog and epilog: the report ends the output of each job."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iolens.api.job_report import report_of_folder
from iolens.sources.job_files import read_job_file
from iolens.store.store import Store
from tests.cli.command import iolens
from tests.live.slurm_cluster import REPOSITORY, SlurmCluster
from tests.sources.lustre.client_trees import ENZO_READS, ENZO_WRITES, enzo_node

pytestmark = pytest.mark.live

NODES = 3
MANY = 50
# What each node of the job of SPEC N's tables does: its counters go from before the job to after it.
WORK = f"""import os, sys; sys.path.insert(0, {str(REPOSITORY)!r}); from pathlib import Path
from tests.sources.lustre.client_trees import enzo_node
name = os.environ["SLURMD_NODENAME"]
enzo_node(Path(sys.argv[1]) / name, int(name[1:]) - 1, True, {NODES})
"""


@pytest.fixture(scope="module")
def cluster(slurm: SlurmCluster) -> SlurmCluster:
    (slurm.folder / "work.py").write_text(WORK)
    return slurm


def before_the_job(cluster: SlurmCluster) -> None:
    for number, node in enumerate(cluster.nodes):
        enzo_node(cluster.trees[node], number, ended=False, nodes=NODES)


def enzo_job(cluster: SlurmCluster, *more: str) -> str:
    """Submitted; `more` is done after its work."""
    before_the_job(cluster)
    work = f"srun {sys.executable} {cluster.folder / 'work.py'} {cluster.folder / 'trees'}"
    script = "\n".join(["echo result: 42", work, *more])
    return cluster.submit(
        script, "--nodes", str(NODES), "--ntasks-per-node", "1", "--exclusive", "--job-name", "enzo|x"
    )


def output_of(cluster: SlurmCluster, job: str) -> str:
    path = cluster.outputs / f"{job}.out"
    return path.read_text() if path.exists() else ""


def test_the_report_ends_the_output_of_a_job(cluster: SlurmCluster) -> None:
    job = enzo_job(cluster)
    cluster.wait_for(lambda: "KiB" in output_of(cluster, job), "the report")
    head, _, report = output_of(cluster, job).partition(f"\nI/O of job {job}")
    assert head == "result: 42\n"
    assert "NOT COMPLETE" not in report
    assert f", {NODES} nodes" in report
    lines = [line.split() for line in report.splitlines()]
    for power, (reads, writes) in enumerate(zip(ENZO_READS, ENZO_WRITES, strict=True)):
        assert [f"{4 << power:,}", "KiB", f"{reads:,}", f"{writes:,}"] in lines
    assert ["GB", "54.00", "56.00"] in lines
    assert "  open 5,303, close 5,769, stat 12,460, statfs 0" in report.splitlines()


def test_fifty_jobs_at_once_lose_nothing_and_slurm_has_them_all(cluster: SlurmCluster, tmp_path: Path) -> None:
    before_the_job(cluster)
    array = cluster.submit("true", "--array", f"1-{MANY}", "--ntasks", "1")
    cluster.wait_for(lambda: cluster.run("squeue", "--noheader") == "", "the array to end")
    cluster.wait_for(lambda: len(ids_of(cluster, array)) == MANY, "the records of all jobs", 60)  # accounting lags
    ids = ids_of(cluster, array)
    for job in ids:
        cluster.wait_for(lambda job=job: len(ended(cluster, job)) == 1, f"the end of job {job}", 60)  # type: ignore[misc]
        assert report_of_folder(cluster.jobs / job).missing_nodes == ()
    environment = {"SLURM_CONF": cluster.configuration, "PATH": cluster.environment["PATH"]}
    for expected in ("loaded", "again"):
        done = iolens("ingest", "slurm://", "--store", tmp_path / "store", **environment)
        assert done.code == 0, (expected, done.err)
        stored = [row["job_id"] for row in Store(tmp_path / "store").jobs()]
        assert len(stored) == len(set(stored))
        assert set(ids) <= set(stored)


FIELDS = "JobIDRaw,JobID,Cluster,User,Account,State,Submit,Start,End,ElapsedRaw,NNodes,AllocCPUS,NodeList,JobName"
COMPARED = ("job_id", "cluster", "user", "project", "name", "state", "ended", "submit", "start", "time", "duration_s",
            "nodes", "cores", "node_list")  # fmt: skip


def test_the_json_of_a_real_sacct_gives_the_rows_of_its_text(cluster: SlurmCluster, tmp_path: Path) -> None:
    """Jobs of an array, one that failed, one that was cancelled while it ran, one that waits and has no row."""
    before_the_job(cluster)
    array = cluster.submit("true", "--array", "1-3", "--ntasks", "1")
    failed = cluster.submit("exit 3", "--ntasks", "1")
    cancelled = cluster.submit("sleep 600", "--ntasks", "1", "--job-name", "sleeps")
    cluster.wait_for(lambda: state_of(cluster, cancelled) == "RUNNING", "the job that sleeps")
    cluster.run("scancel", cancelled)
    cluster.wait_for(lambda: state_of(cluster, cancelled).startswith("CANCELLED"), "its end", 60)
    cluster.wait_for(lambda: state_of(cluster, failed) == "FAILED", "the job that fails", 60)
    cluster.wait_for(lambda: len(ids_of(cluster, array)) == 3, "the records of the array", 60)
    held = cluster.submit("true", "--hold")
    window = ("--allusers", "--starttime", "now-1hours")
    utc = {"TZ": "UTC"}
    texts = {
        "text": cluster.run("sacct", "--parsable2", *window, "--format", FIELDS, **utc),
        "json": cluster.run("sacct", "--json", *window, **utc),
    }
    cluster.run("scancel", held)
    rows = {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        done = iolens("ingest", "slurm", tmp_path / name, "--timezone", "UTC", "--store", tmp_path / f"{name}.store")
        assert done.code == 0, done.err
        stored = Store(tmp_path / f"{name}.store").jobs()
        rows[name] = {str(row["job_id"]): {column: row[column] for column in COMPARED} for row in stored}
    assert rows["json"] == rows["text"]
    assert {failed, cancelled, *ids_of(cluster, array)} <= rows["json"].keys()
    assert held not in rows["json"]
    assert (rows["json"][failed]["state"], rows["json"][cancelled]["state"]) == ("FAILED", "CANCELLED")


def state_of(cluster: SlurmCluster, job: str) -> str:
    """As the accounting has it."""
    return cluster.run("sacct", "-P", "-n", "-X", "-j", job, "--format", "State").strip()


def ids_of(cluster: SlurmCluster, array: str) -> list[str]:
    """Jobs of an array that have ended, by the accounting."""
    lines = cluster.run("sacct", "-P", "-n", "-X", "-j", array, "--format", "JobIDRaw,State").splitlines()
    return [line.partition("|")[0] for line in lines if line.endswith("|COMPLETED")]


def ended(cluster: SlurmCluster, job: str) -> list[Path]:
    files = (cluster.jobs / job).glob("*.job") if (cluster.jobs / job).is_dir() else ()
    return [path for path in files if read_job_file(path).end is not None]


def test_a_node_whose_slurmd_dies_in_mid_job_is_named(cluster: SlurmCluster) -> None:
    """The last test: the node does not come back."""
    flag = cluster.folder / "go-on"
    job = enzo_job(cluster, f"touch {cluster.folder}/worked", f"while [ ! -e {flag} ]; do sleep 0.1; done")
    cluster.wait_for((cluster.folder / "worked").exists, "the job's work")
    cluster.kill_node("n3")
    flag.touch()
    cluster.wait_for(lambda: "KiB" in output_of(cluster, job), "the report")
    report = output_of(cluster, job)
    assert "NOT COMPLETE: n3: no sample at the end: it died, or the job still runs there" in report.splitlines()
    assert f"I/O of job {job}" in report

"""Real IOR under real Darshan, as jobs of a real Slurm: strategies, MiB/s against IOR's own, and which job it was.

Also that darshan-parser, of the same build, reads logs of the simulator.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.runs.used_files import strategy_of
from iolens.api.stored_runs import StoredRuns
from iolens.run_tables import rate_of
from iolens.simulator.darshan_jobs import truth_of
from iolens.simulator.darshan_logs import write_log
from iolens.simulator.darshan_runs import STRATEGIES, Strategy
from iolens.store.store import Store
from iolens.units import MIB
from tests.cli.command import iolens
from tests.live.hpc_tools import hpc_tools
from tests.live.slurm_cluster import SlurmCluster
from tests.live.spark_cluster import ComponentFailed, ComponentMissing
from tests.simulator.stated_runs import NEEDS_DARSHAN, run_of

pytestmark = [pytest.mark.live, NEEDS_DARSHAN]

TOLERANCE = 0.03
SECOND_US = 1_000_000
IOR: Mapping[str, tuple[str, ...]] = {  # two tasks; -e counts the fsync on both sides
    "file_per_process": ("-w", "-F", "-e", "-t", "1m", "-b", "256m"),
    "shared": ("-w", "-e", "-t", "1m", "-b", "256m"),
    "collective": ("-a", "MPIIO", "-c", "-w", "-e", "-t", "1m", "-b", "256m"),
}
MODULE = {"file_per_process": "POSIX", "shared": "POSIX", "collective": "MPI-IO"}  # whose calls IOR measures
RANK_0_BYTES = 32 * MIB
RANK_0 = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
/* Rank 0 writes for all: 32 MiB gathered from four ranks, a MiB at a time. */
int main(int argc, char **argv) {
    int rank, ranks, file = -1;
    char *all, *part = calloc(1, 1 << 18);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    all = calloc(ranks, 1 << 18);
    if (rank == 0 && (file = open(argv[1], O_CREAT | O_WRONLY, 0600)) < 0) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int step = 0; step < 32; step++) {
        MPI_Gather(part, 1 << 18, MPI_CHAR, all, 1 << 18, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (rank == 0 && write(file, all, ranks << 18) != ranks << 18) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) close(file);
    MPI_Finalize();
    return 0;
}
"""
# All ranks on this host, whatever Slurm calls it, and nothing but the loopback interface.
QUIET_MPI = "OMPI_MCA_btl=self,vader OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_plm=isolated OMPI_MCA_ras=^slurm"


@dataclass(frozen=True)
class LoadedRuns:
    """The jobs by strategy, what IOR printed, and the store with the logs and the accounting."""

    jobs: Mapping[str, str]
    ior: Mapping[str, dict[str, Any]]
    store: Path
    logs: Path

    def run(self, strategy: str) -> dict[str, Any]:
        """The row of the run of a job."""
        rows = StoredRuns.opened(str(self.store), None).named(self.jobs[strategy])
        assert len(rows) == 1, (strategy, len(rows))
        return dict(rows[0])


@pytest.fixture(scope="module")
def tools() -> Path:
    try:
        return hpc_tools()
    except ComponentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def loaded(slurm: SlurmCluster, tools: Path, tmp_path_factory: pytest.TempPathFactory) -> LoadedRuns:
    """Four jobs one after another, so that none slows another down; then what iolens loads of them."""
    folder = slurm.folder / "darshan"
    (folder / "logs").mkdir(parents=True)
    _compile(folder / "rank0")
    jobs = {"rank0": _ended(slurm, folder, tools, f"{folder / 'rank0'} {folder / 'rank0.out'}", tasks=4)}
    for strategy, options in IOR.items():
        summary = f"summaryFormat=JSON,summaryFile={folder / strategy}.json"
        command = f"{tools}/bin/ior {' '.join(options)} -o {folder / strategy}.out -O {summary}"
        jobs[strategy] = _ended(slurm, folder, tools, command, tasks=2)
    ior = {name: json.loads((folder / f"{name}.json").read_text())["tests"][0]["Results"][0] for name in IOR}
    store = tmp_path_factory.mktemp("darshan") / "store"
    environment = {"SLURM_CONF": slurm.configuration, "PATH": slurm.environment["PATH"]}

    def has_all_jobs() -> bool:
        """Loaded again until all are there: sacct does not list a job that began within the present second."""
        done = iolens("ingest", "slurm://", "--store", store, **environment)
        assert done.code == 0, done.err
        return {str(row["job_id"]) for row in Store(store).jobs()} >= set(jobs.values())

    slurm.wait_for(has_all_jobs, "the records of all jobs")
    done = iolens("ingest", "darshan", folder / "logs", "--store", store, **environment)
    assert done.code == 0, done.err
    return LoadedRuns(jobs, ior, store, folder / "logs")


def _compile(program: Path) -> None:
    source = program.with_suffix(".c")
    source.write_text(RANK_0)
    subprocess.run(["mpicc", "-o", program, source], check=True, capture_output=True, timeout=60)


def _ended(slurm: SlurmCluster, folder: Path, tools: Path, command: str, tasks: int) -> str:
    """The id of a job that ran the command under Darshan to its end, and that the accounting knows."""
    launch = f"mpirun --allow-run-as-root --oversubscribe -np {tasks} -x LD_PRELOAD={tools}/lib/libdarshan.so {command}"
    script = f"export DARSHAN_LOG_DIR_PATH={folder / 'logs'} {QUIET_MPI}\ncd {folder}\n{launch} && rm -f *.out*"
    job = slurm.submit(script, "--ntasks", "2", "--nodes", "1", "--account", "science", "--job-name", "ior")

    def state() -> str:
        return slurm.run("sacct", "-P", "-n", "-X", "-j", job, "--format", "State,End").strip()

    slurm.wait_for(lambda: state().rpartition("|")[2] not in ("", "Unknown"), f"the end of job {job}")
    if not state().startswith("COMPLETED"):
        output = slurm.outputs / f"{job}.out"
        raise ComponentFailed(f"{command}: {state()}: {output.read_text()[-2000:] if output.exists() else ''}")
    return job


@pytest.mark.parametrize("strategy", [*IOR, "rank0"])
def test_the_strategy_of_each_job(loaded: LoadedRuns, strategy: str) -> None:
    assert strategy_of(loaded.run(strategy))[0] == strategy


@pytest.mark.parametrize("strategy", list(IOR))
def test_mib_per_s_are_those_of_ior(loaded: LoadedRuns, strategy: str) -> None:
    """IOR's is bytes by the time from the first open to the last close; ours by the time in the slowest rank."""
    run, ior = loaded.run(strategy), loaded.ior[strategy]
    tasks, block_bytes = 2, int(ior["blockKiB"]) << 10
    totals = json.loads(run["module_totals"])[MODULE[strategy]]
    assert totals["write_bytes"] == tasks * block_bytes
    assert totals["agg_perf_by_slowest_mib_per_s"] == pytest.approx(ior["bwMiB"], rel=TOLERANCE)
    assert rate_of(run).mib_per_s == pytest.approx(ior["bwMiB"], rel=TOLERANCE)
    assert run["key_access_bytes"] >= MIB


def test_rank_0_moved_it_all(loaded: LoadedRuns) -> None:
    run = loaded.run("rank0")
    assert (run["processes"], run["io_ranks"], run["busiest_rank"]) == (4, 1, 0)
    assert (run["write_bytes"], run["busiest_rank_bytes"], run["executable"]) == (RANK_0_BYTES, RANK_0_BYTES, "rank0")


def test_runs_are_those_of_the_scheduler_s_jobs(loaded: LoadedRuns) -> None:
    jobs = {row["job_id"]: row for row in Store(loaded.store).jobs()}
    for strategy, job_id in loaded.jobs.items():
        run, job = loaded.run(strategy), jobs[job_id]
        start_us, end_us = int(str(job["start"])), int(str(job["time"]))
        assert start_us <= run["start"] <= run["time"] <= end_us + SECOND_US  # Slurm's times are whole seconds


def test_coverage_counts_the_jobs_that_left_a_log(loaded: LoadedRuns) -> None:
    done = iolens("runs", "coverage", "--store", loaded.store, "--format", "json")
    assert done.code == 0, done.err
    coverage = json.loads(done.out)
    assert (coverage["runs"], coverage["jobs_with_log"], coverage["joined"]["by_id"]) == (4, 4, 4)
    assert coverage["jobs"] == len(Store(loaded.store).jobs())
    (science,) = (line for line in coverage["projects"] if line["project"] == "science")
    assert (science["jobs_with_log"], science["runs"]) == (4, 4)
    assert set(science["apis"]) >= {"P", "M"}
    assert 0 < science["core_hours_with_log"] <= science["core_hours"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_darshan_parser_reads_logs_of_the_simulator(tools: Path, tmp_path: Path, strategy: Strategy) -> None:
    run = run_of(strategy, has_dxt=True)
    path, truth = write_log(tmp_path, run), truth_of(run)
    counters: dict[str, float] = {}
    for line in _parsed(tools, "darshan-parser", path):
        words = line.split("\t")
        if len(words) == 8 and words[0] in ("POSIX", "STDIO"):
            name = words[3].partition("_")[2]
            counters[name] = counters.get(name, 0.0) + float(words[4])
    assert counters.get("BYTES_READ", 0) == truth.read_bytes
    assert counters.get("BYTES_WRITTEN", 0) == truth.write_bytes
    assert counters.get("OPENS", 0) == truth.opens
    assert counters.get("F_WRITE_TIME", 0) == pytest.approx(truth.write_s, abs=1e-4)
    if strategy != "none":
        perf = [line.split() for line in _parsed(tools, "darshan-parser", path, "--perf") if "agg_perf" in line]
        alone = truth_of(run_of(strategy, printed_bytes=0)).mib_per_s
        assert float(perf[0][2]) == pytest.approx(alone, rel=1e-5)
        traced = [line for line in _parsed(tools, "darshan-dxt-parser", path) if " write " in line]
        assert len(traced) == sum(part.count for use in run.uses for part in use.writes)


def _parsed(tools: Path, program: str, path: Path, *options: str) -> list[str]:
    done = subprocess.run(
        [tools / "bin" / program, *options, path], capture_output=True, text=True, check=True, timeout=60
    )
    assert "Error" not in done.stderr, done.stderr
    return done.stdout.splitlines()

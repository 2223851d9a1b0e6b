"""What study D prints, as runs and jobs of a store: tables that go in as rows come out of the analyses again.

The logs and the scheduler's records of Intrepid were never published. Runs are made that have the printed processes,
nodes, bytes and times; IOR runs with their Darshan logs, of another machine, are read where they are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.runs.asked import lines_of
from iolens.analyses.runs.measures import with_measures
from iolens.analyses.runs.run_conditions import RunConditions
from iolens.analyses.runs_coverage.analysis import RunCoverage, runs_coverage
from iolens.analyses.runs_projects.analysis import RunProjects, runs_projects
from iolens.analyses.runs_scaling.analysis import RunScaling, runs_scaling
from iolens.analyses.runs_variance.analysis import RunVariance, runs_variance
from iolens.errors import InputError
from iolens.schema import TABLES
from iolens.sources import ReadOptions
from iolens.store.rows import to_arrow
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.store import Store
from iolens.units import GIB, MIB
from iolens.validation.evidence import PublicData, PublicFile, known, remembered

CORES_PER_NODE: Final = 4
TABLE_I: Final = {  # MiB/s by IOR and by Darshan, MiB/s/CN; 1 TiB by 4,096 processes
    "IOR N-1 write": (4021.01, 4026.91, "3.93"), "IOR N-1 read": (6050.73, 6067.70, "5.93"),
    "IOR N-N write": (3957.88, 4050.39, "3.96"), "IOR N-N read": (5877.41, 5883.73, "5.75"),
}  # fmt: skip
TABLE_II: Final = {  # jobs with a log and all, core-hours with a log and all in millions
    "EarthScience": (779, 1488, 10.9, 11.8), "NuclearPhysics": (1653, 6159, 11.3, 62.7),
    "Energy1": (994, 1340, 3.7, 5.7), "Climate": (32, 130, 2.0, 3.3), "Energy2": (384, 1433, 3.9, 4.4),
    "Turbulence1": (242, 467, 2.6, 4.6), "CombustionPhysics": (15, 42, 1.8, 2.4), "Chemistry": (28, 144, 0.1, 0.6),
    "Turbulence2": (70, 157, 0.3, 0.3), "Turbulence3": (172, 418, 0.1, 13.3),
}  # fmt: skip
ALL_JOBS: Final = (6480, 23653, 42.0, 175.0)  # section 3
TABLE_IV: Final = {  # samples, processes, files, GiB read and written, mean, standard deviation, CV
    "EarthScience A": (571, 2048, 57349, 624.4, 2.8, 939.9, 186.7, "19.9"),
    "EarthScience B": (171, 4096, 57349, 927.8, 2.8, 1157.4, 111.0, "9.6"),
    "NuclearPhysics A": (404, 2048, 4, 4.3, 0.0, 23.1, 21.3, "92.1"),
    "NuclearPhysics B": (407, 4096, 4, 4.3, 0.0, 24.3, 63.7, "262.2"),
    "NuclearPhysics C": (837, 4096, 10809, 791.1, 326.8, 450.4, 134.3, "29.8"),
    "NuclearPhysics D": (809, 4096, 9815, 626.8, 122.5, 246.7, 29.5, "12.0"),
    "Climate A": (8, 3888, 24455, 353.8, 100.5, 720.1, 56.9, "7.9"),
}  # fmt: skip
TABLE_VIII: Final = {1024: (3, "3.0"), 2048: (3, "1.3"), 4096: (2, "0.36"), 8192: (1, "0.08"), 16384: (1, "0.03"),
                     32768: (1, "0.01")}  # fmt: skip
PAIRS: Final = {"N-1 write": "n1-write", "N-1 read": "n1-read", "N-N write": "nn-write"}
_RECORDED: Final = "recorded with iolens, Darshan 3.5 and IOR 4.1 on one machine"

Rows = list[dict[str, Any]]


def pair(name: str) -> tuple[PublicFile, PublicFile]:
    """The log and IOR's own summary of a run on another machine."""
    stem = f"darshan-ior-pairs/{PAIRS[name]}"
    return PublicFile(f"{stem}.darshan", _RECORDED), PublicFile(f"{stem}.ior.json", _RECORDED)


@remembered
def ior_deviation_pct(evidence: PublicData, name: str) -> float:
    """How far MiB/s by the log are from what IOR reports of the same run, per cent, without a sign."""
    log, summary = pair(name)
    evidence.load("darshan", log, ReadOptions())
    evidence.load("ior", summary, ReadOptions(filesystem=name))
    runs = evidence.store.select_all(Scope()).frame("runs").filter(nw.col("log") == Path(log.path).name)
    speeds = [line["mib_per_s"] for line in lines_of(with_measures(runs).select("mib_per_s"))]
    moved = [row for row in evidence.store.benchmark_runs("ior") if row["filesystem"] == name]
    if len(speeds) != 1 or len(moved) != 1:
        raise InputError(log.path, f"{len(speeds)} runs and {len(moved)} results of IOR", "one of each")
    reported = float(str(moved[0]["bytes"])) / MIB / float(str(moved[0]["duration_s"]))
    return abs(100.0 * (known(speeds[0], log) / reported - 1.0))


@remembered
def ior_runs(evidence: PublicData) -> RunProjects:
    """Table I: each IOR run is a project."""
    rows = [
        _run(name, processes=4096, nodes=1024, read_bytes=GIB * 1024, slowest_rank_s=MIB / mib_per_s, project=name)
        for name, (_, mib_per_s, _) in TABLE_I.items()
    ]
    return runs_projects(_stored(evidence, "ior", rows))


@remembered
def projects_covered(evidence: PublicData) -> RunCoverage:
    """Table II: as many jobs and logs, and core-hours in these proportions."""
    return _covered(evidence, "projects", TABLE_II)


@remembered
def all_covered(evidence: PublicData) -> RunCoverage:
    """Section 3: all jobs of the two months."""
    return _covered(evidence, "all", {"all": ALL_JOBS})


def _covered(evidence: PublicData, name: str, table: Mapping[str, tuple[int, int, float, float]]) -> RunCoverage:
    runs: Rows = []
    jobs: Rows = []
    for project, (with_log, count, hours_with_log, hours) in table.items():
        shares = [hours_with_log / with_log] * with_log
        if count > with_log:
            shares += [(hours - hours_with_log) / (count - with_log)] * (count - with_log)
        for number, millions in enumerate(shares):
            job_id = f"{project}-{number}"
            seconds = millions * 1e6 * 3600.0 / 2048
            jobs.append({**_when(seconds), "job_id": job_id, "project": project, "cores": 2048, "ended": True})
            if number < with_log:
                runs.append(_run(job_id, job_id=job_id, processes=2048, duration_s=seconds))
    return runs_coverage(_stored(evidence, f"coverage-{name}", runs, jobs))


@remembered
def like_runs(evidence: PublicData) -> RunVariance:
    """Table IV: runs whose I/O times have the printed mean and standard deviation."""
    rows: Rows = []
    for name, (samples, processes, files, read, written, mean_s, stddev_s, _) in TABLE_IV.items():
        for number, seconds in enumerate(_times(samples, mean_s, stddev_s)):
            rows.append(_run(
                f"{name}-{number}", processes=processes, nodes=processes // CORES_PER_NODE, files=files, project=name,
                read_bytes=round(read * GIB), write_bytes=round(written * GIB), slowest_rank_s=seconds, user=name[:-2],
            ))  # fmt: skip
    return runs_variance(_stored(evidence, "like", rows))


def _times(samples: int, mean_s: float, stddev_s: float) -> Sequence[float]:
    """Times with that mean and deviation (n − 1): as many above as below, and none below zero where one can be far."""
    low = min(mean_s * 0.9, stddev_s / np.sqrt(samples))
    above = 1 if stddev_s > mean_s / 2 else samples // 2
    times = np.full(samples, mean_s - low)
    times[:above] = mean_s + low * (samples - above) / above
    centred = times - times.mean()
    return [float(time) for time in mean_s + centred * stddev_s / centred.std(ddof=1)]


@remembered
def combustion_runs(evidence: PublicData) -> RunScaling:
    """Table VIII: the same bytes on more and more nodes, as fast as printed."""
    rows = [
        _run(f"{nodes}-{number}", processes=nodes, nodes=nodes, project="CombustionPhysics", read_bytes=40 * GIB,
             slowest_rank_s=40 * 1024 / float(speed) / nodes)
        for nodes, (runs, speed) in TABLE_VIII.items() for number in range(runs)
    ]  # fmt: skip
    return runs_scaling(_stored(evidence, "scaling", rows), RunConditions(projects=["CombustionPhysics"]))


def _run(run_id: str, **columns: Any) -> dict[str, Any]:
    values = {"run_id": run_id, "user": "made-up", "executable": "made-up", "files": 1, "read_bytes": 0,
              "write_bytes": 0}  # fmt: skip
    return {**_when(columns.get("duration_s", 3600.0)), **values, **columns}


def _when(seconds: float) -> dict[str, Any]:
    start = 1_264_204_800 * 10**6  # 2010-01-23, when the study began
    return {"start": start, "time": start + round(seconds * 1e6), "date": start // 86_400_000_000, "source": "made-up",
            "duration_s": seconds}  # fmt: skip


def _stored(evidence: PublicData, name: str, runs: Rows, jobs: Rows | None = None) -> StoreSelection:
    """A store of its own, below that of the evidence, so that it vanishes with it."""
    store = Store(Path(evidence.store.url).parent / f"study-d-{name}")
    for table, rows in (("runs", runs), ("jobs", jobs or [])):
        if rows:
            store.append(table, to_arrow(TABLES[table], rows))
    return store.select_all(Scope())

"""Study D: two months of Darshan logs, block devices and file systems at a leadership centre (D1 to D14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.runs.asked import RunConditions, lines_of
from iolens.analyses.runs.measures import with_measures
from iolens.analyses.runs_coverage import RunCoverage, runs_coverage
from iolens.analyses.runs_projects import RunProjects, runs_projects
from iolens.analyses.runs_scaling import RunScaling, runs_scaling
from iolens.analyses.runs_variance import RunVariance, runs_variance
from iolens.errors import InputError
from iolens.schema import TABLES
from iolens.sources import ReadOptions
from iolens.store.rows import to_arrow
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.store import Store
from iolens.units import GIB, MIB
from iolens.validation.checks import (
    Explained,
    Published,
    PublishedCheck,
    Study,
    at_most,
    exactly,
    out_of_reach,
    printed,
    within,
)
from iolens.validation.evidence import PublicData, PublicFile, known, remembered

# What study D prints, as runs and jobs of a store ---------------------------------------------------------------------
# Tables that go in as rows come out of the analyses again.
#
# The logs and the scheduler's records of Intrepid were never published. Runs are made that have the printed processes,
# nodes, bytes and times; IOR runs with their Darshan logs, of another machine, are read where they are here.

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


# Study D: two months of Darshan logs, block devices and file systems on Intrepid (Argonne, 2010) ----------------------
# Its logs were never published. Tables that can be put together again as runs and jobs go through the store and the
# analyses and come back; what tables and text say of each other is independent of that.

LOOP: Final = "runs made of the printed bytes, times and nodes, stored and analysed: there and back"
TABLES_ALONE: Final = "from other printed numbers"
INTREPID: Final = "the logs of Intrepid were not published"
ELSEWHERE: Final = "Darshan's log and IOR's summary of one run, on another machine"
TABLE_III: Final = {"1": (1420, "1.7"), "2-5": (7053, "8.4"), "6-10": (5882, "7.0"), "11-20": (5530, "6.6"),
                    "21-30": (2581, "3.1"), "31-40": (1756, "2.1"), "41-50": (1369, "1.6"), "51-60": (1052, "1.3"),
                    "> 60": (30935, "37.1")}  # fmt: skip
OBSERVED_MINUTES: Final = 83_460  # wall time less the four lost days
GROWTH: Final = {  # Table V: January, March, change
    "usage": (1.14, 1.28, "12.3"), "files": (96.2, 191.4, "99.0"), "usage of EarthScience": (274.4, 295.1, "7.5"),
    "files of EarthScience": (12.3, 96.2, "682.1"),
}  # fmt: skip


def _per_node(evidence: PublicData, name: str) -> float:
    speeds = {line.project: line.mib_per_s_per_node for line in ior_runs(evidence).projects}
    return known(speeds.get(name), None)


def _above_ior_pct(evidence: PublicData, name: str) -> float:
    """MiB/s of the analysis over what IOR printed."""
    speeds = {line.project: line.mib_per_s for line in ior_runs(evidence).projects}
    return 100.0 * (known(speeds.get(name), None) / TABLE_I[name][0] - 1.0)


def _covered_by_half(evidence: PublicData) -> float:
    lines = projects_covered(evidence).projects
    return float(sum((line.core_hours_pct or 0.0) > 50.0 for line in lines))


def _jobs_with_log(evidence: PublicData, name: str) -> float:
    return known(next(line.jobs_with_log for line in projects_covered(evidence).projects if line.project == name), None)


def _skewing_jobs(evidence: PublicData) -> float:
    return sum(_jobs_with_log(evidence, name) for name in ("CombustionPhysics", "Turbulence1"))


def _cv_pct(evidence: PublicData, name: str) -> float:
    groups = {group.project: group.cv_pct for group in like_runs(evidence).groups}
    return known(groups.get(name), None)


def _spread(name: str) -> Published:
    """The printed coefficient, as far as the rounded mean and deviation beside it can be from the true ones."""
    *_, mean_s, stddev_s, text = TABLE_IV[name]
    value = float(text)
    slack = 0.05 + value * (0.05 / mean_s + 0.05 / stddev_s)
    why = "half a unit of the last printed digit, of the mean and the deviation too"
    return within(text, value, "%", (value - slack, value + slack), why, "printed")


def _rank_0_per_node(evidence: PublicData) -> float:
    """MiB/s/CN of NuclearPhysics B, by what Table IV prints."""
    _, processes, _, read_gib, _, mean_s, *_ = TABLE_IV["NuclearPhysics B"]
    return read_gib * GIB / MIB / mean_s / (processes / CORES_PER_NODE)


def _idle_pct(evidence: PublicData, minutes: int) -> float:
    return 100.0 * minutes / OBSERVED_MINUTES


def _change_pct(evidence: PublicData, before: float, after: float) -> float:
    return 100.0 * (after / before - 1.0)


def _by_nodes(evidence: PublicData, nodes: int) -> float:
    steps = {step.count: step.mib_per_s_per_node for step in combustion_runs(evidence).steps}
    return known(steps.get(nodes), None)


def _is_strong(evidence: PublicData) -> float:
    return float(combustion_runs(evidence).verdict.scaling == "strong")


# fmt: off
CHECKS: Final = (
    *(PublishedCheck("Table I", f"{name}: MiB/s/CN", printed(text, "MiB/s/CN"), LOOP, partial(_per_node, name=name))
      for name, (_, _, text) in TABLE_I.items()),
    *(PublishedCheck("Table I", f"{name}: by Darshan over by IOR",
        at_most("less than 3", 3.0, "%", "the study's words"), TABLES_ALONE, partial(_above_ior_pct, name=name))
      for name in TABLE_I),
    *(PublishedCheck("Table I", f"{name}, here: by Darshan over by IOR",
        at_most("less than 3", 3.0, "%", "the study's words"), ELSEWHERE, partial(ior_deviation_pct, name=name),
        needs=pair(name),
        otherwise=Explained("4.3", "1 GiB from the page cache in 79 ms: opening and waiting for each other weigh more")
        if name == "N-1 read" else None)
      for name in ("N-1 write", "N-1 read", "N-N write")),
    PublishedCheck("section 2.4", "most by the tree network, 700 MiB/s of 64 nodes", printed("10.94", "MiB/s/CN"),
        TABLES_ALONE, lambda evidence: 700 / 64),
    PublishedCheck("section 2.4", "most by the storage network, 350 MiB/s of 64 nodes", printed("5.47", "MiB/s/CN"),
        TABLES_ALONE, lambda evidence: 350 / 64),
    PublishedCheck("section 2.4", "most of 40,960 nodes, by the peak of 78 GiB/s", printed("1.59", "MiB/s/CN"),
        TABLES_ALONE, lambda evidence: 78 * 1024 / 40_960,
        otherwise=Explained("1.95", "1.59 would be 63.6 GiB/s: the study does not print which limit it took")),
    PublishedCheck("section 3", "jobs with a log", printed("27", "%"), LOOP,
        lambda evidence: known(all_covered(evidence).jobs_pct, None)),
    PublishedCheck("section 3", "core-hours with a log", printed("24", "%"), LOOP,
        lambda evidence: known(all_covered(evidence).core_hours_pct, None)),
    *(PublishedCheck("Table II", f"{name}: jobs with a log", exactly(str(count), count, "jobs", "a count", "printed"),
        LOOP, partial(_jobs_with_log, name=name)) for name, (count, *_) in TABLE_II.items()),
    PublishedCheck("section 3.2", "projects with over half of their core-hours covered",
        exactly("seven", 7, "projects", "a count in words", "printed"), LOOP, _covered_by_half),
    *(PublishedCheck("Table III", f"idle periods of {name} minutes", printed(text, "% of time"),
        f"minutes over {OBSERVED_MINUTES:,}: wall time less the lost days",
        partial(_idle_pct, minutes=minutes),
        otherwise=Explained("8.451", "7 minutes more of wall time would round it to 8.4") if name == "2-5" else None)
      for name, (minutes, text) in TABLE_III.items()),
    *(PublishedCheck("Table IV", f"{name}: coefficient of variation", _spread(name), LOOP, partial(_cv_pct, name=name))
      for name in TABLE_IV),
    *(PublishedCheck("Table V", f"change of {name}", printed(text, "%"), TABLES_ALONE,
        partial(_change_pct, before=before, after=after))
      for name, (before, after, text) in GROWTH.items()),
    PublishedCheck("section 4.2", "EarthScience's share of new files", printed("88", "%"), TABLES_ALONE,
        lambda evidence: 100.0 * (96.2 - 12.3) / (191.4 - 96.2)),
    PublishedCheck("section 4.2", "EarthScience's share of new data", printed("15", "%"), TABLES_ALONE,
        lambda evidence: 100.0 * (295.1 - 274.4) / (1280 - 1140)),
    PublishedCheck("section 4", "reads of all bytes", printed("78.8", "%"), TABLES_ALONE,
        lambda evidence: 100.0 * 117.1 / (117.1 + 31.5)),
    PublishedCheck("section 4.4", "jobs with a log of the two projects that skew access sizes",
        exactly("257", 257, "jobs", "a count", "printed"), "the counts of Table II, there and back", _skewing_jobs),
    PublishedCheck("section 5.2", "MiB/s/CN of rank-0 I/O, by Table IV", printed("0.2", "MiB/s/CN"),
        "4.3 GiB in 24.3 s on 1,024 nodes", _rank_0_per_node),
    *(PublishedCheck("Table VIII", f"CombustionPhysics on {nodes:,} nodes", printed(text, "MiB/s/CN"), LOOP,
        partial(_by_nodes, nodes=nodes)) for nodes, (_, text) in TABLE_VIII.items()),
    PublishedCheck("Table VIII", "runs", exactly("11", 11, "runs", "a count", "printed"), LOOP,
        lambda evidence: float(combustion_runs(evidence).runs)),
    PublishedCheck("section 5.7", "strong scaling: equal bytes on all node counts are called so",
        exactly("strong", 1, "", "yes or no"), LOOP, _is_strong),
    PublishedCheck("section 6", "gain of files created before", printed("28", "times"), "728 s over 25 s",
        lambda evidence: 728 / 25, otherwise=Explained("29.1", "the printed times are rounded")),
    PublishedCheck("section 6", "gain of MPI-IO", printed("41", "times"), "728 s over 17 s",
        lambda evidence: 728 / 17, otherwise=Explained("42.8", "the printed times are rounded")),
    out_of_reach("Fig. 3", "interfaces and patterns by processes", "bars", "% of jobs", INTREPID),
    out_of_reach("Fig. 4", "bytes of EarthScience", "3.5", "PiB", INTREPID),
    out_of_reach("Fig. 5", "files against processes", "dots", "files", INTREPID),
    out_of_reach("Figs. 6, 7", "mean and largest throughput of a minute", "1984; 35890", "MiB/s",
        "the telemetry of Intrepid's block devices was not published"),
    out_of_reach("section 4.3", "written files that are new", "99.3", "%", INTREPID),
    out_of_reach("Fig. 10", "most popular sizes of reads and writes", "100 KiB to 1 MiB; 100 B to 1 KiB", "", INTREPID),
    out_of_reach("section 4.4", "writes of 100 B to 10 KiB by CombustionPhysics", "91.1", "%", INTREPID),
    out_of_reach("section 4.4", "writes of up to 100 B by Turbulence1", "98.6", "%", INTREPID),
    out_of_reach("Table VI", "characteristics of ten projects", "80 numbers", "", INTREPID),
    out_of_reach("Figs. 11, 12", "MiB/s/CN and access sizes of ten projects", "bars", "", INTREPID),
    out_of_reach("Table VII", "Turbulence1 by job", "2.92; 1.12; 0.64; 0.38; 0.11; 0.0009", "MiB/s/CN", INTREPID),
)
# fmt: on

STUDY: Final = Study(
    "D",
    "Understanding and improving computational science storage access through continuous characterization (Carns and"
    " others; 2011)",
    "ACM Transactions on Storage 7, 3, article 8, doi:10.1145/2027066.2027068",
    CHECKS,
)

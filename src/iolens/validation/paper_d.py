"""Study D: two months of Darshan logs, block devices and file systems on Intrepid (Argonne, 2010).

Its logs were never published. Tables that can be put together again as runs and jobs go through the store and the
analyses and come back; what tables and text say of each other is independent of that.
"""

from __future__ import annotations

from functools import partial
from typing import Final

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
from iolens.validation.evidence import PublicData, known
from iolens.validation.paper_d_evidence import (
    CORES_PER_NODE,
    TABLE_I,
    TABLE_II,
    TABLE_IV,
    TABLE_VIII,
    all_covered,
    combustion_runs,
    ior_deviation_pct,
    ior_runs,
    like_runs,
    pair,
    projects_covered,
)

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

"""A tuned application before and after (D14, the study's Fig. 14): every key number of both sides, and what is gone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from iolens.analyses.runs.summary import RunSummary
from iolens.findings.rule import Finding

MIB: Final = 1 << 20

Measure = Callable[[RunSummary], float | None]


def _per_process(name: str) -> Measure:
    def measure(run: RunSummary) -> float | None:
        value = getattr(run, name)
        return None if value is None or not run.nprocs else value / run.nprocs

    return measure


def _field(name: str) -> Measure:
    def measure(run: RunSummary) -> float | None:
        value: float | None = getattr(run, name)
        return value

    return measure


def _mean_access(direction: str) -> Measure:
    def measure(run: RunSummary) -> float | None:
        sizes = run.access_sizes
        posix = run.modules.get("POSIX")
        moved = None if posix is None else getattr(posix, f"{direction}_bytes")
        count = 0 if sizes is None else sum(getattr(sizes, direction))
        return moved / count if moved is not None and count else None

    return measure


MEASURES: Final[Mapping[str, Measure]] = {
    "mib_per_s_per_node": _field("mib_per_s_per_node"),
    "mib_per_s": _field("mib_per_s"),
    "runtime_s": _field("runtime_s"),
    "rate_s": _field("rate_s"),
    "slowest_rank_s": _field("slowest_rank_s"),
    "io_time_pct": _field("io_time_pct"),
    "metadata_time_pct": _field("metadata_time_pct"),
    "read_s": _field("read_s"),
    "write_s": _field("write_s"),
    "metadata_s": _field("metadata_s"),
    "io_core_hours": _field("io_core_hours"),
    "read_bytes": _field("read_bytes"),
    "write_bytes": _field("write_bytes"),
    "nprocs": _field("nprocs"),
    "nodes": _field("nodes"),
    "files": _field("files"),
    "files_per_process": _per_process("files"),
    "opens": _field("opens"),
    "mean_read_bytes": _mean_access("read"),
    "mean_write_bytes": _mean_access("write"),
    "sequential_pct": _field("sequential_pct"),
    "aligned_pct": _field("aligned_pct"),
}
"""Numbers that are compared, in the order of the table; units in the names."""


@dataclass(frozen=True, slots=True)
class ComparedMeasure:
    """One number of both sides, medians over their runs; `factor` is after ÷ before."""

    name: str
    before: float | None
    after: float | None
    factor: float | None


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """One side."""

    label: str
    runs: int
    jobids: Sequence[str | None]
    executables: Sequence[str | None]
    strategies: Sequence[str | None]
    mib_per_s: Sequence[float | None]  # of each run
    mib_per_s_per_node: Sequence[float | None]
    rate_s: Sequence[float | None]  # I/O time of the slowest rank behind these rates
    slowest_rank_s: Sequence[float | None]
    runs_short: int  # so little I/O time that their rate says little


@dataclass(frozen=True, slots=True)
class RunComparison:
    """`after` beside `before`. Findings are gone, new or kept by their codes, in any run of a side."""

    before: ComparedRuns
    after: ComparedRuns
    measures: Sequence[ComparedMeasure]
    io_time_factor: float | None  # before ÷ after: how many times faster the I/O is
    same_work: bool | None  # bytes of both sides within 10 %
    findings_gone: Sequence[Finding]
    findings_new: Sequence[Finding]
    findings_kept: Sequence[Finding]


SAME_WORK: Final = 1.1


def run_comparison(before: Sequence[RunSummary], after: Sequence[RunSummary]) -> RunComparison:
    """Compare two runs, or two groups of runs; neither is empty."""
    sides = [_findings(side) for side in (before, after)]
    measures = [_measure(name, before, after) for name in MEASURES]
    by_name = {line.name: line for line in measures}
    slowest = by_name["rate_s"].factor
    return RunComparison(
        before=_side("before", before),
        after=_side("after", after),
        measures=measures,
        io_time_factor=1 / slowest if slowest else None,
        same_work=_same_work(before, after),
        findings_gone=[finding for code, finding in sides[0].items() if code not in sides[1]],
        findings_new=[finding for code, finding in sides[1].items() if code not in sides[0]],
        findings_kept=[finding for code, finding in sides[1].items() if code in sides[0]],
    )


def _findings(runs: Sequence[RunSummary]) -> dict[str, Finding]:
    """The first of each code."""
    first: dict[str, Finding] = {}
    for finding in (finding for run in runs for finding in run.findings):
        first.setdefault(finding.code, finding)
    return first


def _measure(name: str, before: Sequence[RunSummary], after: Sequence[RunSummary]) -> ComparedMeasure:
    first, second = (_median([MEASURES[name](run) for run in side]) for side in (before, after))
    factor = second / first if first and second is not None else None
    return ComparedMeasure(name, first, second, factor)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _same_work(before: Sequence[RunSummary], after: Sequence[RunSummary]) -> bool | None:
    moved = [
        _median([(run.read_bytes or 0) + (run.write_bytes or 0) for run in side if run.read_bytes is not None])
        for side in (before, after)
    ]
    if moved[0] is None or moved[1] is None:
        return None
    if not moved[0] or not moved[1]:
        return moved[0] == moved[1]
    return math.isclose(math.log(moved[0] / moved[1]), 0.0, abs_tol=math.log(SAME_WORK))


def _side(label: str, runs: Sequence[RunSummary]) -> ComparedRuns:
    return ComparedRuns(
        label=label,
        runs=len(runs),
        jobids=[run.jobid for run in runs],
        executables=[run.executable for run in runs],
        strategies=[run.strategy for run in runs],
        mib_per_s=[run.mib_per_s for run in runs],
        mib_per_s_per_node=[run.mib_per_s_per_node for run in runs],
        rate_s=[run.rate_s for run in runs],
        slowest_rank_s=[run.slowest_rank_s for run in runs],
        runs_short=sum(run.rate_is_short for run in runs),
    )

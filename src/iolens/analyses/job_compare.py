"""Two groups of like jobs compared: DEFINITIONS, "Jobs before and after" (N3).

The job is the unit, not the RPC: a job's measures are the shares of its RPCs, and of their bytes, that each size has,
reads and writes apart; and its totals on logarithms. All measures are one family: a change that is not there is
reported in at most `significance` of all comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import numpy as np

from iolens.analyses.job_totals import JobTotals, Origin
from iolens.models.resampling import GroupDifferences, group_differences
from iolens.schema import DIRECTIONS
from iolens.units import from_epoch_us

SIGNIFICANT: Final = 0.01  # 200 comparisons of like with like then have more than 5 % false alarms next to never

Share = Literal["rpcs", "bytes"]
Verdict = Literal["moved", "not shown", "undecided"]

TOTALS: Final[Mapping[str, Callable[[JobTotals], float | None]]] = {
    "read_bytes": lambda line: line.read_bytes,
    "write_bytes": lambda line: line.write_bytes,
    "opens": lambda line: line.opens,
    "duration_s": lambda line: line.job.duration_s,
}


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """The jobs of one side."""

    label: str
    jobs: int
    first_start: datetime
    last_end: datetime
    sharing_nodes: int  # with other jobs on their nodes, whose I/O is in their counters
    sampled_at_begin_and_end: int  # the others are sums of their nodes' intervals


@dataclass(frozen=True, slots=True)
class SizeShift:
    """One RPC size of one direction; `share` is of a job's RPCs or of their bytes, averaged over jobs that had any."""

    direction: str
    size_bytes: int
    share: Share
    first_jobs: int
    second_jobs: int
    first_pct: float | None
    second_pct: float | None
    difference_points: float | None
    statistic: float | None
    p: float | None
    moved: bool


@dataclass(frozen=True, slots=True)
class TotalShift:
    """One total of a job; geometric means over the jobs for which it is more than 0."""

    quantity: str
    first_jobs: int
    second_jobs: int
    first_geometric_mean: float | None
    second_geometric_mean: float | None
    ratio: float | None
    statistic: float | None
    p: float | None
    moved: bool


@dataclass(frozen=True, slots=True)
class ComparedJob:
    """One job of either side."""

    job_id: str
    cluster: str | None
    group: str
    start: datetime
    duration_s: float
    nodes: int | None
    cores: int | None
    origin: Origin
    shares_nodes: bool | None
    read_bytes: int | None
    write_bytes: int | None
    opens: int | None


@dataclass(frozen=True, slots=True)
class JobsLeftOut:
    """Like jobs that are in neither group."""

    running: int = 0
    without_counters: int = 0
    in_between: int = 0  # ran across the date, or between the two dates
    sharing_nodes: int = 0  # only where exclusive jobs were asked for


@dataclass(frozen=True, slots=True)
class JobComparison:
    """`second` beside `first`. `verdict`: whether anything moved beyond chance, family-wise."""

    filesystem: str
    before: datetime | None
    after: datetime | None
    first: ComparedGroup
    second: ComparedGroup
    verdict: Verdict
    sizes: list[SizeShift]
    totals: list[TotalShift]
    significance: float
    arrangements: int
    is_exhaustive: bool
    smallest_p: float | None
    left_out: JobsLeftOut
    jobs: list[ComparedJob]


def job_compare(
    filesystem: str,
    first: tuple[str, Sequence[JobTotals]],
    second: tuple[str, Sequence[JobTotals]],
    dates: tuple[datetime | None, datetime | None] = (None, None),
    left_out: JobsLeftOut | None = None,
    significance: float = SIGNIFICANT,
) -> JobComparison:
    """Compare two groups, each with its label; neither is empty. What has a p of at most `significance` has moved."""
    members = [*first[1], *second[1]]
    is_second = np.arange(len(members)) >= len(first[1])
    shares, totals = _shares(members), _totals(members)
    values = np.array([*shares.values(), *totals.values()], dtype=float).T
    differences = group_differences(values, is_second)
    known = np.isfinite(values)
    jobs = known[~is_second].sum(axis=0), known[is_second].sum(axis=0)
    lines = [
        _Line.of(differences, (int(jobs[0][place]), int(jobs[1][place])), place, significance)
        for place in range(values.shape[1])
    ]
    return JobComparison(
        filesystem=filesystem,
        before=dates[0],
        after=dates[1],
        first=_group(*first),
        second=_group(*second),
        verdict=_verdict(differences, significance),
        sizes=[_size(*key, line) for key, line in zip(shares, lines, strict=False)],
        totals=[_total(quantity, line) for quantity, line in zip(totals, lines[len(shares) :], strict=True)],
        significance=significance,
        arrangements=differences.arrangements,
        is_exhaustive=differences.is_exhaustive,
        smallest_p=differences.smallest_p,
        left_out=left_out or JobsLeftOut(),
        jobs=[_job(line, label) for label, group in (first, second) for line in group],
    )


def _shares(members: Sequence[JobTotals]) -> dict[tuple[str, int, Share], list[float]]:
    """Per cent of each job's RPCs, or of their bytes, by direction and size; NaN: it has no RPC of that direction."""
    shares: dict[tuple[str, int, Share], list[float]] = {}
    weights: dict[Share, Callable[[int], int]] = {"rpcs": lambda size: 1, "bytes": lambda size: size}
    for direction in DIRECTIONS:
        counts = [_counts(line, direction) for line in members]
        sizes = sorted({size for job in counts for size, count in job.items() if count})
        for share, weight in weights.items():
            wholes = [sum(count * weight(size) for size, count in job.items()) for job in counts]
            for size in sizes:
                shares[direction, size, share] = [
                    100 * job.get(size, 0) * weight(size) / whole if whole else math.nan
                    for job, whole in zip(counts, wholes, strict=True)
                ]
    return shares


def _totals(members: Sequence[JobTotals]) -> dict[str, list[float]]:
    """Logarithms of each job's totals; NaN: not known, or none."""
    known = {quantity: [of(line) for line in members] for quantity, of in TOTALS.items()}
    return {name: [math.log(value) if value else math.nan for value in values] for name, values in known.items()}


def _counts(line: JobTotals, direction: str) -> dict[int, int]:
    return {size.size_bytes: getattr(size, f"{direction}s") for size in line.rpc_sizes or ()}


@dataclass(frozen=True, slots=True)
class _Line:
    """One measure of both groups; None is undefined."""

    jobs: tuple[int, int]  # that have it
    first: float | None
    second: float | None
    difference: float | None
    statistic: float | None
    p: float | None
    significance: float

    @classmethod
    def of(cls, differences: GroupDifferences, jobs: tuple[int, int], place: int, significance: float) -> _Line:
        columns = ("first_mean", "second_mean", "difference", "statistic", "p")
        numbers = [float(getattr(differences, name)[place]) for name in columns]
        first, second, difference, statistic, p = (None if math.isnan(number) else number for number in numbers)
        return cls(jobs, first, second, difference, statistic, p, significance)

    @property
    def moved(self) -> bool:
        return self.p is not None and self.p <= self.significance


def _size(direction: str, size_bytes: int, share: Share, line: _Line) -> SizeShift:
    return SizeShift(
        direction, size_bytes, share, *line.jobs, line.first, line.second, line.difference, line.statistic, line.p,
        line.moved,
    )  # fmt: skip


def _total(quantity: str, line: _Line) -> TotalShift:
    first, second, ratio = (
        None if value is None else math.exp(value) for value in (line.first, line.second, line.difference)
    )
    return TotalShift(quantity, *line.jobs, first, second, ratio, line.statistic, line.p, line.moved)


def _verdict(differences: GroupDifferences, significance: float) -> Verdict:
    if differences.smallest_p is None or differences.smallest_p > significance:
        return "undecided"
    return "moved" if bool((differences.p <= significance).any()) else "not shown"


def _group(label: str, members: Sequence[JobTotals]) -> ComparedGroup:
    return ComparedGroup(
        label,
        len(members),
        from_epoch_us(min(line.job.start_us for line in members)),
        from_epoch_us(max(line.job.end_us for line in members)),
        sum(line.shares_nodes is True for line in members),
        sum(line.origin == "job" for line in members),
    )


def _job(line: JobTotals, group: str) -> ComparedJob:
    job = line.job
    return ComparedJob(
        job.job_id, job.cluster, group, from_epoch_us(job.start_us), job.duration_s, job.nodes, job.cores,
        line.origin, line.shares_nodes, line.read_bytes, line.write_bytes, line.opens,
    )  # fmt: skip

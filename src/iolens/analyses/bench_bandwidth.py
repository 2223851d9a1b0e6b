"""Bandwidth of a study, case by case (SPEC N4, N5; paper N, Figs. 13 to 18): best and median of the repeats.

Two comparisons come with it: file per process against one shared file, and several OSTs against one (DEFINITIONS,
Improvement). Where a study has two places, the second is compared with the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any, Final

from iolens.errors import UsageError
from iolens.models.resampling import geometric_mean

Run = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthKey:
    """What two runs have in common that are repeats of each other."""

    place: str | None
    direction: str
    api: str | None
    tasks: int | None
    file_per_process: bool | None
    collective: bool | None
    transfer_bytes: int | None
    aggregate_bytes: int | None
    stripe_count: int | None
    stripe_bytes: int | None
    direct: bool | None
    fsync: bool | None
    page_cache: str | None


@dataclass(frozen=True, slots=True)
class BandwidthCase:
    """Repeats of one case; rates in bytes per second, in the order in which they were measured."""

    key: BandwidthKey
    bytes_per_s: tuple[float, ...]

    @property
    def best_bytes_per_s(self) -> float:
        """The best of the repeats, as paper N takes it."""
        return max(self.bytes_per_s)

    @property
    def median_bytes_per_s(self) -> float:
        """Half of the repeats are faster."""
        return float(median(self.bytes_per_s))

    @property
    def spread_pct(self) -> float | None:
        """From the slowest to the best, in per cent of the median; None for a single run."""
        if len(self.bytes_per_s) < 2:
            return None
        return 100.0 * (max(self.bytes_per_s) - min(self.bytes_per_s)) / self.median_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthLine(BandwidthKey):
    """A case as a line of the answer."""

    runs: int
    best_bytes_per_s: float
    median_bytes_per_s: float
    mean_bytes_per_s: float  # geometric, over the runs
    spread_pct: float | None
    bytes_per_s: list[float]


@dataclass(frozen=True, slots=True)
class StripeImprovement:
    """Several OSTs against one at equal block size, each at its best stripe size: 100·(x − ref)/ref."""

    place: str | None
    direction: str
    transfer_bytes: int | None
    stripe_count: int
    stripe_bytes: int | None  # the best
    bytes_per_s: float
    one_ost_bytes_per_s: float
    improvement_pct: float


@dataclass(frozen=True, slots=True)
class FilesFactor:
    """File per process against one shared file, all else equal."""

    place: str | None
    direction: str
    tasks: int | None
    transfer_bytes: int | None
    aggregate_bytes: int | None
    per_process_bytes_per_s: float
    shared_bytes_per_s: float
    factor: float


@dataclass(frozen=True, slots=True)
class PlaceDifference:
    """The second place against the first over all cases that both have, best against best."""

    direction: str
    reference: str | None
    place: str | None
    cases: int
    median_pct: float  # how much faster the second place is; negative: slower
    least_pct: float
    most_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyBandwidth:
    """All cases of a study."""

    study: str | None
    kind: str | None
    hosts: list[str]
    filesystems: list[str]
    places: list[str]
    runs: int
    repetitions: int | None
    memory_bytes: int | None
    cases: list[BandwidthLine]
    improvements: list[StripeImprovement]
    files: list[FilesFactor]
    differences: list[PlaceDifference]
    warnings: list[str]


def study_bandwidth(rows: Sequence[Run]) -> StudyBandwidth:
    """The answer from the rows of one study."""
    cases = bandwidth_cases(rows)
    if not cases:
        raise UsageError("no run of this study has a bandwidth")
    return StudyBandwidth(
        study=_only(rows, "sweep"),
        kind=_only(rows, "study"),
        hosts=_names(rows, "host"),
        filesystems=_names(rows, "filesystem"),
        places=_names(rows, "place"),
        runs=sum(len(case.bytes_per_s) for case in cases),
        repetitions=max((row["repetitions"] for row in rows if row.get("repetitions")), default=None),
        memory_bytes=_memory(rows),
        cases=[_line(case) for case in cases],
        improvements=_improvements(cases),
        files=_files(cases),
        differences=_differences(cases),
        warnings=_warnings(rows, cases),
    )


def bandwidth_cases(rows: Iterable[Run]) -> list[BandwidthCase]:
    """Runs that are repeats of each other together, in the order in which they first come."""
    rates: dict[BandwidthKey, list[float]] = {}
    for row in rows:
        if row.get("bytes") and row.get("duration_s") and row.get("direction") in ("write", "read"):
            key = BandwidthKey(**{item.name: row.get(item.name) for item in fields(BandwidthKey)})  # type: ignore[arg-type]
            rates.setdefault(key, []).append(row["bytes"] / row["duration_s"])
    return [BandwidthCase(key, tuple(values)) for key, values in rates.items()]


def _line(case: BandwidthCase) -> BandwidthLine:
    return BandwidthLine(
        **{item.name: getattr(case.key, item.name) for item in fields(BandwidthKey)},
        runs=len(case.bytes_per_s),
        best_bytes_per_s=case.best_bytes_per_s,
        median_bytes_per_s=case.median_bytes_per_s,
        mean_bytes_per_s=geometric_mean(case.bytes_per_s),
        spread_pct=case.spread_pct,
        bytes_per_s=list(case.bytes_per_s),
    )


def _improvements(cases: Sequence[BandwidthCase]) -> list[StripeImprovement]:
    """DEFINITIONS, Improvement: at equal block size, best stripe size, the reference is one OST."""
    best: dict[BandwidthKey, dict[int, BandwidthCase]] = {}
    for case in cases:
        count = case.key.stripe_count
        if count is not None:
            counts = best.setdefault(replace(case.key, stripe_count=None, stripe_bytes=None), {})
            if count not in counts or case.best_bytes_per_s > counts[count].best_bytes_per_s:
                counts[count] = case
    return [
        StripeImprovement(
            key.place, key.direction, key.transfer_bytes, count, case.key.stripe_bytes, case.best_bytes_per_s,
            counts[1].best_bytes_per_s, improvement_pct(case.best_bytes_per_s, counts[1].best_bytes_per_s),
        )
        for key, counts in best.items() if 1 in counts
        for count, case in sorted(counts.items()) if count != 1
    ]  # fmt: skip


def improvement_pct(value: float, reference: float) -> float:
    """100·(x − ref)/ref."""
    return 100.0 * (value - reference) / reference


def _files(cases: Sequence[BandwidthCase]) -> list[FilesFactor]:
    shared = {replace(case.key, file_per_process=None): case for case in cases if case.key.file_per_process is False}
    factors = []
    for case in cases:
        other = shared.get(replace(case.key, file_per_process=None))
        if case.key.file_per_process and other is not None:
            key, mine, theirs = case.key, case.best_bytes_per_s, other.best_bytes_per_s
            factors.append(
                FilesFactor(
                    key.place, key.direction, key.tasks, key.transfer_bytes, key.aggregate_bytes, mine, theirs,
                    mine / theirs,
                )
            )  # fmt: skip
    return factors


def _differences(cases: Sequence[BandwidthCase]) -> list[PlaceDifference]:
    places = list(dict.fromkeys(case.key.place for case in cases))
    differences = []
    for place in places[1:]:
        reference = {replace(case.key, place=None): case for case in cases if case.key.place == places[0]}
        for direction in ("write", "read"):
            changes = [
                improvement_pct(case.best_bytes_per_s, reference[same].best_bytes_per_s)
                for case in cases
                if case.key.place == place
                and case.key.direction == direction
                and (same := replace(case.key, place=None)) in reference
            ]
            if changes:
                differences.append(
                    PlaceDifference(
                        direction, places[0], place, len(changes), float(median(changes)), min(changes), max(changes)
                    )
                )
    return differences


CACHED: Final = "a read may have come from memory: the file of {size} fits into the {memory} of this machine"


def _warnings(rows: Sequence[Run], cases: Sequence[BandwidthCase]) -> list[str]:
    """What to know before the numbers are believed."""
    from iolens.units import format_bytes

    warnings = []
    hosts = _names(rows, "host")
    if len(hosts) > 1:
        warnings.append(f"the runs were made on {len(hosts)} machines: {', '.join(hosts)}")
    memory = _memory(rows)
    warm = [
        case.key.aggregate_bytes
        for case in cases
        if case.key.direction == "read" and case.key.page_cache == "warm" and case.key.aggregate_bytes
    ]
    if memory and warm and min(warm) < memory:
        warnings.append(CACHED.format(size=format_bytes(min(warm)), memory=format_bytes(memory)))
    if any(case.key.direction == "write" and case.key.fsync is False and not case.key.direct for case in cases):
        warnings.append("writes without fsync: what was still in memory at the end is not in the seconds")
    return warnings


def _memory(rows: Sequence[Run]) -> int | None:
    return max((row["memory_bytes"] for row in rows if row.get("memory_bytes")), default=None)


def _names(rows: Iterable[Run], column: str) -> list[str]:
    return list(dict.fromkeys(str(row[column]) for row in rows if row.get(column) is not None))


def _only(rows: Sequence[Run], column: str) -> str | None:
    names = _names(rows, column)
    return names[0] if len(names) == 1 else None

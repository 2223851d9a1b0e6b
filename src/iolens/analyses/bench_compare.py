"""Two studies side by side: two file systems, two machines or two years (`bench compare A B`).

Cases that both have are compared, best against best. A change is `beyond_noise` when the runs of the two do not
overlap: every run of one is faster than every run of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any

from iolens.errors import UsageError

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureKey:
    """What a measure is of; the place counts only where both studies have several."""

    place: str | None
    direction: str
    call: str | None
    tasks: int | None
    file_per_process: bool | None
    transfer_bytes: int | None
    aggregate_bytes: int | None
    stripe_count: int | None
    stripe_bytes: int | None
    direct: bool | None
    fsync: bool | None
    page_cache: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange(MeasureKey):
    """One case in both studies; `unit` is bytes/s, operations/s, or s for a latency, of which less is better."""

    unit: str
    before: float
    after: float
    change_pct: float
    runs_before: int
    runs_after: int
    beyond_noise: bool | None  # None: one of them has a single run


@dataclass(frozen=True, slots=True)
class DirectionChange:
    """All cases of a direction together."""

    direction: str
    unit: str
    cases: int
    median_pct: float
    cases_beyond_noise: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyComparison:
    """The second study against the first."""

    before: str
    after: str
    changes: list[MeasureChange]
    directions: list[DirectionChange]
    only_before: int  # cases
    only_after: int
    warnings: list[str]


def study_comparison(before: str, first: Sequence[Row], after: str, second: Sequence[Row]) -> StudyComparison:
    """Of the rows of two studies with their names."""
    by_place = all(len({row.get("place") for row in rows}) > 1 for rows in (first, second))
    old, new = (_measures(rows, by_place) for rows in (first, second))
    both = [key for key in old if key in new]
    if not both:
        raise UsageError(f"{before} and {after} have no case in common: other sizes, tasks, stripes or operations")
    changes = [_change(key, unit, old[key, unit], new[key, unit]) for key, unit in both]
    return StudyComparison(
        before=before,
        after=after,
        changes=changes,
        directions=_directions(changes),
        only_before=len(old) - len(both),
        only_after=len(new) - len(both),
        warnings=[*_together(before, first, by_place), *_together(after, second, by_place), *_differing(first, second)],
    )


def _together(name: str, rows: Sequence[Row], by_place: bool) -> list[str]:
    """Places of a study that count as one, because the other has a single one."""
    places = list(dict.fromkeys(str(row["place"]) for row in rows if row.get("place") is not None))
    return [f"places of {name} are taken together: {', '.join(places)}"] if len(places) > 1 and not by_place else []


def _measures(rows: Sequence[Row], by_place: bool) -> dict[tuple[MeasureKey, str], list[float]]:
    measures: dict[tuple[MeasureKey, str], list[float]] = {}
    for row in rows:
        value, unit = _measure(row)
        if value:
            key = MeasureKey(**{item.name: row.get(item.name) for item in fields(MeasureKey)})  # type: ignore[arg-type]
            measures.setdefault((key if by_place else replace(key, place=None), unit), []).append(value)
    return measures


def _measure(row: Row) -> tuple[float | None, str]:
    if row.get("latency_mean_s"):
        return row["latency_mean_s"], "s"
    if row.get("direction") in ("write", "read") and row.get("bytes") and row.get("duration_s"):
        return row["bytes"] / row["duration_s"], "bytes/s"
    return row.get("reported_ops_per_s"), "operations/s"


def _change(key: MeasureKey, unit: str, old: Sequence[float], new: Sequence[float]) -> MeasureChange:
    best = min if unit == "s" else max
    before, after = best(old), best(new)
    apart = None if min(len(old), len(new)) < 2 else max(old) < min(new) or max(new) < min(old)
    return MeasureChange(
        **{item.name: getattr(key, item.name) for item in fields(MeasureKey)},
        unit=unit,
        before=before,
        after=after,
        change_pct=100.0 * (after - before) / before,
        runs_before=len(old),
        runs_after=len(new),
        beyond_noise=apart,
    )


def _directions(changes: Sequence[MeasureChange]) -> list[DirectionChange]:
    lines = []
    for direction, unit in dict.fromkeys((change.direction, change.unit) for change in changes):
        mine = [change for change in changes if (change.direction, change.unit) == (direction, unit)]
        beyond = sum(bool(change.beyond_noise) for change in mine)
        lines.append(
            DirectionChange(direction, unit, len(mine), float(median(change.change_pct for change in mine)), beyond)
        )
    return lines


def _differing(first: Sequence[Row], second: Sequence[Row]) -> list[str]:
    """What else differs between the two, which the change may be due to."""
    warnings = []
    for column, words in (("host", "machines"), ("tool", "benchmarks"), ("api", "interfaces"), ("nodes", "nodes")):
        names = [sorted({str(row[column]) for row in rows if row.get(column) is not None}) for rows in (first, second)]
        if names[0] and names[1] and names[0] != names[1]:
            warnings.append(f"other {words}: {', '.join(names[0])} before, {', '.join(names[1])} after")
    return warnings

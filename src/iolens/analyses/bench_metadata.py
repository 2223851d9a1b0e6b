"""Rates of metadata operations that a study measured with mdtest, by number of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from iolens.errors import UsageError


@dataclass(frozen=True, slots=True)
class MetadataRate:
    """One operation with one number of tasks, operations per second."""

    place: str | None
    operation: str
    tasks: int | None
    runs: int
    best_ops_per_s: float
    median_ops_per_s: float
    spread_pct: float | None
    ops_per_s: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataStudy:
    """All operations of a study."""

    study: str | None
    hosts: list[str]
    rates: list[MetadataRate]
    warnings: list[str]


def metadata_study(rows: Sequence[Mapping[str, Any]]) -> MetadataStudy:
    """From the rows of a metadata study."""
    cases: dict[tuple[Any, str, Any], list[tuple[float, float]]] = {}
    for row in rows:
        if (rate := row.get("reported_ops_per_s")) and row.get("direction"):
            key = row.get("place"), str(row["direction"]), row.get("tasks")
            cases.setdefault(key, []).append((rate, row.get("ops_per_s_max") or rate))
    if not cases:
        raise UsageError("no run of this study has a rate of operations")
    studies = {str(row["sweep"]) for row in rows if row.get("sweep")}
    hosts = list(dict.fromkeys(str(row["host"]) for row in rows if row.get("host")))
    return MetadataStudy(
        study=studies.pop() if len(studies) == 1 else None,
        hosts=hosts,
        rates=[_rate(*key, rates) for key, rates in cases.items()],
        warnings=[f"the runs were made on {len(hosts)} machines: {', '.join(hosts)}"] if len(hosts) > 1 else [],
    )


def _rate(place: str | None, operation: str, tasks: int | None, runs: Sequence[tuple[float, float]]) -> MetadataRate:
    """Of the mean rate of each run and its best: of a run with several iterations mdtest prints both."""
    rates = [rate for rate, _ in runs]
    middle = float(median(rates))
    spread = 100.0 * (max(rates) - min(rates)) / middle if len(rates) > 1 else None
    return MetadataRate(place, operation, tasks, len(rates), max(best for _, best in runs), middle, spread, rates)

"""Stripe count, stripe size and block size from a measured grid (SPEC N8), with the evidence and how flat it is.

A cell is as good as the best unless their difference is more than noise (`models/grid_noise`). Among cells that are as
good, the one with the fewest OSTs is recommended, then the one with the largest mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iolens.analyses.bench_bandwidth import BandwidthCase, StudyBandwidth, bandwidth_cases, study_bandwidth
from iolens.errors import UsageError
from iolens.models.resampling import geometric_mean, grid_noise

Aim = Literal["write", "read", "both"]


@dataclass(frozen=True, slots=True)
class StripeCell:
    """One cell of the grid; `bytes_per_s` is the geometric mean of its runs, of both: bytes ÷ (write + read time)."""

    stripe_count: int | None
    stripe_bytes: int | None
    block_bytes: int | None
    bytes_per_s: float
    runs: int


@dataclass(frozen=True, slots=True)
class StripeChoice:
    """What is recommended for one aim. `flat`: no cell differs from the best by more than noise; None: not known."""

    place: str | None
    aim: Aim
    recommended: StripeCell
    best: StripeCell
    worst: StripeCell
    cells: int
    as_good: int  # cells that do not differ from the best by more than noise, the best with them
    flat: bool | None
    noise_pct: float | None  # of a single run
    least_difference_pct: float | None  # between two cells to be more than noise


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeRecommendation:
    """Choices for every place, and the grid behind them."""

    study: str | None
    choices: list[StripeChoice]
    bandwidth: StudyBandwidth

    @property
    def warnings(self) -> list[str]:
        """Those of the runs."""
        return self.bandwidth.warnings


def stripe_recommendation(rows: Sequence[Mapping[str, Any]]) -> StripeRecommendation:
    """From the rows of a study over stripes and blocks."""
    cases = bandwidth_cases(rows)
    choices = []
    for place in dict.fromkeys(case.key.place for case in cases):
        mine = [case for case in cases if case.key.place == place]
        written, read = (_cells(mine, direction) for direction in ("write", "read"))
        for aim, cells in (("write", written), ("read", read), ("both", _both(written, read))):
            if len(cells) > 1:
                choices.append(_choice(place, aim, cells))  # type: ignore[arg-type]
    if not choices:
        raise UsageError("a recommendation needs at least two cells: other stripe counts, stripe sizes or blocks")
    bandwidth = study_bandwidth(rows)
    return StripeRecommendation(study=bandwidth.study, choices=choices, bandwidth=bandwidth)


Cell = tuple[int | None, int | None, int | None]


def _cells(cases: Sequence[BandwidthCase], direction: str) -> dict[Cell, list[float]]:
    cells: dict[Cell, list[float]] = {}
    for case in cases:
        if case.key.direction == direction:
            place = case.key.stripe_count, case.key.stripe_bytes, case.key.transfer_bytes
            cells.setdefault(place, []).extend(case.bytes_per_s)
    return cells


def _both(written: Mapping[Cell, Sequence[float]], read: Mapping[Cell, Sequence[float]]) -> dict[Cell, list[float]]:
    """Bytes written and read once each ÷ the time for both, repeat by repeat."""
    return {
        cell: [2.0 / (1.0 / mine + 1.0 / theirs) for mine, theirs in zip(written[cell], read[cell], strict=False)]
        for cell in written
        if cell in read
    }


def _choice(place: str | None, aim: Aim, cells: Mapping[Cell, Sequence[float]]) -> StripeChoice:
    listed = [StripeCell(*cell, geometric_mean(values), len(values)) for cell, values in cells.items()]
    noise = grid_noise(list(cells.values()))
    best, worst = (pick(listed, key=lambda cell: cell.bytes_per_s) for pick in (max, min))
    factor = noise.factor or 1.0
    as_good = [cell for cell in listed if cell.bytes_per_s * factor >= best.bytes_per_s]
    flat = None if noise.factor is None else len(as_good) == len(listed)
    chosen = min(as_good, key=lambda cell: (cell.stripe_count or 0, -cell.bytes_per_s))
    return StripeChoice(
        place, aim, chosen, best, worst, len(listed), len(as_good), flat, noise.noise_pct,
        None if noise.factor is None else 100.0 * (noise.factor - 1.0),
    )  # fmt: skip

"""Steady stretches of FSU and which of them are saturated (U10), with what else is stored of them as evidence.

A steady load is not a full disk: only one near the ceiling has no more to give. On a full disk more I/Os wait and each
takes longer, so their medians in the stretch stand beside those of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.intervals.fsu_sums import collect, data_targets
from iolens.analyses.intervals.tick_totals import TickStretch
from iolens.analyses.latency.part import Bins, of_bins
from iolens.arrays import Columns
from iolens.histogram_names import IN_FLIGHT, IN_FLIGHTS, IO_TIME
from iolens.models.transaction_time import SATURATED_SHARE, CalibrationState, FsuCeiling, ceiling_of, mean_ceiling
from iolens.store.selection import Selection
from iolens.units import epoch_us, from_epoch_us

TABLE: Final = "target_histograms"
_HISTOGRAMS: Final = {IN_FLIGHT: list(IN_FLIGHTS), IO_TIME: [IO_TIME]}
_STORED: Final = [*IN_FLIGHTS, IO_TIME]
NOT_STORED: Final = "no histogram of disk I/Os in flight or of I/O times is stored for this window"
NOT_IN_STRETCH: Final = "the histograms of disk I/Os in flight and of I/O times have no row in this stretch"


@dataclass(frozen=True, slots=True)
class Plateau:
    """A steady stretch. `saturated`: its level is near the ceiling, so there was no more to give.

    Medians (`p50`) are over all disk I/Os of the data targets, in the stretch and in the window. In flight, a row of
    Lustre 2.17.51 and later is a power of two: the median is that row's upper bound, as of every histogram.
    """

    start: datetime
    end: datetime
    duration_s: float
    median_fsu_pct: float | None
    median_fsu_bytes_pct: float | None
    saturated: bool
    ceiling_pct: float
    ceiling_origin: str
    in_flight_p50: float | None = None
    window_in_flight_p50: float | None = None
    io_time_p50_ms: float | None = None
    window_io_time_p50_ms: float | None = None
    evidence_missing: str | None = NOT_STORED

    @property
    def median_pct(self) -> float | None:
        """The level by whichever model."""
        return self.median_fsu_pct if self.median_fsu_bytes_pct is None else self.median_fsu_bytes_pct


@dataclass(frozen=True, slots=True)
class Saturation:
    """What is called saturated: a share of the ceiling, and the ceiling where no calibration has measured one."""

    share: float = SATURATED_SHARE
    configured_ceiling_pct: float | None = None

    def ceiling_at(self, applied: Sequence[AppliedCalibration], time_us: int, targets: int) -> FsuCeiling:
        """Of a file system with so many targets, by the calibrations that hold then."""
        holding: dict[str | None, AppliedCalibration] = {}
        for part in applied:  # of each class the newest first
            if part.valid_from is None or epoch_us(part.valid_from) <= time_us:
                holding.setdefault(part.target_class, part)
        in_classes = sum(len(part.targets or ()) for part in holding.values())
        return mean_ceiling(
            (
                ceiling_of(
                    part.ceiling_fsu_pct,
                    part.calibration.name,
                    self.configured_ceiling_pct,
                    part.state is CalibrationState.ESTIMATED,
                ),
                max(targets - in_classes, int(not in_classes)) if part.targets is None else len(part.targets),
            )
            for part in holding.values()
        )


def plateaus(
    selection: Selection,
    stretches: Sequence[TickStretch],
    saturation: Saturation,
    applied: Sequence[AppliedCalibration],
    targets: int,
    by_bytes: bool,
) -> list[Plateau]:
    """Every steady stretch against its ceiling, with the evidence there is."""
    evidence = _evidence(selection, stretches)
    result = []
    for place, stretch in enumerate(stretches):
        ceiling = saturation.ceiling_at(applied, stretch.start_us, targets)
        result.append(
            Plateau(
                start=from_epoch_us(stretch.start_us),
                end=from_epoch_us(stretch.end_us),
                duration_s=(stretch.end_us - stretch.start_us) / 1e6,
                median_fsu_pct=None if by_bytes else stretch.median,
                median_fsu_bytes_pct=stretch.median if by_bytes else None,
                saturated=ceiling.is_reached(stretch.median, saturation.share),
                ceiling_pct=ceiling.pct,
                ceiling_origin=ceiling.origin,
                **(evidence.of(place) if evidence is not None else {}),
            )
        )
    return result


@dataclass(slots=True)
class _Evidence:
    """Disk I/Os by bin of the two histograms: in the window, and in each stretch."""

    stretches: Sequence[TickStretch]
    window: dict[str, Bins] = field(default_factory=dict)
    inside: dict[tuple[int, str], Bins] = field(default_factory=dict)

    def add(self, rows: Columns) -> None:
        """A row belongs to the stretch its middle is in."""
        starts, ends = np.array([(stretch.start_us, stretch.end_us) for stretch in self.stretches]).T
        middle = (rows["first_us"] + rows["last_us"]) // 2
        place = np.searchsorted(starts, middle, side="right") - 1
        is_inside = (place >= 0) & (middle < ends[np.maximum(place, 0)])
        for name, histograms in _HISTOGRAMS.items():
            mine = np.isin(rows["kind"].astype(str), histograms)
            _add(self.window.setdefault(name, {}), rows["bin"][mine], rows["ios"][mine])
            for at in np.unique(place[mine & is_inside]).tolist():
                here = mine & is_inside & (place == at)
                _add(self.inside.setdefault((at, name), {}), rows["bin"][here], rows["ios"][here])

    def of(self, place: int) -> dict[str, Any]:
        """The fields of one plateau."""
        values = {
            "in_flight_p50": _median(self.inside.get((place, IN_FLIGHT))),
            "window_in_flight_p50": _median(self.window.get(IN_FLIGHT)),
            "io_time_p50_ms": _median(self.inside.get((place, IO_TIME))),
            "window_io_time_p50_ms": _median(self.window.get(IO_TIME)),
        }
        silent = values["in_flight_p50"] is None and values["io_time_p50_ms"] is None
        return {**values, "evidence_missing": NOT_IN_STRETCH if silent else None}


def _evidence(selection: Selection, stretches: Sequence[TickStretch]) -> _Evidence | None:
    """One more pass, over the histograms alone, where there is a stretch and any histogram."""
    if not stretches or not selection.holds(TABLE, "histogram", _STORED):
        return None
    evidence = _Evidence(stretches)
    for chunk in selection.chunks(TABLE):
        evidence.add(collect(_by_tick_and_bin(chunk.frame(TABLE))))
    return evidence


def _by_tick_and_bin(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    rows = data_targets(frame).filter(nw.col("histogram").is_in(_STORED))
    rows = rows.select(
        nw.col("histogram").alias("kind"),
        "bin",
        nw.col("start_us").alias("first_us"),
        nw.col("epoch_us").alias("last_us"),
        nw.col("count").cast(nw.Float64).alias("ios"),
    )
    return rows.group_by("kind", "bin", "first_us", "last_us").agg(nw.col("ios").sum())


def _add(bins: Bins, labels: Any, ios: Any) -> None:
    edges, where = np.unique(labels, return_inverse=True)
    for edge, count in zip(edges.tolist(), np.bincount(where, weights=ios).tolist(), strict=True):
        bins[edge] = bins.get(edge, 0.0) + count


def _median(bins: Bins | None) -> float | None:
    """The upper edge of the first bin that reaches half of the I/Os."""
    return of_bins(bins)["p50_ms"] if bins and sum(bins.values()) else None

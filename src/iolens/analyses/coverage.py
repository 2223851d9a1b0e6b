"""Coverage and quality of the data beside an answer (B7): who reported, for how long, and what was odd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from iolens.analyses.results import Coverage, TargetCoverage
from iolens.analyses.target_totals import TargetSums, TargetTotals
from iolens.analyses.tick_totals import TickTotals
from iolens.store.selection import Selection
from iolens.units import epoch_us, from_epoch_us


def coverage_of(selection: Selection, targets: TargetTotals, ticks: TickTotals, notes: tuple[str, ...]) -> Coverage:
    """What an answer about data targets rests on."""
    data = {name for name in selection.known_targets() if "-MDT" not in name} - targets.left_out
    known = data | set(targets.bytes_by_target)
    found = _coverage(selection, known, targets, ticks.tick_us, ("target_sizes", "target_io"), notes)
    if ticks.samples and not targets.sums:  # nobody asked for single targets
        return replace(found, missing_targets=[])
    return found


def metadata_coverage(
    selection: Selection, targets: TargetTotals, tick_us: int | None, notes: tuple[str, ...]
) -> Coverage:
    """What an answer about metadata targets rests on."""
    known = {name for name in selection.known_targets() if "-MDT" in name}
    return _coverage(selection, known, targets, tick_us, ("metadata_ops",), notes)


def _coverage(
    selection: Selection,
    known: set[str],
    targets: TargetTotals,
    tick_us: int | None,
    tables: Sequence[str],
    notes: tuple[str, ...],
) -> Coverage:
    reporting = set(targets.names_with_sizes)
    known = known | reporting
    hours = _window_hours(selection, targets)
    lines = [_line(name, one, hours) for name, one in sorted(targets.sums.items())]
    reported = [line.hours for line in lines]
    extent = targets.extent_us
    return Coverage(
        targets_known=len(known),
        targets_reporting=len(reporting),
        missing_targets=sorted(known - reporting),
        hours_window=hours,
        hours_min=min(reported, default=None),
        hours_median=float(np.median(reported)) if reported else None,
        hours_max=max(reported, default=None),
        complete_pct=100.0 * sum(reported) / (len(known) * hours) if known and hours else None,
        resets=sum(line.resets for line in lines),
        missed_samples=sum(_missed(one, tick_us) for one in targets.sums.values()),
        irregular_samples=round(sum(one.irregular for one in targets.sums.values())),
        ios_outside_bins=round(sum(one.outside for one in targets.sums.values())),
        targets_without_sizes=sorted(_without_sizes(targets)),
        sources=sorted({name for table in tables for name in selection.sources(table)}),
        overlapping_rows=selection.overlapping_rows,
        first_sample=from_epoch_us(extent[0]) if extent else None,
        last_sample=from_epoch_us(extent[1]) if extent else None,
        per_target=lines,
        notes=list(notes),
    )


def _window_hours(selection: Selection, targets: TargetTotals) -> float:
    start, end = selection.window
    first, last = targets.extent_us or (0, 0)
    begin_us = epoch_us(start) if start else first
    end_us = epoch_us(end) if end else last
    return max(end_us - begin_us, 0) / 3.6e9


def _line(name: str, one: TargetSums, window_hours: float) -> TargetCoverage:
    hours = one.duration_s / 3600.0
    return TargetCoverage(name, hours, one.longest_s, max(window_hours - hours, 0.0), round(one.resets))


def _missed(one: TargetSums, tick_us: int | None) -> int:
    """Ticks inside the target's own intervals at which it should have reported and did not."""
    return max(0, round(one.nominal_s * 1e6 / tick_us - one.rows)) if tick_us else 0


def _without_sizes(targets: TargetTotals) -> list[str]:
    """Targets that moved bytes while the counts the model needs stood still or are absent."""
    return [
        name
        for name, moved in targets.bytes_by_target.items()
        if any(moved) and (name not in targets.sums or not targets.sums[name].ios)
    ]

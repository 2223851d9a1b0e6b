"""Coverage and quality of the data beside an answer (B7): who reported, for how long, and what was odd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from iolens.analyses.intervals.target_totals import CoveredTime, TargetSums, TargetTotals
from iolens.analyses.intervals.tick_totals import TickTotals
from iolens.analyses.results import Coverage, TargetCoverage
from iolens.store.selection import Selection
from iolens.target_names import kind_by_name, of_like_kind
from iolens.units import epoch_us, from_epoch_us


def coverage_of(selection: Selection, targets: TargetTotals, ticks: TickTotals, notes: tuple[str, ...]) -> Coverage:
    """What an answer about data targets rests on."""
    seen = set(targets.bytes_by_target) | set(targets.sums)
    known = _data_targets(selection.known_targets(), seen) - targets.left_out | seen
    coverage = _coverage(selection, known, targets, ("target_sizes", "target_io"), notes)
    if ticks.samples and not targets.sums:  # nobody asked for single targets
        return replace(coverage, missing_targets=[], complete_pct=None)
    return coverage


def _data_targets(known: set[str], seen: set[str]) -> set[str]:
    """Known targets of the kinds that are seen; where none is, of any kind but those that hold metadata."""
    if seen:
        return of_like_kind(known, seen)
    return {name for name in known if kind_by_name(name) not in ("mdt", "mgs")}


def metadata_coverage(selection: Selection, targets: TargetTotals, notes: tuple[str, ...]) -> Coverage:
    """What an answer about metadata targets rests on."""
    known = {name for name in selection.known_targets() if kind_by_name(name) == "mdt"}
    return _coverage(selection, known, targets, ("metadata_ops",), notes)


def _coverage(
    selection: Selection,
    known: set[str],
    targets: TargetTotals,
    tables: Sequence[str],
    notes: tuple[str, ...],
) -> Coverage:
    reporting = set(targets.names_with_sizes)
    known = known | reporting
    extent = targets.extent_us
    begin_us, end_us = window_ends(selection, extent)
    hours = max(end_us - begin_us, 0) / 3.6e9
    lines = [
        _line(name, target_sums, targets.covered, end_us, hours) for name, target_sums in sorted(targets.sums.items())
    ]
    reported = [line.hours for line in lines]
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
        missed_samples=sum(targets.covered.missed(line.target, line.missing_hours * 3600.0) for line in lines),
        irregular_samples=round(sum(target_sums.irregular for target_sums in targets.sums.values())),
        ios_outside_bins=round(sum(target_sums.outside for target_sums in targets.sums.values())),
        targets_without_sizes=targets.names_without_sizes,
        sources=sources_of(selection, tables),
        overlapping_rows=selection.overlapping_rows,
        first_sample=from_epoch_us(extent[0]) if extent else None,
        last_sample=from_epoch_us(extent[1]) if extent else None,
        per_target=lines,
        notes=[*notes, *notes_on_sources(selection, tables)],
    )


def sources_of(selection: Selection, tables: Sequence[str]) -> list[str]:
    """Sources of any of the tables, in the order in which they are believed."""
    return list(dict.fromkeys(name for table in tables for name in selection.sources(table)))


def notes_on_sources(selection: Selection, tables: Sequence[str]) -> list[str]:
    """Which source counts where several tell of one time of a target, and why."""
    orders = dict.fromkeys(" before ".join(names) for table in tables if len(names := selection.sources(table)) > 1)
    why = "as configured" if selection.source_order else "finer samples first, then more of them"
    return [f"where several sources tell of the same time, {order} ({why}); the others fill what is missing"
            for order in orders]  # fmt: skip


def window_us(selection: Selection, extent_us: tuple[int, int] | None) -> int:
    """How long the window is; where it is open, from the first or to the last interval."""
    start_us, end_us = window_ends(selection, extent_us)
    return max(end_us - start_us, 0)


def window_ends(selection: Selection, extent_us: tuple[int, int] | None) -> tuple[int, int]:
    """Where the window starts and ends; where it is open, the first and the last interval."""
    (start, end), (first_us, last_us) = selection.window, extent_us or (0, 0)
    return epoch_us(start) if start else first_us, epoch_us(end) if end else last_us


def _line(name: str, target_sums: TargetSums, covered: CoveredTime, end_us: int, window_hours: float) -> TargetCoverage:
    hours = min(covered.seconds(name, max(target_sums.last_us - end_us, 0)) / 3600.0, window_hours)
    return TargetCoverage(name, hours, target_sums.longest_s, window_hours - hours, round(target_sums.resets))

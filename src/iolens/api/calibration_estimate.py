"""Calibrations from the telemetry of a store: estimated, and stored where both directions are identified.

`estimate_by_itself` does that after `ingest` and `store rollup` for file systems that nobody calibrated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from functools import partial
from typing import Any, Final

from iolens import __version__
from iolens.analyses.calibration.stored import state_of_row
from iolens.analyses.calibration_drift import CalibrationDrift, SlowTargets, calibration_drift, has_days, slow_now
from iolens.analyses.calibration_estimate.analysis import CalibrationEstimate, EvidenceEstimate, calibration_estimate
from iolens.analyses.calibration_estimate.part import TargetClass
from iolens.analyses.imbalance.analysis import Imbalance
from iolens.api.store_analyses import INTERVALS, StoreAnalyses
from iolens.api.store_state import LOAD, nothing_stored, whole_days
from iolens.config import Config
from iolens.errors import IolensError, NotKnownError, UsageError
from iolens.models.transaction_time import CalibrationState
from iolens.part_form import PartForm, answer_form
from iolens.schema import DIRECTIONS
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.store import Store
from iolens.units import DAY_US, epoch_us, from_epoch_us, iso

SOURCE: Final = "calibrate estimate"
STATE: Final = CalibrationState.ESTIMATED.value
TABLES: Final = ("target_sizes", "target_io", "target_histograms", "target_capacity", "target_state")  # it reads
WINDOW_US: Final = 91 * DAY_US  # disks change as they fill and age
WEEK: Final = 7  # days; each of the first ones is estimated, later each seventh
CLOSE: Final = 0.1  # so far outside its interval a coefficient is still the same
ENDS: Final = {  # of the interval of each coefficient
    "latency_s": ("latency_low_s", "latency_high_s"),
    "s_per_byte": ("s_per_byte_low", "s_per_byte_high"),
}


def estimated_calibrations(
    opened: StoreAnalyses, scope: Scope, progress: Callable[[date], None] | None = None
) -> CalibrationEstimate:
    """What the telemetry of a window says that disk I/Os cost; refused where nothing of the window is stored."""
    stored = opened.store.calibrations()
    result = opened.ask(lambda selection: _estimated(opened, selection, stored, progress), scope)
    if not result.samples and not result.estimates:
        raise NotKnownError(_no_tick(opened, scope, result))
    return result


def _estimated(
    opened: StoreAnalyses,
    selection: StoreSelection,
    stored: Sequence[Mapping[str, Any]],
    progress: Callable[[date], None] | None = None,
) -> CalibrationEstimate:
    """As it was remembered, or made."""
    classes = opened.config.filesystem(selection.filesystem).classes
    form, depends_on = answer_form(CalibrationEstimate), [__version__, repr(classes), repr(stored)]
    return selection.remembered_at(
        form,
        selection.answer_at(form, TABLES, depends_on),
        lambda: calibration_estimate(selection, configured=classes, stored=stored, progress=progress),
    )


def _no_tick(opened: StoreAnalyses, scope: Scope, result: CalibrationEstimate) -> str:
    """Why nothing can be estimated: nothing is stored of the window, or no tick of it is whole and of one direction."""
    extent = opened.ask(lambda selection: selection.extent_us(*LOAD), scope)
    if extent is None:
        return nothing_stored(opened, "utilization", result.filesystem)
    first, last = (iso(from_epoch_us(end)) for end in extent)
    length = "ten seconds or longer" if result.tick_s is None else f"{result.tick_s:g} s"
    return (
        f"{result.filesystem}: no tick of this window is both whole and of one direction; stored of it is {first} to"
        f" {last}. Needed are ticks of {length} of which the intervals of a target cover nine tenths, and of whose I/Os"
        " and bytes nine tenths are reads, or are writes"
    )


def save_estimate(result: CalibrationEstimate, opened: StoreAnalyses, name: str) -> list[str | None]:
    """Store a row for each class of which both directions are identified, with state `estimated`; these classes."""
    rows = _rows(result, name)
    if not rows:
        raise UsageError(f"nothing is stored as {name!r}: {_what_is_missing(result)}")
    _store(opened, rows)
    return [row["target_class"] for row in rows]


def _store(opened: StoreAnalyses, rows: Sequence[Mapping[str, Any]]) -> None:
    now_us = (
        time.time_ns() // 1000
    )  # the same of all classes: together they take the place of what was estimated before
    for row in rows:
        opened.store.add_calibration({**row, "time": now_us, "source": SOURCE})


def is_due(days_before: int, days_now: int) -> bool:
    """Whether so much was stored since then that the telemetry is asked again what I/Os cost."""
    return days_now > days_before and (days_now <= WEEK or days_now // WEEK > days_before // WEEK)


def estimate_by_itself(opened: StoreAnalyses, days_before: Mapping[str, int] | None = None) -> Iterator[str]:
    """Estimate the last 91 days of each file system that nobody calibrated, and store what is new; a sentence each.

    With `days_before` only of those of which enough was stored since. What cannot be estimated is left: whoever asks
    for it hears why.
    """
    stored = opened.store.calibrations()
    for name in opened.store.targets_by_filesystem():
        if not _is_calibrated(opened, name, stored):
            before = None if days_before is None else days_before.get(name, 0)
            with suppress(IolensError):
                rows = opened.ask(partial(_new_rows, opened, stored, before), name)
                if rows:
                    _store(opened, rows)
                    yield _estimate_words(rows)


def _new_rows(
    opened: StoreAnalyses, stored: Sequence[Mapping[str, Any]], days_before: int | None, selection: StoreSelection
) -> list[dict[str, Any]]:
    """Of the table `calibrations`; empty where it is too early, nothing is identified, or what is stored says it."""
    extent_us = selection.extent_us(*LOAD)
    days = whole_days(extent_us)
    is_enough = days > 0 if days_before is None else is_due(days_before, days)
    if extent_us is None or not is_enough or not _tells_limits(selection):
        return []
    if extent_us[1] - extent_us[0] > WINDOW_US:
        selection = selection.between(extent_us[1] - WINDOW_US, extent_us[1])
    name, end = selection.filesystem, from_epoch_us(extent_us[1])
    rows = _rows(_estimated(opened, selection, stored), f"{name}-telemetry-{end:%Y-%m-%d}")
    return [] if _are_known(rows, [row for row in stored if row["filesystem"] == name]) else rows


def _estimate_words(rows: Sequence[Mapping[str, Any]]) -> str:
    name, classes = rows[0]["filesystem"], [row["target_class"] for row in rows if row["target_class"]]
    of_classes = f" ({', '.join(classes)})" if classes else ""
    is_bound = any(row["one_at_a_time"] for row in rows)
    means = "FSU by it is an upper bound" if is_bound else "levels of FSU rest on that"
    return (
        f"{name}: what a disk I/O costs{of_classes} was estimated from its own telemetry and stored as"
        f" {rows[0]['name']}; {means} (`iolens calibrate estimate -f {name}` says how sure it is)"
    )


def _tells_limits(selection: StoreSelection) -> bool:
    """Whether there is anything by which a limit can be seen: I/Os in flight, or the time that devices were busy."""
    return selection.holds("target_histograms") or bool(selection.live_columns("target_io", ["busy_us", "queue_us"]))


def _is_calibrated(opened: StoreAnalyses, name: str, stored: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a person measured or chose what holds for all its targets."""
    return opened.config.filesystem(name).calibration is not None or any(
        row["filesystem"] == name
        and row["target_class"] is None
        and state_of_row(row) is not CalibrationState.ESTIMATED
        for row in stored
    )


def _are_known(rows: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last estimate was of the same classes, and had each coefficient in or near its interval."""
    estimated = [row for row in stored if state_of_row(row) is CalibrationState.ESTIMATED]
    newest = max((row["time"] for row in estimated), default=None)
    last = {(row["target_class"], row["targets"]): row for row in estimated if row["time"] == newest}
    if last.keys() != {(row["target_class"], row["targets"]) for row in rows}:
        return False
    return all(
        _is_near(row, last[row["target_class"], row["targets"]], f"{direction}_", name)
        for row in rows
        for direction in DIRECTIONS
        for name in ENDS
    )


def _is_near(row: Mapping[str, Any], before: Mapping[str, Any], direction: str, name: str) -> bool:
    known = before[direction + name]
    low, high = (known if (end := before[direction + end_name]) is None else end for end_name in ENDS[name])
    return bool(low * (1 - CLOSE) <= row[direction + name] <= high * (1 + CLOSE))


def _rows(result: CalibrationEstimate, name: str) -> list[dict[str, Any]]:
    """Of the table `calibrations`: the classes of which both directions are identified."""
    rows = (_row(result, chosen, name) for chosen in result.classes)
    return [row for row in rows if row is not None]


def _row(result: CalibrationEstimate, chosen: TargetClass, name: str) -> dict[str, Any] | None:
    """A row of the table `calibrations`; None where a direction is not identified."""
    sides: dict[str, EvidenceEstimate] = {}
    for direction in DIRECTIONS:
        best = result.best(chosen.name, direction)
        if best is None:
            return None
        sides[direction] = best
    ceiling = result.ceiling(chosen.name)
    methods = list(dict.fromkeys(sides[direction].evidence for direction in DIRECTIONS[::-1]))
    is_found = chosen.name is not None and not chosen.is_configured
    row: dict[str, Any] = {
        "name": name,
        "filesystem": result.filesystem,
        "target_class": chosen.name,
        "targets": json.dumps({result.filesystem: sorted(chosen.targets)}) if is_found else None,
        "valid_from": epoch_us(result.window_start) if result.window_start else None,
        "state": STATE,
        "method": " and ".join(methods),
        "upper_bound": False,
        "ceiling_fsu_pct": ceiling.ceiling_fsu_pct if ceiling is not None else None,
        "one_at_a_time": any(side.one_at_a_time for side in sides.values()),
        "evidence": "; ".join(f"{direction}s: {evidence_words(sides[direction])}" for direction in DIRECTIONS[::-1]),
    }
    return row | {
        f"{direction}_{field}": getattr(side, field)
        for direction, side in sides.items()
        for name, ends in ENDS.items()
        for field in (name, *ends)
    }


def evidence_words(estimate: EvidenceEstimate) -> str:
    """`frontier of 14 days, 3,200 ticks, 4 targets: limit reached at 4 KiB to 4 MiB`."""
    days = f"{estimate.days} day{'s' * (estimate.days != 1)}"
    targets = f"{estimate.targets} target{'s' * (estimate.targets != 1)}"
    return f"{estimate.evidence} of {days}, {estimate.ticks:,} ticks, {targets}: {estimate.note}"


def _what_is_missing(result: CalibrationEstimate) -> str:
    words = list(result.missing)
    for estimate in result.estimates:
        if not estimate.is_identified:
            of_class = f" of {estimate.target_class}" if estimate.target_class else ""
            words.append(f"{estimate.direction}s{of_class} by {estimate.evidence}: {estimate.note}")
    return "; ".join(words) or "neither direction is identified"


# Drift of what disk I/Os cost, of a store -----------------------------------------------------------------------------

SLOW_DAYS: Final = 28  # whole days whose counters say who is slow now
SLOW: Final[PartForm] = answer_form(SlowTargets)


def drift_of(opened: StoreAnalyses, scope: Scope, progress: Callable[[date], None] | None = None) -> CalibrationDrift:
    """Slow targets and monthly costs of a window; refused where nothing of the window is stored."""
    result: CalibrationDrift = opened.ask(
        lambda selection: calibration_drift(
            selection, configured=opened.config.filesystem(selection.filesystem).classes, progress=progress
        ),
        scope,
    )
    if not result.samples and not result.months:
        raise NotKnownError(nothing_stored(opened, "utilization", result.filesystem))
    return result


def reported_drift(opened: StoreAnalyses, scope: Scope) -> CalibrationDrift | None:
    """As a report shows it; None where the window has too few days of counters, or those of a rollup are wanted."""
    if scope.rollup is not None or not opened.ask(has_days, scope):
        return None
    try:
        return drift_of(opened, scope)
    except NotKnownError:
        return None


def slow_targets_at(opened: StoreAnalyses, filesystem: str, until: datetime) -> SlowTargets:
    """Who is slow by the last whole days before a time: their parts and the answer are remembered."""
    configured = opened.config.filesystem(filesystem).classes

    def answer(selection: StoreSelection) -> SlowTargets:
        return selection.remembered_at(SLOW, _place(selection, configured), lambda: slow_now(selection, configured))

    return opened.ask(answer, _days_before(filesystem, until))


def slow_targets_if_known(store: Store, config: Config, filesystem: str, until: datetime) -> SlowTargets:
    """The same for a view that must not wait: nobody, where many rows would have to be read."""
    known, selection = config.filesystem(filesystem), store.select(_days_before(filesystem, until))
    selection.source_order = known.sources
    path = _place(selection, known.classes)
    if path is not None and selection.memory is not None and not selection.memory.holds(path):
        return SlowTargets([])
    return selection.remembered_at(SLOW, path, lambda: slow_now(selection, known.classes))


def _days_before(filesystem: str, until: datetime) -> Scope:
    end = datetime.combine(until.astimezone(UTC).date(), clock_time(), UTC)
    return Scope(filesystem, end - timedelta(days=SLOW_DAYS), end)


def _place(selection: StoreSelection, configured: Mapping[str, Sequence[str]]) -> str | None:
    """Where the answer is kept; None where it is made quickly."""
    return selection.answer_at(SLOW, INTERVALS, [__version__, sorted(configured.items())])


def with_slow_targets(opened: StoreAnalyses, result: Imbalance) -> Imbalance:
    """Imbalance with what is known of targets that are slower than their class at the end of its window."""
    slow = slow_targets_at(opened, result.filesystem, result.window_end).targets
    ours = {line.target for line in result.peers}
    days = f"by the {SLOW_DAYS} days before {result.window_end.astimezone(UTC).date()}"
    return replace(result, slow_targets=[f"{item.words}, {days}." for item in slow if item.target in ours] or None)

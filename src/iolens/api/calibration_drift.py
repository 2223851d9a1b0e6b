"""Drift of what disk I/Os cost, of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from iolens import __version__
from iolens.analyses.calibration_drift.drift import calibration_drift, has_days, slow_now
from iolens.analyses.calibration_drift.results import CalibrationDrift, SlowTargets
from iolens.analyses.imbalance.analysis import Imbalance
from iolens.api.access.store_analyses import INTERVALS, StoreAnalyses
from iolens.api.stored_extent import nothing_stored
from iolens.config import Config
from iolens.errors import NotKnownError
from iolens.part_form import PartForm, answer_form
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.store import Store

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
    end = datetime.combine(until.astimezone(UTC).date(), time(), UTC)
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

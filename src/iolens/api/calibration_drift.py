"""Drift of what disk I/Os cost, of a store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from iolens.analyses.calibration_drift.drift import calibration_drift
from iolens.analyses.calibration_drift.results import CalibrationDrift
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.stored_extent import nothing_stored
from iolens.errors import NotKnownError
from iolens.store.scope import Scope


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
    """As a report shows it; None where the window has no counters, or those of a rollup are wanted."""
    try:
        return drift_of(opened, scope) if scope.rollup is None else None
    except NotKnownError:
        return None

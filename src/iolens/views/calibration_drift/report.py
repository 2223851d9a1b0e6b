"""Drift in the report: slow targets, and what an I/O costs month by month; nothing where nothing is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.models.drift import LEAST_FACTOR
from iolens.views.calibration_drift import figures as drawn
from iolens.views.calibration_drift import tables as view
from iolens.views.render.section import Answer, Notice, ReportSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.calibration_drift import CalibrationDrift

REPORT_ORDER: Final = 32


def report_answers(result: CalibrationDrift) -> list[Answer]:
    """Who is slow, by name; that nobody is, where that is known."""
    words = view.words(result) or (view.nobody(result) if result.compared else "")
    return [Answer("targets", (words,))] if words else []


def report_notices(result: CalibrationDrift) -> list[Notice]:
    """The slow targets."""
    step = "Check the drives and the RAID state of that target: a slow disk, a rebuild, a degraded array."
    words = view.words(result)
    return [Notice("warn", "targets", words, step, ("calibrate", "drift"))] if words else []


def report_sections(result: CalibrationDrift) -> list[ReportSection]:
    """Factors of targets, and months where any coefficient is identified."""
    parts = [view.slow(result), view.targets(result)] if result.compared else []
    known = any(item.identified and not item.upper_bound for item in result.months)
    months = (drawn.drift(result), view.changes(result), view.months(result)) if known else ()
    return (
        [ReportSection("What a disk I/O costs, by target and month", (*parts, *months), "targets")]
        if parts or known
        else []
    )


def report_methods(results: Sequence[CalibrationDrift]) -> list[ReportSection]:
    """What the factor is."""
    text = (
        "The factor of a target is the time of an I/O of like size in ticks in which its queue never ran empty,"
        " relative to the median of the other targets of its class; the median over days, with 95 % of resampled days."
        f" A target is named if the factor is at least {LEAST_FACTOR:g} and an interval as wide as the number of"
        " targets asks for (Bonferroni) excludes 1."
    )
    return [ReportSection("Slow targets", (text,))] if any(result.compared for result in results) else []

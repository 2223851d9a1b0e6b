"""What disk I/Os cost by the telemetry of a store: an estimate of it, and how it drifts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.question import Option, question

if TYPE_CHECKING:
    from iolens.analyses.calibration_drift import CalibrationDrift
    from iolens.analyses.calibration_estimate.analysis import CalibrationEstimate
    from iolens.questions.asking import Ask


@question(
    "calibrate drift", "Name slower targets, and what I/Os cost by month", about="raw", view="calibration_drift",
    examples=(
        "-f scratch",
        "-f scratch --from 2026-01-01 --to 2026-07-01 --format json",
        "-f scratch --figure drift.png",
    ),
)  # fmt: skip
def calibrate_drift(ask: Ask) -> CalibrationDrift:
    """Targets that are slower than their class, and what a disk I/O costs from month to month.

    By the counters of `calibrate estimate`. A target is named if an I/O takes it at least 1.25 times as long as the
    others of its class, beyond chance for so many targets, with the day since when. Coefficients of each month have
    their intervals, and their change with age and with fullness.
    """
    from iolens.api.calibration_estimate import drift_of

    return drift_of(ask.store, ask.scope, ask.day_done)


@question(
    "calibrate estimate", "Estimate what a disk I/O costs from the telemetry that is stored",
    Option(
        "save", "Store the coefficients, where both directions are identified", metavar="NAME", at_url=False,
    ),
    about="raw", has_figures=False,
    examples=(
        "-f scratch",
        "-f scratch --from 2026-01-01 --to 2026-02-01 --format json",
        "-f scratch --save scratch-january",
    ),
)  # fmt: skip
def calibrate_estimate(ask: Ask, save: str | None) -> CalibrationEstimate:
    """Estimate what a disk I/O costs from counters that are stored, without a test on the disks.

    Three kinds of evidence per class of targets and direction: the limit that targets reached, the time their devices
    were busy, and times of single I/Os by size (Lustre 2.17). What is not known is called an upper bound of FSU.
    """
    from iolens.api.calibration_estimate import estimated_calibrations, save_estimate

    result = estimated_calibrations(ask.store, ask.scope, ask.day_done)
    if save is not None:
        classes = save_estimate(result, ask.store, save)
        names = [f"{save} [{target_class}]" if target_class else save for target_class in classes]
        ask.listener.done(f"stored {', '.join(names)} in {ask.store.store.url}")
    return result

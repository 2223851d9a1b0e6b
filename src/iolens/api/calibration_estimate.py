"""Calibrations from the telemetry of a store: estimated, and stored where both directions are identified."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from iolens.analyses.calibration_estimate.estimate import calibration_estimate
from iolens.analyses.calibration_estimate.results import CalibrationEstimate, EvidenceEstimate
from iolens.analyses.calibration_estimate.target_classes import TargetClass
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.stored_extent import LOAD, nothing_stored
from iolens.errors import NotKnownError, UsageError
from iolens.schema import DIRECTIONS
from iolens.store.scope import Scope
from iolens.units import epoch_us, from_epoch_us, iso

SOURCE: Final = "calibrate estimate"
STATE: Final = "estimated"
MOST_NAMES: Final = 20  # of targets, in a message


def estimated_calibrations(
    opened: StoreAnalyses, scope: Scope, progress: Callable[[date], None] | None = None
) -> CalibrationEstimate:
    """What the telemetry of a window says that disk I/Os cost; refused where nothing of the window is stored."""
    stored = opened.store.calibrations()
    result: CalibrationEstimate = opened.ask(
        lambda selection: calibration_estimate(
            selection,
            configured=opened.config.filesystem(selection.filesystem).classes,
            stored=stored,
            progress=progress,
        ),
        scope,
    )
    if not result.samples and not result.estimates:
        raise NotKnownError(_no_tick(opened, scope, result))
    return result


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
    rows = {chosen.name: _row(result, chosen, name) for chosen in result.classes}
    known = {target_class: row for target_class, row in rows.items() if row is not None}
    if not known:
        raise UsageError(f"nothing is stored as {name!r}: {_what_is_missing(result)}")
    unconfigured = [
        chosen for chosen in result.classes if chosen.name in known and chosen.name and not chosen.is_configured
    ]
    if unconfigured:
        lines = "\n".join(_configuration(chosen) for chosen in unconfigured)
        raise UsageError(
            f"nothing is stored as {name!r}: the classes of targets were found by their rates, and a calibration of a"
            " class needs its targets. Write into the configuration:\n"
            f"[filesystems.{result.filesystem}.classes]\n{lines}"
        )
    for row in known.values():
        opened.store.add_calibration({**row, "time": time.time_ns() // 1000, "source": SOURCE})
    return list(known)


def _row(result: CalibrationEstimate, chosen: TargetClass, name: str) -> dict[str, Any] | None:
    """A row of the table `calibrations`; None where a direction is not identified."""
    sides: dict[str, EvidenceEstimate] = {}
    for direction in DIRECTIONS:
        best = result.best(chosen.name, direction)
        if best is None:
            return None
        sides[direction] = best
    methods = list(dict.fromkeys(sides[direction].evidence for direction in DIRECTIONS[::-1]))
    row: dict[str, Any] = {
        "name": name,
        "filesystem": result.filesystem,
        "target_class": chosen.name,
        "valid_from": epoch_us(result.window_start) if result.window_start else None,
        "state": STATE,
        "method": " and ".join(methods),
        "upper_bound": False,
        "one_at_a_time": any(side.one_at_a_time for side in sides.values()),
        "evidence": "; ".join(f"{direction}s: {evidence_words(sides[direction])}" for direction in DIRECTIONS[::-1]),
    }
    for direction, side in sides.items():
        for field in (
            "latency_s",
            "latency_low_s",
            "latency_high_s",
            "s_per_byte",
            "s_per_byte_low",
            "s_per_byte_high",
        ):
            row[f"{direction}_{field}"] = getattr(side, field)
    return row


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


def _configuration(chosen: TargetClass) -> str:
    names = ", ".join(f'"{target}"' for target in chosen.targets[:MOST_NAMES])
    return f"{chosen.name} = [{names}{', …' * (len(chosen.targets) > MOST_NAMES)}]"

"""File System Utilization in the report: what a director should know, then the evidence for engineers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.analyses.utilization.targets import ENOUGH_TIME, FAR, FEWEST_PEERS, MATTERS_PCT
from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.figures import READ, WRITE, Axis, Figure, Panel, side_by_side
from iolens.views.render.section import Answer, Fact, Notice, Part, ReportSection
from iolens.views.render.shown_times import time_with_zone, zone_name
from iolens.views.utilization import figures as drawn
from iolens.views.utilization import tables as view
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.results import Coverage
    from iolens.analyses.utilization.analysis import Utilization
    from iolens.analyses.utilization.saturation import Plateau
    from iolens.analyses.utilization.targets import TargetOutliers
    from iolens.views.render.tables import Row, TableView

REPORT_ORDER: Final = 10
NAMES_SHOWN: Final = 6
DAYS_WORTH_A_FIGURE: Final = 3
DAY_LABELS: Final = 10
ENOUGH_DATA_PCT: Final = 95.0
DAYS_FROM_H: Final = 48.0
SMALL_IOS_FACTOR: Final = 2.0  # busy time ÷ that of the same bytes in 1 MiB I/Os
SMALL_IOS_BUSY_PCT: Final = 5.0

WHY: Final = {
    "more bytes": "it moved that much more",
    "smaller I/Os": "its I/Os are smaller: it did not move as much more as its FSU is higher",
    "fewer bytes": "it moved that much less",
    "larger I/Os": "its I/Os are larger: it did not move as much less as its FSU is lower",
    "unknown": "bytes are not known",
}


def report_answers(result: Utilization) -> list[Answer]:
    """How busy, bandwidth against a known peak, and saturation; targets that differ; what is missing."""
    is_empty = not result.samples and result.bandwidth_busy_time_pct is None
    load = [_verdict(result), *([] if is_empty else [_bandwidth(result)])]
    if result.samples and result.has_levels:
        load.append(_saturation(result))
    answers = [Answer("load", _kept(load), None if is_empty else drawn.bandwidth(result))]
    if result.samples:
        targets = (_differing(result) or _judged(result.target_outliers),)
        answers.append(Answer("targets", targets, drawn.heat_map(result)))
    return [*answers, Answer("data", (_missing(result),))]


def _verdict(result: Utilization) -> str:
    """With the state of the calibration, which the title of a table has."""
    said = view.verdict(result)
    return f"{said} {t.sentence(result.calibration_words)}" if result.samples and result.has_levels else said


def _kept(sentences: Sequence[str]) -> tuple[str, ...]:
    return tuple(sentence for sentence in sentences if sentence)


def report_identity(result: Utilization) -> list[str]:
    """How many targets, and for how long they were measured."""
    if not result.targets:
        return []
    return [counted(result.targets, "target"), f"{_days(result.coverage.hours_window)} of data"]


def _days(hours: float) -> str:
    return f"{hours:,.3g} h" if hours < DAYS_FROM_H else f"{hours / 24:,.3g} days"


def report_notices(result: Utilization) -> list[Notice]:
    """Saturation, small I/Os, targets that differ, and data that are missing."""
    return [*_load_notices(result), *_data_notices(result.coverage)]


def _load_notices(result: Utilization) -> list[Notice]:
    notices = []
    full = [plateau for plateau in result.plateaus or () if plateau.saturated]
    if full:
        often = f"{_hours(_length_of(full))} in {counted(len(full), 'stretch')}"
        notices.append(
            Notice("warn", "load", f"The disks were saturated for {often}.",
                   "See who kept the disks busy in the busiest hour.", ("blame", "--busiest", "1h"))
        )  # fmt: skip
    factor, busy = result.under_report_factor, result.busy_time_pct
    if factor is not None and factor >= SMALL_IOS_FACTOR and busy is not None and busy >= SMALL_IOS_BUSY_PCT:
        notices.append(
            Notice("info", "load", f"Small I/Os keep the disks busy {factor:,.1f} times as long as the bytes need.",
                   "See the sizes of I/Os and when they come.", ("workload",))
        )  # fmt: skip
    if differing := _differing(result):
        notices.append(Notice("info", "targets", differing, "Compare the targets.", ("imbalance",)))
    return notices


def _data_notices(coverage: Coverage) -> list[Notice]:
    notices = []
    if coverage.missing_targets:
        names = _listed(coverage.missing_targets)
        known = f"{len(coverage.missing_targets):,} of {counted(coverage.targets_known, 'known target')}"
        notices.append(
            Notice("warn", "data", f"{known} did not report: {names}.",
                   "Run `iolens doctor` on the servers of targets that did not report.")
        )  # fmt: skip
    complete = coverage.complete_pct
    if complete is not None and not t.is_missing(complete) and complete < ENOUGH_DATA_PCT:
        notices.append(
            Notice("warn", "data", f"Only {_percent(complete)} of the data are there.",
                   "Look for gaps before you trust a share of time.", ("utilization", "--table", "gaps"))
        )  # fmt: skip
    return notices


def report_facts(result: Utilization) -> list[Fact]:
    """Busy by FSU and by bytes, bandwidth, saturation and how complete the data are."""
    return list(_facts(result)) if result.samples else []


def report_now(result: Utilization) -> list[Fact]:
    """The newest FSU and bandwidth beside those of the window."""
    latest = None if result.series is None else result.series.latest
    if latest is None:
        return []
    when = f"{_minutes(latest.length_s)} until {t.show_time(latest.end)}"
    return [
        Fact(_percent(latest.fsu_pct), f"FSU lately ({result.calibration_words})", when),
        Fact(_percent(result.mean_pct), "FSU, mean", _busy_part(result)),
        Fact(_rate(latest.bytes_per_s), "bandwidth lately", f"mean {_rate(latest.whole_bytes_per_s)}"),
    ]


def _busy_part(result: Utilization) -> str:
    """For how much of the time; why that is not known."""
    if not result.has_levels:
        return result.calibration_words
    return f"busy {_percent(result.busy_time_pct)} of the time"


def _minutes(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:,.3g} min"


def _rate(bytes_per_s: float | None) -> str:
    return t.MISSING if bytes_per_s is None else f"{format_bytes_si(bytes_per_s)}/s"


def report_sections(result: Utilization) -> list[ReportSection]:
    """Everything on one file system."""
    measured = ReportSection("What was measured, and how complete it is", tuple(_measured(result)), "data")
    if not result.samples:
        return [measured, *_bytes_alone(result)]
    return [
        measured,
        *_levels(result),
        ReportSection("Every target", (view.per_target(result),), "targets"),
        ReportSection("Targets that differ from their peers", tuple(_outliers(result)), "targets"),
        *_sizes(result),
        *_beside_the_kernel(result),
        ReportSection("Daily volumes", (*_daily_figure(result), view.daily(result)), "load"),
    ]


def _levels(result: Utilization) -> list[ReportSection]:
    """Steady stretches and categories; where FSU has no level, how it is spread."""
    if not result.has_levels:
        return [ReportSection("How FSU is spread", (drawn.histogram(result),), "load")]
    parts: tuple[Part, ...] = (_described_busy(result), *view.categories([result]), drawn.histogram(result))
    return [
        ReportSection("Steady and saturated stretches", tuple(_over_time(result)), "load"),
        ReportSection("How busy it was", parts, "load"),
    ]


def _bytes_alone(result: Utilization) -> list[ReportSection]:
    """Where only bytes are known, as of LMT without brw_stats."""
    if result.bandwidth_busy_time_pct is None:
        return []
    return [ReportSection("Daily volumes", (*_daily_figure(result), view.daily(result)), "load")]


def _sizes(result: Utilization) -> list[ReportSection]:
    if result.model == "counters":
        return []
    return [ReportSection("Sizes of disk I/Os", (drawn.sizes(result), view.io_sizes([result])), "load")]


def _beside_the_kernel(result: Utilization) -> list[ReportSection]:
    """FSU and %util, where devices count their busy time."""
    if result.mean_util_pct is None:
        return []
    if not result.has_levels:
        words = (
            f"By the kernel the devices have at least one request under way {_percent(result.mean_util_pct)} of the"
            " time, however little it is. FSU counts what requests need by a calibration, and there is none."
        )
        return [ReportSection("Beside the kernel's %util", (words, drawn.util(result)), "load")]
    words = (
        f"The kernel calls the devices busy {_percent(result.mean_util_pct)} of the time, FSU says"
        f" {_percent(result.mean_pct)}. The kernel counts time with at least one request under way, however little it"
        " is; FSU counts what the requests need by the calibration. A device that serves many at once is 100 % busy to"
        " the kernel long before it is full."
    )
    return [ReportSection("Beside the kernel's %util", (words, drawn.util(result)), "load")]


def report_comparison(results: Sequence[Utilization]) -> list[ReportSection]:
    """Table III of paper U, for any number of file systems."""
    systems = list(results)
    title = "How busy each one was" if view.with_levels(systems) else "The file systems side by side"
    return [ReportSection(title, (_headlines(systems), *view.categories(systems)))]


def report_methods(results: Sequence[Utilization]) -> list[ReportSection]:
    """What the words mean."""
    counters = (
        "Here FSU is computed from counts of operations and bytes by the disks themselves: the same model, because it"
        " is linear. It is called FSU by bytes and not compared with FSU from histograms, which takes each I/O at the"
        " upper bound of its size bin."
    )
    by_bytes = any(result.model == "counters" for result in results)
    words = ReportSection("File System Utilization", (
        "File System Utilization (FSU) is the share of time the disks need for the I/Os they did. Each disk I/O of b"
        " bytes is taken to need a0 + a1·b seconds, with a0 (latency) and a1 (seconds per byte) measured for reads and"
        " writes on hardware of the same kind: the calibration. The time of all I/Os of an interval, divided by its"
        " length, is the FSU of a target; the mean over its targets is that of the file system.",
        *((counters,) if by_bytes else ()),
        *(_LEVELS if view.with_levels(results) else ()),
        _STATES,
        f"A target differs from its peers when its mean FSU is more than {FAR:g} robust standard deviations (by the"
        f" median absolute deviation) and at least {MATTERS_PCT:g} % FSU from their median. FSU counts what disks were"
        " asked to do, not how fast they did it: a target that stands out got more I/Os or smaller ones; a slow disk"
        " does not stand out here.",
        "Missing data are shown as missing (grey in figures, a dash in tables) and never counted as zero. Times are"
        f" those of {zone_name()}; MB, GB, TB are powers of ten, KiB and MiB powers of two.",
    ))  # fmt: skip
    return [words, ReportSection("Calibration", (view.calibration(list(results)),))]


_LEVELS: Final = (
    "Idle is an FSU below 2 %, busy one above 30 %, moderate what lies between. FSU can pass 100 % where caches or"
    " neighbouring I/Os make disks faster than their calibration. A calibration from other hardware shifts all"
    " values by one factor or so; it does not change which hours or targets are the busy ones.",
    "Many small I/Os keep disks busy without moving much, so bytes alone under-report load. Beside the time busy by"
    " FSU stands the time the same bytes would have kept the disks busy as I/Os of 1 MiB, larger ones left as they"
    " are, and the factor between the two. Optimal I/Os are those of 1 MiB or larger. Bandwidth as a share of its"
    " peak is another number, and is shown only where the peak is given or configured.",
    "A steady stretch is one of ten minutes or more (unless configured otherwise) in which FSU stays close to one"
    " level well above idle. That alone is not a full disk. It is saturated, with no more to give, where that level"
    " is near the ceiling: the FSU seen while a saturating test ran, else a configured one, else 100 %.",
)
_STATES: Final = (
    "A calibration is measured (fitted to a sweep on such targets), estimated (from the centre's own telemetry), a"
    " class (shipped or configured, and chosen by a person) or assumed (the shipped default, which nobody chose)."
    " While it is assumed, is only an upper bound, or is refuted by a mean above 120 % over ten minutes, FSU has no"
    " level here: it serves to compare times and targets. The band of the mean is FSU by the ends of the coefficients'"
    " intervals."
)


# The summary.


def _facts(result: Utilization) -> tuple[Fact, ...]:
    return (
        *_fsu_facts(result),
        *_bandwidth_fact(result),
        *(_saturation_fact(result) if result.has_levels else ()),
        Fact(
            _percent(result.coverage.complete_pct),
            "of the data are there",
            f"{counted(result.targets, 'target')} reported",
        ),
    )


def _fsu_facts(result: Utilization) -> list[Fact]:
    """The state of the calibration in the first of them; where FSU has no level, its mean alone."""
    words = result.calibration_words
    if not result.has_levels:
        return [Fact(_percent(result.mean_pct), "mean FSU", words)]
    return [
        Fact(
            _percent(result.busy_time_pct), "of the time busy by FSU", f"mean FSU {_percent(result.mean_pct)}; {words}"
        ),
        Fact(
            _percent(result.optimal_busy_time_pct), "of the time busy with the same bytes as 1 MiB I/Os", _less(result)
        ),
    ]


def _less(result: Utilization) -> str:
    """How busy by FSU compares with busy as 1 MiB I/Os."""
    factor = result.under_report_factor
    if factor is None or t.is_missing(factor):
        return "no factor: it is never busy then"
    return f"{factor:,.1f}× less" if factor >= view.SAME_FACTOR else "the same"


def _bandwidth_fact(result: Utilization) -> list[Fact]:
    """Only against a peak that the hardware is known to reach."""
    if not result.knows_peak or result.peak_bytes_per_s is None:
        return []
    peak = f"peak {format_bytes_si(result.peak_bytes_per_s)}/s, {result.peak_origin}"
    above = f"of the time above {view.border(result):g} % of peak bandwidth"
    return [Fact(_percent(result.bandwidth_busy_time_pct), above, peak)]


def _saturation_fact(result: Utilization) -> list[Fact]:
    if result.plateaus is None:
        return []
    full = [plateau for plateau in result.plateaus if plateau.saturated]
    steady = f"{len(full)} of {counted(len(result.plateaus), 'steady stretch')}"
    return [Fact(_hours(_length_of(full)), "saturated", steady)]


def _percent(value: float | None) -> str:
    return t.MISSING if value is None or t.is_missing(value) else f"{t.show_percent(value)} %"


def _hours(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:,.1f} h"


def _length_of(stretches: Sequence[Plateau]) -> timedelta:
    return timedelta(seconds=sum(plateau.duration_s for plateau in stretches))


def _bandwidth(result: Utilization) -> str:
    if result.bandwidth_busy_time_pct is None or result.peak_bytes_per_s is None:
        return "Bytes moved were not recorded, so bandwidth has nothing to say."
    return view.bandwidth(result) if result.knows_peak else ""


def _saturation(result: Utilization) -> str:
    """How often it was saturated; where never, how often it was steady, and below which ceiling."""
    if result.plateaus is None:
        return view.TOO_LONG
    if not result.plateaus:
        return "No steady stretch was found, and so no saturation."
    full = [plateau for plateau in result.plateaus if plateau.saturated]
    begins = f"It was {'saturated' if full else 'steady'} {_how_often(full or result.plateaus)}"
    if not full:
        return f"{begins}. None of that was saturated, close to {view.ceiling(max(result.plateaus, key=_duration))}."
    below = len(result.plateaus) - len(full)
    others = f" {counted(below, 'other steady stretch')} stayed below." if below else ""
    longest = max(full, key=_duration)
    near = f"close to {view.ceiling(longest)}"
    return f"{begins}, {near}: the disks had no more to give{_evidence(longest)}.{others}"


def _duration(plateau: Plateau) -> float:
    return plateau.duration_s


def _how_often(stretches: Sequence[Plateau]) -> str:
    longest = max(stretches, key=_duration)
    when = f"for {_hours(_length_of([longest]))} from {time_with_zone(longest.start)}"
    many = f"{len(stretches)} times, {_hours(_length_of(stretches))} in all; the longest time"
    often = "once," if len(stretches) == 1 else many
    near = "" if longest.median_pct is None else f", when FSU stayed near {t.show_whole_percent(longest.median_pct)} %"
    return f"{often} {when}{near}"


def _evidence(plateau: Plateau) -> str:
    """Medians of the stretch against those of the window."""
    pairs = (
        ("I/Os in flight", plateau.in_flight_p50, plateau.window_in_flight_p50, ""),
        ("time of an I/O", plateau.io_time_p50_ms, plateau.window_io_time_p50_ms, " ms"),
    )
    medians = [
        f"{name} {here:,.0f}{unit} in the median, {window:,.0f}{unit} over the window"
        for name, here, window, unit in pairs
        if here is not None and window is not None
    ]
    return f" ({'; '.join(medians)})" if medians else ""


def _differing(result: Utilization) -> str:
    outliers = result.target_outliers
    if not outliers.outliers:
        return ""
    more, less = ("busier", "idler") if result.has_levels else ("more", "less")
    names = _listed([f"{outlier.target} ({more if outlier.robust_z > 0 else less})" for outlier in outliers.outliers])
    verb = "is far from its" if len(outliers.outliers) == 1 else "are far from their"
    return f"{len(outliers.outliers)} of {counted(outliers.judged, 'target')} {verb} peers: {names}."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _missing(result: Utilization) -> str:
    """What is not in the data, in one sentence."""
    coverage = result.coverage
    faults = [
        *([f"nothing from {_listed(coverage.missing_targets)}"] if coverage.missing_targets else []),
        *([f"no I/O sizes from {_listed(coverage.targets_without_sizes)}"] if coverage.targets_without_sizes else []),
        *([counted(coverage.missed_samples, "missed sample")] if coverage.missed_samples else []),
        *([counted(coverage.resets, "counter reset")] if coverage.resets else []),
        *([f"{counted(coverage.ios_outside_bins, 'I/O')} of unknown size"] if coverage.ios_outside_bins else []),
    ]
    complete = coverage.complete_pct
    if complete is None or t.is_missing(complete):
        return f"What is missing: {'; '.join(faults)}." if faults else "How complete the data are is not known."
    if t.show_percent(complete) == t.show_percent(100.0) and not faults:
        return f"The data are complete: all {counted(coverage.targets_known, 'target')} reported throughout."
    begins = f"The data are {_percent(complete)} complete"
    if not faults:
        return f"{begins}; the rest is time in which targets did not report."
    return f"{begins}. Missing or odd: {'; '.join(faults)}."


# The evidence.


def _measured(result: Utilization) -> list[Part]:
    coverage = result.coverage
    parts: list[Part] = [_missing(result)]
    if coverage.missing_targets:
        known = f"{len(coverage.missing_targets):,} of {counted(coverage.targets_known, 'known target')}"
        parts.append(f"{known} did not report: {', '.join(coverage.missing_targets)}.")
    gaps = view.gaps(result)
    return [*parts, view.coverage([result]), *([gaps] if gaps is not None else [])]


def _over_time(result: Utilization) -> list[Part]:
    peak = view.bandwidth(result) if not result.knows_peak else ""
    evidence = view.evidence(result)
    return [*([peak] if peak else []), view.plateaus(result), *([evidence] if evidence is not None else [])]


def _described_busy(result: Utilization) -> str:
    shares = {category.name: category.observations_pct for category in result.categories}
    reported = ", ".join(f"{name} {_percent(share)}" for name, share in shares.items() if share is not None)
    busy = next((category for category in result.categories if category.name == "busy"), None)
    if busy is None or busy.optimal_pct is None:
        return f"Shares of the observations: {reported}."
    optimal = f"Of the I/Os while busy, {_percent(busy.optimal_pct)} were of 1 MiB or larger."
    return f"Shares of the observations: {reported}. {optimal}"


def _outliers(result: Utilization) -> list[Part]:
    outliers = result.target_outliers
    parts: list[Part] = [_judged(outliers)]
    if outliers.too_short:
        share = f"less than {100 * ENOUGH_TIME:.0f} % of the time of others"
        parts.append(f"Not judged, since they reported {share}: {', '.join(outliers.too_short)}.")
    return [*parts, _outlier_table(outliers)] if outliers.outliers else parts


def _judged(outliers: TargetOutliers) -> str:
    if outliers.median_pct is None or outliers.spread_pct is None:
        return f"Fewer than {FEWEST_PEERS} targets can be compared, too few to tell which one differs."
    middle = f"their mean FSU is {_percent(outliers.median_pct)} in the median, with a robust standard deviation of"
    reported = f"{counted(outliers.judged, 'target')} compared: {middle} {_percent(outliers.spread_pct)}."
    return reported if outliers.outliers else f"{reported} None is far from the others."


def _outlier_table(outliers: TargetOutliers) -> TableView:
    columns = (
        t.text("target", "Target"), t.percent("mean_pct", "Mean FSU"),
        t.number("robust_z", "Robust z-score", "", "+,.1f"),
        t.number("fsu_ratio", "FSU, of median", "×", ",.2f"), t.number("bytes_ratio", "Bytes, of median", "×", ",.2f"),
        t.text("reason", "Why"),
    )  # fmt: skip
    rows = [t.row_of(outlier, columns, {"reason": WHY[outlier.reason]}) for outlier in outliers.outliers]
    return t.TableView("Far from their peers", columns, rows, "The farthest first.")


def _daily_figure(result: Utilization) -> list[Figure]:
    """Bars by day, once there are days to compare."""
    days = result.daily
    if len(days) < DAYS_WORTH_A_FIGURE:
        return []
    dates = [day.date.isoformat() for day in days]
    names = tuple(
        name if day.complete else f"{name}, {t.show_whole_percent(day.covered_pct)} % of it"
        for name, day in zip(dates, days, strict=True)
    )
    volumes = {"read": [day.read_bytes for day in days], "written": [day.write_bytes for day in days]}
    known = [value for values in volumes.values() for value in values if value is not None]
    factor, unit = next(((size, name) for size, name in _VOLUMES if max(known, default=0) >= size), (1.0, "B"))
    heights = [
        (label, colour, np.array([(value or 0) / factor for value in volumes[label]]))
        for label, colour in (("read", READ), ("written", WRITE))
    ]
    every = -(-len(names) // DAY_LABELS)
    ticks = tuple((float(place), name) for place, name in enumerate(dates) if place % every == 0)
    x = Axis(f"day ({result.daily_summary.timezone})", low=-0.6, high=len(names) - 0.4, ticks=ticks)
    y = Axis(f"volume ({unit})", low=0, high=1.12 * max(known, default=0) / factor or 1.0)
    panel = Panel(f"{result.filesystem}, {dates[0]} to {dates[-1]}", x, y, side_by_side(heights, names))
    return [Figure("daily", "Daily volumes", (panel,))]


_VOLUMES: Final = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def _headlines(systems: Sequence[Utilization]) -> TableView:
    shared = (
        t.text("filesystem", "File system"), t.text("calibration_state", "Calibration"),
        t.count("targets", "Targets"), *view.fsu_columns(list(systems)),
        *view.busy_columns(list(systems)),
    )  # fmt: skip
    stretches = (t.count("steady", "Steady"), t.count("saturated", "Saturated")) if view.with_levels(systems) else ()
    more = (*stretches, t.percent("complete_pct", "Complete"))
    rows: list[Row] = [
        (*t.row_of(system, shared), *_stretch_counts(system)[: len(stretches)], system.coverage.complete_pct)
        for system in systems
    ]
    return t.TableView("File systems", (*shared, *more), rows)


def _stretch_counts(system: Utilization) -> tuple[int | None, int | None]:
    """Steady stretches, and how many of them are saturated."""
    plateaus = system.plateaus
    return (None, None) if plateaus is None else (len(plateaus), sum(plateau.saturated for plateau in plateaus))

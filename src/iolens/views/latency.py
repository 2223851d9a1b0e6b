"""Latency for people: the file system, the targets that are slowest beside their peers, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.schema import DIRECTIONS as SCHEMA_DIRECTIONS
from iolens.units import epoch_us, format_bytes
from iolens.views.render import tables as t
from iolens.views.render.coverage import coverage_table, covered
from iolens.views.render.figures import READ_SHADES, TOGETHER, WRITE_SHADES, Axis, Figure, HeatMapMark, Mark, Panel
from iolens.views.render.section import Answer, Notice, ReportSection, grouped_rows, moved, with_servers
from iolens.views.render.window_axes import (
    EMPTY,
    largest,
    outside,
    robust_range,
    rows_height,
    target_axis,
    time_axis,
    window_title,
)
from iolens.views.render.window_axes import over_time as curve
from iolens.visible_text import counted, some_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolens.analyses.latency.analysis import Latency, LatencySeries, SizeLatency, TargetLatency
    from iolens.arrays import Integers
    from iolens.views.render.tables import TableColumn, TableView

    Curve = tuple[NDArray[Any], str, str]
    from collections.abc import Sequence


TARGETS_SHOWN: Final = 24
WORST_SHOWN: Final = 12
NO_DATA: Final = "No data in this window."
SLOW_NAMED: Final = 6


def tables(result: Latency) -> list[TableView]:
    """Everything the result says."""
    sizes = [by_size(result)] if result.by_size else []
    targets = [worst(result)] if result.per_target or not sizes else []
    return [headline(result), *sizes, *targets, coverage(result)]


def verdict(result: Latency) -> str:
    """In one sentence, how long I/Os took, and who was slower than the others."""
    return covered(result, _verdict(result)) if result.has_times else NO_DATA


def _verdict(result: Latency) -> str:
    reported = [
        f"99 % of {line.direction}s took at most {shown_ms(line.p99_ms)} ms"
        for line in result.whole
        if line.p99_ms is not None
    ]
    if not reported:
        reported = [
            f"{line.direction}s waited {shown_ms(line.mean_wait_ms)} ms on average"
            for line in result.whole
            if line.mean_wait_ms is not None
        ]
    text = ", ".join(reported or _size_words(result)) or "no I/O was timed"
    slow = slow_words(result)
    return f"{text[0].upper()}{text[1:]}.{f' {slow}' if slow else ''}"


def _size_words(result: Latency) -> list[str]:
    """Of reads and writes, the time of the size that is most frequent."""
    words = []
    for direction in SCHEMA_DIRECTIONS:
        lines = [line for line in result.by_size if line.direction == direction]
        if lines:
            most = max(lines, key=lambda line: line.ios)
            words.append(f"half of the {direction}s {_of_size(most)} took at most {shown_ms(most.p50_ms)} ms")
    return words


def _of_size(line: SizeLatency) -> str:
    return f"of {format_bytes(line.from_bytes)} to below {format_bytes(line.below_bytes)}"


def slow_words(result: Latency) -> str:
    """Who is far slower, with the evidence of the first."""
    slow = sorted((line for line in result.per_target if line.finding == "slower"), key=slowness, reverse=True)
    if not slow:
        return ""
    names = list(dict.fromkeys(line.target for line in slow))
    ends = "is far slower than its peers" if len(names) == 1 else "are far slower than their peers"
    return f"{some_names(names, SLOW_NAMED)} {ends}: {_evidence(slow[0], result.period_s)}."


def _evidence(line: TargetLatency, period_s: float) -> str:
    """Why a target is called slower."""
    evidence = line.evidence
    assert evidence is not None
    when = f"slower in {evidence.periods_slower} of {counted(evidence.periods, 'period')} of {t.show_seconds(period_s)}"
    if evidence.beyond_twice_pct is None:
        return f"{line.target}'s {line.direction}s waited {_ratio(line.mean_wait_ratio)} times as long, {when}"
    assert evidence.tail_ms is not None
    return (
        f"{t.show_percent(evidence.beyond_twice_pct)} % of {line.target}'s {line.direction}s took more than"
        f" {shown_ms(2 * evidence.tail_ms)} ms, {t.show_percent(evidence.peers_beyond_pct or 0.0)} % of its peers' more"
        f" than {shown_ms(evidence.tail_ms)} ms; {when}"
    )


def _ratio(value: float | None) -> str:
    return t.MISSING if value is None or t.is_missing(value) else f"{value:,.2f}"


def milliseconds(name: str, heading: str) -> TableColumn:
    """A time."""
    return t.TableColumn(name, heading, "number", shown_ms, "ms")


def shown_ms(value: float) -> str:
    """Four digits, and all of those before the point."""
    if t.is_missing(value):
        return t.MISSING
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def headline(result: Latency) -> TableView:
    """Reads and writes of the whole file system."""
    columns = (
        t.text("direction", "Direction"), t.count("ios", "I/Os timed"), milliseconds("p50_ms", "50 % within"),
        milliseconds("p95_ms", "95 % within"), milliseconds("p99_ms", "99 % within"),
        milliseconds("max_ms", "All within"), milliseconds("mean_wait_ms", "Mean wait"),
    )  # fmt: skip
    rows = t.rows_of(result.whole, columns)
    notes = [verdict(result)]
    if any(line.p99_ms is not None for line in result.whole):
        notes.append("Percentiles are upper edges of histogram bins, which double from one to the next.")
    return t.TableView(f"{result.filesystem}: latency of disk I/Os", columns, rows, "\n".join(notes), name="summary")


def by_size(result: Latency) -> TableView:
    """Bulk I/Os by their size, where servers time them so."""
    columns = (
        t.text("direction", "Direction"), t.size("from_bytes", "From"), t.size("below_bytes", "To below"),
        t.count("ios", "I/Os timed"), milliseconds("p50_ms", "50 % within"), milliseconds("p95_ms", "95 % within"),
        milliseconds("p99_ms", "99 % within"), milliseconds("max_ms", "All within"),
    )  # fmt: skip
    note = (
        "Elapsed time of a bulk I/O with all its disk I/Os, waiting included (io_latency_stats). Percentiles are upper"
        " edges of bins, which double from one to the next."
    )
    return t.TableView(
        f"{result.filesystem}: latency by size", columns, t.rows_of(result.by_size, columns), note, name="by_size"
    )


def worst(result: Latency) -> TableView:
    """The slowest targets beside the median of their peers, or all of a few."""
    columns = (
        t.text("target", "Target"), t.text("direction", "Direction"), t.count("ios", "I/Os timed"),
        milliseconds("p50_ms", "50 %"), milliseconds("p95_ms", "95 %"), milliseconds("p99_ms", "99 %"),
        milliseconds("max_ms", "All"), milliseconds("peers_p99_ms", "Peers' 99 %"),
        t.number("p99_ratio", "Ratio", "×", ",.2f"), t.percent("slow_pct", "Slower than peers' 99 %"),
        milliseconds("mean_wait_ms", "Mean wait"), t.number("mean_wait_ratio", "of peers'", "×", ",.2f"),
        t.text("finding", "Beside its peers"),
    )  # fmt: skip
    shown = sorted(result.per_target, key=slowness, reverse=True)
    note = "The slowest beside the median of their peers first." if shown else NO_DATA
    unknown = next((line for line in shown if line.finding == "unknown"), None)
    if len(shown) > TARGETS_SHOWN:
        note = f"The {WORST_SHOWN} slowest of {len(shown)} beside the median of their peers; JSON has them all."
        shown = shown[:WORST_SHOWN]
    if unknown is not None:
        note += f"\nUnknown: {unknown.target}, {unknown.direction}s: {unknown.not_judged}."
    used = [column for column in columns if any(getattr(line, column.name) is not None for line in shown)]
    note = "\n".join([note, *moved(result.servers)])
    return t.TableView(
        f"Targets of {result.filesystem}",
        *with_servers(result.servers, tuple(used or columns), shown),
        note,
        name="per_target",
        keep=("direction", "p99_ms", "finding"),
    )


def slowness(line: TargetLatency) -> tuple[bool, float, float, float]:
    """Those called slower first; by the 99th percentile, the share of slow I/Os, the mean wait; beside the peers."""
    return line.finding == "slower", line.p99_ratio or 0.0, line.slow_pct or 0.0, line.mean_wait_ratio or 0.0


def coverage(result: Latency) -> TableView:
    """What the answer rests on, and what was missing."""
    fields = (
        t.count("targets_known", "Targets known"), t.count("targets_with_histogram", "With I/O times"),
        t.count("targets_with_waits", "With mean waits"), t.count("targets_with_sizes", "With I/O times by size"),
        t.text("targets_without", "With neither"),
        t.percent("complete_pct", "From first to last"), t.text("sources", "Sources"),
        t.count("overlapping_rows", "Overlapping rows"),
        t.time("first_sample", "First sample"), t.time("last_sample", "Last sample"),
    )  # fmt: skip
    return coverage_table([(result.filesystem, result.coverage)], fields, "\n".join(result.coverage.notes))


# Figures of latency ---------------------------------------------------------------------------------------------------
# Percentiles over time, reads above writes, and a heat map of every target.

DIRECTIONS: Final = ("read", "write")
PALE: Final = {"read": READ_SHADES, "write": WRITE_SHADES}  # 50, 95, 99 %
MOST_TICKS: Final = 9


FIGURES: Final = ("latency", "heatmap")


def figures(result: Latency) -> dict[str, Callable[[], Figure]]:
    """Percentiles over time, and every target over time."""
    return {"latency": lambda: over_time(result), "heatmap": lambda: heat_map(result)}


def over_time(result: Latency) -> Figure:
    """The 50th, 95th and 99th percentile of all data targets, or their mean wait where there is no histogram."""
    whole = [latency_series for latency_series in result.over_time if latency_series.target is None]
    curves = {latency_series.direction: _of(latency_series) for latency_series in whole}
    shown = [values[np.isfinite(values) & (values > 0)] for same in curves.values() for values, _, _ in same]
    y = _log_axis(np.concatenate(shown) if shown else np.zeros(0))
    panels = tuple(_curves(result, direction, curves.get(direction, []), y) for direction in DIRECTIONS)
    return Figure("latency", "Latency of disk I/Os", panels, linked_x=True)


def heat_map(result: Latency) -> Figure:
    """The 99th percentile by target and time, or the mean wait where there is no histogram anywhere."""
    has_histogram = any(np.isfinite(latency_series.p99_ms).any() for latency_series in result.over_time)
    measure, label = ("p99_ms", "99 % within (ms), log") if has_histogram else ("mean_wait_ms", "mean wait (ms), log")
    values = [
        getattr(latency_series, measure) for latency_series in result.over_time if latency_series.target is not None
    ]
    positive = [array[np.isfinite(array) & (array > 0)] for array in values]
    low, high = robust_range(positive)
    label = f"{label}, largest {largest(*values):.3g}"
    panels = tuple(_heat_panel(result, direction, measure, (low, high, label)) for direction in DIRECTIONS)
    return Figure("heatmap", "Latency of every target", panels, linked_x=True)


def _curves(result: Latency, direction: str, curves: list[Curve], y: Axis) -> Panel:
    title, time = f"{window_title(result)}: {direction}s", time_axis(result)
    if not curves:
        return Panel(title, time, Axis("milliseconds"), message=EMPTY)
    x = _starts_us(result) + round(result.bucket_s * 5e5)
    marks: list[Mark] = [curve(x, values, result.bucket_s, label, colour, "left") for values, label, colour in curves]
    return Panel(title, time, y, tuple(marks))


def _log_axis(shown: NDArray[Any]) -> Axis:
    """The same for reads and writes, from a number to a number of the kind 1, 2, 5, 10, with as many as can be read."""
    if not shown.size:
        return Axis("milliseconds")
    powers = range(math.floor(math.log10(float(shown.min()))) - 1, math.ceil(math.log10(float(shown.max()))) + 2)
    numbers = [step * 10.0**power for power in powers for step in (1.0, 2.0, 5.0)]
    low = max(number for number in numbers if number < shown.min())
    high = min(number for number in numbers if number > shown.max())
    ticks = [number for number in numbers if low <= number <= high]
    if len(ticks) > MOST_TICKS:
        ticks = [number for number in ticks if number in (low, high) or math.log10(number).is_integer()]
    return Axis("milliseconds, log scale", "log", low, high, tuple((place, f"{place:,g}") for place in ticks))


def _of(whole: LatencySeries) -> list[Curve]:
    """What is known of all data targets together: values, name and colour of each curve."""
    measures = ((whole.p50_ms, "50 %"), (whole.p95_ms, "95 %"), (whole.p99_ms, "99 %"))
    percentiles = [
        (values, f"{share} within", colour)
        for (values, share), colour in zip(measures, PALE[whole.direction], strict=True)
        if np.isfinite(values).any()
    ]
    wait = [(whole.mean_wait_ms, "mean wait", TOGETHER)] if np.isfinite(whole.mean_wait_ms).any() else []
    return [*percentiles, *wait]


def _starts_us(result: Latency) -> Integers:
    return np.array([epoch_us(start) for start in result.bucket_starts], dtype=np.int64)


def _heat_panel(result: Latency, direction: str, measure: str, scale: tuple[float, float, str]) -> Panel:
    title, time = f"{window_title(result)}: {direction}s", time_axis(result)
    series = [
        latency_series
        for latency_series in result.over_time
        if latency_series.target is not None and latency_series.direction == direction
    ]
    rows = [latency_series for latency_series in series if np.isfinite(getattr(latency_series, measure)).any()]
    if not rows:
        return Panel(title, time, Axis("target"), message=EMPTY)
    order, groups = grouped_rows(result.servers, [str(row.target) for row in rows])
    rows = [rows[place] for place in order]
    names = tuple(str(row.target).removeprefix(f"{result.filesystem}-") for row in rows)
    start = float(_starts_us(result)[0])
    values = np.array([getattr(row, measure) for row in rows])
    low, high, label = scale
    end, counts = start + result.bucket_s * 1e6 * values.shape[1], tuple(count for _, count in groups)
    mark = HeatMapMark(start, end, names, values, low, high, label, groups=counts)
    return Panel(title, time, target_axis(names, groups), (*outside(time, mark), mark), height=rows_height(names))


# Latency in the report; nothing where no target counts times ----------------------------------------------------------

REPORT_ORDER: Final = 30


def report_answers(result: Latency) -> list[Answer]:
    """How long I/Os took, and who was slow."""
    return [Answer("targets", (verdict(result),), over_time(result))] if result.has_times else []


def report_notices(result: Latency) -> list[Notice]:
    """Targets that are far slower than their peers."""
    slow = slow_words(result)
    step = "Check the drives and the RAID state of that target."
    return [Notice("warn", "targets", slow, step, ("latency",))] if slow else []


def report_sections(result: Latency) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.has_times:
        return []
    sizes: tuple[TableView, ...] = (by_size(result),) if result.by_size else ()
    drawings = (over_time(result), heat_map(result))
    return [
        ReportSection("Latency of disk I/Os", (headline(result), *sizes, *drawings, worst(result)), "targets"),
        ReportSection("What latency rests on", (coverage(result),), "appendix"),
    ]


def report_methods(results: Sequence[Latency]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.has_times for result in results):
        return []
    words = (
        "Servers count their disk I/Os by the time they took, in bins that double from one to the next. A percentile is"
        " the upper edge of the first bin at which that share of the I/Os is reached: it is right to a factor of two."
        " Where there is no such histogram, the mean wait stands in: summed waiting time divided by operations. A mean"
        " says nothing about the slowest. Servers of Lustre 2.17 and later also time each bulk I/O by its size, from"
        " its start to its end, with all its disk I/Os and its waiting.",
        "Peers are the targets of the same kind. A target is called far slower when more of its I/Os take longer than"
        " twice a time than of its peers' take longer than that time (their 95th or 99th percentile), with a"
        " confidence that lets equal targets be called so in at most one of a hundred windows, and when it is above"
        " most of its peers in most parts of the window. It takes a thousand I/Os; below that nothing is said. Where"
        " there are no percentiles, its mean wait must be more than twice theirs, and above it in most parts.",
    )
    return [ReportSection("Latency", words)]

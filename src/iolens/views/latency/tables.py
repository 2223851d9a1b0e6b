"""Latency for people: the file system, the targets that are slowest beside their peers, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.schema import DIRECTIONS
from iolens.units import format_bytes
from iolens.views.render import tables as t
from iolens.views.render.coverage import coverage_table, covered
from iolens.views.render.server_rows import moved, with_servers
from iolens.visible_text import counted, some_names

if TYPE_CHECKING:
    from iolens.analyses.latency.analysis import Latency, SizeLatency, TargetLatency
    from iolens.views.render.tables import TableColumn, TableView

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
    for direction in DIRECTIONS:
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

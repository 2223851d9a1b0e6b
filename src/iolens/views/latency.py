"""Latency for people: the file system, the targets that are slowest beside their peers, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views import tables as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.analyses.latency import Latency, TargetLatency
    from iolens.views.figures import Figure
    from iolens.views.tables import Column, Row, Table

TARGETS_SHOWN: Final = 24
WORST_SHOWN: Final = 12
NO_DATA: Final = "No data in this window."
SLOW_RATIO: Final = 4.0  # one bin is a factor of two, and may be chance
SLOW_PCT: Final = 10.0  # 1 % is usual
SLOW_WAIT_RATIO: Final = 2.0
PERCENTILES: Final = ("p50_ms", "p95_ms", "p99_ms", "max_ms")


def tables(result: Latency) -> list[Table]:
    """Everything the result says."""
    return [headline(result), worst(result), coverage(result)]


def figures(result: Latency) -> dict[str, Callable[[], Figure]]:
    """Percentiles over time, and every target over time."""
    from iolens.views import latency_figures as drawn

    return {"latency": lambda: drawn.over_time(result), "heatmap": lambda: drawn.heat_map(result)}


def verdict(result: Latency) -> str:
    """In one sentence, how long I/Os took, and who was slower than the others."""
    if not result.samples:
        return NO_DATA
    told = [
        f"99 % of {line.direction}s took at most {line.p99_ms:,.0f} ms"
        for line in result.whole
        if line.p99_ms is not None
    ]
    if not told:
        told = [
            f"{line.direction}s waited {line.mean_wait_ms:,.3g} ms on average"
            for line in result.whole
            if line.mean_wait_ms is not None
        ]
    slow = list(dict.fromkeys(line.target for line in result.per_target if is_slow(line)))
    ends = "is far slower than its peers" if len(slow) == 1 else "are far slower than their peers"
    peers = f" {_listed(slow)} {ends}." if slow else ""
    text = ", ".join(told) or "no I/O took place"
    return f"{text[0].upper()}{text[1:]}.{peers}"


def is_slow(line: TargetLatency) -> bool:
    """Two bins above its peers' 99th percentile or a tenth of its I/Os beyond it; else, twice their mean wait."""
    if line.p99_ratio is None:
        return (line.mean_wait_ratio or 0) >= SLOW_WAIT_RATIO
    return line.p99_ratio >= SLOW_RATIO or (line.slow_pct or 0) >= SLOW_PCT


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def milliseconds(name: str, heading: str) -> Column:
    """A time."""
    return t.number(name, heading, "ms", ",.4g")


def headline(result: Latency) -> Table:
    """Reads and writes of the whole file system."""
    columns = (
        t.text("direction", "Direction"), t.count("ios", "I/Os timed"), milliseconds("p50_ms", "50 % within"),
        milliseconds("p95_ms", "95 % within"), milliseconds("p99_ms", "99 % within"),
        milliseconds("max_ms", "All within"), milliseconds("mean_wait_ms", "Mean wait"),
    )  # fmt: skip
    rows: list[Row] = [tuple(getattr(line, column.name) for column in columns) for line in result.whole]
    notes = [verdict(result)]
    if any(line.p99_ms is not None for line in result.whole):
        notes.append("Percentiles are upper edges of histogram bins, which double from one to the next.")
    return t.Table(f"{result.filesystem}: latency of disk I/Os", columns, rows, "\n".join(notes))


def worst(result: Latency) -> Table:
    """The slowest targets beside the median of their peers, or all of a few."""
    columns = (
        t.text("target", "Target"), t.text("direction", "Direction"), t.count("ios", "I/Os timed"),
        milliseconds("p50_ms", "50 %"), milliseconds("p95_ms", "95 %"), milliseconds("p99_ms", "99 %"),
        milliseconds("max_ms", "All"), milliseconds("peers_p99_ms", "Peers' 99 %"),
        t.number("p99_ratio", "Ratio", "×", ",.2f"), t.percent("slow_pct", "Slower than peers' 99 %"),
        milliseconds("mean_wait_ms", "Mean wait"), t.number("mean_wait_ratio", "of peers'", "×", ",.2f"),
    )  # fmt: skip
    shown = sorted(result.per_target, key=slowness, reverse=True)
    note = "The slowest beside the median of their peers first." if shown else NO_DATA
    if len(shown) > TARGETS_SHOWN:
        note = f"The {WORST_SHOWN} slowest of {len(shown)} beside the median of their peers; JSON has them all."
        shown = shown[:WORST_SHOWN]
    used = [column for column in columns if any(getattr(line, column.name) is not None for line in shown)]
    rows: list[Row] = [tuple(getattr(line, column.name) for column in used) for line in shown]
    return t.Table(f"Targets of {result.filesystem}", tuple(used or columns), rows, note)


def slowness(line: TargetLatency) -> tuple[float, float, float]:
    """By the 99th percentile, then by the share of slow I/Os, then by the mean wait; each beside the peers."""
    return line.p99_ratio or 0.0, line.slow_pct or 0.0, line.mean_wait_ratio or 0.0


def coverage(result: Latency) -> Table:
    """What the answer rests on, and what was missing."""
    fields = (
        t.count("targets_known", "Targets known"), t.count("targets_with_histogram", "With I/O times"),
        t.count("targets_with_waits", "With mean waits"), t.text("targets_without", "With neither"),
        t.text("sources", "Sources"), t.count("overlapping_rows", "Overlapping rows"),
        t.moment("first_sample", "First sample (UTC)"), t.moment("last_sample", "Last sample (UTC)"),
    )  # fmt: skip
    row: Row = (result.filesystem, *(getattr(result.coverage, field.name) for field in fields))
    notes = "\n".join(result.coverage.notes)
    return t.Table("Coverage", (t.text("filesystem", "File system"), *fields), [row], notes, sideways=True)

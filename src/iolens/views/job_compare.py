"""A comparison of jobs for people: what moved, in words and numbers, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.schema import DIRECTIONS
from iolens.units import epoch_us, format_bytes
from iolens.views.render import tables as t
from iolens.views.render.figures import (
    BEFORE_AFTER,
    SATURATED,
    Axis,
    Figure,
    Mark,
    Panel,
    PointsMark,
    Rule,
    Span,
    side_by_side,
)
from iolens.views.render.log_scales import log_axis
from iolens.visible_text import counted, listed

if TYPE_CHECKING:
    from iolens.analyses.job_compare import ComparedJob, JobComparison, SizeShift, TotalShift
    from iolens.views.render.tables import TableView


MOST_NAMED: Final = 4
QUANTITIES: Final = {
    "read_bytes": "bytes read", "write_bytes": "bytes written", "opens": "opens", "duration_s": "duration",
}  # fmt: skip


UNITS: Final = {
    "read_bytes": ("GB read", 1e9), "write_bytes": ("GB written", 1e9), "opens": ("opens", 1.0),
    "duration_s": ("duration, s", 1.0),
}  # fmt: skip


def tables(result: JobComparison) -> list[TableView]:
    """RPC sizes first, then the totals and the groups."""
    return [sizes(result), totals(result), groups(result)]


def verdict(result: JobComparison) -> str:
    """Whether the jobs differ more than chance explains, and in what; by the same numbers as the tables."""
    sides = f"{counted(result.first.jobs, 'job')} {result.first.label}, {result.second.jobs:,} {result.second.label}"
    if result.smallest_p is None:
        return f"Differences only ({sides}): with one job on a side, a change cannot be distinguished from chance."
    if result.verdict == "undecided":
        return (
            f"Undecided ({sides}): with so few jobs p cannot be below {_p(result.smallest_p)},"
            f" and {result.significance:g} is required."
        )
    if result.verdict == "not shown":
        known = [*(line.p for line in result.sizes), *(line.p for line in result.totals)]
        least = min(p for p in known if p is not None)
        return f"No shift is shown ({sides}): nothing differs more than chance explains; the smallest p is {_p(least)}."
    return f"The shift is real ({sides}; family-wise p): {listed(_changes(result), 2 * MOST_NAMED)}."


def _changes(result: JobComparison) -> list[str]:
    """What moved: the largest changes in the sizes of RPCs; by bytes only where the number of RPCs shows none."""
    moved = [line for line in result.sizes if line.moved]
    by_count = [line for line in moved if line.share == "rpcs"] or moved
    largest = sorted(by_count, key=lambda line: abs(line.difference_points or 0.0), reverse=True)
    words = [_size_words(line) for line in largest[:MOST_NAMED]]
    if len(largest) > MOST_NAMED:
        words.append(f"{counted(len(largest) - MOST_NAMED, 'further size')}")
    return [*words, *(_total_words(line) for line in result.totals if line.moved)]


def _size_words(line: SizeShift) -> str:
    assert line.first_pct is not None
    assert line.second_pct is not None
    of = "RPCs" if line.share == "rpcs" else "bytes"
    verb = "rose" if line.second_pct > line.first_pct else "fell"
    first, second = t.show_percent(line.first_pct), t.show_percent(line.second_pct)
    which = f"{line.direction}s of {format_bytes(line.size_bytes)}"
    if first == second:
        return f"{which} {verb} by less than 0.1 points, at {first} % of a job's {of} (p {_p(line.p)})"
    return f"{which} {verb} from {first} to {second} % of a job's {of} (p {_p(line.p)})"


def _total_words(line: TotalShift) -> str:
    return f"{QUANTITIES[line.quantity]} per job changed by a factor of {line.ratio:,.3g} (p {_p(line.p)})"


def _p(value: float | None) -> str:
    return t.MISSING if value is None else f"{value:.2g}"


def sizes(result: JobComparison) -> TableView:
    """Shares of each RPC size, reads and writes apart; of the number of RPCs and of their bytes."""
    first, second = result.first.label, result.second.label
    columns = (
        t.text("direction", "Direction"), t.size("size_bytes", "RPC size"), t.percent("first_pct", f"RPCs {first}"),
        t.percent("second_pct", second), t.number("difference_points", "Difference", "points", "+.1f"),
        t.number("statistic", "Statistic", "", "+.2f"), t.number("p", "p", "", ".2g"), t.text("moved", "Moved"),
        t.percent("first_bytes_pct", f"Bytes {first}"), t.percent("second_bytes_pct", second),
        t.number("bytes_p", "p", "", ".2g"), t.text("bytes_moved", "Moved"),
    )  # fmt: skip
    by_bytes = {(line.direction, line.size_bytes): line for line in result.sizes if line.share == "bytes"}
    rows = [
        t.row_of(line, columns, {"moved": _yes(line), **_bytes_cells(by_bytes[line.direction, line.size_bytes])})
        for line in result.sizes
        if line.share == "rpcs"
    ]
    notes = [verdict(result)]
    if not rows:
        notes.append("No RPCs by size are known of these jobs.")
    title = f"{result.filesystem}: sizes of RPCs, {second} beside {first}"
    return t.TableView(title, columns, rows, "\n".join(notes), warnings=tuple(_warnings(result)), name="sizes")


def _bytes_cells(line: SizeShift) -> dict[str, object]:
    cells = {"first_bytes_pct": line.first_pct, "second_bytes_pct": line.second_pct, "bytes_p": line.p}
    return {**cells, "bytes_moved": _yes(line)}


def _yes(line: SizeShift | TotalShift) -> str:
    return "yes" if line.moved else "not shown"


def totals(result: JobComparison) -> TableView:
    """What a job moved, opened and took."""
    columns = (
        t.text("quantity", "Per job"), t.number("first_geometric_mean", result.first.label.capitalize(), "", ",.4g"),
        t.number("second_geometric_mean", result.second.label.capitalize(), "", ",.4g"),
        t.number("ratio", "Factor", "", ",.3g"), t.number("statistic", "Statistic", "", "+.2f"),
        t.number("p", "p", "", ".2g"), t.text("moved", "Moved"),
        t.count("first_jobs", f"Jobs {result.first.label}"), t.count("second_jobs", f"Jobs {result.second.label}"),
    )  # fmt: skip
    rows = [t.row_of(line, columns, _total_cells(line)) for line in result.totals]
    note = "Geometric means over the jobs of which the total is known and more than 0."
    return t.TableView("Totals of a job", columns, rows, note, name="totals")


def _total_cells(line: TotalShift) -> dict[str, object]:
    """The means in the unit that people read."""
    name, unit = UNITS[line.quantity]
    means = ("first_geometric_mean", "second_geometric_mean")
    known = {mean: getattr(line, mean) for mean in means}
    scaled = {mean: None if value is None else value / unit for mean, value in known.items()}
    return {"quantity": name, "moved": _yes(line), **scaled}


def groups(result: JobComparison) -> TableView:
    """Who was compared."""
    columns = (
        t.text("label", "Group"), t.count("jobs", "Jobs"), t.time("first_start", "First start"),
        t.time("last_end", "Last end"), t.count("sampled_at_begin_and_end", "Sampled at begin and end"),
        t.count("sharing_nodes", "Sharing nodes"),
    )  # fmt: skip
    how = "all" if result.is_exhaustive else "random"
    notes = [f"{result.arrangements:,} {how} arrangements of the jobs into two groups."] if result.arrangements else []
    reasons = {
        "still running": result.left_out.running, "without counters": result.left_out.without_counters,
        "in between": result.left_out.in_between, "not alone on their nodes": result.left_out.sharing_nodes,
    }  # fmt: skip
    if any(reasons.values()):
        notes.append(
            "Left out: " + ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count) + "."
        )
    return t.TableView(
        "Jobs", columns, t.rows_of((result.first, result.second), columns), "\n".join(notes), name="groups"
    )


def _warnings(result: JobComparison) -> list[str]:
    sharing = result.first.sharing_nodes + result.second.sharing_nodes
    mixed = {side.sampled_at_begin_and_end == side.jobs for side in (result.first, result.second)}
    words = []
    if sharing:
        whose = f"{counted(sharing, 'job')} shared nodes with others, whose I/O is in the counters"
        words.append(f"{whose}; --exclusive leaves them out")
    if len(mixed) > 1:
        words.append("one side was sampled at begin and end, the other is summed from intervals of its nodes")
    return words


# Figures of a comparison of jobs --------------------------------------------------------------------------------------
# Shares of RPC sizes side by side, moved ones marked; and every job's totals.

FIGURES: Final = ("sizes", "bytes", "totals")
MEASURES: Final = (
    ("read_bytes", "GB read", 1e-9), ("write_bytes", "GB written", 1e-9), ("opens", "opens", 1.0),
    ("duration_s", "duration (h)", 1 / 3600),
)  # fmt: skip
EMPTY: Final = "none known"


def figures(result: JobComparison) -> dict[str, Callable[[], Figure]]:
    """Shares of RPCs by size, shares of their bytes, and the totals of all jobs over time."""
    return {
        "sizes": lambda: shares(result, "rpcs"),
        "bytes": lambda: shares(result, "bytes"),
        "totals": lambda: totals_figure(result),
    }


def shares(result: JobComparison, share: str) -> Figure:
    """Reads above writes; a shaded size has moved."""
    what = "RPCs" if share == "rpcs" else "the bytes of RPCs"
    name = "sizes" if share == "rpcs" else "bytes"
    title = f"{result.filesystem}: {what} by size, {result.second.label} beside {result.first.label}"
    return Figure(name, title, tuple(_shares(result, direction, share, what) for direction in DIRECTIONS))


def _shares(result: JobComparison, direction: str, share: str, what: str) -> Panel:
    lines = [line for line in result.sizes if (line.direction, line.share) == (direction, share)]
    names = tuple(format_bytes(line.size_bytes) for line in lines)
    x = Axis("size of RPC, up to", low=-0.6, high=max(len(lines), 1) - 0.4, ticks=tuple(enumerate(names)))
    y = Axis(f"% of a job's {what}", low=0.0, high=100.0)
    if not lines:
        return Panel(f"{direction}s", x, y, message=EMPTY)
    moved: list[Mark] = [
        Span(place - 0.5, place + 0.5, f"moved (p ≤ {result.significance:g})", SATURATED)
        for place, line in enumerate(lines)
        if line.moved
    ]
    sides = (
        (f"{result.first.label} ({lines[0].first_jobs} jobs)", BEFORE_AFTER[0], [line.first_pct for line in lines]),
        (f"{result.second.label} ({lines[0].second_jobs} jobs)", BEFORE_AFTER[1], [line.second_pct for line in lines]),
    )
    bars = side_by_side([(label, colour, _heights(values)) for label, colour, values in sides], names)
    return Panel(f"{direction}s", x, y, (*moved, *bars))


def _heights(values: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([0.0 if value is None else value for value in values])


def totals_figure(result: JobComparison) -> Figure:
    """A dot for each job at its start."""
    panels = tuple(_total(result, *measure) for measure in MEASURES)
    return Figure("totals", f"{result.filesystem}: totals of the jobs compared", panels, linked_x=True)


def _total(result: JobComparison, measure: str, label: str, scale: float) -> Panel:
    starts = [epoch_us(job.start) for job in result.jobs]
    edge = max((max(starts) - min(starts)) // 20, 3_600_000_000)
    x = Axis("start of the job", "time", min(starts) - edge, max(starts) + edge)
    marks = [
        _dots([job for job in result.jobs if job.group == side.label], measure, scale, side.label, colour)
        for side, colour in zip((result.first, result.second), BEFORE_AFTER, strict=True)
    ]
    if not any(mark.x.size for mark in marks):
        return Panel(label, x, Axis(label), message=EMPTY)
    dates = dict.fromkeys(date for date in (result.before, result.after) if date is not None)
    rules: list[Mark] = [Rule(float(epoch_us(date)), "vertical", f"{date:%Y-%m-%d}") for date in dates]
    y = log_axis(f"{label}, log scale", np.concatenate([mark.y for mark in marks]))
    return Panel(label, x, y, (*rules, *marks), height=0.7)


def _dots(jobs: Sequence[ComparedJob], measure: str, scale: float, label: str, colour: str) -> PointsMark:
    known = [(epoch_us(job.start), getattr(job, measure)) for job in jobs if getattr(job, measure)]
    x = np.array([start for start, _ in known], dtype=float)
    return PointsMark(x, np.array([value * scale for _, value in known]), label, colour, weight=3.0)

"""Sizes of accesses for people: counts, cumulative shares (Fig. 10), and the project that dominates each size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import READ, WRITE, Axis, Figure, LineMark, Mark, Panel, PointsMark, side_by_side
from iolens.views.runs import EMPTY, bin_name, names_axis, project_name, titled, window_words
from iolens.visible_text import counted, listed

if TYPE_CHECKING:
    from iolens.analyses.runs_sizes import RunSizes, SizeOfAccesses
    from iolens.views.render.tables import TableView


def tables(result: RunSizes) -> list[TableView]:
    """All sizes of both directions in one table."""
    columns = (
        t.text("direction", "Direction"), t.text("to_bytes", "Size, up to"), t.count("accesses", "Accesses"),
        t.percent("pct", "Of all"), t.percent("cumulative_pct", "Up to here"), t.text("top_project", "Most by"),
        t.percent("top_project_pct", "Its share"),
    )  # fmt: skip
    rows = [
        t.row_of(
            line, columns, {"to_bytes": bin_name(line.to_bytes), "top_project": _top(line), "direction": line.direction}
        )
        for line in result.sizes
    ]
    return [t.TableView(titled(result, "accesses by size"), columns, rows, "\n".join(notes(result)), name="sizes")]


def _top(line: SizeOfAccesses) -> str | None:
    return project_name(line.top_project) if line.accesses else None


def notes(result: RunSizes) -> list[str]:
    """The most popular sizes, and what was left out."""
    lines = [
        f"{window_words(result)}. POSIX accesses: {counted(result.reads, 'read')}, {counted(result.writes, 'write')}."
    ]
    for direction in ("read", "write"):
        own = [line for line in result.sizes if line.direction == direction and line.accesses]
        most = max((line.accesses for line in own), default=0)
        popular = [_popular(line) for line in own if line.accesses == most]
        if popular:
            sizes = "size is" if len(popular) == 1 else "sizes are, equally,"
            lines.append(f"The most popular {direction} {sizes} {listed(popular, len(popular))}.")
    if result.without_projects:
        lines.append(f"Left out: {listed(result.without_projects, 10)}.")
    return lines


def _popular(line: SizeOfAccesses) -> str:
    span = f"more than {bin_name(line.from_bytes)}" if line.to_bytes is None else (
        f"{bin_name(line.from_bytes)} to {bin_name(line.to_bytes)}")  # fmt: skip
    share = "" if line.pct is None else f": {t.show_percent(line.pct)} % of all {line.direction}s"
    if line.top_project_pct is None:
        return f"{span}{share}"
    return f"{span}{share}, {t.show_percent(line.top_project_pct)} % of them by {project_name(line.top_project)}"


# Figure of access sizes -----------------------------------------------------------------------------------------------
# Cumulative shares of reads and writes (Fig. 10), and who dominates each size.

FIGURES: Final = ("cdf", "counts")
SIDES: Final = (("read", "reads", READ), ("write", "writes", WRITE))


def figures(result: RunSizes) -> dict[str, Callable[[], Figure]]:
    """Cumulative shares, and the share of each size."""
    return {"cdf": lambda: cumulative(result), "counts": lambda: counts(result)}


def _names(result: RunSizes) -> tuple[str, ...]:
    return tuple(bin_name(line.to_bytes) for line in result.sizes if line.direction == "read")


def _title(result: RunSizes, what: str) -> str:
    without = f", without {', '.join(result.without_projects)}" if result.without_projects else ""
    return titled(result, f"{what}{without}")


def cumulative(result: RunSizes) -> Figure:
    """Per cent of reads and writes of at most each size."""
    x, y = names_axis(_names(result), "size of access, up to"), Axis("% of accesses", low=0.0, high=102.0)
    marks: list[Mark] = []
    for direction, label, colour in SIDES:
        shares = np.array([line.cumulative_pct for line in result.sizes if line.direction == direction], dtype=float)
        if np.isfinite(shares).any():
            places = np.arange(float(shares.size))
            marks += [LineMark(places, shares, label, colour), PointsMark(places, shares, label, colour, weight=1.6)]
    panel = Panel(window_words(result), x, y, tuple(marks), message="" if marks else EMPTY)
    return Figure("cdf", _title(result, "access sizes, cumulative"), (panel,))


def counts(result: RunSizes) -> Figure:
    """Per cent of reads and writes of each size."""
    names = _names(result)
    x, y = names_axis(names, "size of access, up to"), Axis("% of accesses", low=0.0)
    groups = [
        (label, colour, np.array([line.pct or 0.0 for line in result.sizes if line.direction == direction]))
        for direction, label, colour in SIDES
    ]
    has_any = any(heights.any() for _, _, heights in groups)
    bars = side_by_side(groups, names) if has_any else ()
    panel = Panel(window_words(result), x, y, bars, message="" if has_any else EMPTY)
    return Figure("counts", _title(result, "accesses by size"), (panel,))

"""Sizes of accesses for people: counts, cumulative shares (Fig. 10), and the project that dominates each size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views.render import tables as t
from iolens.views.runs.words import bin_name, project_name, titled, window_words
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

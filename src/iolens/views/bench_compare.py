"""Two studies side by side for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import MIB, format_bytes
from iolens.views.bench_bandwidth import FILES
from iolens.views.render import tables as t
from iolens.views.render.figures import KINDS, READ, WRITE, Axis, Bars, Figure, Panel, Rule
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.bench_compare import DirectionChange, MeasureChange, StudyComparison
    from iolens.views.render.tables import Row, TableColumn, TableView


_SHOWN = {"bytes/s": (1.0 / MIB, "MiB/s"), "operations/s": (1.0, "1/s"), "s": (1e6, "µs")}


def tables(result: StudyComparison) -> list[TableView]:
    """A line for each direction, then one for each case."""
    return [summary(result), cases(result)]


def summary(result: StudyComparison) -> TableView:
    """All cases of a direction together."""
    columns = (
        t.text("direction", "Direction"), t.count("cases", "Cases"), t.number("median_pct", "Change", "%", "+.1f"),
        t.count("cases_beyond_noise", "Beyond noise"),
    )  # fmt: skip
    rows: list[Row] = [
        (line.direction, line.cases, line.median_pct, line.cases_beyond_noise) for line in result.directions
    ]
    left = [
        f"{counted(count, 'case')} only in {name}."
        for count, name in ((result.only_before, result.before), (result.only_after, result.after))
        if count
    ]
    note = "\n".join([*(words(line) for line in result.directions), *left])
    return t.TableView(
        f"{result.before} → {result.after}", columns, rows, note, warnings=tuple(result.warnings), name="summary"
    )


def words(line: DirectionChange) -> str:
    """`write: 12 % faster in the median of 13 cases; beyond noise in 9.`"""
    is_better = (line.median_pct > 0) == (line.unit != "s")
    change = (
        f"{abs(line.median_pct):.0f} % {'faster' if is_better else 'slower'}" if round(line.median_pct) else "unchanged"
    )
    where = f"in the median of {counted(line.cases, 'case')}" if line.cases > 1 else "in the only case"
    return f"{line.direction}: {change} {where}; beyond noise in {line.cases_beyond_noise or 'none'}."


def cases(result: StudyComparison) -> TableView:
    """Every case that both have; best against best."""
    columns: tuple[TableColumn, ...] = (
        t.text("place", "Place"), t.text("direction", "Direction"), t.text("call", "Call"),
        t.text("files", "Files"), t.count("tasks", "Tasks"), t.size("transfer_bytes", "Block"),
        t.size("aggregate_bytes", "Size"), t.count("stripe_count", "Stripes"), t.size("stripe_bytes", "Stripe size"),
        t.number("before", "Before", "", ",.4g"), t.number("after", "After", "", ",.4g"), t.text("unit", "Unit"),
        t.number("change_pct", "Change", "%", "+.1f"), t.text("beyond_noise", "Beyond noise"),
    )  # fmt: skip
    rows: list[Row] = []
    for line in result.changes:
        factor, unit = _SHOWN[line.unit]
        noise = {True: "yes", False: "no", None: None}[line.beyond_noise]
        rows.append(
            (
                line.place, line.direction, line.call, FILES[line.file_per_process], line.tasks, line.transfer_bytes,
                line.aggregate_bytes, line.stripe_count, line.stripe_bytes, line.before * factor, line.after * factor,
                unit, line.change_pct, noise,
            )
        )  # fmt: skip
    columns, rows = t.telling(columns, rows, {"tasks": (None, 1), "files": (None, "per process")})
    note = "Beyond noise: every run of one study is faster than every run of the other."
    return t.TableView("Cases", columns, rows, note, name="cases", keep=("direction", "change_pct"))


# Two studies side by side: change of every case -----------------------------------------------------------------------

FIGURES: Final = ("changes",)
MOST: Final = 40  # bars that can still be distinguished


def figures(result: StudyComparison) -> dict[str, Callable[[], Figure]]:
    """The only one."""
    return {"changes": lambda: changes(result)}


def changes(result: StudyComparison) -> Figure:
    """A bar for each case, a panel for each direction; the largest changes where there are many."""
    panels = []
    for direction in dict.fromkeys(line.direction for line in result.changes):
        mine = [line for line in result.changes if line.direction == direction]
        shown = sorted(mine, key=lambda line: -abs(line.change_pct))[:MOST]
        lines = [line for line in mine if line in shown]
        places = np.arange(len(lines), dtype=float)
        names = tuple(_name(line) for line in lines)
        heights = np.array([line.change_pct for line in lines])
        colour = {"write": WRITE, "read": READ}.get(direction, KINDS[1])
        bars = Bars(places - 0.4, places + 0.4, heights, direction, colour, names)
        ticks = tuple(zip(places.tolist(), names, strict=True))
        x = Axis("case", low=-0.6, high=len(lines) - 0.4, ticks=ticks, slanted=True)
        panels.append(Panel(direction, x, Axis("change (%)"), (bars, Rule(0.0, "horizontal", ""))))
    return Figure("changes", f"From {result.before} to {result.after}", tuple(panels))


def _name(line: MeasureChange) -> str:
    parts = [
        line.place or "",
        line.call or "",
        format_bytes(line.transfer_bytes) if line.transfer_bytes else "",
        counted(line.stripe_count, "stripe") if line.stripe_count else "",
        f"{line.tasks} tasks" if line.tasks and line.tasks > 1 else "",
    ]
    return " ".join(filter(None, parts)) or line.direction

"""Two studies side by side for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.units import MIB
from iolens.views.bench_bandwidth.tables import FILES
from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.bench_compare import DirectionChange, StudyComparison
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

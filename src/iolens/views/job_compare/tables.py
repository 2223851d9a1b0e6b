"""A comparison of jobs for people: what moved, in words and numbers, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes
from iolens.views.render import tables as t
from iolens.visible_text import counted, listed

if TYPE_CHECKING:
    from iolens.analyses.job_compare import JobComparison, SizeShift, TotalShift
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

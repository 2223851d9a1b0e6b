"""Projects for people: who moved most, Table VI, MiB/s per node, sizes of accesses, and runs above the ceiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import format_bytes, format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.figures import (
    FSU,
    READ,
    RULE,
    WRITE,
    WRITE_SHADES,
    Axis,
    Bars,
    Figure,
    LineMark,
    Panel,
    side_by_side,
    stacked,
)
from iolens.views.render.log_scales import bytes_unit
from iolens.views.runs import (
    EMPTY,
    MOST_NAMES,
    SHADES_OF_SIZE,
    bin_name,
    first_of,
    height_axis,
    joined_words,
    names_axis,
    number,
    project_name,
    rate_warnings,
    shown_number,
    titled,
    window_words,
)
from iolens.visible_text import counted, some_names

if TYPE_CHECKING:
    from iolens.analyses.runs_projects import ProjectVolume, RunProjects
    from iolens.arrays import Floats
    from iolens.views.render.tables import Row, TableView


def tables(result: RunProjects) -> list[TableView]:
    """Characteristics first; then bytes, box-plot numbers, accesses by size, and what was left out."""
    parts = [characteristics(result), volumes(result)]
    if result.projects:
        parts += [boxes(result), *(sizes(result, direction) for direction in ("read", "write"))]
    return [*parts, *([above(result)] if result.above_ceiling else [])]


def characteristics(result: RunProjects) -> TableView:
    """Table VI: means over runs that pass the filters."""
    columns = (
        t.text("project", "Project"), t.count("runs", "Runs"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"), number("mib_per_s_per_node", "MiB/s per node"),
        number("mib_per_s", "MiB/s"), t.percent("io_time_pct", "Time in I/O"),
        t.percent("metadata_time_pct", "I/O time in metadata"), number("files_per_proc", "Files per process"),
        number("creates_per_proc", "Creates per process"), t.percent("sequential_pct", "Sequential"),
        t.percent("aligned_pct", "Aligned"), number("mib_per_proc", "MiB per process"),
    )  # fmt: skip
    rows = [t.row_of(line, columns, _named(line)) for line in result.projects]
    title = titled(result, "characteristics of large runs by project")
    return t.TableView(
        title, columns, rows, "\n".join(notes(result)), warnings=warnings(result), name="characteristics"
    )


def _named(line: Any) -> dict[str, Any]:
    return {"project": project_name(line.project)}


def notes(result: RunProjects) -> list[str]:
    """What the means are of, and how to see more."""
    least = f"at least {counted(result.min_processes, 'process')} and {format_bytes(result.min_bytes)} moved"
    lines = [f"{window_words(result)}; {result.runs_filtered:,} of them with {least}."]
    if not result.projects and result.runs:
        lines.append("No run is that large: lower the limits with --min-processes 1 --min-bytes 0.")
    without_nodes = sum(line.runs - line.runs_with_nodes for line in result.projects)
    if without_nodes:
        lines.append(f"MiB/s per node is not known of {counted(without_nodes, 'run')}: their nodes are not known.")
    return [*lines, joined_words(result.joined)]


def warnings(result: RunProjects) -> tuple[str, ...]:
    """What to know before the numbers are believed."""
    ceiling = "the ceiling" if result.ceiling_mib_per_s_per_node is None else (
        f"{shown_number(result.ceiling_mib_per_s_per_node)} MiB/s per node")  # fmt: skip
    reasons = (
        (result.runs_incomplete, "with a log from which something is missing"),
        (result.runs_with_overlap, "with shared files in use at the same time: the MiB/s are too low"),
        (result.runs_above_ceiling, f"above {ceiling}: left out"),
    )
    words = [f"{counted(count, 'run')} {words}" for count, words in reasons if count]
    return (*words, *rate_warnings(result.runs_short, result.runs_without_rate, result.method))


def volumes(result: RunProjects) -> TableView:
    """Fig. 4: bytes of all runs."""
    columns = (
        t.text("project", "Project"), t.count("runs", "Runs"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"),
    )  # fmt: skip
    rows = [t.row_of(line, columns, _named(line)) for line in result.top_projects]
    note = f"{counted(result.other_projects, 'other project')} moved no more." if result.other_projects else ""
    return t.TableView(titled(result, "projects that moved most, all runs"), columns, rows, note, name="volumes")


def most_words(result: RunProjects) -> str:
    """Who moved most, in a sentence."""
    most = max((_total(line) for line in result.top_projects), default=0)
    if not most:
        return "No project is known to have moved a byte."
    first = [line for line in result.top_projects if _total(line) == most]
    names = [f"{project_name(line.project)}, {_moved(line)} in {counted(line.runs, 'run')}" for line in first]
    if len(first) > 1:
        return f"Equally many bytes were moved by {some_names([f'{name};' for name in names], 3).rstrip(';')}."
    return f"{project_name(first[0].project)} moved most: {_moved(first[0])} in {counted(first[0].runs, 'run')}."


def _total(line: ProjectVolume) -> int:
    return (line.read_bytes or 0) + (line.write_bytes or 0)


def _moved(line: ProjectVolume) -> str:
    parts = ((line.read_bytes, "read"), (line.write_bytes, "written"))
    return " and ".join(f"{format_bytes_si(count)} {word}" for count, word in parts if count is not None)


def boxes(result: RunProjects) -> TableView:
    """Fig. 11 as numbers; without node counts MiB/s."""
    has_nodes = any(line.mib_per_s_per_node_box for line in result.projects)
    name, words = ("mib_per_s_per_node_box", "MiB/s per node") if has_nodes else ("mib_per_s_box", "MiB/s")
    ends = (("min", "Minimum"), ("q1", "First quartile"), ("median", "Median"), ("q3", "Third quartile"),
            ("max", "Maximum"))  # fmt: skip
    columns = (t.text("project", "Project"), *(number(end, heading) for end, heading in ends))
    rows: list[Row] = [
        (project_name(line.project), *(getattr(getattr(line, name), end, None) for end, _ in ends))
        for line in result.projects
    ]
    return t.TableView(titled(result, f"{words} by project"), columns, rows, name="performance")


def sizes(result: RunProjects, direction: str) -> TableView:
    """Fig. 12 as numbers: per cent of accesses of each size."""
    bins = [item.to_bytes for item in result.projects[0].access_sizes]
    columns = (
        t.text("project", "Project"), t.count("accesses", f"{direction.capitalize()}s"),
        *(t.percent(f"{direction}_pct_{bin_name(size)}", bin_name(size)) for size in bins),
    )  # fmt: skip
    rows: list[Row] = [
        (
            project_name(line.project),
            sum(getattr(item, f"{direction}s") for item in line.access_sizes),
            *(getattr(item, f"{direction}_pct") for item in line.access_sizes),
        )
        for line in result.projects
    ]
    return t.TableView(titled(result, f"{direction}s by size, up to"), columns, rows, name=f"{direction}_sizes")


def above(result: RunProjects) -> TableView:
    """Runs that seem faster than the system."""
    columns = (
        t.text("job_id", "Job"), t.text("project", "Project"), t.text("user", "User"),
        t.text("executable", "Executable"), t.count("processes", "Processes"), t.count("nodes", "Nodes"),
        number("mib_per_s_per_node", "MiB/s per node"), t.text("run_id", "Run"),
    )  # fmt: skip
    rows = [t.row_of(line, columns, {**_named(line), "run_id": line.run_id[:12]}) for line in result.above_ceiling]
    listed = len(result.above_ceiling)
    more = f"The fastest {listed} of {result.runs_above_ceiling:,}. " if listed < result.runs_above_ceiling else ""
    note = f"{more}The I/O time of their slowest rank says little of them; they are in no statistics."
    return t.TableView(titled(result, "runs above the ceiling"), columns, rows, note, name="above_ceiling")


# Figures of projects --------------------------------------------------------------------------------------------------
# Bytes (Fig. 4 of the study on Intrepid), MiB/s per node (Fig. 11), access sizes (Fig. 12).

FIGURES: Final = ("bytes", "performance", "sizes")
BOX, WHISKER, MEDIAN = WRITE_SHADES[0], RULE, FSU


def figures(result: RunProjects) -> dict[str, Callable[[], Figure]]:
    """Bytes of the top projects, box plot of their runs, and sizes of their accesses."""
    return {
        "bytes": lambda: volumes_figure(result),
        "performance": lambda: performance(result),
        "sizes": lambda: sizes_figure(result),
    }


def volumes_figure(result: RunProjects) -> Figure:
    """Bytes read and written by the projects that moved most, over all runs."""
    lines = result.top_projects
    title = titled(result, "bytes of the projects that moved most")
    names = tuple(project_name(line.project) for line in lines)
    values = np.array([[float(line.read_bytes or 0), float(line.write_bytes or 0)] for line in lines]).reshape(-1, 2)
    x = names_axis(names)
    if not values.any():
        return Figure("bytes", title, (Panel("", x, Axis("bytes"), message=EMPTY),))
    factor, unit = bytes_unit(float(values.max()))
    y = height_axis(unit, values.ravel() / factor)
    groups = [
        (word, colour, _drawn(values[:, place] / factor, y))
        for place, (word, colour) in enumerate((("read", READ), ("written", WRITE)))
    ]
    return Figure("bytes", title, (Panel("all runs", x, y, side_by_side(groups, names), height=1.2),))


def performance(result: RunProjects) -> Figure:
    """A box for each project: quartiles and median, and lines to the slowest and the fastest run."""
    has_nodes = any(line.mib_per_s_per_node_box for line in result.projects)
    field, words = ("mib_per_s_per_node_box", "MiB/s per node") if has_nodes else ("mib_per_s_box", "MiB/s")
    known = [line for line in result.projects if getattr(line, field) is not None]
    lines = known[:MOST_NAMES]
    names = tuple(project_name(line.project) for line in lines)
    title = titled(result, f"{words} of large runs by project{first_of(len(lines), len(known))}")
    x = names_axis(names)
    if not lines:
        return Figure("performance", title, (Panel("", x, Axis(words), message=EMPTY),))
    ends = np.array([[getattr(getattr(line, field), end) for end in ("min", "q1", "median", "q3", "max")]
                     for line in lines])  # fmt: skip
    y = height_axis(words, ends.ravel())
    return Figure("performance", title, (Panel("", x, y, _boxes(ends, names, y), height=1.3),))


def _boxes(ends: Floats, names: tuple[str, ...], axis: Axis) -> tuple[Any, ...]:
    places, thin = np.arange(len(names), dtype=float), 0.003 * len(names)
    least = axis.low if axis.scale == "log" and axis.low is not None else 0.0  # nothing has no place on a log scale
    low, q1, median, q3, high = np.maximum(ends.T, least)
    gaps = np.full(len(names), np.nan)
    across = np.stack([places - 0.3, places + 0.3, gaps]).T.ravel()
    return (
        Bars(places - thin, places + thin, high - low, "slowest to fastest run", WHISKER, names, low),
        Bars(places - 0.3, places + 0.3, q3 - q1, "middle half of the runs", BOX, names, q1),
        LineMark(across, np.stack([median, median, gaps]).T.ravel(), "median", MEDIAN),
    )


def sizes_figure(result: RunProjects) -> Figure:
    """Reads above writes: shares of accesses by size, stacked."""
    lines = result.projects[:MOST_NAMES]
    title = titled(result, f"accesses by size{first_of(len(lines), len(result.projects))}")
    return Figure("sizes", title, tuple(_sizes_panel(lines, direction) for direction in ("read", "write")))


def _sizes_panel(lines: Any, direction: str) -> Panel:
    names = tuple(project_name(line.project) for line in lines)
    x, y = names_axis(names), Axis(f"% of {direction}s", low=0.0, high=100.0)
    shares = np.array([[getattr(item, f"{direction}_pct") or 0.0 for item in line.access_sizes] for line in lines])
    if not shares.size or not shares.any():
        return Panel(f"{direction}s", x, y, message=EMPTY)
    groups = [
        (
            f"≤ {bin_name(item.to_bytes)}" if item.to_bytes else f"> {bin_name(item.from_bytes)}",
            colour,
            shares[:, place],
        )
        for place, (item, colour) in enumerate(zip(lines[0].access_sizes, SHADES_OF_SIZE, strict=True))
    ]
    return Panel(f"{direction}s", x, y, stacked(groups, names), height=1.3)


def _drawn(values: Floats, axis: Axis) -> Floats:
    """What is nothing has no bar on a logarithmic scale."""
    return np.where(values > 0, values, np.nan) if axis.scale == "log" else values

"""Applications for people: what a job of each moves and opens, and the sizes of its RPCs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.schema import DIRECTIONS
from iolens.units import format_bytes, format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.figures import NAMES, OTHERS, READ, WRITE, Axis, Figure, Panel, side_by_side
from iolens.views.render.log_scales import log_axis
from iolens.views.runs_summary.words import INTERFACES as API_NAMES
from iolens.visible_text import counted, shortened, some_names, visible

if TYPE_CHECKING:
    from iolens.analyses.job_applications import Applications, ApplicationTotals, LoggedAccesses, SizeShare
    from iolens.arrays import Floats
    from iolens.views.render.tables import TableView


FEWEST_RPCS: Final = 1000  # below, a share of small ones says little


def tables(result: Applications) -> list[TableView]:
    """The totals, then what logs tell of accesses, and the shares of each RPC size."""
    return [totals(result), accesses(result), *(sizes(result, direction) for direction in DIRECTIONS)]


def label_of(line: ApplicationTotals) -> str:
    """What an application is called in tables and figures."""
    name = line.name or "(no name)"
    return name if line.cores is None else f"{name}, {counted(line.cores, 'core')}"


def totals(result: Applications) -> TableView:
    """One line for each application."""
    columns = (
        t.text("name", "Application"), t.count("cores_min", "Cores from"), t.count("cores_max", "to"),
        t.count("jobs", "Jobs"), t.volume("read_bytes_mean", "Read per job"),
        t.volume("write_bytes_mean", "Written per job"), t.number("opens_mean", "Opens per job", "", ",.0f"),
        t.number("closes_mean", "Closes per job", "", ",.0f"), t.number("stats_mean", "Stats per job", "", ",.0f"),
        t.percent("small_read_rpc_pct", "Reads ≤ 64 KiB"), t.percent("small_write_rpc_pct", "Writes ≤ 64 KiB"),
        t.number("duration_s_mean", "Duration", "s", ",.0f"),
    )  # fmt: skip
    what = "applications" if result.by == "name" else "applications by core count"
    rows = t.rows_of(result.applications, columns)
    return t.TableView(
        f"{result.filesystem}: {what}",
        columns,
        rows,
        "\n".join(_notes(result)),
        warnings=_warnings(result),
        name="totals",
    )


def _notes(result: Applications) -> list[str]:
    """Which moves most, which has the smallest RPCs, and what is not here."""
    notes = [_most(result)] if result.applications else []
    less = f"{counted(result.applications_left_out, 'application')} that moved less"
    unnamed = "no name" if result.by == "name" else "no name or core count"
    reasons = (
        (result.jobs_left_out, f"of {less}"), (result.jobs_unnamed, f"of which {unnamed} is known"),
        (result.jobs_without_counters, "without counters"), (result.jobs_running, "still running"),
    )  # fmt: skip
    missing = [f"{counted(count, 'job')} {words}" for count, words in reasons if count]
    return [*notes, f"Not here: {', '.join(missing)}."] if missing else notes


def _most(result: Applications) -> str:
    most = max(map(_moved, result.applications))
    largest = [line for line in result.applications if _moved(line) == most]
    words = f"{label_of(largest[0])} moves most: {format_bytes_si(most)} in {counted(largest[0].jobs, 'job')}"
    if len(largest) > 1:
        words = f"{some_names([label_of(line) for line in largest], 3)} move most: {format_bytes_si(most)} each"
    if not most:
        words = "No application is known to have moved a byte"
    shares = [
        (share, direction, line)
        for line in result.applications
        for direction in DIRECTIONS
        if (share := getattr(line, f"small_{direction}_rpc_pct")) is not None
        and sum(_count(size, direction) for size in line.rpc_sizes) >= FEWEST_RPCS
    ]
    if not shares:
        return f"{words}."
    share, direction, line = max(shares, key=lambda item: item[0])
    if not share:
        return f"{words}. No application has RPCs of 64 KiB or less."
    small = f"{t.show_percent(share)} % of its {direction}s are of 64 KiB or less"
    more = sum(item[0] == share for item in shares) - 1
    equal = f", like {counted(more, 'other')}" if more else ""
    return f"{words}. {label_of(line)} has the largest share of small RPCs{equal}: {small}."


def _moved(line: ApplicationTotals) -> int:
    return (line.read_bytes or 0) + (line.write_bytes or 0)


def _warnings(result: Applications) -> tuple[str, ...]:
    sharing = sum(line.sharing_nodes for line in result.applications)
    return (f"{counted(sharing, 'job')} shared nodes with others, whose I/O is in the counters",) if sharing else ()


def accesses(result: Applications) -> TableView:
    """Attributes of the study's survey, of applications with Darshan logs."""
    columns = (
        t.text("name", "Application"), t.count("logged_jobs", "Jobs with a log"),
        t.percent("sequential_read_pct", "Reads sequential"), t.percent("sequential_write_pct", "Writes sequential"),
        t.percent("appended_write_pct", "Written append-only"), t.percent("unique_pct", "Own files"),
        t.percent("shared_pct", "Shared by all"), t.percent("partially_shared_pct", "Shared by some"),
        t.text("interface", "Interface"),
    )  # fmt: skip
    logged = [(line, line.accesses) for line in result.applications if line.accesses is not None]
    rows = [
        t.row_of(seen, columns, {"name": label_of(line), "logged_jobs": line.logged_jobs, "interface": _through(seen)})
        for line, seen in logged
    ]
    jobs, seen_jobs = (sum(getattr(line, name) for line in result.applications) for name in ("jobs", "logged_jobs"))
    note = f"By the Darshan logs of {seen_jobs:,} of {counted(jobs, 'job')}; files of all file systems."
    if not rows:
        note = "No Darshan log of these jobs is stored: how they access files is not known."
    return t.TableView("Accesses by application", columns, rows, note, name="accesses")


def _through(seen: LoggedAccesses) -> str | None:
    """The interface of most bytes, with its share where there are others."""
    if seen.interface is None:
        return None
    share = seen.interface_pct.get(seen.interface, 100.0)
    return API_NAMES.get(seen.interface, seen.interface) + (f" ({t.show_percent(share)} %)" if share < 100 else "")


def sizes(result: Applications, direction: str) -> TableView:
    """Per cent of the RPCs by size, a column for each size."""
    bins = sorted({size.size_bytes for line in result.applications for size in line.rpc_sizes})
    columns = (
        t.text("name", "Application"), t.count("rpcs", f"{direction.capitalize()}s"),
        *(t.percent(f"{direction}_pct_{size}", format_bytes(size)) for size in bins),
    )  # fmt: skip
    rows = [
        (label_of(line), sum(_count(size, direction) for size in line.rpc_sizes), *_shares(line, direction, bins))
        for line in result.applications
        if line.rpc_sizes
    ]
    note = "" if rows else "No RPCs by size are known."
    return t.TableView(
        f"{direction.capitalize()}s by size of RPC, up to", columns, rows, note, name=f"{direction}_sizes"
    )


def _count(size: SizeShare, direction: str) -> int:
    return size.reads if direction == "read" else size.writes


def _shares(line: ApplicationTotals, direction: str, bins: list[int]) -> list[float | None]:
    known: dict[int, float | None] = {size.size_bytes: getattr(size, f"{direction}_pct") for size in line.rpc_sizes}
    has_any = any(share is not None for share in known.values())
    return [known.get(size, 0.0 if has_any else None) for size in bins]


# Figures of applications, as in Figs. 2–9 of the study on Pleiades ----------------------------------------------------
# GB, opens and closes, RPCs by size.

FIGURES: Final = ("gigabytes", "opens", "rpcs", "counts")
# Paul Tol's bright scheme and two of his muted one: apart for every kind of colour vision.
COLOURS: Final = (*NAMES[:7], OTHERS)
WIDE: Final = 200.0  # largest over smallest: from here on the scale is logarithmic
LINE: Final = 90  # characters below all bars together
EMPTY: Final = "none known"


def figures(result: Applications) -> dict[str, Callable[[], Figure]]:
    """Bytes (Fig. 2), opens and closes (Figs. 3, 4), shares and numbers of RPCs by size (Figs. 5–9)."""
    return {
        "gigabytes": lambda: pairs(
            result,
            "gigabytes",
            "GB per job",
            (("GB read", READ, "read_bytes_mean"), ("GB written", WRITE, "write_bytes_mean")),
            1e-9,
        ),
        "opens": lambda: pairs(
            result,
            "opens",
            "operations per job",
            (("opens", READ, "opens_mean"), ("closes", WRITE, "closes_mean")),
            1.0,
        ),
        "rpcs": lambda: by_size(result, "rpcs"),
        "counts": lambda: by_size(result, "counts"),
    }


def pairs(result: Applications, name: str, label: str, sides: Sequence[tuple[str, str, str]], unit: float) -> Figure:
    """Two bars for each application."""
    names = tuple(label_of(line) for line in result.applications)
    known = [getattr(line, field) for line in result.applications for _, _, field in sides]
    positive = np.array([value * unit for value in known if value])
    title = f"{result.filesystem}: {' and '.join(word for word, _, _ in sides)}, {_what(result)}"
    x = _categories(names, "cores" if result.by == "cores" else "application", result)
    if not positive.size:
        return Figure(name, title, (Panel("", x, Axis(label), message=EMPTY),))
    y = _bar_axis(label, positive)
    bars = side_by_side(
        [
            (word, colour, _heights([getattr(line, field) for line in result.applications], unit, y))
            for word, colour, field in sides
        ],
        names,
    )
    return Figure(name, title, (Panel("mean of the jobs of each", x, y, bars),))


def by_size(result: Applications, name: str) -> Figure:
    """Reads above writes: per cent of the RPCs (`rpcs`), or RPCs per job (`counts`), a colour for each application."""
    shown = [line for line in result.applications if line.rpc_sizes][: len(COLOURS)]
    bins = sorted({size.size_bytes for line in shown for size in line.rpc_sizes})
    panels = tuple(_sizes_panel(shown, bins, direction, name) for direction in DIRECTIONS)
    left = len([line for line in result.applications if line.rpc_sizes]) - len(shown)
    more = f" (the first {len(shown)})" if left else ""
    what = "sizes of RPCs" if name == "rpcs" else "RPCs by size"
    return Figure(name, f"{result.filesystem}: {what} of {_what(result)}{more}", panels)


def _sizes_panel(shown: Sequence[ApplicationTotals], bins: Sequence[int], direction: str, name: str) -> Panel:
    names = tuple(format_bytes(size) for size in bins)
    x = Axis("size of RPC, up to", low=-0.6, high=max(len(bins), 1) - 0.4, ticks=tuple(enumerate(names)))
    label = f"% of {direction}s" if name == "rpcs" else f"{direction}s per job"
    values = [_of_sizes(line, bins, direction, name) for line in shown]
    positive = np.array([value for row in values for value in row if value])
    if not positive.size:
        return Panel(f"{direction}s", x, Axis(label), message=EMPTY)
    y = Axis(label, low=0.0, high=100.0) if name == "rpcs" else _bar_axis(label, positive)
    groups = [
        (label_of(line), colour, _heights(row, 1.0, y))
        for line, colour, row in zip(shown, COLOURS, values, strict=False)
    ]
    return Panel(f"{direction}s", x, y, side_by_side(groups, names))


def _of_sizes(line: ApplicationTotals, bins: Sequence[int], direction: str, name: str) -> list[float | None]:
    field = f"{direction}_pct" if name == "rpcs" else f"{direction}s"
    by_bin: dict[int, Any] = {size.size_bytes: getattr(size, field) for size in line.rpc_sizes}
    shares = [by_bin.get(size) for size in bins]
    return shares if name == "rpcs" else [None if value is None else value / line.rpc_jobs for value in shares]


def _what(result: Applications) -> str:
    names = {line.name for line in result.applications}
    if result.by == "cores" and len(names) == 1:
        return f"{next(iter(names))} across core counts"
    return "applications across core counts" if result.by == "cores" else "applications"


def _categories(names: tuple[str, ...], label: str, result: Applications) -> Axis:
    """Names below the bars; of one application only its core counts."""
    if result.by == "cores" and len({line.name for line in result.applications}) == 1:
        names = tuple(f"{line.cores:,}" for line in result.applications)
    most = max(LINE // max(len(names), 1), 6)
    names = tuple(shortened(visible(name), most) for name in names)
    return Axis(label, low=-0.6, high=max(len(names), 1) - 0.4, ticks=tuple(enumerate(names)))


def _bar_axis(label: str, positive: Floats) -> Axis:
    if positive.max() / positive.min() > WIDE:
        return log_axis(f"{label}, log scale", positive)
    return Axis(label, low=0.0)


def _heights(values: Sequence[float | None], unit: float, axis: Axis) -> Floats:
    """What is not known, or nothing, has no bar."""
    heights = np.array([np.nan if value is None else value * unit for value in values], dtype=float)
    return np.where(heights > 0, heights, np.nan) if axis.scale == "log" else np.nan_to_num(heights)

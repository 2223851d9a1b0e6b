"""Bandwidth of a study for people: every case with the best of its repeats, and the comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import MIB, format_bytes
from iolens.views.render import tables as t
from iolens.views.render.figures import KINDS, Axis, Figure, HeatMapMark, LineMark, Mark, Panel, Rule
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.bench_bandwidth import BandwidthLine, StudyBandwidth
    from iolens.views.render.tables import Row, TableColumn, TableView


FILES: Final = {True: "per process", False: "shared", None: None}


def tables(result: StudyBandwidth) -> list[TableView]:
    """Cases, improvements, files, places, and what the numbers rest on."""
    views = [cases(result), improvements(result), files(result), differences(result), basis(result)]
    return [table for table in views if table is not None]


def cases(result: StudyBandwidth) -> TableView:
    """Every case; columns that say the same of all are left to the basis."""
    columns: tuple[TableColumn, ...] = (
        t.text("place", "Place"), t.text("direction", "Direction"), t.text("files", "Files"),
        t.count("tasks", "Tasks"), t.size("transfer_bytes", "Block"), t.size("aggregate_bytes", "Size"),
        t.count("stripe_count", "Stripes"), t.size("stripe_bytes", "Stripe size"),
        t.number("best_mib_per_s", "Best", "MiB/s", ",.0f"), t.number("median_mib_per_s", "Median", "MiB/s", ",.0f"),
        t.number("mean_mib_per_s", "Mean", "MiB/s", ",.0f"), t.percent("spread_pct", "Spread"), t.count("runs", "Runs"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            line.place, line.direction, FILES[line.file_per_process], line.tasks, line.transfer_bytes,
            line.aggregate_bytes, line.stripe_count, line.stripe_bytes, line.best_bytes_per_s / MIB,
            line.median_bytes_per_s / MIB, line.mean_bytes_per_s / MIB, line.spread_pct, line.runs,
        )
        for line in result.cases
    ]  # fmt: skip
    columns, rows = t.telling(columns, rows, {"tasks": (None, 1), "files": (None, "per process")})
    note = "Mean: geometric, over the runs. Spread: from the slowest run to the best, of the median."
    keep = ("direction", "transfer_bytes", "best_mib_per_s")
    return t.TableView("Bandwidth", columns, rows, note, warnings=tuple(result.warnings), name="cases", keep=keep)


def improvements(result: StudyBandwidth) -> TableView | None:
    """Several OSTs against one (Fig. 17)."""
    columns = (
        t.text("place", "Place"), t.text("direction", "Direction"), t.size("transfer_bytes", "Block"),
        t.count("stripe_count", "Stripes"), t.size("stripe_bytes", "Best stripe size"),
        t.number("mib_per_s", "Best", "MiB/s", ",.0f"), t.number("one_ost_mib_per_s", "One OST", "MiB/s", ",.0f"),
        t.number("improvement_pct", "Improvement", "%", "+.0f"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            line.place, line.direction, line.transfer_bytes, line.stripe_count, line.stripe_bytes,
            line.bytes_per_s / MIB, line.one_ost_bytes_per_s / MIB, line.improvement_pct,
        )
        for line in result.improvements
    ]  # fmt: skip
    return t.TableView("Several OSTs against one", columns, rows, name="improvements") if rows else None


def files(result: StudyBandwidth) -> TableView | None:
    """File per process against one shared file (Fig. 18)."""
    columns = (
        t.text("place", "Place"), t.text("direction", "Direction"), t.count("tasks", "Tasks"),
        t.size("transfer_bytes", "Block"), t.size("aggregate_bytes", "Size"),
        t.number("per_process_mib_per_s", "Per process", "MiB/s", ",.0f"),
        t.number("shared_mib_per_s", "Shared", "MiB/s", ",.0f"), t.number("factor", "Factor", "", ".2f"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            line.place, line.direction, line.tasks, line.transfer_bytes, line.aggregate_bytes,
            line.per_process_bytes_per_s / MIB, line.shared_bytes_per_s / MIB, line.factor,
        )
        for line in result.files
    ]  # fmt: skip
    if not rows:
        return None
    return t.TableView("File per process against one shared file", columns, rows, files_words(result), name="files")


def files_words(result: StudyBandwidth) -> str:
    """`Writes: file per process is 0.9 to 1.3 times as fast.`"""
    words = []
    for direction in ("write", "read"):
        factors = [line.factor for line in result.files if line.direction == direction]
        if factors:
            low, high = f"{min(factors):.2f}", f"{max(factors):.2f}"
            span = low if low == high else f"{low} to {high}"
            words.append(f"{direction.capitalize()}s: file per process is {span} times as fast as one shared file.")
    return " ".join(words)


def differences(result: StudyBandwidth) -> TableView | None:
    """Places against the first (Fig. 13)."""
    columns = (
        t.text("direction", "Direction"), t.text("place", "Place"), t.text("reference", "Against"),
        t.count("cases", "Cases"), t.number("median_pct", "Median", "%", "+.0f"),
        t.number("least_pct", "Least", "%", "+.0f"), t.number("most_pct", "Most", "%", "+.0f"),
    )  # fmt: skip
    rows: list[Row] = [
        (line.direction, line.place, line.reference, line.cases, line.median_pct, line.least_pct, line.most_pct)
        for line in result.differences
    ]
    return t.TableView("Places side by side", columns, rows, name="places") if rows else None


def basis(result: StudyBandwidth) -> TableView:
    """What the numbers rest on."""
    columns = (
        t.text("study", "Study"), t.text("hosts", "Machines"), t.count("runs", "Runs"),
        t.size("memory_bytes", "Memory of the machine"), t.text("conditions", "Conditions"),
    )  # fmt: skip
    row = (result.study, ", ".join(result.hosts) or None, result.runs, result.memory_bytes, conditions(result) or None)
    return t.TableView("Basis", columns, [row], sideways=True, name="basis")


def conditions(result: StudyBandwidth) -> str:
    """What all cases of a direction have in common: fsync, page cache, interface."""
    words = []
    for direction in ("write", "read"):
        mine = [line for line in result.cases if line.direction == direction]
        if mine:
            words.append(f"{direction}s: {', '.join(_condition(mine))}")
    return "; ".join(words)


def _condition(lines: list[BandwidthLine]) -> list[str]:
    words = []
    for name, texts in (
        ("direct", {True: "O_DIRECT", False: "buffered"}),
        ("fsync", {True: "fsync counted", False: "fsync not counted"}),
        ("page_cache", {"dropped": "page cache dropped before", "warm": "just written, may be in memory"}),
    ):
        values = {getattr(line, name) for line in lines}
        words += [texts[value] for value in values if value in texts] if len(values) == 1 else []
    return words or ["differing conditions"]


def headline(result: StudyBandwidth) -> str:
    """`Best write 380 MiB/s in blocks of 1 MiB.`"""
    words = []
    for direction in ("write", "read"):
        mine = [line for line in result.cases if line.direction == direction]
        if mine:
            best = max(mine, key=lambda line: line.best_bytes_per_s)
            block = f" in blocks of {format_bytes(best.transfer_bytes)}" if best.transfer_bytes else ""
            words.append(f"Best {direction} {best.best_bytes_per_s / MIB:,.0f} MiB/s{block}.")
    return f"{' '.join(words)} {counted(result.runs, 'run')} of {counted(len(result.cases), 'case')}."


# Figures of paper N for a study ---------------------------------------------------------------------------------------
# Bandwidth by block size (13, 16), by stripe and block (14, 15), improvement (17), and file per process against one
# shared file by aggregate size (18).

FIGURES: Final = ("blocks", "grid", "improvement", "files")
DIRECTIONS: Final = ("write", "read")
_WEIGHT: Final = 2.0


def figures(result: StudyBandwidth) -> dict[str, Callable[[], Figure]]:
    """By name."""
    return {
        "blocks": lambda: blocks(result),
        "grid": lambda: grid(result),
        "improvement": lambda: improvement(result),
        "files": lambda: files_figure(result),
    }


def blocks(result: StudyBandwidth) -> Figure:
    """Best bandwidth by block size, at its best stripe size: a line for each place, kind and size of files, and stripe
    count.
    """
    panels = tuple(_by_size(result, direction, "transfer_bytes", "block size") for direction in DIRECTIONS)
    return Figure("blocks", "Bandwidth by block size", panels, linked_x=True)


def files_figure(result: StudyBandwidth) -> Figure:
    """Best bandwidth by aggregate size, file per process and shared; a line for each block size."""
    panels = tuple(_by_size(result, direction, "aggregate_bytes", "size of all files") for direction in DIRECTIONS)
    return Figure("files", "Bandwidth by size of all files", panels, linked_x=True)


def improvement(result: StudyBandwidth) -> Figure:
    """Several OSTs against one, in per cent, by block size."""
    sizes = [line.transfer_bytes for line in result.improvements if line.transfer_bytes]
    marks: list[Mark] = []
    series = dict.fromkeys((line.place, line.direction, line.stripe_count) for line in result.improvements)
    for number, (place, direction, count) in enumerate(series):
        mine = sorted(
            (line.transfer_bytes, line.improvement_pct)
            for line in result.improvements
            if (line.place, line.direction, line.stripe_count) == (place, direction, count) and line.transfer_bytes
        )
        label = " ".join(filter(None, (place if len(result.places) > 1 else "", direction, counted(count, "OST"))))
        x, y = (np.array([pair[part] for pair in mine], float) for part in (0, 1))
        marks.append(LineMark(np.log2(x), y, label, KINDS[number % len(KINDS)], weight=_WEIGHT))
    marks += [Rule(0.0, "horizontal", "one OST")] if marks else []
    panel = Panel(
        "against one OST, each at its best stripe size", _size_axis("block size", sizes), Axis("improvement (%)"),
        tuple(marks), message="" if marks else "no stripe counts were compared",
    )  # fmt: skip
    return Figure("improvement", "Improvement over one OST", (panel,))


def grid(result: StudyBandwidth) -> Figure:
    """Best bandwidth over stripe size (down) and block size (across), for each direction and stripe count."""
    striped = [line for line in result.cases if line.stripe_bytes and line.transfer_bytes]
    ends = {
        direction: (min(rates), max(rates))
        for direction in DIRECTIONS
        if (rates := [line.best_bytes_per_s / MIB for line in striped if line.direction == direction])
    }
    several_sizes = len({line.aggregate_bytes for line in striped}) > 1
    panels = [
        _grid_panel(
            [line for line in striped if _panel_of(line) == key], key, ends[key[1]], several_sizes=several_sizes
        )
        for key in dict.fromkeys(map(_panel_of, striped))
    ]
    empty = Panel("stripes", Axis("block size"), Axis("stripe size"), message="no stripe sizes were compared")
    return Figure("grid", "Bandwidth by stripe size and block size", tuple(panels) or (empty,))


def _panel_of(line: BandwidthLine) -> tuple[str | None, str, int | None, int | None]:
    return line.place, line.direction, line.stripe_count, line.aggregate_bytes


def _grid_panel(
    lines: Sequence[BandwidthLine],
    key: tuple[str | None, str, int | None, int | None],
    ends: tuple[float, float],
    *,
    several_sizes: bool,
) -> Panel:
    """`ends` of the colours are those of all panels of a direction, so that they can be compared."""
    blocks = sorted({line.transfer_bytes for line in lines if line.transfer_bytes})
    stripes = sorted({line.stripe_bytes for line in lines if line.stripe_bytes}, reverse=True)
    values = np.full((len(stripes), len(blocks)), np.nan)
    for line in lines:
        cell = stripes.index(line.stripe_bytes), blocks.index(line.transfer_bytes)  # type: ignore[arg-type]
        values[cell] = np.nanmax([values[cell], line.best_bytes_per_s / MIB])
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    low, high = ends
    rows = tuple(format_bytes(size) for size in stripes)
    heat = HeatMapMark(
        -0.5, len(blocks) - 0.5, rows, values, low, max(high, low * 1.001), "MiB/s", grey="not measured",
        row_kind="stripe size", linear=True,
    )  # fmt: skip
    place, direction, count, size = key
    x = Axis("block size", low=-0.5, high=len(blocks) - 0.5, ticks=_named(blocks))
    y = Axis("stripe size", low=-0.5, high=len(stripes) - 0.5, ticks=_named(stripes[::-1]))
    of_files = f"{format_bytes(size)} of files" if several_sizes and size else ""
    title = ", ".join(filter(None, (place, f"{direction}s", counted(count, "OST") if count else "", of_files)))
    return Panel(f"{title}: {least:,.0f} to {most:,.0f} MiB/s", x, y, (heat,))


def _by_size(result: StudyBandwidth, direction: str, column: str, label: str) -> Panel:
    lines = [line for line in result.cases if line.direction == direction and getattr(line, column)]
    series: dict[str, dict[int, float]] = {}
    for line in lines:
        best = series.setdefault(_series(result, line, column), {})
        size = getattr(line, column)
        best[size] = max(best.get(size, 0.0), line.best_bytes_per_s / MIB)
    marks = [
        LineMark(
            np.log2(np.array(sorted(best), float)), np.array([best[size] for size in sorted(best)]), name,
            KINDS[number % len(KINDS)], weight=_WEIGHT,
        )
        for number, (name, best) in enumerate(series.items())
    ]  # fmt: skip
    highest = max((max(best.values()) for best in series.values()), default=None)
    y = Axis("bandwidth (MiB/s)", low=0, high=None if highest is None else 1.1 * highest)
    x = _size_axis(label, [getattr(line, column) for line in lines])
    return Panel(f"{direction}s, best of the repeats", x, y, tuple(marks), message="" if marks else "no runs")


def _series(result: StudyBandwidth, line: BandwidthLine, along: str) -> str:
    """What tells one line of a figure from another; what all have in common, or what the axis says, is left out."""
    parts = {
        "place": line.place or "",
        "file_per_process": FILES[line.file_per_process] or "",
        "tasks": "" if line.tasks is None else counted(line.tasks, "task"),
        "stripe_count": "" if line.stripe_count is None else counted(line.stripe_count, "OST"),
        "aggregate_bytes": "" if line.aggregate_bytes is None else f"{format_bytes(line.aggregate_bytes)} of files",
        "transfer_bytes": "" if line.transfer_bytes is None else f"blocks of {format_bytes(line.transfer_bytes)}",
    }
    several = [name for name in parts if name != along and len({getattr(each, name) for each in result.cases}) > 1]
    return ", ".join(filter(None, (parts[name] for name in several))) or "bandwidth"


def _named(sizes: Sequence[int]) -> tuple[tuple[float, str], ...]:
    return tuple((float(place), format_bytes(size)) for place, size in enumerate(sizes))


def _size_axis(label: str, sizes: Sequence[int]) -> Axis:
    """Powers of two at equal steps, named."""
    if not sizes:
        return Axis(label)
    low, high = int(np.floor(np.log2(min(sizes)))), int(np.ceil(np.log2(max(sizes))))
    step = max((high - low) // 8, 1)
    ticks = tuple((float(power), format_bytes(2**power)) for power in range(low, high + 1, step))
    return Axis(label, low=low - 0.3, high=high + 0.3, ticks=ticks)

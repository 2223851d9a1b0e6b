"""Metadata capacity for people: the band of every DOM threshold, the knee, what the inodes are, and the origins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.plans.metadata import NO_PRICES
from iolens.units import format_bytes, format_bytes_si
from iolens.views.plan_inputs import inputs, warned
from iolens.views.render import tables as t
from iolens.views.render.figures import (
    BACKGROUND,
    FSU,
    KINDS,
    READ,
    READ_SHADES,
    WRITE,
    WRITE_SHADES,
    Axis,
    BandMark,
    Bars,
    Figure,
    LineMark,
    Mark,
    Panel,
    Rule,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolens.models.dom import SizeBins
    from iolens.plans.cases import DomThreshold
    from iolens.plans.metadata import MetadataPlan
    from iolens.views.render.tables import Row, TableColumn, TableView


SIDEWAYS_AT_MOST: Final = 6  # thresholds: many columns, so that few rows stand better upright
NO_KNEE: Final = "There is no knee: the curve does not bend."


def tables(result: MetadataPlan) -> list[TableView]:
    """Thresholds first."""
    views = [thresholds(result), knee(result), inodes(result)]
    views += [*([huge_files(result)] if result.huge_files else []), inputs(result.inputs)]
    return warned(views, result.warnings)


def verdict(result: MetadataPlan) -> str:
    """The knee in one sentence."""
    best = result.knee
    if result.prices is None:
        return t.sentence(NO_PRICES)
    if best is None or best.total_avg_bytes is None:
        return NO_KNEE
    return (
        f"The knee is at {format_bytes(best.dom_bytes)}: {t.show_percent(best.files_whole_pct)} % of the files lie "
        f"wholly on MDTs of {format_bytes(best.total_avg_bytes)}, "
        + ("an unknown share" if best.capacity_pct is None else f"{t.show_percent(best.capacity_pct)} %")
        + " of the capacity."
    )


def thresholds(result: MetadataPlan) -> TableView:
    """Lowest, average and highest need of each threshold."""
    columns: list[TableColumn] = [t.size("dom_bytes", "DOM threshold"), t.text("method", "Method")]
    for part, word in (("dom", "DOM"), ("inode", "Inodes"), ("total", "MDTs")):
        ends = ("min", "lowest"), ("avg", "average"), ("max", "highest")
        columns += [t.size(f"{part}_{end}_bytes", f"{word}, {name}") for end, name in ends]
    columns += [t.percent("capacity_pct", "Of the capacity"), t.percent("files_whole_pct", "Files wholly on MDTs")]
    if result.prices is not None:
        columns += [_money("cost_avg", "Cost, average"), _money("cost_over_inodes_only", "… more than without DOM")]
    rows = t.rows_of(result.thresholds, columns)
    title = f"Metadata capacity for {format_bytes_si(result.capacity_bytes)}: {result.equation}"
    note = "\n".join([verdict(result), *_sentences(result.notes)])
    return t.TableView(title, tuple(columns), rows, note, sideways=len(rows) <= SIDEWAYS_AT_MOST, name="thresholds")


def knee(result: MetadataPlan) -> TableView:
    """The threshold beyond which more capacity buys few more whole files."""
    columns = [
        t.size("dom_bytes", "DOM threshold"), t.text("method", "Method"), t.size("total_min_bytes", "MDTs, lowest"),
        t.size("total_avg_bytes", "MDTs, average"), t.size("total_max_bytes", "MDTs, highest"),
        t.text("total_ci95", "… average, 95 % interval"), t.percent("files_whole_pct", "Files wholly on MDTs"),
        t.percent("capacity_pct", "Of the capacity"),
    ]  # fmt: skip
    if result.prices is not None:
        columns += [_money("cost_avg", "Cost, average")]
    rows: list[Row] = [] if result.knee is None else [_with_interval(result.knee, columns)]
    note = "Where the share of whole files is furthest ahead of the share of the cost." if rows else verdict(result)
    return t.TableView("Knee of the curve", tuple(columns), rows, note, sideways=True, name="knee")


def inodes(result: MetadataPlan) -> TableView:
    """Every type of inode of the reference system."""
    columns = (
        t.text("inode_type", "Type"), t.count("count", "Inodes"), t.size("bytes_min", "Bytes, lowest"),
        t.size("bytes_avg", "Bytes, average"), t.size("bytes_max", "Bytes, highest"),
        t.size("largest_bin_bytes", "Largest, at most"),
    )  # fmt: skip
    rows = t.rows_of(result.inodes, columns)
    small = result.small_files
    note = "" if small is None else (
        f"{t.show_percent(small.files_pct)} % of the files are at most {format_bytes(small.size_bytes)} "
        f"and hold {t.show_percent(small.bytes_pct)} % of the bytes."
    )  # fmt: skip
    return t.TableView("Inodes of the reference system", columns, rows, note, name="inodes")


def huge_files(result: MetadataPlan) -> TableView:
    """Single files that carry a visible share of the bytes."""
    columns = (
        t.count("count", "Files"), t.size("from_bytes", "From"), t.size("to_bytes", "To"),
        t.percent("bytes_pct", "Share of all bytes"),
    )  # fmt: skip
    return t.TableView("Huge files", columns, t.rows_of(result.huge_files, columns), name="huge_files")


def _with_interval(threshold: DomThreshold, columns: list[TableColumn]) -> Row:
    ends = threshold.total_ci95
    words = None if ends is None else f"{format_bytes(ends[0])} … {format_bytes(ends[1])}"
    return tuple(words if column.name == "total_ci95" else getattr(threshold, column.name) for column in columns)


def _money(name: str, heading: str) -> TableColumn:
    return t.number(name, heading, "", ",.0f")


def _sentences(notes: list[str]) -> list[str]:
    return [f"{note[:1].upper()}{note[1:]}." for note in notes]


# Figures 4 to 6 of paper P for any file system ------------------------------------------------------------------------
# Files by size and mass, other inodes, MDT capacity against S0.

TIB: Final = float(1 << 40)
DOM_BAND: Final = WRITE_SHADES[0]
INODE_BAND: Final = READ_SHADES[0]
# Paul Tol's vibrant colours.
COLOURS: Final = (*KINDS, BACKGROUND)
EMPTY_AT: Final = -1.0  # where the bin of empty files stands, left of the power 0
TICK_EVERY: Final = 5  # powers of two between two names on the axis
LEAST_SHARE: Final = 1e-7


FIGURES: Final = ("mdt", "files", "inodes")


def figures(result: MetadataPlan) -> dict[str, Callable[[], Figure]]:
    """Figures 6, 4 and 5 of paper P."""
    return {
        "mdt": lambda: mdt_capacity(result),
        "files": lambda: file_sizes(result),
        "inodes": lambda: inode_sizes(result),
    }


def mdt_capacity(result: MetadataPlan) -> Figure:
    """Capacity against the threshold: the band of the whole, the band that inodes make, and the average (Fig. 6)."""
    curve = result.curve or []
    methods = list(dict.fromkeys(threshold.method for threshold in curve))
    panels = tuple(
        _capacity_panel(result, [threshold for threshold in curve if threshold.method == name], name)
        for name in methods
    )
    return Figure("mdt", "Metadata capacity by DOM threshold", panels)


def _capacity_panel(result: MetadataPlan, curve: list[DomThreshold], method: str) -> Panel:
    x = np.array([math.log2(threshold.dom_bytes) for threshold in curve])
    ends = {
        (part, end): _column(curve, f"{part}_{end}_bytes") / TIB
        for part in ("total", "inode")
        for end in ("min", "avg", "max")
    }
    marks: list[Mark] = [
        BandMark(x, ends["total", "min"], ends["total", "max"], "MDTs, lowest to highest", DOM_BAND),
        BandMark(x, ends["inode", "min"], ends["inode", "max"], "inodes alone, lowest to highest", INODE_BAND),
        LineMark(x, ends["total", "avg"], "MDTs, average", FSU),
        LineMark(x, ends["inode", "avg"], "inodes alone, average", READ),
    ]
    best = result.knee
    if best is not None and best.method == method:
        marks.append(Rule(math.log2(best.dom_bytes), "vertical", f"knee {format_bytes(best.dom_bytes)}"))
    marks.append(
        Rule(result.capacity_bytes / TIB, "horizontal", f"whole capacity {format_bytes_si(result.capacity_bytes)}")
    )
    shown = np.concatenate([values[np.isfinite(values) & (values > 0)] for values in ends.values()])
    low, high = (
        (float(shown.min()) / 1.5, max(float(shown.max()), result.capacity_bytes / TIB) * 2.5) if shown.size else (1, 2)
    )
    y = Axis("MDT capacity (TiB), log scale", "log", low, high)
    axis = Axis("DOM threshold S0", low=float(x[0]), high=float(x[-1]), ticks=_size_ticks(float(x[0]), float(x[-1])))
    title = f"{_name(result)}for {format_bytes_si(result.capacity_bytes)}, method {method}"
    return Panel(title, axis, y, tuple(marks))


def file_sizes(result: MetadataPlan) -> Figure:
    """Share of the files, and of their bytes, by size (Fig. 4)."""
    assert result.distribution is not None
    files = result.distribution.files
    places = _places(files)
    x = _size_axis(places, "file size (upper end of the bin)")
    mass = files.count * files.average
    shares = (
        (files.count, "files", f"{files.total:,.0f} files", WRITE),
        (mass, "bytes", f"{format_bytes(float(mass.sum()))}, in the average case", READ),
    )
    panels = []
    for amounts, word, whole, colour in shares:
        pct = 100.0 * amounts / amounts.sum() if amounts.sum() else amounts
        bars = Bars(places - 0.5, places + 0.5, pct, word, colour, _bin_names(files))
        y = Axis(f"share of {word} (%)", low=0, high=1.15 * float(pct.max(initial=1e-9)))
        panels.append(Panel(f"{_name(result)}{whole}", x, y, (bars,)))
    return Figure("files", "Files by size", tuple(panels), linked_x=True)


def inode_sizes(result: MetadataPlan) -> Figure:
    """Share of the inodes that are not files, by size and type, on a logarithmic scale (Fig. 5)."""
    assert result.distribution is not None
    others = result.distribution.others
    if not others:
        axis = Axis("inode size")
        panel = Panel(_name(result), axis, Axis("share of inodes"), message="only files are in the histogram")
        return Figure("inodes", "Inodes other than files by size", (panel,))
    total = sum(bins.total for bins in others.values())
    x = _size_axis(np.concatenate([_places(bins) for bins in others.values()]), "inode size (upper end of the bin)")
    sharing = Counter(place for bins in others.values() for place in _places(bins).tolist())
    taken: Counter[float] = Counter()
    marks: list[Mark] = []
    for (name, bins), colour in zip(others.items(), COLOURS, strict=False):
        places = _places(bins).tolist()
        widths = np.array([0.8 / sharing[place] for place in places])
        starts = np.array([place - 0.4 + taken[place] * 0.8 / sharing[place] for place in places])
        taken.update(places)
        marks.append(Bars(starts, starts + widths, 100.0 * bins.count / total, name, colour, _bin_names(bins)))
    smallest = min(float((100.0 * bins.count / total).min()) for bins in others.values())
    y = Axis("share of inodes (%), log scale", "log", max(smallest / 2.0, LEAST_SHARE), 200.0)
    return Figure(
        "inodes",
        "Inodes other than files by size",
        (Panel(_name(result) + f"{total:,.0f} inodes", x, y, tuple(marks)),),
    )


def _column(curve: list[DomThreshold], name: str) -> NDArray[Any]:
    return np.array([np.nan if (amount := getattr(threshold, name)) is None else float(amount) for threshold in curve])


def _places(bins: SizeBins) -> NDArray[Any]:
    """The power of two of each bin's upper end; empty inodes left of them."""
    return np.where(bins.high >= 1, np.log2(np.maximum(bins.high, 1.0)), EMPTY_AT)


def _bin_names(bins: SizeBins) -> tuple[str, ...]:
    return tuple(
        "empty" if high == 0 else f"{format_bytes(low)} to {format_bytes(high)}"
        for low, high in zip(bins.low, bins.high, strict=True)
    )


def _size_axis(places: NDArray[Any], label: str) -> Axis:
    low, high = float(places.min(initial=0)), float(places.max(initial=1))
    ticks = ((EMPTY_AT, "empty"), *_size_ticks(1.0, high)) if low < 0 else _size_ticks(low, high)
    return Axis(label, low=low - 0.7, high=high + 0.7, ticks=ticks)


def _size_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    powers = range(math.ceil(low / TICK_EVERY) * TICK_EVERY, math.floor(high) + 1, TICK_EVERY)
    return tuple((float(power), format_bytes(2.0**power)) for power in powers)


def _name(result: MetadataPlan) -> str:
    return f"{result.filesystem}: " if result.filesystem else ""

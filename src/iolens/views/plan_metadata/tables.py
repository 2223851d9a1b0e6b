"""Metadata capacity for people: the band of every DOM threshold, the knee, what the inodes are, and the origins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.plans.metadata import NO_PRICES
from iolens.units import format_bytes, format_bytes_si
from iolens.views.plan_inputs import inputs, warned
from iolens.views.render import tables as t

if TYPE_CHECKING:
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

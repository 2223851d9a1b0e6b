"""A scan for people: how much there is, whose it is, and what could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.analyses.scan_summary import Holding, ScanSummary
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import Row, TableView


PLACES_SHOWN: Final = 20
NOBODY: Final = {"owner": "not reported", "project": "no project"}


def tables(result: ScanSummary) -> list[TableView]:
    """The headline, types, owners, projects, and places that were not counted."""
    views = [headline(result), types(result), holdings(result, "owner", result.by_owner)]
    if any(holding.name is not None for holding in result.by_project):
        views.append(holdings(result, "project", result.by_project))
    return [*views, unreadable(result)] if result.walk.unreadable else views


def figures(result: ScanSummary) -> dict[str, Callable[[], Figure]]:
    """None: `iolens contents` draws what is stored."""
    return {}


def headline(result: ScanSummary) -> TableView:
    """The scan as a whole."""
    walk = result.walk
    columns = (
        t.text("filesystem", "File system"), t.text("filesystem_origin", "… known by"), t.text("paths", "Scanned"),
        t.text("part", "Part"), t.time("time", "Ages count from"), t.count("inodes", "Inodes"),
        t.count("files", "Files"), t.count("directories", "Directories"), t.volume("bytes", "Bytes in files"),
        t.volume("allocated_bytes", "… allocated"), t.count("linked_inodes", "Inodes with several names"),
        t.count("linked_names", "… names of them met"), t.count("vanished", "Went away meanwhile"),
        t.count("excluded", "Excluded"), t.count("unreadable", "Not readable"),
        t.text("other_filesystems", "Mounted inside, not entered"), t.number("duration_s", "Took", "s", ",.1f"),
        t.number("names_per_s", "Entries", "per s", ",.0f"), t.text("workers", "Processes"),
        t.text("saved", "Saved as"), t.count("stored_rows", "Rows stored"), t.text("store", "… in"),
    )  # fmt: skip
    facts = {column.name: getattr(result if hasattr(result, column.name) else walk, column.name) for column in columns}
    shown = tuple(column for column in columns if facts[column.name] is not None)
    row = tuple(facts[column.name] for column in shown)
    return t.TableView(f"{result.filesystem}: scan", shown, [row], "\n".join(walk.notes), sideways=True, name="summary")


def types(result: ScanSummary) -> TableView:
    """All inodes by type."""
    columns = (
        t.text("inode_type", "Type"), t.count("inodes", "Inodes"), t.volume("bytes", "Bytes"),
        t.volume("allocated_bytes", "Allocated"),
    )  # fmt: skip
    return t.TableView("Types", columns, t.rows_of(result.by_type, columns), name="types")


def holdings(result: ScanSummary, what: str, of: tuple[Holding, ...]) -> TableView:
    """The largest owners or projects."""
    columns = (
        t.text("name", what.capitalize()), t.count("inodes", "Inodes"), t.count("files", "Files"),
        t.volume("bytes", "Bytes in files"), t.volume("allocated_bytes", "Allocated"),
    )  # fmt: skip
    shown = of[: result.top]
    rows: list[Row] = [
        (
            NOBODY[what] if holding.name is None else holding.name,
            holding.inodes,
            holding.files,
            holding.bytes,
            holding.allocated_bytes,
        )
        for holding in shown
    ]
    note = f"The {len(shown)} largest of {len(of)}; JSON has all." if len(shown) < len(of) else ""
    return t.TableView(f"{what.capitalize()}s", columns, rows, note, name=f"{what}s")


def unreadable(result: ScanSummary) -> TableView:
    """Places that were not counted."""
    walk = result.walk
    columns = (t.text("path", "Place"), t.text("reason", "Why"))
    shown = walk.unreadable_places[:PLACES_SHOWN]
    rows = t.rows_of(shown, columns)
    more = len(walk.unreadable_places) - len(shown)
    return t.TableView(
        "Not readable", columns, rows, f"… and {more} more; JSON names them." if more > 0 else "", name="unreadable"
    )

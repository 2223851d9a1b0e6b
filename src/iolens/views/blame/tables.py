"""Who made a file system busy, as tables: the window, the names, the targets, coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.blame import words
from iolens.views.render import tables as t
from iolens.views.render.coverage import coverage_table
from iolens.views.render.window_axes import window_title

if TYPE_CHECKING:
    from iolens.analyses.blame import Blame
    from iolens.views.render.tables import TableColumn, TableView

HEADINGS: Final = {"job": "Job", "user": "User", "project": "Project", "executable": "Program", "node": "Node"}
TARGETS_SHOWN: Final = 10


def tables(result: Blame) -> list[TableView]:
    """Names first."""
    return [who(result), *([busiest_targets(result)] if result.targets else []), headline(result), coverage(result)]


def who(result: Blame) -> TableView:
    """One line for each name, those that took most first; then the others, and what is nobody's."""
    columns = (
        t.text("name", HEADINGS[result.by]),
        *((t.text("user", "User"), t.text("executable", "Program")) if result.by == "job" else ()),
        t.percent("share_pct", "Share"), *([_done(result)] if result.disk_seconds is not None else []),
        t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"), t.count("operations", "RPCs"),
        t.count("metadata_operations", "Metadata operations"),
        *(() if result.by == "job" else (t.count("jobs", "Jobs"),)),
    )  # fmt: skip
    rows = t.rows_of([*result.who, *([result.others] if result.others is not None else [])], columns)
    rows.append(_nobody(result, columns))
    note = f"{words.verdict(result)}\n{words.method(result)}"
    title = f"{words.title(result)}: {window_title(result)}"
    return t.TableView(title, columns, rows, note, warnings=words.warnings(result), name="shares")


def _nobody(result: Blame, columns: tuple[TableColumn, ...]) -> t.Row:
    seconds = None if result.disk_seconds is None else result.disk_seconds * result.unattributed_pct / 100.0
    cells = {"name": "unattributed", "share_pct": result.unattributed_pct, "disk_seconds": seconds}
    if result.metadata_operations is not None:
        cells["metadata_operations"] = round(result.metadata_operations * result.unattributed_pct / 100.0)
    return tuple(cells.get(column.name) for column in columns)


def _done(result: Blame) -> TableColumn:
    """What the shares are of: seconds, or operations where it is not known what one costs."""
    if result.disk_seconds is None:
        return t.count("metadata_operations", "Metadata operations")
    return t.number("disk_seconds", "Disk time" if result.basis == "disk" else "Server time", "s", ",.1f")


def busiest_targets(result: Blame) -> TableView:
    """The targets that did most, and who took most of each."""
    columns = (
        t.text("target", "Target"), _done(result),
        t.text("first", "Most by"), t.percent("first_pct", "Its share"), t.percent("unattributed_pct", "Nobody's"),
    )  # fmt: skip
    ranked = sorted(result.targets, key=lambda target: -(target.disk_seconds or target.metadata_operations or 0))
    rows = []
    for target in ranked[:TARGETS_SHOWN]:
        named = [item for item in target.shares.items() if item[0] != "others"]
        name, share = max(named, key=lambda item: item[1], default=(None, None))
        done = target.metadata_operations if result.disk_seconds is None else target.disk_seconds
        rows.append((target.target, done, name, share, target.unattributed_pct))
    note = f"The first {TARGETS_SHOWN} of {len(ranked)} targets." if len(ranked) > TARGETS_SHOWN else ""
    return t.TableView("Targets that did most", columns, rows, note, name="targets")


def headline(result: Blame) -> TableView:
    """The window and its sums."""
    columns = (
        t.text("filesystem", "File system"), t.time("window_start", "From"), t.time("window_end", "To"),
        t.text("method", "Method"), t.percent("fsu_pct", "Mean FSU" if result.basis == "disk" else "Mean MDU"),
        _done(result), t.percent("unattributed_pct", "Unattributed"),
        t.number("scale_factor", "Attributed ÷ asked for", "", ".4f"),
    )  # fmt: skip
    return t.TableView("The window", columns, [t.row_of(result, columns)], sideways=True, name="summary")


def coverage(result: Blame) -> TableView:
    """What the shares rest on."""
    columns = (
        t.count("targets_known", "Targets known"), t.count("targets_with_job_stats", "Targets with job_stats"),
        t.text("targets_without_job_stats", "Targets without"), t.count("intervals", "Intervals of job_stats"),
        t.percent("assumed_pct", "By one disk I/O per RPC"), t.percent("unmeasured_pct", "Without sizes of disk I/Os"),
        t.count("job_ids", "Job ids"), t.count("ids_without_record", "… without a scheduler's record"),
        t.count("incomplete_ids", "… cut short or without a field"),
        t.count("contradictory_ids", "… of several users"), t.text("sources", "Sources"),
        t.count("overlapping_rows", "Overlapping rows"),
    )  # fmt: skip
    return coverage_table([(result.filesystem, result.coverage)], columns, "")

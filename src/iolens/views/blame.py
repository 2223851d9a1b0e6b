"""Who made it busy, in sentences that can be quoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.analyses.attribution.whose import OF_PEOPLE
from iolens.units import epoch_us
from iolens.views.render import tables as t
from iolens.views.render.coverage import coverage_table
from iolens.views.render.figures import (
    FSU,
    NAMES,
    NOBODY,
    OTHERS,
    Axis,
    BandMark,
    Figure,
    HeatMapMark,
    LineMark,
    Mark,
    Panel,
    Rule,
)
from iolens.views.render.window_axes import EMPTY, names_axis, target_axis, time_axis, window_title
from iolens.visible_text import counted, visible

if TYPE_CHECKING:
    from iolens.analyses.blame import Blame, BusyTarget, WhoShare
    from iolens.arrays import Floats
    from iolens.views.render.tables import TableColumn, TableView


MUCH_UNATTRIBUTED_PCT: Final = 20.0
FAR_MORE: Final = 3.0  # share of the time ÷ share of the bytes
WHAT: Final = {"disk": "disk time", "metadata": "time of the metadata servers"}
BY: Final = {"job": "job", "user": "user", "project": "project", "executable": "program", "node": "node"}


def blame_title(result: Blame) -> str:
    """Of tables and figures; where FSU has no level it is not known whether it was busy."""
    return "Who made it busy" if result.has_levels else "Whose I/O it was"


def measured(result: Blame) -> str:
    """What shares are of."""
    if result.disk_seconds is None:
        return "metadata operations"
    return WHAT[result.basis]


def verdict(result: Blame) -> str:
    """Who comes first, and with how much."""
    if not result.who:
        return f"No {measured(result)} of this window belongs to a job."
    first = result.who[0]
    verb = "took" if result.method == "job_stats" else "is associated with"
    words = f"{named(first, result)} {verb} {t.show_percent(first.share_pct)} % of the {measured(result)}"
    bytes_pct = share_of_bytes(result, first)
    if bytes_pct is not None and result.basis == "disk":
        moved = f"{t.show_percent(bytes_pct)} % of the bytes that jobs moved"
        joint = "but" if first.share_pct > FAR_MORE * bytes_pct else "and"
        words += f", {joint} moved {moved}"
    return f"{words}."


def named(who: WhoShare, result: Blame) -> str:
    """`Job 1234 (alice, climate)`; `Jobs without a record (5 ids)`."""
    name = visible(who.name)
    if not who.is_known and result.by in OF_PEOPLE:
        return f"{name.capitalize()} ({counted(who.jobs, 'id')})"
    more = ", ".join(visible(word) for word in (who.user, who.executable) if word)
    kind = BY[result.by].capitalize() if who.is_known else "Id"
    return f"{kind} {name}{f' ({more})' if more else ''}"


def share_of_bytes(result: Blame, who: WhoShare) -> float | None:
    """Of all bytes that jobs moved, in per cent; None where they are not known."""
    lines = [*result.who, *([result.others] if result.others is not None else [])]
    total = sum((line.read_bytes or 0) + (line.write_bytes or 0) for line in lines)
    if who.read_bytes is None or who.write_bytes is None or not total:
        return None
    return 100.0 * (who.read_bytes + who.write_bytes) / total


def method(result: Blame) -> str:
    """How it is known."""
    if result.method == "overlap":
        return (
            "No job_stats are stored: shares are of bytes that jobs moved while the targets were busy. That is"
            " association, not cause."
        )
    if result.disk_seconds is None:
        return "From job_stats. No mdtest result says what an operation costs, so all count the same."
    return f"From job_stats and the calibration {', '.join(visible(name) for name in result.coverage.calibrations)}."


def warnings(result: Blame) -> tuple[str, ...]:
    """What to know before the shares are believed."""
    coverage = result.coverage
    said = []
    if result.unattributed_pct >= MUCH_UNATTRIBUTED_PCT:
        said.append(f"{t.show_percent(result.unattributed_pct)} % of the {measured(result)} is unattributed")
    if coverage.targets_without_job_stats:
        missing = counted(len(coverage.targets_without_job_stats), "target")
        said.append(f"no job_stats of {missing}: their disk time is unattributed")
    if coverage.assumed_pct:
        share = t.show_percent(coverage.assumed_pct)
        said.append(f"for {share} % one disk I/O per RPC is assumed, because the true number is not known")
    if coverage.unmeasured_pct:
        share = t.show_percent(coverage.unmeasured_pct)
        said.append(f"for {share} % the requests of the jobs are used, because the sizes of disk I/Os are not known")
    for count, why in (
        (coverage.incomplete_ids, "cut short or without a field"),
        (coverage.contradictory_ids, "with records of several users"),
    ):
        if count:
            end = f"of no {result.by}" if result.by in OF_PEOPLE else "shown as they are"
            said.append(f"{counted(count, 'job id')} {why}: {end}")
    return (*said, *coverage.notes)


# Who made a file system busy, as tables -------------------------------------------------------------------------------
# The window, the names, the targets, coverage.

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
    note = f"{verdict(result)}\n{method(result)}"
    title = f"{blame_title(result)}: {window_title(result)}"
    return t.TableView(title, columns, rows, note, warnings=warnings(result), name="shares")


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


# Figures of who made it busy ------------------------------------------------------------------------------------------
# FSU by name over time, and names by target.

FIGURES: Final = ("shares", "targets")
REST: Final = "others"


def figures(result: Blame) -> dict[str, Callable[[], Figure]]:
    """Shares over time, and by target."""
    return {"shares": lambda: shares(result), "targets": lambda: targets(result)}


def shares(result: Blame) -> Figure:
    """How busy, stacked by name; what is nobody's on top."""
    title = blame_title(result)
    busy, unit = ("FSU (%)", "FSU") if result.basis == "disk" else ("MDU (%)", "MDU")
    x = np.array([epoch_us(tick.time) for tick in result.series], np.float64)
    level = np.array([np.nan if tick.fsu_pct is None else tick.fsu_pct for tick in result.series])
    if not len(x):
        return Figure("shares", title, (Panel(window_title(result), time_axis(result), Axis(busy), message=EMPTY),))
    if not np.isfinite(level).any():  # operations without a cost
        level, busy, unit = np.full(len(x), 100.0), "share of the operations (%)", "all"
    places, level = _steps(x, level, result.bucket_s)
    labels = _labels(result)
    marks: list[Mark] = []
    floor = np.zeros(len(places))
    for name, colour in _colours(result).items():
        _, share = _steps(x, [tick.shares.get(name, 0.0) for tick in result.series], result.bucket_s)
        top = floor + level * share / 100.0
        marks.append(BandMark(places, floor, top, labels.get(name, name), colour))
        floor = top
    marks.append(BandMark(places, floor, np.maximum(level, floor), "unattributed", NOBODY))
    marks.append(LineMark(places, level, unit, FSU))
    if result.saturation_fsu_pct is not None:
        marks.append(Rule(result.saturation_fsu_pct, "horizontal", "saturated"))
    y = Axis(busy, low=0, high=1.08 * max(float(np.nanmax(level)), 1e-9))
    return Figure("shares", title, (Panel(window_title(result), time_axis(result), y, tuple(marks)),))


def _steps(x: Floats, values: Sequence[float] | Floats, bucket_s: int) -> tuple[Floats, Floats]:
    """Both ends of every bucket, so that a band is a step; NaN between buckets that are apart."""
    width = bucket_s * 1e6
    gaps = np.flatnonzero(np.diff(x) > 1.5 * width) + 1
    ends = np.insert(np.column_stack([x, x + width]).reshape(-1), 2 * gaps, x[gaps])
    return ends, np.insert(np.repeat(np.asarray(values, np.float64), 2), 2 * gaps, np.nan)


def _labels(result: Blame) -> dict[str, str]:
    """A job's number with its user."""
    return {who.name: f"{who.name} {who.user}" for who in result.who if who.user is not None}


def _colours(result: Blame) -> dict[str, str]:
    """A colour for each name that is drawn, the same in every figure."""
    names = list(dict.fromkeys(name for tick in result.series[:1] for name in tick.shares))
    return {name: OTHERS if name == REST else NAMES[place % len(NAMES)] for place, name in enumerate(names)}


def targets(result: Blame) -> Figure:
    """Seconds by name and target."""
    title, x_name = "Who was on which target", "target"
    names = [*_colours(result), "unattributed"]
    if not result.targets:
        why = "job_stats are needed to distinguish targets" if result.method == "overlap" else EMPTY
        return Figure("targets", title, (Panel(window_title(result), Axis(x_name), Axis(""), message=why),))
    values = np.array(
        [[_done_seconds(target) * _share(target, name) / 100.0 for target in result.targets] for name in names]
    )
    high = max(float(values.max()), 1e-9)
    low = min((float(value) for value in values[values > 0]), default=high)
    low = min(max(low, high / 1000.0), high / 2.0)
    time = "disk time (s)" if result.basis == "disk" else "server time (s)"
    unit = time if result.disk_seconds is not None else "operations"
    labels_of = _labels(result)
    shown = tuple(labels_of.get(name, name) for name in names)
    mark = HeatMapMark(-0.5, len(result.targets) - 0.5, shown, values, low, high, unit, row_kind="who")
    labels = tuple(target.target.removeprefix(f"{result.filesystem}-") for target in result.targets)
    x = replace(names_axis(x_name, labels), low=-0.5, high=len(labels) - 0.5)
    rows = replace(target_axis(shown), label="")
    return Figure("targets", title, (Panel(window_title(result), x, rows, (mark,)),))


def _done_seconds(target: BusyTarget) -> float:
    """Seconds, or operations without a cost."""
    done = target.disk_seconds if target.disk_seconds is not None else target.metadata_operations
    return float(done or 0.0)


def _share(target: Any, name: str) -> float:
    share: float = target.unattributed_pct if name == "unattributed" else target.shares.get(name, 0.0)
    return share

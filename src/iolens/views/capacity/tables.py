"""Usage and where it is heading, for people: the headline, both projections, purges and surges, targets, inodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iolens.units import format_bytes_si
from iolens.views.growth.tables import interval, per_day
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from datetime import date

    from iolens.analyses.capacity.analysis import ByteProjection, Capacity, InodeUsage
    from iolens.views.render.tables import Row, TableView

READINGS_SHOWN: Final = 14
TARGETS_SHOWN: Final = 24
EXTREMES_SHOWN: Final = 10
NO_DATA: Final = "No readings of capacity in this window."
METHODS: Final = {"linear": "least squares", "theil-sen": "Theil–Sen"}
STATES: Final = {"reached": "reached on", "projected": "expected on"}


def tables(result: Capacity) -> list[TableView]:
    """Everything the result says."""
    if not result.samples and not result.per_target:
        return [headline(result)]
    views = [headline(result), projections(result), events(result), usage(result)]
    if result.fullness is not None:
        views.append(spread(result))
    views.append(per_target(result))
    if result.inodes is not None:
        views.append(inodes(result.inodes))
    return [*views, changes(result)] if result.target_changes else views


def verdict(result: Capacity) -> str:
    """In one sentence, how full it is and when it will be too full."""
    if result.used_bytes is None:
        return NO_DATA
    full = "" if result.fullness_pct is None else f", {t.show_percent(result.fullness_pct)} % of its capacity"
    begins = f"{format_bytes_si(result.used_bytes)} are used{full}"
    if result.slope_bytes_per_day is None:
        reached = f" {_threshold(result)}" if result.threshold_state == "reached" else ""
        return f"{begins}; {result.too_little_data}.{reached}"
    pace = f"{'+' if result.slope_bytes_per_day >= 0 else '−'}{format_bytes_si(abs(result.slope_bytes_per_day))} a day"
    return f"{begins}, {pace} ({METHODS[result.method]}). {_threshold(result)}"


def _threshold(result: Capacity) -> str:
    border = f"{result.threshold_pct:g} %"
    if result.threshold_state in STATES and result.threshold_date is not None:
        between = _dates(result.threshold_ci95)
        sure = f" (95 % interval {between})" if between is not None else ""
        return f"{border} {'was' if result.threshold_state == 'reached' else 'is'} " + (
            f"{STATES[result.threshold_state]} {result.threshold_date}{sure}."
        )
    if result.threshold_state == "reached":
        return f"{border} is reached."
    words = {"not growing": f"At this pace {border} is never reached.", "unknown": "Its capacity is not known."}
    return words.get(result.threshold_state, f"{border} is {result.threshold_state}.")


def _dates(ends: tuple[date | None, date | None] | None) -> str | None:
    if ends is None:
        return None
    early, late = (str(end) if end is not None else "never" for end in ends)
    return f"{early} … {late}"


def usage(result: Capacity) -> TableView:
    """The last readings."""
    columns = (t.time("time", "Time"), t.volume("bytes", "Used"))
    shown = result.used[-READINGS_SHOWN:]
    note = f"The last {len(shown)} of {len(result.used)} readings; JSON has them all."
    return t.TableView(
        "Usage", columns, t.rows_of(shown, columns), note if len(shown) < len(result.used) else "", name="usage"
    )


def headline(result: Capacity) -> TableView:
    """The file system at its last reading, and what the answer rests on."""
    columns = (
        t.text("filesystem", "File system"), t.time("window_start", "From"), t.time("window_end", "To"),
        t.volume("capacity_bytes", "Capacity"), t.volume("used_bytes", "Used"), t.percent("fullness_pct", "Full"),
        t.volume("threshold_bytes", "Threshold"), per_day("usual_bytes_per_day", "Usual change"),
        per_day("usual_spread_bytes_per_day", "… its spread"), t.count("samples", "Complete readings"),
        t.count("incomplete_readings", "Incomplete readings"), t.text("step", "Readings taken"),
        t.text("target_kinds", "Targets are"), t.text("sources", "Sources"),
        t.count("overlapping_rows", "Overlapping rows left out"),
    )  # fmt: skip
    row = t.row_of(result, columns)
    notes = [verdict(result), *map(t.sentence, result.notes)]
    return t.TableView(
        f"{result.filesystem}: capacity", columns, [row], "\n".join(notes), sideways=True, name="summary"
    )


def projections(result: Capacity) -> TableView:
    """Both lines through the readings."""
    columns = (
        t.text("method", "Line"), per_day("slope_bytes_per_day", "Change"), t.text("slope_ci95", "95 % interval"),
        t.text("threshold_state", f"{result.threshold_pct:g} % full"), t.day("threshold_date", "on"),
        t.text("threshold_ci95", "95 % interval"), t.text("expected", "Usage to expect"),
    )  # fmt: skip
    rows: list[Row] = [_projection(projection) for projection in result.projections]
    note = "Intervals: 2,000 resamples, with noise as large and persistent as that of the readings."
    return t.TableView("Projection", columns, rows, note if rows else _no_line(result), name="projections")


def _no_line(result: Capacity) -> str:
    """Why no line is drawn."""
    return NO_DATA if result.too_little_data is None else t.sentence(result.too_little_data)


def _projection(projection: ByteProjection) -> Row:
    ahead = [f"{expected.date}: {format_bytes_si(expected.bytes)}" for expected in projection.expected]
    return (
        METHODS[projection.method],
        projection.slope_bytes_per_day,
        interval(projection.slope_ci95),
        projection.threshold_state,
        projection.threshold_date,
        _dates(projection.threshold_ci95),
        ahead or None,
    )


def events(result: Capacity) -> TableView:
    """Purges and surges."""
    columns = (
        t.text("kind", "Event"), t.time("start", "From"), t.time("end", "To"),
        t.number("days", "Length", "d", ",.1f"), t.volume("bytes", "Change"),
    )  # fmt: skip
    rows: list[Row] = [
        (event.kind, event.start, event.end, (event.end - event.start).total_seconds() / 86400, event.bytes)
        for event in result.events
    ]
    least = format_bytes_si(result.least_event_bytes)
    rule = f"Far beyond the usual change between readings, and at least {least}."
    return t.TableView("Purges and surges", columns, rows, rule if rows else f"None found. {rule}", name="events")


def spread(result: Capacity) -> TableView:
    """How evenly the targets are filled."""
    columns = (
        t.count("targets", "Targets"), t.percent("mean_pct", "Mean fullness"), t.percent("median_pct", "Median"),
        t.percent("min_pct", "Emptiest"), t.text("emptiest", "… is"), t.percent("max_pct", "Fullest"),
        t.text("fullest", "… is"), t.number("stddev_pct", "Standard deviation", "points", ".2f"),
        t.text("above_threshold", f"At {result.threshold_pct:g} % or more"),
    )  # fmt: skip
    return t.TableView(
        "Imbalance of fullness", columns, [t.row_of(result.fullness, columns)], sideways=True, name="spread"
    )


def per_target(result: Capacity) -> TableView:
    """All targets, or the fullest and the emptiest of many."""
    columns = (
        t.text("target", "Target"), t.text("target_kind", "Kind"), t.volume("total_bytes", "Capacity"),
        t.volume("used_bytes", "Used"), t.percent("fullness_pct", "Full"), t.count("total_inodes", "Inodes"),
        t.count("used_inodes", "Inodes used"), t.percent("inodes_pct", "Inodes full"),
    )  # fmt: skip
    ordered = sorted(result.per_target, key=lambda fullness: (-(fullness.fullness_pct or 0.0), fullness.target))
    few = len(ordered) <= TARGETS_SHOWN
    shown = ordered if few else [*ordered[:EXTREMES_SHOWN], *ordered[-EXTREMES_SHOWN:]]
    rows = t.rows_of(shown, columns)
    note = "" if few else f"The {EXTREMES_SHOWN} fullest and {EXTREMES_SHOWN} emptiest of {len(ordered)}; JSON has all."
    return t.TableView("Fullness of targets", columns, rows, note, name="per_target")


def inodes(usage: InodeUsage) -> TableView:
    """The same for inodes."""
    columns = (
        t.text("target_kinds", "Inodes of"), t.count("total_inodes", "Inodes"), t.count("used_inodes", "Used"),
        t.percent("fullness_pct", "Full"), t.number("slope_inodes_per_day", "Change", "a day", "+,.0f"),
        t.text("slope_ci95", "… 95 % interval"), t.text("threshold_state", "Threshold"),
        t.day("threshold_date", "… on"), t.text("too_little_data", "No forecast"),
        t.text("events", "Purges and surges"),
        t.count("incomplete_readings", "Incomplete readings"),
    )  # fmt: skip
    shown: dict[str, Any] = {
        "slope_ci95": None if usage.slope_ci95 is None else "{:+,.0f} … {:+,.0f}".format(*usage.slope_ci95),
        "events": [f"{event.kind} {event.start:%Y-%m-%d} {event.inodes:+,}" for event in usage.events],
    }
    row = tuple(shown.get(column.name, getattr(usage, column.name)) for column in columns)
    return t.TableView("Inodes", columns, [row], sideways=True, name="inodes")


def changes(result: Capacity) -> TableView:
    """Times at which targets came or went."""
    columns = (
        t.time("time", "Time"), t.count("targets_before", "Targets before"),
        t.count("targets_after", "Targets after"),
    )  # fmt: skip
    return t.TableView("Targets came or went", columns, t.rows_of(result.target_changes, columns), name="changes")

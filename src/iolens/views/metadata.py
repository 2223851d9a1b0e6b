"""Load on the metadata targets for people: the headline, the mix of operations, targets, days, costs, coverage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.coverage import COLUMNS, coverage_table, covered
from iolens.views.render.figures import FSU, KINDS, METADATA, OTHERS, Axis, Bars, Figure, Mark, Panel, Rule
from iolens.views.render.section import Answer, Notice, Part, ReportSection, by_server, moved, with_servers
from iolens.views.render.window_axes import EMPTY, largest, over_time, time_axis, window_title
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from iolens.analyses.metadata import Metadata, MetadataSeries
    from iolens.views.render.tables import Row, TableView


DAYS_SHOWN: Final = 14
NOT_OF_METADATA: Final = ("hours_min", "hours_median", "hours_max", "ios_outside_bins", "targets_without_sizes")
NO_DATA: Final = "No data in this window."


def tables(result: Metadata) -> list[TableView]:
    """Everything the result says."""
    views = [headline(result), mix(result), per_target(result), daily(result)]
    if result.calibration is not None:
        views.append(costs_table(result))
    return [*views, coverage(result)]


def verdict(result: Metadata) -> str:
    """In one sentence, how busy the metadata servers were."""
    return covered(result, _verdict(result)) if result.samples else NO_DATA


def _verdict(result: Metadata) -> str:
    if result.mean_mdu_pct is None or result.busy_time_pct is None:
        return "How busy that made the servers is not known: no mdtest result says what an operation costs."
    busy = f"Busy {t.show_percent(result.busy_time_pct)} % of the time by MDU (above 30 %)"
    if result.busy_time_pct == 0:
        busy = "Never busy by MDU (above 30 %) in this window"
    if not result.assumed_time_pct:
        return f"{busy}."
    share = t.show_percent(result.assumed_time_pct)
    return f"{busy}. {share} % of the modelled time is assumed: mdtest does not measure those operations."


def headline(result: Metadata) -> TableView:
    """The file system as a whole."""
    columns = (
        t.text("filesystem", "File system"), t.time("window_start", "From"), t.time("window_end", "To"),
        t.count("targets", "Metadata targets"), t.count("samples", "Samples"), t.count("operations", "Operations"),
        rate("mean_ops_per_s", "Mean rate"), rate("p50_ops_per_s", "50 % are at or below"),
        rate("p95_ops_per_s", "95 % are at or below"), rate("p99_ops_per_s", "99 % are at or below"),
        rate("peak_ops_per_s", "Largest tick"), t.time("peak_ops_time", "… at"),
        t.percent("mean_mdu_pct", "Mean MDU"), t.percent("busy_time_pct", "Busy by MDU"),
        t.percent("peak_mdu_pct", "Largest MDU"), t.time("peak_mdu_time", "… at"),
        t.percent("mean_mdu_service_pct", "Mean MDU by service times"),
        t.percent("assumed_ops_pct", "Operations of assumed cost"),
        t.percent("assumed_time_pct", "… of the modelled time"),
    )  # fmt: skip
    row = t.row_of(result, columns)
    notes = [verdict(result)]
    if result.percentile_error_pct:
        notes.append(f"Percentiles are from a sketch, right to {result.percentile_error_pct:g} %.")
    return t.TableView(
        f"{result.filesystem}: metadata load", columns, [row], "\n".join(notes), sideways=True, name="summary"
    )


def rate(name: str, heading: str) -> t.TableColumn:
    """Operations per second."""
    return t.number(name, heading, "op/s", ",.4g")


def mix(result: Metadata) -> TableView:
    """Operations by kind and what they cost."""
    columns = (
        t.text("operation", "Operation"), t.count("count", "Count"), t.percent("share_pct", "of all"),
        rate("mean_ops_per_s", "Mean rate"), t.number("s_per_op", "Cost", "s", ".3g"), t.text("basis", "Cost is"),
        t.percent("time_share_pct", "of MDU"), t.number("mean_service_s", "Mean service time", "s", ".3g"),
    )  # fmt: skip
    rows = t.rows_of(result.mix, columns)
    return t.TableView("Operations by kind", columns, rows, "" if rows else NO_DATA, name="mix")


def per_target(result: Metadata) -> TableView:
    """Each metadata target."""
    columns = (
        t.text("target", "Target"), t.count("operations", "Operations"), rate("mean_ops_per_s", "Mean rate"),
        rate("p50_ops_per_s", "50 %"), rate("p95_ops_per_s", "95 %"), rate("p99_ops_per_s", "99 %"),
        rate("peak_ops_per_s", "Largest"), t.percent("mean_mdu_pct", "Mean MDU"), t.percent("busy_time_pct", "Busy"),
        t.percent("mean_mdu_service_pct", "MDU by service times"),
    )  # fmt: skip
    lines = by_server(result.servers, result.per_target)
    return t.TableView(
        f"Metadata targets of {result.filesystem}",
        *with_servers(result.servers, columns, lines),
        "\n".join(moved(result.servers) if lines else [NO_DATA]),
        name="per_target",
        keep=("mean_ops_per_s", "mean_mdu_pct", "busy_time_pct"),
    )


def daily(result: Metadata) -> TableView:
    """Operations per day."""
    columns = (
        t.day("date", f"Day ({result.timezone})"),
        t.count("operations", "Operations"),
        t.percent("covered_pct", "Observed"),
    )
    shown = result.daily[-DAYS_SHOWN:]
    rows: list[Row] = [(day.date, day.operations, day.covered_pct) for day in shown]
    cut = (
        f"The last {len(shown)} of {len(result.daily)} days; JSON has them all."
        if len(shown) < len(result.daily)
        else ""
    )
    return t.TableView(
        f"Daily operations of {result.filesystem}", columns, rows, cut if rows else NO_DATA, name="per_day"
    )


def costs_table(result: Metadata) -> TableView:
    """What an operation is taken to cost."""
    columns = (
        t.text("operation", "Operation"), t.number("s_per_op", "Cost", "s", ".3g"),
        t.number("limit_ops_per_s", "Limit", "op/s", ",.0f"), t.text("basis", "Basis"),
    )  # fmt: skip
    calibration = result.calibration
    assert calibration is not None
    listed = [(cost.operation, cost.s_per_op, cost.basis) for cost in calibration.costs]
    listed.append(("all others", calibration.assumed_s_per_op, "assumed"))
    rows: list[Row] = [(name, cost, 1 / cost if cost else None, basis) for name, cost, basis in listed]
    note = "From mdtest at its fastest. What it does not measure is taken at the cheapest cost it did."
    return t.TableView(f"Calibration {calibration.name}", columns, rows, note, name="costs")


def coverage(result: Metadata) -> TableView:
    """What the answer rests on, and what was missing."""
    fields = [column for column in COLUMNS if column.name not in NOT_OF_METADATA]
    return coverage_table([(result.filesystem, result.coverage)], fields, "\n".join(result.coverage.notes))


# Figures of the metadata load -----------------------------------------------------------------------------------------
# Operations by kind stacked over time, and metadata utilization over time.

NOT_CALIBRATED: Final = "no mdtest result and no service times: not known"


FIGURES: Final = ("operations", "mdu")


def figures(result: Metadata) -> dict[str, Callable[[], Figure]]:
    """Operations by kind, stacked, and metadata utilization; both over time."""
    return {"operations": lambda: operations(result), "mdu": lambda: mdu(result)}


def operations(result: Metadata) -> Figure:
    """Operations per second by kind, the most frequent at the bottom."""
    title, time, series = window_title(result), time_axis(result), result.series
    if series is None or not series.ops_per_s:
        panel = Panel(title, time, Axis("operations per second"), message=EMPTY)
        return Figure("operations", "Metadata operations by kind", (panel,))
    layers = _layers(series)
    top = largest(np.sum([np.nan_to_num(values) for _, _, values in layers], axis=0))
    y = Axis("operations per second", low=0, high=1.08 * top or 1.0)
    return Figure(
        "operations", "Metadata operations by kind", (Panel(title, time, y, tuple(_stacked(series, layers))),)
    )


def mdu(result: Metadata) -> Figure:
    """Metadata utilization, and the same by service times where they are counted."""
    title, time, series = window_title(result), time_axis(result), result.series
    curves: list[tuple[NDArray[Any], str, str]] = []
    if series is not None and series.mdu_service_pct is not None:
        curves.append((series.mdu_service_pct, "by service times", METADATA))
    if series is not None and series.mdu_pct is not None:
        curves.append((series.mdu_pct, "MDU", FSU))
    if series is None or not curves:
        panel = Panel(title, time, Axis("MDU (%)"), message=EMPTY if series is None else NOT_CALIBRATED)
        return Figure("mdu", "Metadata utilization", (panel,))
    x = series.start_us + round(series.bucket_s * 5e5)
    marks: list[Mark] = [over_time(x, y, series.bucket_s, label, colour, "left") for y, label, colour in curves]
    y_axis = Axis("MDU (%)", low=0, high=max(40.0, 1.08 * largest(*(values for values, _, _ in curves))))
    return Figure(
        "mdu", "Metadata utilization", (Panel(title, time, y_axis, (*marks, Rule(30, "horizontal", "busy"))),)
    )


def _layers(series: MetadataSeries) -> list[tuple[str, str, NDArray[Any]]]:
    """Label, colour and rates of the most frequent kinds, and of the others together."""
    ordered = sorted(series.ops_per_s.items(), key=lambda item: -float(np.nansum(item[1])))
    named = [(name, colour, values) for (name, values), colour in zip(ordered, KINDS, strict=False)]
    rest = [values for _, values in ordered[len(KINDS) :]]
    return [*named, ("others", OTHERS, np.sum(rest, axis=0))] if rest else named


def _stacked(series: MetadataSeries, layers: list[tuple[str, str, NDArray[Any]]]) -> list[Bars]:
    """Bars of a bucket's width on top of each other; a bucket without data has none."""
    reported = np.isfinite(layers[0][2])
    starts = series.start_us[reported]
    ends = starts + round(series.bucket_s * 1e6)
    bars, bottoms = [], np.zeros(len(starts))
    for label, colour, values in layers:
        heights = values[reported]
        names = (label,) * len(starts)
        bars.append(Bars(starts, ends, heights, label, colour, names, bottoms))
        bottoms = bottoms + heights
    return bars


# The metadata load in the report; nothing where no metadata target reported -------------------------------------------

REPORT_ORDER: Final = 20
MUCH_PCT: Final = 30.0


def report_answers(result: Metadata) -> list[Answer]:
    """Rate, what the operations are, and how busy that made the servers."""
    if not result.samples or result.mean_ops_per_s is None or result.peak_ops_per_s is None:
        return []
    rates = f"{result.mean_ops_per_s:,.0f} operations per second on average, {result.peak_ops_per_s:,.0f} at most"
    kinds = [f"{t.show_percent(line.share_pct)} % {line.operation}" for line in result.mix[:3] if line.share_pct]
    most = f"; most are {', '.join(kinds)}" if kinds else ""
    words = covered(result, f"The metadata servers did {rates}{most}.")
    return [Answer("metadata", (words, verdict(result)), operations(result))]


def report_identity(result: Metadata) -> list[str]:
    """How many metadata targets."""
    return [counted(result.targets, "metadata target")] if result.samples else []


def report_notices(result: Metadata) -> list[Notice]:
    """Metadata servers that are busy much of the time."""
    busy = result.busy_time_pct
    if not result.samples or busy is None or not busy >= MUCH_PCT:
        return []
    words = covered(result, f"The metadata servers were busy {t.show_percent(busy)} % of the time by MDU.")
    return [Notice("warn", "metadata", words, "See whose operations they are.", ("blame", "--metadata"))]


def report_sections(result: Metadata) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.samples:
        return []
    parts: list[Part] = [mix(result)]
    if result.mean_mdu_pct is not None or result.mean_mdu_service_pct is not None:
        parts.append(mdu(result))
    costs = [costs_table(result)] if result.calibration is not None else []
    return [
        ReportSection(
            "Load on the metadata servers",
            (*parts, per_target(result), daily(result), *costs),
            "metadata",
        ),
        ReportSection("What metadata load rests on", (coverage(result),), "appendix"),
    ]


def report_methods(results: Sequence[Metadata]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.samples for result in results):
        return []
    return [
        ReportSection(
            "Metadata Utilization",
            (
                "Metadata Utilization (MDU) is the share of time a metadata server needs for the operations it did:"
                " each costs the time it takes at the highest rate mdtest reached. An operation that mdtest does not"
                " measure is taken at the cheapest cost it did; the share of those is stated. Idle, moderate and busy"
                " are as for FSU.",
                "By service times is the sum of the times the server itself counted, divided by the interval: 100 % is"
                " one operation under way throughout. Servers work on many at once, so this may pass 100 % long before"
                " they are full.",
            ),
        )
    ]

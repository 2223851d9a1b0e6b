"""Load on the metadata targets for people: the headline, the mix of operations, targets, days, costs, coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.views.render.coverage import COLUMNS, coverage_table, covered
from iolens.views.render.server_rows import by_server, moved, with_servers

if TYPE_CHECKING:
    from iolens.analyses.metadata import Metadata
    from iolens.views.render.tables import Row, TableView

DAYS_SHOWN: Final = 14
NOT_OF_METADATA: Final = ("hours_min", "hours_median", "hours_max", "ios_outside_bins", "targets_without_sizes")
NO_DATA: Final = "No data in this window."


def tables(result: Metadata) -> list[TableView]:
    """Everything the result says."""
    views = [headline(result), mix(result), per_target(result), daily(result)]
    if result.calibration is not None:
        views.append(costs(result))
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


def costs(result: Metadata) -> TableView:
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

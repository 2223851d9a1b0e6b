"""The outcome of an acceptance suite, for people: each limit with its verdict, the steps, and the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.units import format_bytes_si
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.models.acceptance import Acceptance
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import Row, TableView


def tables(result: Acceptance) -> list[TableView]:
    """The verdicts first, then what every step measured."""
    return [checks(result), steps(result)]


def figures(result: Acceptance) -> dict[str, Callable[[], Figure]]:
    """None: an outcome is a table."""
    return {}


def checks(result: Acceptance) -> TableView:
    """One line per limit."""
    columns = (
        t.text("step", "Step"), t.text("measure", "Measure"), quantity("measured", "Measured"),
        quantity("at_least", "At least"), quantity("at_most", "At most"),
        t.number("ratio", "Ratio", form=".2f"), t.text("verdict", "Verdict"), t.text("reason", "Limit comes from"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            check.step, check.measure,
            *(MeasuredQuantity.of(check.measure, x) for x in (check.measured, check.at_least, check.at_most)),
            check.ratio, check.verdict, check.reason,
        )
        for check in result.checks
    ]  # fmt: skip
    verdict = "passed" if result.passed else "not passed"
    return t.TableView(
        f"Acceptance of {result.place}: {verdict}",
        columns,
        rows,
        "\n".join(notes(result)),
        name="checks",
        keep=("measure", "measured", "verdict"),
    )


def steps(result: Acceptance) -> TableView:
    """What each step measured."""
    columns = (
        t.text("step", "Step"), t.text("tool", "Tool"), t.rate("read_bytes_per_s", "Read"),
        t.rate("write_bytes_per_s", "Write"), t.number("read_ops_per_s", "Reads/s", form=",.0f"),
        t.number("write_ops_per_s", "Writes/s", form=",.0f"), t.number("read_p99_s", "Reads' p99", "s"),
        t.number("write_p99_s", "Writes' p99", "s"), t.percent("served_pct", "Served"),
        t.percent("read_requests_pct", "Reads"), t.text("trouble", "Trouble"),
    )  # fmt: skip
    rows = [t.row_of(step, columns, {"step": step.name}) for step in result.steps]
    return t.TableView("Steps", columns, rows, name="steps", keep=("trouble",))


def notes(result: Acceptance) -> list[str]:
    """The scores, the scale, and what to know."""
    lines = [
        f"Workload of {result.filesystem}: {100 * result.share:.3g} % of its traffic, SSI {result.ssi:g},"
        f" demand at the {result.percentile:g}th percentile."
    ]
    if result.score is not None:
        lines.append(
            f"Score {result.score:.4g}: geometric mean of {result.bandwidth_gib_per_s:.4g} GiB/s and"
            f" {result.thousand_ops_per_s:.4g} thousand operations per second."
        )
    else:
        lines.append("No score: a step is missing.")
    return [*lines, *result.notes]


class MeasuredQuantity(float):
    """A number that knows its measure: machines get the number, people see it with its unit."""

    measure: str

    @classmethod
    def of(cls, measure: str, value: float | None) -> MeasuredQuantity | None:
        """None where it is missing."""
        if value is None:
            return None
        measured_quantity = cls(value)
        measured_quantity.measure = measure
        return measured_quantity


def quantity(name: str, heading: str) -> t.TableColumn:
    """A column whose unit changes from row to row."""
    return t.TableColumn(name, heading, "number", lambda value: shown(value.measure, value))


def shown(measure: str, value: float) -> str:
    """With the unit that the measure's name tells."""
    if measure.endswith("_bytes_per_s"):
        return f"{format_bytes_si(value)}/s"
    if measure.endswith("_ops_per_s"):
        return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"
    if measure.endswith("_pct"):
        return f"{value:.1f} %"
    if measure.endswith("_points"):
        return f"{value:.2g} points"
    return f"{1000 * value:.3g} ms"

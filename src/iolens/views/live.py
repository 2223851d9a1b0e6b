"""A reading of all targets as a table for scripts and people: `iolens top --once`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.views.render.section import COLUMN as SERVER

if TYPE_CHECKING:
    from iolens.analyses.live.analysis import LiveReading
    from iolens.views.render.figures import Figure


COLUMNS: Final = (
    t.text("target", "Target"), t.text("target_kind", "Kind"), t.text("state", "State"),
    t.percent("fsu_pct", "FSU"), t.percent("fsu_bytes_pct", "FSU by bytes"), t.percent("util_pct", "Util"),
    t.rate("read_bytes_per_s", "Read"), t.rate("write_bytes_per_s", "Write"),
    t.number("iops", "IOPS", "", ",.0f"), t.percent("small_io_pct", "Small I/Os"),
    t.number("latency_s", "Latency", "s"), t.text("latency_kind", "Latency is"), t.percent("used_pct", "Full"),
    t.number("metadata_ops_per_s", "Metadata", "ops/s", ",.0f"), t.text("after_reset", "After a reset"),
    t.number("age_s", "Age", "s", ",.0f"),
)  # fmt: skip
_TOTALS: Final = (
    t.time("time", "Tick"), t.number("interval_s", "Interval", "s"), t.text("calibration", "Calibration"),
    t.text("calibration_state", "Calibration is"),
    t.percent("mean_fsu_pct", "Mean FSU"), t.percent("mean_fsu_bytes_pct", "Mean FSU by bytes"),
    t.rate("read_bytes_per_s", "Read"), t.rate("write_bytes_per_s", "Write"), t.number("iops", "IOPS", "", ",.0f"),
    t.number("metadata_ops_per_s", "Metadata", "ops/s", ",.0f"), t.count("targets_known", "Targets known"),
    t.count("targets_reporting", "Targets reporting"), t.text("missing_targets", "Silent"),
    t.count("resets", "Resets"), t.count("gaps", "Gaps"), t.number("age_s", "Age", "s", ",.0f"),
    t.text("stale", "Too old to describe the present"),
)  # fmt: skip


def tables(result: LiveReading) -> list[t.TableView]:
    """The targets, then the file system as a whole."""
    total = t.row_of(result, _TOTALS)
    targets = list(result.targets)
    columns = COLUMNS if result.servers is None else (SERVER, *COLUMNS)
    if result.servers is not None:
        targets.sort(key=lambda line: (line.server is None, line.server or "", line.target))
    of_server = (t.text("target", "Server"), *COLUMNS[2:])
    lines = t.rows_of(result.servers or (), of_server)
    servers = t.TableView(f"Servers of {result.filesystem}", of_server, lines, name="servers")
    return [
        t.TableView(f"Targets of {result.filesystem}", columns, t.rows_of(targets, columns), name="per_target"),
        *([servers] if result.servers is not None else []),
        t.TableView(
            f"File system {result.filesystem}",
            _TOTALS,
            [total],
            "\n".join(_notes(result)),
            sideways=True,
            name="summary",
        ),
    ]


def _notes(result: LiveReading) -> list[str]:
    stale = [f"No data for {t.show_seconds(result.age_s)}."] if result.stale and result.age_s is not None else []
    return [*stale, *result.notes]


def compact(result: LiveReading) -> list[t.TableView]:
    """The same for a terminal: without columns that say nothing here."""
    *lines, total = tables(result)
    return [*map(_without_empty_columns, lines), total]


def _without_empty_columns(view: t.TableView) -> t.TableView:
    reported = [n for n, column in enumerate(view.columns) if any(_says_something(row[n]) for row in view.rows)]
    columns = tuple(view.columns[n] for n in reported)
    return t.TableView(view.title, columns, [tuple(row[n] for n in reported) for row in view.rows], name=view.name)


def _says_something(value: object) -> bool:
    return value is not None and value is not False


def figures(result: LiveReading) -> dict[str, Callable[[], Figure]]:
    """None: one time has no course."""
    return {}

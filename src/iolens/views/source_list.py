"""What brought data into a store, for people: sources, origins, agents, refused input, tables, days to roll up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.source_list import SourceList
    from iolens.views.render.tables import TableView


_AMOUNTS: Final = (
    t.time("first_time", "First data"), t.time("last_time", "Last data"), t.time("last_ingest", "Last ingest"),
    t.count("batches", "Batches"), t.count("samples", "Samples"), t.count("rows", "Rows"), t.count("resets", "Resets"),
    t.count("repeated", "Repeated"), t.count("older", "Older"), t.count("refused", "Refused"),
)  # fmt: skip
_SOURCES: Final = (t.text("source", "Source"), t.count("origins", "Origins"), *_AMOUNTS)
_ORIGINS: Final = (t.text("source", "Source"), t.text("origin", "Origin"), *_AMOUNTS)
_AGENTS: Final = (
    t.text("host", "Agent"), t.time("last_tick", "Last report"), t.number("lag_s", "Behind", "s", ",.0f"),
    t.count("ticks", "Ticks"), t.count("late_ticks", "Late"), t.count("missed_ticks", "Missed"),
    t.count("lost_ticks", "Lost"), t.size("spool_bytes", "Spool"), t.count("segments_waiting", "Waiting"),
    t.text("trouble", "Trouble"), t.count("starts", "Starts"), t.time("last_time", "Last data"),
    t.time("last_ingest", "Last ingest"),
)  # fmt: skip
_REFUSED: Final = (
    t.time("time", "Ingested"), t.text("source", "Source"), t.text("origin", "Origin"), t.count("refused", "Places"),
    t.text("reasons", "First reasons"),
)  # fmt: skip
_TABLES: Final = (
    t.text("name", "Table"), t.count("rows", "Rows"), t.count("files", "Files"), t.size("bytes", "Size"),
    t.time("first_time", "First row"), t.time("last_time", "Last row"),
)  # fmt: skip
_BACKLOG: Final = (
    t.text("table", "Rollup"), t.count("days", "Days"), t.day("first_day", "From"), t.day("last_day", "To"),
)  # fmt: skip


def tables(result: SourceList) -> list[TableView]:
    """Sources with a sentence about them all; other tables where they have a line."""
    others = (
        _origins(result),
        t.TableView("Agents, longest silence first", _AGENTS, t.rows_of(result.agents, _AGENTS), name="agents"),
        _refused(result),
        t.TableView("Tables", _TABLES, t.rows_of(result.tables, _TABLES), name="tables"),
        _backlog(result),
    )
    return [_sources(result), *(table for table in others if table.rows)]


def _sources(result: SourceList) -> TableView:
    rows = t.rows_of(result.sources, _SOURCES)
    return t.TableView(
        f"Sources of {result.store}", _SOURCES, rows, _summary(result), name="sources", keep=("refused",)
    )


def _summary(result: SourceList) -> str:
    in_trouble = sum(agent.trouble is not None for agent in result.agents)
    days = len({day for backlog in result.rollup_backlog for day in backlog.days})
    inputs = f" in {counted(result.refused_inputs_known, 'batch')}" if result.refused else ""
    agents = f"{counted(len(result.agents), 'agent')}, {in_trouble:,} in trouble; " if result.agents else ""
    return (
        f"{counted(result.batches, 'batch')} brought {counted(result.rows, 'row')}; {counted(result.refused, 'place')} "
        f"refused{inputs}; {agents}{counted(days, 'day')} not rolled up."
    )


def _origins(result: SourceList) -> TableView:
    left = result.origins_known - len(result.origins)
    note = f"{counted(left, 'origin')} with older batches not shown." if left else ""
    rows = t.rows_of(result.origins, _ORIGINS)
    return t.TableView("Origins, newest first", _ORIGINS, rows, note, name="origins", keep=("refused",))


def _refused(result: SourceList) -> TableView:
    left = result.refused_inputs_known - len(result.refused_inputs)
    note = f"{counted(left, 'older input')} not shown." if left else ""
    rows = [
        t.row_of(refused, _REFUSED, {"reasons": "; ".join(refused.reasons) or None})
        for refused in result.refused_inputs
    ]
    return t.TableView("Refused input, newest first", _REFUSED, rows, note, name="refused_inputs", keep=("reasons",))


def _backlog(result: SourceList) -> TableView:
    rows = [(line.table, len(line.days), line.days[0], line.days[-1]) for line in result.rollup_backlog]
    note = "Roll them up with `iolens store rollup`."
    return t.TableView("Days that are not rolled up", _BACKLOG, list(rows), note, name="rollup_backlog")

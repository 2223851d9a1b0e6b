"""The state of the hub as tables: what waits and how the writer is, then every agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.hub.hub_state import HubState, WriterState
    from iolens.views.render.tables import TableView


def tables(result: HubState) -> list[TableView]:
    """The agents, silent ones first, with what waits in the note."""
    columns = (
        t.text("host", "Agent"), t.time("last_seen", "Last seen"), t.number("silent_s", "Silent for", "s", ",.0f"),
        t.count("waiting_segments", "Segments waiting"), t.volume("waiting_bytes", "Waiting"),
        t.count("stored_segments", "Stored"), t.count("late_segments", "Late"), t.count("bad_segments", "Bad"),
        t.count("taken_over", "Targets taken over"),
        t.count("refused", "Refused"), t.text("last_refusal", "Last refusal"),
    )  # fmt: skip
    agents = sorted(result.agents, key=lambda agent: -(agent.silent_s or 0.0))
    title = "Agents, longest silence first" if agents else "No agent has sent anything"
    note = "\n".join(filter(None, [_waiting(result), _put_aside(result), _writer(result.writer)]))
    return [t.TableView(title, columns, t.rows_of(agents, columns), note, name="agents", keep=("waiting_segments",))]


def _waiting(result: HubState) -> str:
    if not result.waiting_segments:
        return "No segment waits for the store."
    age = "" if result.oldest_waiting_s is None else f", the oldest for {t.show_seconds(result.oldest_waiting_s)}"
    return f"{counted(result.waiting_segments, 'segment')} {'waits' if result.waiting_segments == 1 else 'wait'}{age}."


def _put_aside(result: HubState) -> str:
    late, bad = (sum(getattr(agent, name) for agent in result.agents) for name in ("late_segments", "bad_segments"))
    if not late + bad:
        return ""
    since = min(agent.aside_since for agent in result.agents if agent.aside_since is not None)
    lay = f"{counted(late, 'segment')} in late/, {counted(bad, 'segment')} in bad/"
    return f"Put aside, not in the store: {lay}, the first since {t.show_time(since)}."


def _writer(writer: WriterState) -> str:
    if not writer.is_running:
        return "The writer does not run."
    stored = f"The writer has stored {counted(writer.segments, 'segment')} in {counted(writer.batches, 'batch')}"
    last = "" if writer.last_commit is None else f", the last at {t.show_time(writer.last_commit)}"
    return f"{stored}{last}.{f' Trouble: {writer.trouble}' if writer.trouble else ''}"

"""The hub for people: which agents are silent, what waits, and whether the writer runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from iolens.hub.hub_state import HubAgent, HubState, WriterState
from iolens.views.hub_state import tables

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def agent(host: str, silent_s: float | None) -> HubAgent:
    return HubAgent(host, NOW, silent_s, 1, 1000, 0, 0, 5, 5000, 0, "", 4)


def state() -> HubState:
    writer = WriterState(True, NOW, NOW, 1, 2, 100, 300, 1 << 20, "")
    return HubState(NOW, 2, 2000, 75.0, 1 << 30, (agent("oss1", 5.0), agent("oss2", 600.0)), writer)


def idle() -> HubState:
    stopped = WriterState(False, None, None, 0, 0, 0, 0, 0, "")
    return replace(state(), agents=(), waiting_segments=0, oldest_waiting_s=None, writer=stopped)


def test_silent_agents_stand_first() -> None:
    (table,) = tables(state())
    assert [row[0] for row in table.rows] == ["oss2", "oss1"]


def test_the_note_says_what_waits_and_what_was_stored() -> None:
    (table,) = tables(state())
    assert table.note.splitlines() == [
        "2 segments wait, the oldest for 75 s.",
        "The writer has stored 2 segments in 1 batch, the last at 2026-01-05 12:00:00.",
    ]


def test_one_segment_waits_and_a_trouble_is_named() -> None:
    writer = replace(state().writer, trouble="disk full", last_commit=None)
    (table,) = tables(replace(state(), waiting_segments=1, oldest_waiting_s=None, writer=writer))
    assert table.note.splitlines()[0] == "1 segment waits."
    assert table.note.endswith("Trouble: disk full")


def test_without_an_agent_the_title_says_so() -> None:
    (table,) = tables(idle())
    assert table.title == "No agent has sent anything"
    assert table.note == "No segment waits for the store.\nThe writer does not run."

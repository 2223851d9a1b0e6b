"""News of the store: an event after a commit, few of them, signs of life, and an end when the reader goes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from iolens.web import answers as answers_module
from iolens.web import changes
from iolens.web.answers import Answers
from tests.web.hourly_rows import ingest
from tests.web.served_centre import serving
from tests.web.test_answers import run

PATIENCE_S = 20.0


def heard(work: Callable[[Answers, AsyncIterator[str]], Awaitable[None]], place: Path) -> None:
    async def listening(answers: Answers) -> None:
        async with aclosing(changes._events(answers)) as events:  # type: ignore[type-var]
            assert await anext(events) == "retry: 5000\n\n"
            await work(answers, events)

    run(place, listening)


def test_many_changes_are_one_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "NOT_SOONER_S", 0.01)

    async def work(answers: Answers, events: AsyncIterator[str]) -> None:
        answers.touch()
        assert await anext(events) == "event: changed\ndata: 1\n\n"
        for _ in range(99):
            answers.touch()
        assert await anext(events) == "event: changed\ndata: 100\n\n"
        following = asyncio.ensure_future(anext(events))
        await asyncio.sleep(5 * changes.NOT_SOONER_S)
        assert not following.done()  # nothing is new
        answers.touch()
        assert await following == "event: changed\ndata: 101\n\n"

    heard(work, tmp_path)


def test_an_event_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "NOT_SOONER_S", 3600.0)

    async def work(answers: Answers, events: AsyncIterator[str]) -> None:
        answers.touch()
        assert await anext(events) == "event: changed\ndata: 1\n\n"
        answers.touch()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.05)

    heard(work, tmp_path)


def test_a_quiet_connection_is_kept_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "ALIVE_EVERY_S", 0.01)

    async def work(answers: Answers, events: AsyncIterator[str]) -> None:
        assert [await anext(events) for _ in range(3)] == [": alive\n\n"] * 3
        answers.touch()
        assert await anext(events) == "event: changed\ndata: 1\n\n"

    heard(work, tmp_path)


def test_a_live_page_hears_of_a_commit_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator ends when the connection does: nothing is kept for readers who are gone."""
    monkeypatch.setattr(answers_module, "LOOK_EVERY_S", 0.05)
    ended = threading.Event()
    events_of = changes._events

    async def noted(answers: Answers) -> AsyncIterator[str]:
        try:
            async for event in events_of(answers):
                yield event
        finally:
            ended.set()

    monkeypatch.setattr(changes, "_events", noted)
    place = tmp_path / "store"
    ingest(place, 1)
    with serving(place, tmp_path / "state") as served, served.client() as client:
        with client.stream("GET", "/api/v1/changes") as stream:
            assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert stream.headers["x-accel-buffering"] == "no"
            lines = stream.iter_lines()
            assert next(lines) == "retry: 5000"
            ingest(place, 2)
            assert next(line for line in lines if line) == "event: changed"
            assert not ended.is_set()
        assert ended.wait(PATIENCE_S)
        assert client.get("/healthz").status_code == 200


def test_live_pages_do_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    with serving(tmp_path / "store", tmp_path / "state") as served:
        client = served.client()
        stream = client.send(client.build_request("GET", "/api/v1/changes"), stream=True)
        lines = stream.iter_lines()  # kept: the stream ends with it
        assert next(lines) == "retry: 5000"
    client.close()
    with pytest.raises(httpx.ConnectError):
        served.get("/healthz", "")

"""News for live pages: an event when the store has changed, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from fastapi import APIRouter
from fastapi.responses import Response, StreamingResponse

from iolens.web.answers import Answers
from iolens.web.head_requests import CHANGES

NOT_SOONER_S: Final = 10.0  # than the event before: a store may change several times a second
EVENTS: Final = "text/event-stream"
UNBUFFERED: Final = {"X-Accel-Buffering": "no"}  # by a proxy in front of us
ALIVE_EVERY_S: Final = 20.0  # so that nobody in between takes the connection for dead


def changes_router(answers: Answers) -> APIRouter:
    """`GET /api/v1/changes`."""
    router = APIRouter()

    @router.head(CHANGES, include_in_schema=False)
    async def headers() -> Response:
        return Response(media_type=EVENTS, headers=UNBUFFERED)

    @router.get(CHANGES, summary="An event for each change of the store", response_class=StreamingResponse)
    async def changes() -> StreamingResponse:
        return StreamingResponse(_events(answers), media_type=EVENTS, headers=UNBUFFERED)

    return router


async def _events(answers: Answers) -> AsyncIterator[str]:
    seen = answers.news
    yield "retry: 5000\n\n"
    while not answers.ending.is_set():
        try:
            async with asyncio.timeout(ALIVE_EVERY_S):
                while answers.news == seen:
                    await answers.changed.wait()
        except TimeoutError:
            yield ": alive\n\n"
            continue
        if answers.ending.is_set():
            return
        seen = answers.news
        yield f"event: changed\ndata: {seen}\n\n"
        with suppress(TimeoutError):
            await asyncio.wait_for(answers.ending.wait(), NOT_SOONER_S)

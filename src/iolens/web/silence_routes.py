"""Silences of alerts: listed, added and ended by operators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from iolens.alerts.results import Silence
from iolens.config import Config
from iolens.errors import NotKnownError, UsageError
from iolens.question import whole
from iolens.times import present
from iolens.units import parse_duration
from iolens.views.render.json_text import plain_value
from iolens.web.answers import Answers
from iolens.web.permitted import principal_of

TEXTS: Final = ("rule", "filesystem", "subject", "duration", "comment")
EVERYTHING: Final = "*"
LONGEST: Final = 500  # characters of each
MOST_SILENCES: Final = 10**8


def silence_router(answers: Answers, config: Config, state: Path) -> APIRouter:
    """`/api/v1/silences`."""
    router = APIRouter(prefix="/api/v1/silences", tags=["alerts"])

    @router.get("", summary="Silences in force")
    async def listed(request: Request) -> Response:
        from iolens.api.alerts import alert_list

        result = await answers.run(lambda _: alert_list(config, state), principal_of(request.scope).name)
        return JSONResponse(plain_value(result.silences))

    @router.post("", summary="Silence alerts of a rule for a while", status_code=201)
    async def added(request: Request) -> Response:
        given, author = _given(await request.body()), principal_of(request.scope).name
        until = _until(given.get("duration", ""))
        texts = {name: given.get(name, "") for name in ("rule", "comment")}
        texts |= {name: given.get(name) or EVERYTHING for name in ("filesystem", "subject")}
        silence = await answers.run(lambda _: _added(config, state, texts, until, author), author)
        answers.touch()
        return JSONResponse(plain_value(silence), 201)

    @router.delete("/{number}", summary="End a silence")
    async def ended(request: Request, number: str) -> Response:
        silence = await answers.run(lambda _: _ended(state, number), principal_of(request.scope).name)
        answers.touch()
        return JSONResponse(plain_value(silence))

    return router


def _added(config: Config, state: Path, texts: Mapping[str, str], until: datetime, author: str) -> Silence:
    from iolens.api.alerts import add_silence

    rule, comment, filesystem, subject = (texts[name] for name in ("rule", "comment", "filesystem", "subject"))
    return add_silence(
        config, state, rule, until=until, comment=comment, author=author, filesystem=filesystem, subject=subject
    )


def _ended(state: Path, number: str) -> Silence:
    from iolens.api.alerts import remove_silence

    try:
        return remove_silence(state, whole(1, MOST_SILENCES).read(number, None))
    except (ValueError, UsageError):  # which tells where the state is
        raise NotKnownError(f"there is no silence {number[:20]!r}") from None


def _given(body: bytes) -> dict[str, str]:
    """The fields of a silence, all of them texts."""
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise UsageError("a silence is a JSON object") from None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise UsageError(f"a silence is a JSON object of texts: {', '.join(TEXTS)}")
    if unknown := [name for name in given if name not in TEXTS]:
        raise UsageError(f"a silence has no {unknown[0][:40]!r}; it has {', '.join(TEXTS)}")
    if any(len(value) > LONGEST for value in given.values()):
        raise UsageError(f"a text of a silence has at most {LONGEST} characters")
    if any("\ud800" <= sign <= "\udfff" for value in given.values() for sign in value):
        raise UsageError("a text of a silence is Unicode, not a half of a surrogate pair")
    return given


def _until(duration: str) -> datetime:
    try:
        return present() + timedelta(seconds=parse_duration(duration))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"duration: {error}") from None

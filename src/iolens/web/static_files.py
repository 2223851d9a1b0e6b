"""Style sheets and programs of the pages: our own and BokehJS of the installed package; nothing else is sent."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from iolens import views
from iolens.web.replies import ReplyBody

VIEWS: Final = Path(views.__file__).parent
TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOREVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}  # the address has the version


def static_router() -> APIRouter:
    """`/static/VERSION/NAME`."""
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{version}/{name}")
    async def static(request: Request, version: str, name: str) -> Response:
        if name not in _places():
            return PlainTextResponse("not found", 404)
        return _contents(name).reply(request, FOREVER)

    return router


@cache
def _places() -> dict[str, Path]:
    from bokeh.util.paths import bokehjs_path

    own = {path.name: path for path in (VIEWS / "dashboard" / "static").iterdir()}
    return {
        **own,
        "parts.css": VIEWS / "report" / "parts.css",
        "zoom.js": VIEWS / "render" / "zoom.js",
        "bokeh.min.js": Path(bokehjs_path()) / "js" / "bokeh.min.js",
    }


@cache
def _contents(name: str) -> ReplyBody:
    path = _places()[name]
    return ReplyBody.of(path.read_bytes(), TYPES[path.suffix])

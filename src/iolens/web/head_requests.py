"""HEAD requests: answered as GET, of which uvicorn sends the headers alone. Pure ASGI."""

from __future__ import annotations

from typing import Any, Final

from iolens.web.access.permissions import HUB

CHANGES: Final = "/api/v1/changes"  # it would never end
OWN: Final = (HUB, CHANGES)  # what has a HEAD of its own


class HeadRequests:
    """In front of routes that know GET only."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """A HEAD becomes a GET."""
        if scope["type"] == "http" and scope["method"] == "HEAD" and not scope["path"].startswith(OWN):
            scope = {**scope, "method": "GET"}
        await self.app(scope, receive, send)

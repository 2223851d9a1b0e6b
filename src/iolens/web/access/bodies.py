"""Bodies of requests: how large, how long under way and how slow they may be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from iolens.web.access.refusals import Refusal

EventMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[EventMessage]]

GRACE_S: Final = 10.0  # before the rate counts
_DISCONNECT: Final = {"type": "http.disconnect"}


@dataclass(frozen=True, slots=True)
class BodyBounds:
    """What a body may have."""

    bytes: int
    time_s: float
    bytes_per_s: float = 1024.0
    grace_s: float = GRACE_S


@dataclass(slots=True)
class BoundedBody:
    """Receives a body within its bounds. Beyond them there is a `refusal`, and the client counts as gone.

    Only the time in which we wait for the client counts, not the time in which the body is put away.
    """

    receive: Receive
    bounds: BodyBounds
    refusal: Refusal | None = None
    received_bytes: int = 0
    waited_s: float = 0.0
    is_whole: bool = False
    is_gone: bool = False  # the client, before its body was whole

    async def __call__(self) -> EventMessage:
        """The next part of the body."""
        if self.refusal is not None:
            return dict(_DISCONNECT)
        if self.is_whole:  # from here on it is awaited that the client goes
            return await self.receive()
        return await self._next()

    async def _next(self) -> EventMessage:
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(self._patience_s - self.waited_s, 0.0)):
                message = await self.receive()
        except TimeoutError:
            return self._refuse(408, "The body took too long.")
        self.waited_s += time.monotonic() - began
        self.received_bytes += len(message.get("body", b""))
        if self.received_bytes > self.bounds.bytes:
            return self._refuse(413, f"The body is larger than {self.bounds.bytes} bytes.")
        self.is_gone = message["type"] == "http.disconnect"
        self.is_whole = not message.get("more_body", False)
        return message

    @property
    def _patience_s(self) -> float:
        rate_s = self.bounds.grace_s + self.received_bytes / self.bounds.bytes_per_s
        return min(self.bounds.time_s, rate_s)

    def _refuse(self, status: int, reason: str) -> EventMessage:
        self.refusal = Refusal(status, reason)
        return dict(_DISCONNECT)


def check_length(length: str | None, bounds: BodyBounds) -> None:
    """A Refusal if the stated length of a body is beyond its bounds."""
    if length is not None and (not length.isascii() or not length.isdigit()):
        raise Refusal(400, "The length of the body is malformed.")
    if length is not None and (len(length) > 18 or int(length) > bounds.bytes):
        raise Refusal(413, f"The body is larger than {bounds.bytes} bytes.")

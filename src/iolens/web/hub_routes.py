"""Addresses below `/api/v1/hub`: agents send segments; the state of the hub is the question `agents`.

A segment is sent with `PUT`, whole or, with `Content-Range`, from the byte on that `HEAD` names; `Repr-Digest` (RFC
9530) has its SHA-256. The answer 201 or 200 means that it is on the disk of the hub and will be stored.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
import re
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeVar

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from starlette.requests import ClientDisconnect

from iolens.hub.hub import Hub
from iolens.hub.inbox import Refusal, SegmentName, UploadRefusedError
from iolens.visible_text import visible
from iolens.web.access.principal import SCOPE_KEY, Principal, Role

STATUS: Final[dict[Refusal, int]] = {
    "wrong": 422, "too-large": 413, "forbidden": 403, "conflict": 409, "busy": 503, "quota": 429, "full": 507,
}  # fmt: skip
SENDERS: Final[tuple[Role, ...]] = ("agent",)
THREADS: Final = 16  # that wait for the disk
WRITTEN_AT_ONCE: Final = 1 << 20
LONGEST_SILENCE_S: Final = 30.0  # between two pieces of a body
LONGEST_UPLOAD_S: Final = 600.0
_RANGE: Final = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")
_DIGEST: Final = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class UploadRequest:
    """What the headers of a `PUT` announce: the whole size, the first byte that is sent, and the SHA-256 of all."""

    size: int
    offset: int
    digest: bytes

    @classmethod
    def of(cls, request: Request) -> UploadRequest:
        """HTTPException when a header is missing or contradicts another."""
        digest = _DIGEST.fullmatch(request.headers.get("repr-digest", ""))
        if digest is None:
            raise HTTPException(400, "Repr-Digest: sha-256=:BASE64: of the whole segment is needed")
        length = request.headers.get("content-length", "")
        if not _LENGTH.fullmatch(length) or "transfer-encoding" in request.headers:
            raise HTTPException(411, "Content-Length is needed")
        if not int(length):
            raise HTTPException(400, "an empty body is no segment")
        offset, size = _range(request.headers.get("content-range"), int(length))
        try:
            return cls(size, offset, base64.b64decode(digest[1], validate=True))
        except binascii.Error:
            raise HTTPException(400, "Repr-Digest is not in base64") from None


def _range(text: str | None, length: int) -> tuple[int, int]:
    """The first byte and the whole size; what is sent goes to the end of the segment."""
    if text is None:
        return 0, length
    match = _RANGE.fullmatch(text)
    first, last, size = (0, 0, 0) if match is None else map(int, match.groups())
    if match is None or last + 1 != size or size - first != length:
        raise HTTPException(400, "Content-Range: bytes FIRST-LAST/SIZE up to the last byte of the segment is needed")
    return first, size


@dataclass(frozen=True, slots=True)
class HubRoutes:
    """The addresses of one hub; what waits for the disk does so in threads of its own."""

    hub: Hub
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "hub"))

    async def received(self, request: Request, stem: str) -> Response:
        """How many bytes of a segment are here; one that is in the store already is not here.

        With `Upload-Length`, the size of the whole, it is refused as the upload would be.
        """
        length = request.headers.get("upload-length", "0")
        if not _LENGTH.fullmatch(length):
            raise HTTPException(400, "Upload-Length is a number of bytes")
        try:
            here = await self._in_thread(self.hub.received, self._name(request, stem), int(length))
        except UploadRefusedError as error:
            return _refused(error)
        headers = {"Upload-Offset": str(here.size), "Upload-Complete": "?1" if here.is_complete else "?0"}
        if here.sha256 is not None:
            headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(here.sha256).decode()}:"
        plain = {"segment": stem, "received_bytes": here.size, "is_complete": here.is_complete}
        return JSONResponse(plain, headers=headers | {"Cache-Control": "no-store"})

    async def receive(self, request: Request, stem: str) -> Response:
        """Take a segment: 201 it is on disk now, 200 it was before; refused for now: 409, 429, 503, 507."""
        try:
            name, upload = self._name(request, stem), UploadRequest.of(request)
            if await self._in_thread(self.hub.holds, name, upload.digest):
                return _accepted(stem, 200)
            await self._take(request, name, upload)
        except UploadRefusedError as error:
            return _refused(error)
        except (TimeoutError, ClientDisconnect):
            return _problem(408, "timeout", "the segment did not arrive in time; what did is kept")
        return _accepted(stem, 201)

    async def _take(self, request: Request, name: SegmentName, announced: UploadRequest) -> None:
        with ExitStack() as stack:  # left in this thread: it only closes a descriptor
            arriving = self.hub.upload(name, announced.size, announced.offset)
            upload = await self._in_thread(stack.enter_context, arriving)
            async for content in _pieces(request):
                if upload.received + len(content) > announced.size:
                    raise UploadRefusedError("wrong", "more bytes than announced")
                await self._in_thread(upload.write, content)
            if upload.received != announced.size:
                raise ClientDisconnect
            await self._in_thread(self.hub.accept, name, announced.size, announced.digest)

    def _name(self, request: Request, stem: str) -> SegmentName:
        principal = _require(request, SENDERS)
        name = SegmentName.parse(stem)
        if name is None:
            raise UploadRefusedError("wrong", "not the name of a segment: HOST~RUN~SEQUENCE")
        if self.hub.config.own_host_only and principal.role == "agent" and principal.name != name.host:
            raise UploadRefusedError("forbidden", "this token is of another host")
        return name

    async def _in_thread(
        self, work: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: work(*arguments, **named))


def hub_router(hub: Hub) -> APIRouter:
    """The addresses of a hub, for the application; the middleware says who asks."""
    routes = HubRoutes(hub)
    router = APIRouter(tags=["hub"])
    segment = "/api/v1/hub/segments/{stem}"
    router.add_api_route(segment, routes.received, methods=["GET"], name="segment_state")
    router.add_api_route(segment, routes.received, methods=["HEAD"], name="segment_offset", include_in_schema=False)
    router.add_api_route(segment, routes.receive, methods=["PUT"], status_code=201, name="send_segment")
    return router


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """The body in pieces of about a megabyte; TimeoutError when it comes too slowly."""
    stream, until = request.stream(), time.monotonic() + LONGEST_UPLOAD_S
    held = bytearray()
    while True:
        try:
            async with asyncio.timeout(min(LONGEST_SILENCE_S, max(until - time.monotonic(), 0.0))):
                held += await anext(stream)
        except (TimeoutError, ClientDisconnect):
            if held:
                yield bytes(held)  # the next upload goes on behind them
            raise
        except StopAsyncIteration:
            break
        if len(held) >= WRITTEN_AT_ONCE:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _require(request: Request, roles: tuple[Role, ...]) -> Principal:
    principal = request.scope.get(SCOPE_KEY)
    if not isinstance(principal, Principal):
        raise HTTPException(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
    if principal.role not in roles:
        raise HTTPException(403, f"this needs the role {' or '.join(roles)}")
    return principal


def _accepted(stem: str, status: int) -> Response:
    return JSONResponse({"segment": stem, "is_complete": True}, status, {"Upload-Complete": "?1"})


def _refused(error: UploadRefusedError) -> Response:
    return _problem(STATUS[error.kind], error.kind, error.reason, error.retry_after_s)


def _problem(status: int, kind: str, reason: str, retry_after_s: float | None = None) -> Response:
    headers: dict[str, Any] = {} if retry_after_s is None else {"Retry-After": str(math.ceil(retry_after_s))}
    return JSONResponse({"error": kind, "detail": visible(reason)}, status, headers)

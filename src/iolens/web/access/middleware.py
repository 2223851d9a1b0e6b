"""The middleware in front of the application: it checks every request and secures every answer. Pure ASGI."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from iolens.errors import unexpected
from iolens.messages import DEBUG, ERROR, Message, detail, is_shown, say
from iolens.web.access.access import Access
from iolens.web.access.admission import TokenNeeded, admit, identified, log_in_answer
from iolens.web.access.bodies import BoundedBody, EventMessage, Receive
from iolens.web.access.http_request import SAFE_METHODS, HttpRequest, Scope
from iolens.web.access.identity import Client
from iolens.web.access.origins import check_host
from iolens.web.access.permissions import API, HUB
from iolens.web.access.principal import SCOPE_KEY, Principal
from iolens.web.access.refusals import Header, Refusal, refusal_answer
from iolens.web.access.secure_headers import secured
from iolens.web.access.tokens import without_tokens

Send = Callable[[EventMessage], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

CLIENT_KEY: Final = "iolens.client"  # the request's Client
REQUEST_KEY: Final = "iolens.request"  # the checked request
RECHECK_S: Final = 5.0  # how often it is checked while an answer streams
_NO_REFUSAL: Final = (404, 405)  # there is nothing that anybody could have had
_OWN_AUDIT: Final = ("/login", "/logout")  # they write their lines themselves


def protected(app: ASGIApp, access: Access) -> ASGIApp:
    """The application, reached by permitted requests only."""
    at_work: Counter[str] = Counter()  # requests being answered, by address

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        elif scope["type"] == "http":
            await _Exchange(app, access, at_work, scope, receive, send).run()
        else:  # there is no WebSocket here
            await send({"type": "websocket.close", "code": 1008})

    return middleware


@dataclass(slots=True)
class _Exchange:
    """A request and its answer."""

    app: ASGIApp
    access: Access
    at_work: Counter[str]
    scope: Scope
    receive: Receive
    send: Send
    client: Client = Client("", "", is_secure=False)
    principal: Principal | None = None
    body: BoundedBody | None = None
    status: int = 0  # 0: no answer has begun
    request: HttpRequest | None = None
    checked_at: float = field(default_factory=time.monotonic)
    held: list[EventMessage] = field(default_factory=list)  # an answer of status 500, until it is known why

    async def run(self) -> None:
        """Answer it, whatever happens."""
        peer = str((self.scope.get("client") or ("",))[0])
        self.client = Client(peer, peer, self.access.has_tls)
        try:
            self.request = request = HttpRequest.of(self.scope)
            self.client = Client.of(peer, request, self.access)
            with self._counted():
                await self._checked(request)
        except asyncio.CancelledError:  # the server ends, and this took too long
            await self._cut_off()
        except Exception as error:
            await self._failed(error)

    async def _cut_off(self) -> None:
        """End the answer: uvicorn would print where it was."""
        if self.status and not self.held:
            with suppress(OSError):
                await self.send({"type": "http.response.body", "body": b""})
            return
        await self._failed(Refusal(503, "The server is about to end.", ("Retry-After", "5")))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        address = self.client.address
        if self.at_work[address] >= self.access.config.requests_per_address:
            raise Refusal(503, "Too many requests at once from this address.", ("Retry-After", "1"))
        self.at_work[address] += 1
        try:
            yield
        finally:
            self.at_work[address] -= 1
            if not self.at_work[address]:
                del self.at_work[address]

    async def _checked(self, request: HttpRequest) -> None:
        check_host(request, self.access.config.hosts, is_open=self.access.is_open)
        try:
            identity = identified(request, self.client, self.access)
        except TokenNeeded:
            if (answer := log_in_answer(request)) is None:
                raise
            await self._answer(*answer)
            return
        self.principal = identity.principal
        self.body = BoundedBody(self.receive, admit(request, identity, self.client, self.access))
        await self._answered(request, self.body)

    async def _answered(self, request: HttpRequest, body: BoundedBody) -> None:
        """By the application."""
        scope = {**self.scope, SCOPE_KEY: self.principal, CLIENT_KEY: self.client, REQUEST_KEY: request}
        try:
            await self.app(scope, body, self._pass_on)
        except Exception:
            if body.refusal is None or self.status:
                raise
        if body.refusal is not None and not self.status:
            raise body.refusal
        if self.held:
            self._audit(self.status)
        for message in self.held:
            await self.send(message)

    async def _pass_on(self, message: EventMessage) -> None:
        """The application's answer with our headers; one to a body that was refused is dropped."""
        if self.body is not None and self.body.refusal is not None and not self.status:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = secured(message.get("headers", ()), is_secure=self.client.is_secure)
            message = {**message, "headers": headers}
        if self.status == 500:
            self.held.append(message)
            return
        if message["type"] == "http.response.start":
            self._audit(self.status)
        else:
            self._check_again()
        await self.send(message)

    def _check_again(self) -> None:
        """A long answer ends when the token does."""
        request, now = self.request, time.monotonic()
        if request is not None and now - self.checked_at > RECHECK_S:
            self.checked_at = now
            admit(request, identified(request, self.client, self.access), self.client, self.access)

    async def _failed(self, error: Exception) -> None:
        """Refused, or not foreseen; uvicorn closes the connection of an answer that has begun and does not end."""
        refusal = error if isinstance(error, Refusal) else self._unforeseen(error)
        if self.status and not self.held:
            return
        self.held.clear()
        self._audit(refusal.status, refusal)
        is_json = self.scope["path"].startswith(API)
        await self._answer(refusal.status, *refusal_answer(refusal, is_json=is_json))

    def _unforeseen(self, error: Exception) -> Refusal:
        """The log says why, the client gets a number to ask for. A client that is gone is no trouble."""
        number = secrets.token_hex(4)
        if self.body is None or not self.body.is_gone:
            line = f"error {number}: {self.scope['method']} {self.scope['path']}: {unexpected(error)}"
            say(Message(without_tokens(line), ERROR))
            if is_shown(DEBUG):
                import traceback

                detail("".join(traceback.format_exception(error)), DEBUG)
        return Refusal(500, f"Something went wrong. The log of the server has it as {number}.")

    async def _answer(self, status: int, headers: list[Header], body: bytes) -> None:
        """An answer of our own."""
        self.status = status
        with suppress(OSError):  # the client is gone
            start = {"status": status, "headers": secured(headers, is_secure=self.client.is_secure)}
            await self.send({"type": "http.response.start", **start})
            await self.send({"type": "http.response.body", "body": body})

    def _audit(self, status: int, refusal: Refusal | None = None) -> None:
        """Before it is answered: refusals, what changes something, and uploads that the hub refuses."""
        method, path, log = self.scope["method"], self.scope["path"], self.access.audit
        facts: dict[str, Any] = {"method": method, "path": path, "status": status}
        if self.principal is not None:
            facts = {"principal": self.principal.name, "role": self.principal.role, **facts}
        if refusal is not None and status < 500 and status not in _NO_REFUSAL:
            log.note_refusal(self.client.address, **facts, reason=refusal.reason)
        elif path.startswith(HUB) and status >= 400:
            log.note_refusal(self.client.address, **facts)
        elif method not in SAFE_METHODS and not path.startswith(HUB) and path not in _OWN_AUDIT and status != 405:
            log.note("change", address=self.client.address, **facts)

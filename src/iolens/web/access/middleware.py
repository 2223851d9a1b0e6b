"""The middleware in front of the application: it checks every request and secures every answer. Pure ASGI."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from iolens.errors import unexpected
from iolens.messages import DEBUG, ERROR, Message, detail, is_shown, say
from iolens.web.access.access import Access
from iolens.web.access.bodies import BoundedBody, EventMessage, Receive, check_length
from iolens.web.access.http_request import HttpRequest, Scope
from iolens.web.access.identity import CHALLENGE, NO_TOKEN, Client, Identity, identity_of
from iolens.web.access.origins import check_host, check_same_origin
from iolens.web.access.permissions import API, HUB, READERS, Permission, permission_of
from iolens.web.access.principal import SCOPE_KEY, Principal
from iolens.web.access.refusals import Header, Refusal, refusal_answer, second_look
from iolens.web.access.secure_headers import secured

Send = Callable[[EventMessage], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

CLIENT_KEY: Final = "iolens.client"  # the request's Client
REQUEST_KEY: Final = "iolens.request"  # the checked request
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
    is_over: bool = False
    held: list[EventMessage] = field(default_factory=list)  # an answer of status 500, until it is known why

    async def run(self) -> None:
        peer = str((self.scope.get("client") or ("",))[0])
        self.client = Client(peer, peer, self.access.has_tls)
        try:
            request = HttpRequest.of(self.scope)
            self.client = Client.of(peer, request, self.access)
            await self._counted(request)
        except Refusal as refusal:
            await self._refuse(refusal)

    async def _counted(self, request: HttpRequest) -> None:
        address = self.client.address
        if self.at_work[address] >= self.access.config.requests_per_address:
            raise Refusal(503, "Too many requests at once from this address.", ("Retry-After", "1"))
        self.at_work[address] += 1
        try:
            await self._admitted(request)
        finally:
            self.at_work[address] -= 1
            if not self.at_work[address]:
                del self.at_work[address]

    async def _admitted(self, request: HttpRequest) -> None:
        check_host(request, self.access.config.hosts, is_open=self.access.is_open)
        identity = self._identity(request)
        self.principal = identity.principal
        row = permission_of(request.path)
        if identity.principal is None and (row is None or not row.is_public):
            await self._ask_for_token(request)
            return
        _check_permission(row, request, identity.principal)
        if identity.is_ambient and not request.is_safe:
            check_same_origin(request, is_secure=self.client.is_secure)
        bounds = self.access.bounds_of(request.path)
        check_length(request.header("content-length"), bounds)
        self.body = BoundedBody(self.receive, bounds)
        await self._answered(request)

    def _identity(self, request: HttpRequest) -> Identity:
        """Public pages do not look at tokens and cookies."""
        row = permission_of(request.path)
        if row is not None and row.is_public:
            return Identity(None, is_ambient=True)
        return identity_of(request, self.client, self.access)

    async def _ask_for_token(self, request: HttpRequest) -> None:
        """A person is led to the log-in; a program gets a refusal."""
        if not request.wants_page or request.path.startswith(API):
            raise Refusal(401, NO_TOKEN, CHALLENGE)
        is_foreign = request.header("sec-fetch-site") in ("cross-site", "same-site")
        if is_foreign and request.header("sec-fetch-mode") == "navigate":
            await self._answer(200, *second_look(request.target))
        else:
            location = f"/login?next={quote(request.target, safe='')}".encode()
            await self._answer(303, [(b"location", location), (b"content-length", b"0")], b"")

    async def _answered(self, request: HttpRequest) -> None:
        """By the application."""
        assert self.body is not None
        scope = {**self.scope, SCOPE_KEY: self.principal, CLIENT_KEY: self.client, REQUEST_KEY: request}
        try:
            await self.app(scope, self.body, self._pass_on)
        except Exception as error:
            await self._failed(error)
        if self.body.refusal is not None and not self.status:
            raise self.body.refusal
        for message in self.held:
            await self.send(message)
        self._audit(request)

    async def _pass_on(self, message: EventMessage) -> None:
        """The application's answer, with our headers; after a refusal of the body nobody hears it."""
        if self.body is not None and self.body.refusal is not None and not self.status:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = secured(message.get("headers", ()), is_secure=self.client.is_secure)
            message = {**message, "headers": headers}
        self.is_over = message["type"] == "http.response.body" and not message.get("more_body", False)
        if self.status == 500:
            self.held.append(message)
        else:
            await self.send(message)

    async def _failed(self, error: Exception) -> None:
        """A page may refuse too; a client that is gone ends what its page does."""
        if isinstance(error, Refusal) and (self.held or not self.status):
            self.held.clear()
            raise error
        if self.body is None or not (self.body.refusal or self.body.is_gone):
            await self._report(error)

    async def _report(self, error: Exception) -> None:
        """Nobody foresaw it: the log knows why, the client gets a number to ask for."""
        number = secrets.token_hex(4)
        say(Message(f"error {number}: {self.scope['method']} {self.scope['path']}: {unexpected(error)}", ERROR))
        if is_shown(DEBUG):
            import traceback

            detail("".join(traceback.format_exception(error)), DEBUG)
        if self.held or not self.status:
            self.held.clear()
            self.status = 0
            await self._refuse_with(Refusal(500, f"Something went wrong. The log of the server has it as {number}."))

    async def _refuse(self, refusal: Refusal) -> None:
        await self._refuse_with(refusal)
        if refusal.status in _NO_REFUSAL:
            return
        who = self.principal
        self.access.audit.note_refusal(
            self.client.address,
            principal=who and who.name,
            role=who and who.role,
            method=self.scope["method"],
            path=self.scope["path"],
            status=refusal.status,
            reason=refusal.reason,
        )

    async def _refuse_with(self, refusal: Refusal) -> None:
        is_json = self.scope["path"].startswith(API)
        await self._answer(refusal.status, *refusal_answer(refusal, is_json=is_json))

    async def _answer(self, status: int, headers: list[Header], body: bytes) -> None:
        """An answer of our own."""
        self.status = status
        with suppress(OSError):  # the client is gone
            start = {"status": status, "headers": secured(headers, is_secure=self.client.is_secure)}
            await self.send({"type": "http.response.start", **start})
            await self.send({"type": "http.response.body", "body": body})

    def _audit(self, request: HttpRequest) -> None:
        """What changed something, and uploads that the hub refused."""
        facts: dict[str, Any] = {"method": request.method, "path": request.path, "status": self.status}
        if self.principal is not None:
            facts = {"principal": self.principal.name, "role": self.principal.role, **facts}
        if request.path.startswith(HUB):
            if self.status >= 400:
                self.access.audit.note_refusal(self.client.address, **facts)
        elif not request.is_safe and request.path not in _OWN_AUDIT:
            self.access.audit.note("change", address=self.client.address, **facts)


def _check_permission(row: Permission | None, request: HttpRequest, principal: Principal | None) -> None:
    """A Refusal where the role may not do that; those who may see everything hear that there is nothing."""
    role = None if principal is None else principal.role
    if row is None:
        raise Refusal(404, "There is no such page.") if role in READERS else Refusal(403, "This role may not do that.")
    methods = row.methods_of(role)
    if request.method in methods:
        return
    if methods:
        raise Refusal(405, "This method does nothing here.", ("Allow", ", ".join(methods)))
    raise Refusal(403, "This role may not do that.")

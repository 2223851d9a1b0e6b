"""Log-in and log-out of browsers: a token is exchanged for the cookie of a session."""

from __future__ import annotations

import sqlite3
from typing import Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.requests import ClientDisconnect

from iolens.views.dashboard.shell import login_html
from iolens.web.access.access import Access
from iolens.web.access.http_request import HttpRequest, check_query, decoded_path
from iolens.web.access.identity import Client, cookie_of, refuse_wrong_token
from iolens.web.access.middleware import CLIENT_KEY, REQUEST_KEY
from iolens.web.access.refusals import Refusal
from iolens.web.access.sessions import LONGEST_S
from iolens.web.access.tokens import AccessToken

FORM: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 8


def login_router(access: Access) -> APIRouter:
    """`/login` and `/logout`."""
    router = APIRouter(include_in_schema=False)

    @router.get("/login")
    async def form(request: Request) -> Response:
        target = local_target(request.query_params.get("next", "/"))
        return RedirectResponse(target, 303) if access.is_open else HTMLResponse(login_html(target, ""))

    @router.post("/login")
    async def log_in(request: Request) -> Response:
        client: Client = request.scope[CLIENT_KEY]
        fields = await _fields(request)
        target, token = local_target(fields.get("next", "/")), access.tokens.holder(fields.get("token", "").strip())
        problem = _problem(token, client, access)
        if problem is not None or token is None:
            assert problem is not None
            access.audit.note_refusal(client.address, method="POST", path="/login", status=problem.status)
            return HTMLResponse(login_html(target, problem.reason), problem.status, dict(problem.headers))
        return _begun(token, target, client, access)

    @router.post("/logout")
    async def log_out(request: Request) -> Response:
        client: Client = request.scope[CLIENT_KEY]
        checked: HttpRequest = request.scope[REQUEST_KEY]
        if cookie := cookie_of(checked, client):
            session = access.sessions.holder(cookie)
            access.sessions.end(cookie)
            if session is not None:
                access.audit.note("log-out", principal=session.name, role=session.role, address=client.address)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(client.cookie_name, path="/", secure=client.is_secure, httponly=True, samesite="strict")
        return answer

    return router


def local_target(target: str) -> str:
    """The page to go to after the log-in: one of this server, else its first."""
    path, _, query = target.partition("?")
    try:
        decoded_path(path.encode())
        check_query(query.encode())
    except Refusal:
        return "/"
    return "/" if path in ("/login", "/logout") else target


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a form, the first of each name."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise Refusal(415, "A form is expected.")
    try:
        text = (await request.body()).decode("ascii")
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ClientDisconnect:
        return {}
    except ValueError:
        raise Refusal(400, "The form is malformed.") from None
    return {name: values[0] for name, values in fields.items()}


def _problem(token: AccessToken | None, client: Client, access: Access) -> Refusal | None:
    if token is None:
        return refuse_wrong_token(client, access)
    return Refusal(403, "This token is for an agent: it opens no page.") if token.role == "agent" else None


def _begun(token: AccessToken, target: str, client: Client, access: Access) -> Response:
    try:
        cookie = access.sessions.begin(token)
    except sqlite3.Error:
        raise Refusal(503, "No session can be kept now.", ("Retry-After", "10")) from None
    access.audit.note("log-in", principal=token.name, role=token.role, address=client.address, status=303)
    answer = RedirectResponse(target, 303)
    answer.set_cookie(
        client.cookie_name, cookie, LONGEST_S, path="/", secure=client.is_secure, httponly=True, samesite="strict"
    )
    return answer

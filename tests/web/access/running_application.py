"""A small application with routes like those of `iolens serve`, protected, run by real uvicorn on a real socket."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from iolens.agent.exporter.server import Address
from iolens.web.access.access import Access
from iolens.web.access.connections import listening_settings
from iolens.web.access.login import login_router
from iolens.web.access.middleware import protected
from iolens.web.access.principal import SCOPE_KEY
from iolens.web.serve_config import ServeConfig

NO_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # of no certificate: quicker to make than one of all
CLOSED = ServeConfig(require_token=True)
SECRET_PATH = "/srv/secret/place.sqlite"
PAGES = (
    "/", "/filesystems/{name}", "/filesystems/{name}/targets/{target}", "/filesystems/{name}/contents",
    "/filesystems/{name}/plan", "/jobs", "/jobs/{id}", "/applications", "/users", "/data", "/alerts",
)  # fmt: skip
API_PAGES = (
    "filesystems",
    "filesystems/{name}",
    "utilization",
    "jobs",
    "jobs/{id}",
    "applications",
    "users",
    "blame",
    "alerts",
)


def application(access: Access) -> FastAPI:
    """Pages that say who asks, and a few that misbehave."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    async def page(request: Request) -> HTMLResponse:
        return HTMLResponse(f"page for {request.scope[SCOPE_KEY].name}")

    async def answer(request: Request) -> dict[str, Any]:
        principal = request.scope[SCOPE_KEY]
        return {"name": principal.name, "role": principal.role, "user": principal.user}

    for path in PAGES:
        app.add_api_route(path, page, methods=["GET", "HEAD"])
    for path in API_PAGES:
        app.add_api_route(f"/api/v1/{path}", answer, methods=["GET"])

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/static/dashboard.css")
    async def style() -> HTMLResponse:
        return HTMLResponse("", headers={"Cache-Control": "public, max-age=31536000, immutable"})

    @app.get("/api/v1/changes")
    async def changes() -> StreamingResponse:
        async def events() -> AsyncIterator[bytes]:
            while True:
                yield b"data: tick\n\n"
                await asyncio.sleep(0.05)

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.get("/api/v1/workload")
    async def broken() -> None:
        raise RuntimeError(f"SELECT * FROM tokens -- {SECRET_PATH}")

    @app.post("/api/v1/silences")
    async def silence(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.delete("/api/v1/silences/{id}")
    async def end_silence(request: Request) -> dict[str, str]:
        return {"ended": request.path_params["id"]}

    @app.put("/api/v1/hub/segments/{name}")
    async def upload(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    app.include_router(login_router(access))
    return app


@dataclass
class Running:
    """A server at work."""

    access: Access
    address: Address
    scheme: str = "http"
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.address.url(self.scheme)

    def client(self, **settings: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **{"verify": NO_TRUST, **settings})

    def get(self, path: str, token: str | None = None, method: str = "GET", **settings: Any) -> httpx.Response:
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **settings.pop("headers", {})}
        with self.client(verify=settings.pop("verify", NO_TRUST)) as client:
            return client.request(method, path, headers=headers, **settings)

    def add(self, name: str, role: Any = "viewer", user: str | None = None, expires: float | None = None) -> str:
        self.tokens[name] = self.access.tokens.add(name, role, user, expires)
        return self.tokens[name]

    def raw(self, sent: bytes, timeout: float = 60) -> bytes:
        """Everything the server answers to these bytes until it closes, or until the timeout."""
        with socket.create_connection(self.address, timeout=timeout) as connection:
            connection.sendall(sent)
            return received(connection)

    def audit_lines(self) -> list[dict[str, Any]]:
        import json

        path = self.access.audit.state / "audit.log"
        return [json.loads(line) for line in path.read_text("ascii").splitlines()] if path.exists() else []


def received(connection: socket.socket) -> bytes:
    """What comes until the end of the connection."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except (TimeoutError, ConnectionResetError):
        pass
    return b"".join(parts)


@contextmanager
def running(state: Path, config: ServeConfig = CLOSED, listen: str = "127.0.0.1", **changes: Any) -> Iterator[Running]:
    """The application on a free port of this machine; `listen` is the address that is given to `Access.of`."""
    has_tls = config.tls_cert is not None
    access = Access.of(config, state, Address(listen, 8470), has_tls)
    access = replace(access, **changes)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    settings = uvicorn.Config(
        protected(application(access), access),
        timeout_graceful_shutdown=1,
        timeout_keep_alive=1,
        **listening_settings(config),
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started
        yield Running(access, Address(*listener.getsockname()[:2]), "https" if has_tls else "http")
    finally:
        server.should_exit = True
        thread.join(60)
        access.close()
        assert not thread.is_alive()

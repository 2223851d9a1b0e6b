"""The whole application in front of a store, protected, run by real uvicorn on a real socket, with a token per role."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from iolens.agent.exporter.server import Address
from iolens.web.access.access import Access
from iolens.web.access.connections import listening_settings
from iolens.web.access.middleware import protected
from iolens.web.application import ServedStore, SideWork, application
from iolens.web.serve_config import ServeConfig

NO_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # of no certificate: quicker to make than one of all
START_S = 60.0


@dataclass
class ServedCentre:
    """A server at work; tokens by the name they were added with."""

    store: Path
    state: Path
    url: str
    app: FastAPI
    access: Access
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, name: str = "viewer", **settings: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.tokens[name]}"} if name else {}
        return httpx.Client(
            base_url=self.url, timeout=60, trust_env=False, verify=NO_TRUST, headers=headers, **settings
        )

    def get(self, path: str, name: str = "viewer", method: str = "GET", **settings: Any) -> httpx.Response:
        with self.client(name) as client:
            return client.request(method, path, **settings)

    def add(self, name: str, role: Any, user: str | None = None) -> None:
        self.tokens[name] = self.access.tokens.add(name, role, user)


@contextmanager
def serving(store: Path, state: Path, side: SideWork | None = None) -> Iterator[ServedCentre]:
    """The application on a free port of this machine."""
    config = ServeConfig(require_token=True)
    access = Access.of(config, state, Address("127.0.0.1", 8470), False)
    app = application(ServedStore(str(store)), access, side or SideWork(state=state))
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    settings = listening_settings(config) | {"timeout_graceful_shutdown": 1, "lifespan": "on"}
    server = uvicorn.Server(uvicorn.Config(protected(app, access), **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        deadline = time.monotonic() + START_S
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started
        served = ServedCentre(store, state, f"http://127.0.0.1:{listener.getsockname()[1]}", app, access)
        for role in ("viewer", "operator", "agent"):
            served.add(role, role)
        yield served
    finally:
        server.should_exit = True
        thread.join(START_S)
        access.close()
        assert not thread.is_alive()

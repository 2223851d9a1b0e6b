"""Uploads that stall, and a disk that is full in the middle of one: what arrived is kept or given back."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request

from iolens.config import Config
from iolens.hub.hub import Hub
from iolens.web import hub_routes
from iolens.web.access.principal import SCOPE_KEY, Principal
from tests.hub.segments import content, stem
from tests.hub.served_hub import ServedHub
from tests.hub.test_uploads import digest, put, state, wait_for

BODY = content("oss1", range(4)) + b"x" * 3_000_000
STEM = stem("oss1")


@dataclass
class LocalHub(ServedHub):
    """A hub in this process, so that time and failures can be made; it has no writer."""

    hub: Hub | None = None

    def start(self) -> None:
        self.hub = Hub.open(Config(hub=dict(self.settings)), self.state, str(self.store))
        application = FastAPI()

        @application.middleware("http")
        async def identify(request: Request, call_next: Any) -> Any:
            request.scope[SCOPE_KEY] = Principal("agent", "agent")
            return await call_next(request)

        application.include_router(hub_routes.hub_router(self.hub))
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(application, log_level="critical"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self.thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    with LocalHub(tmp_path / "state", tmp_path / "store", {"reserve": "0B"}) as served:
        yield served


def head(length: int) -> bytes:
    return (
        f"PUT /api/v1/hub/segments/{STEM} HTTP/1.1\r\nHost: hub\r\nContent-Length: {length}\r\n"
        f"Repr-Digest: {digest(BODY)}\r\n\r\n"
    ).encode()


def test_an_upload_that_stalls_ends_and_the_next_goes_on_behind_it(
    hub: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_routes, "LONGEST_SILENCE_S", 0.3)
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as connection:
        connection.sendall(head(len(BODY)) + BODY[:2_000_000])
        assert connection.recv(1000).startswith(b"HTTP/1.1 408")
    assert state(hub, STEM)["received_bytes"] == 2_000_000
    stated = {"Content_Range": f"bytes 2000000-{len(BODY) - 1}/{len(BODY)}", "Repr_Digest": digest(BODY)}
    assert put(hub, STEM, BODY[2_000_000:], **stated).status == 201
    assert (hub.state / "hub" / "segments" / "oss1" / f"{STEM}.seg").read_bytes() == BODY


def test_an_upload_that_takes_too_long_ends(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_routes, "LONGEST_UPLOAD_S", 0.3)
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as connection:
        connection.sendall(head(len(BODY)) + BODY[:100])
        assert connection.recv(1000).startswith(b"HTTP/1.1 408")


def test_only_so_many_arrive_at_the_same_time(tmp_path: Path) -> None:
    with LocalHub(tmp_path / "state", tmp_path / "store", {"reserve": "0B", "uploads": 1}) as hub:
        with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as connection:
            connection.sendall(head(len(BODY)) + BODY[:100])
            assert hub.hub is not None
            quotas = hub.hub.quotas
            wait_for(lambda: quotas.is_arriving(STEM))
            assert put(hub, STEM, BODY).status == 409
            answer = put(hub, stem("oss2"), content("oss2", range(4)))
            assert (answer.status, int(answer.headers["Retry-After"]) > 0) == (503, True)
        wait_for(lambda: not quotas.is_arriving(STEM))
        assert put(hub, stem("oss2"), content("oss2", range(4))).status == 201


def test_a_disk_that_fills_up_during_an_upload_gives_the_space_back(
    hub: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def full(descriptor: int, part: memoryview) -> int:
        if len(part) > 500_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, part)

    monkeypatch.setattr(os, "write", full)
    answer = put(hub, STEM, BODY)
    assert (answer.status, int(answer.headers["Retry-After"]) > 0) == (507, True)
    monkeypatch.undo()
    assert not list((hub.state / "hub").rglob("*.part"))
    assert put(hub, STEM, BODY).status == 201

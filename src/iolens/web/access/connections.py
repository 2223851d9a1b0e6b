"""Connections that are slow or silent are cut off: uvicorn itself waits for ever for the head of a request."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from iolens.agent.exporter.access import tls_of
from iolens.web.access.secure_headers import SECURE_HEADERS
from iolens.web.serve_config import ServeConfig

HEAD_S: Final = 10.0  # from the first byte of a request, or the connection, to the end of the head
REST_S: Final = 5.0  # for the rest of a body that nobody wants any more, so that the client can read why
STALL_S: Final = 60.0  # without anything taken of an answer that waits
MOST_HEAD_BYTES: Final = 1 << 16
MOST_CONNECTIONS: Final = 4000


class BoundedHttp(H11Protocol):
    """HTTP/1.1 with deadlines for everything that a client can delay."""

    head_s, rest_s, stall_s = HEAD_S, REST_S, STALL_S
    _phase = ""
    _cut: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; it has so long for its first request."""
        super().connection_made(transport)
        self._enter("head", self.head_s)
        if len(self.connections) > _most_connections() or self._is_crowding():
            transport.abort()

    def _is_crowding(self) -> bool:
        """Whether one address has so many that others would find none left."""
        most = _most_connections() // 2
        others = (getattr(connection, "client", None) or ("",) for connection in self.connections)
        peer = (self.client or ("",))[0]
        return len(self.connections) > most and sum(client[0] == peer for client in others) > most

    def data_received(self, data: bytes) -> None:
        """Bytes of a client."""
        super().data_received(data)
        self._watch(is_silent=False)

    def on_response_complete(self) -> None:
        """An answer is written."""
        super().on_response_complete()
        self._watch(is_silent=True)

    def _watch(self, *, is_silent: bool) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._enter("answer", None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._enter("rest", self.rest_s)
        else:  # the time between two requests is uvicorn's `timeout_keep_alive`
            self._enter("silence" if is_silent else "head", None if is_silent else self.head_s)

    def _enter(self, phase: str, seconds: float | None) -> None:
        """The deadline of a phase counts from its begin, not from its last byte."""
        if phase == self._phase:
            return
        self._phase = phase
        if self._cut is not None:
            self._cut.cancel()
        self._cut = None if seconds is None else self._later(seconds, self.transport.abort)

    def _later(self, seconds: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, action)

    def pause_writing(self) -> None:
        """The client does not take what waits for it."""
        super().pause_writing()
        self._stall = self._stall or self._later(self.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def timeout_keep_alive_handler(self) -> None:
        """No request came for a while: the connection is closed, and cut off if its last answer is not taken."""
        super().timeout_keep_alive_handler()
        self._enter("close", self.rest_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, or was cut off."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._cut, self._stall):
            if timer is not None:
                timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is refused with the headers of every answer; in the midst of an answer there is no other."""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *SECURE_HEADERS.items()]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=msg.encode("ascii")),
            h11.EndOfMessage(),
        )
        try:
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            self.transport.abort()
        if self.cycle is not None:  # its body was malformed: the application is not to answer as well
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self._enter("close", self.rest_s)


def _most_connections() -> int:
    """Half of the files that may be open are left to the store."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)


def allow_connections() -> None:
    """Let this process open as many files as its connections need, where it is allowed to: often only 1,024 are set."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(4 * MOST_CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listening_settings(config: ServeConfig) -> dict[str, Any]:
    """What `uvicorn.Config` needs beside application and address; with TLS if there is a certificate."""
    allow_connections()
    tls: dict[str, Any] = {}
    if tls_of(config.tls_cert, config.tls_key) is not None:  # says what is wrong with the files
        tls = {"ssl_certfile": config.tls_cert, "ssl_keyfile": config.tls_key}
    return {
        "http": BoundedHttp,
        "ws": "none",
        "proxy_headers": False,  # `proxies.py` reads them, from trusted addresses alone
        "server_header": False,
        "access_log": False,
        "log_config": None,
        "log_level": "error",
        "h11_max_incomplete_event_size": MOST_HEAD_BYTES,
        **tls,
    }

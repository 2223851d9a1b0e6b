"""A small HTTP server for `/metrics`: a few threads, a few paths, no patience.

It answers GET and HEAD on three paths and never touches a file. Connections beyond the limit are told to come back;
one that dawdles is cut off, by the byte and as a whole.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

from iolens.agent.prometheus import Exporter
from iolens.agent.prometheus_text import content_type, takes_gzip

MOST_CONNECTIONS: Final = 8
SILENCE_S: Final = 5.0  # between two pieces of a request
LONGEST_S: Final = 30.0  # from accept to close
SPARE_S: Final = 0.5  # of the scraper's own time-out, for the way back
PLAIN: Final = "text/plain; charset=utf-8"
_FULL: Final = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Address(NamedTuple):
    """Where to listen; port 0 lets the kernel choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """`127.0.0.1:9169`, `[::1]:9169`, `localhost:9169`."""
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            host = ""
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r}: write HOST:PORT, such as 127.0.0.1:9169 or [::1]:9169")
        return cls(host, int(port))

    @property
    def url(self) -> str:
        """As a browser wants it."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


class MetricsServer(ThreadingHTTPServer):
    """Serves one exporter."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, address: Address, exporter: Exporter, say: Callable[[str], None]) -> None:
        self.exporter, self.say = exporter, say
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._open: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        self.address_family = found[0]
        super().__init__((str(found[4][0]), address.port), _Request)

    def server_bind(self) -> None:
        """Bind without asking the resolver for this machine's name, which may hang."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def address(self) -> Address:
        """Where it listens now."""
        return Address(self.server_name, self.server_port)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection if there is a place, else a short refusal."""
        if not self._places.acquire(blocking=False):
            with suppress(OSError):
                request.settimeout(0.1)
                request.sendall(_FULL)
            self.shutdown_request(request)
            return
        with self._lock:
            self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)
            self._places.release()

    def service_actions(self) -> None:
        """Between two connections: cut off those that have been open too long."""
        oldest = time.monotonic() - LONGEST_S
        with self._lock:
            late = [request for request, since in self._open.items() if since < oldest]
        for request in late:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is a fault of ours."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.say(f"a request failed: {type(error).__name__}: {error}")


class _Request(BaseHTTPRequestHandler):
    """One request per connection (HTTP/1.0)."""

    server: MetricsServer
    server_version = "iolens"
    sys_version = ""
    timeout = SILENCE_S

    def do_GET(self) -> None:
        """A page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Only its head."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nobody needs a line per scrape."""

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            kind, compress = content_type(self._header("Accept")), takes_gzip(self._header("Accept-Encoding"))
            page = self.server.exporter.page(kind, compress=compress, timeout_s=self._scraper_timeout_s())
            extra = {"Content-Encoding": "gzip"} if compress else {}
            self._send(HTTPStatus.OK, kind, page.body, with_body, {**extra, "Vary": "Accept, Accept-Encoding"})
        elif path == "/-/healthy":
            self._send(HTTPStatus.OK, PLAIN, b"iolens is healthy\n", with_body)
        elif path == "/":
            self._send(HTTPStatus.OK, PLAIN, b"iolens export prometheus: scrape /metrics\n", with_body)
        else:
            self._send(HTTPStatus.NOT_FOUND, PLAIN, b"not found; there is /metrics\n", with_body)

    def _send(
        self, status: HTTPStatus, kind: str, body: bytes, with_body: bool, extra: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _header(self, name: str) -> str:
        return ",".join(self.headers.get_all(name, []))

    def _scraper_timeout_s(self) -> float | None:
        """What Prometheus says it waits for, less the way back."""
        try:
            seconds = float(self._header("X-Prometheus-Scrape-Timeout-Seconds"))
        except ValueError:
            return None
        return seconds - SPARE_S if seconds > 0 else None

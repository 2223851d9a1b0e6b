"""A small HTTP server for `/metrics`: one thread for all connections, a few for pages, no patience.

It answers GET and HEAD on four paths and never touches a file. A connection costs a thread only while its page is
made: whoever sends or reads slowly holds up nobody, is cut off, and gives way first when there are too many.
"""

from __future__ import annotations

import io
import queue
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, NamedTuple

from iolens.agent.exporter.access import ExporterAccess
from iolens.agent.exporter.metrics import content_type, takes_gzip
from iolens.agent.exporter.readings import Exporter
from iolens.messages import ERROR, TroubleLog, cause

MOST_PAGES: Final = 4  # made at a time
MOST_WAITING: Final = 64  # requests for pages
MOST_ANSWERS: Final = 16  # being sent at a time: each holds a page in memory
MOST_OPEN: Final = 256
MOST_HEAD_BYTES: Final = 1 << 17
REQUEST_S: Final = 5.0  # from accept to the end of the request's head
SILENCE_S: Final = 5.0  # between two pieces of an answer that the client takes
LONGEST_S: Final = 30.0  # for a whole answer
LOOK_S: Final = 0.25  # how often the slow are looked for
SPARE_S: Final = 0.5  # of the scraper's own timeout, for the way back
PLAIN: Final = "text/plain; charset=utf-8"
OPEN_TO_ALL: Final = ("/healthz", "/-/healthy")  # they name nothing
_WAIT: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_END_OF_HEAD: Final = (b"\r\n\r\n", b"\n\n")


def _refusal(status: HTTPStatus) -> bytes:
    retry = "Retry-After: 1\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = f"HTTP/1.0 {status.value} {status.phrase}\r\n{retry}Content-Length: 0\r\nConnection: close\r\n\r\n"
    return head.encode()


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

    def url(self, scheme: str = "http") -> str:
        """As a browser wants it."""
        return f"{scheme}://[{self.host}]:{self.port}" if ":" in self.host else f"{scheme}://{self.host}:{self.port}"


@dataclass(slots=True, eq=False)
class _Connection:
    """A client: it sends its request, waits for its page, or takes it."""

    socket: socket.socket
    since: float
    peer: str = ""
    head: bytearray = field(default_factory=bytearray)
    is_asked: bool = False  # the request is whole
    answer: memoryview | None = None
    moved_at: float = 0.0  # when the client last took a piece of the answer

    def is_late(self, now: float) -> bool:
        """Whether it is to be cut off; one whose page is being made waits for us."""
        if self.answer is not None:
            return now - self.moved_at > SILENCE_S or now - self.since > LONGEST_S
        return not self.is_asked and now - self.since > REQUEST_S


class MetricsServer:
    """Serves one exporter."""

    def __init__(
        self, address: Address, exporter: Exporter, say: Callable[[str], None], access: ExporterAccess | None = None
    ) -> None:
        self.exporter, self.troubles, self.access = exporter, TroubleLog(say), access or ExporterAccess()
        result = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        self._listener = socket.socket(result[0], socket.SOCK_STREAM)
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(result[4])
            self._listener.listen(socket.SOMAXCONN)
        except OSError:
            self._listener.close()
            raise
        self._listener.setblocking(False)
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._open: dict[_Connection, None] = {}  # in the order they came
        self._answers: queue.SimpleQueue[tuple[_Connection, bytes]] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(MOST_PAGES, "page")
        self._stopping, self._stopped = threading.Event(), threading.Event()
        self._stopped.set()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._selector.close()
        for item in (self._listener, self._woken, self._waker):
            item.close()

    @property
    def address(self) -> Address:
        """Where it listens now."""
        return Address(*self._listener.getsockname()[:2])

    def shutdown(self) -> None:
        """Let `serve_forever`, in another thread, return."""
        self._stopping.set()
        self._wake()
        self._stopped.wait()

    def serve_forever(self) -> None:
        """Until `shutdown`."""
        self._stopped.clear()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._woken, selectors.EVENT_READ, self._take_answers)
        try:
            while not self._stopping.is_set():
                for key, _ in self._selector.select(LOOK_S):
                    key.data()
                for connection in [connection for connection in self._open if connection.is_late(time.monotonic())]:
                    self._close(connection)
        finally:
            for connection in list(self._open):
                self._close(connection)
            self._stopped.set()

    def _accept(self) -> None:
        """Take a new connection; one too many costs that which has been sending its request for longest."""
        try:
            client, peer = self._listener.accept()
        except OSError:  # it has gone already, or this process has no more descriptors
            self._give_way()
            return
        client.setblocking(False)
        if len(self._open) >= MOST_OPEN and not self._give_way():
            if self.access.tls is None:
                with suppress(OSError):
                    client.send(_refusal(HTTPStatus.SERVICE_UNAVAILABLE))
            client.close()
            return
        if self.access.tls is not None:
            try:  # the handshake is part of receiving: it takes no longer than a request may
                client = self.access.tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
            except OSError:  # it has gone already; what was wrapped is closed
                return
        connection = _Connection(client, time.monotonic(), str(peer[0]))
        self._open[connection] = None
        self._selector.register(client, selectors.EVENT_READ, lambda: self._receive(connection))

    def _give_way(self) -> bool:
        """Close the connection that has been sending its request for longest; whether there was one."""
        slowest = next((connection for connection in self._open if not connection.is_asked), None)
        if slowest is not None:
            self._close(slowest)
        return slowest is not None

    def _receive(self, connection: _Connection) -> None:
        piece = b""
        try:
            piece = connection.socket.recv(65536)
        except _WAIT as error:
            self._await(connection, error, selectors.EVENT_READ)
            return
        except OSError:
            pass
        if not piece:
            self._close(connection)
            return
        connection.head += piece
        if any(end in connection.head for end in _END_OF_HEAD):
            self._ask(connection)
        elif len(connection.head) > MOST_HEAD_BYTES:
            self._refuse(connection, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _ask(self, connection: _Connection) -> None:
        """The request is whole: have its page made."""
        connection.is_asked = True
        self._selector.unregister(connection.socket)
        if sum(connection.is_asked and connection.answer is None for connection in self._open) > MOST_WAITING:
            self._refuse(connection, HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._pool.submit(self._make, connection)

    def _make(self, connection: _Connection) -> None:
        """In a thread of the pool."""
        try:
            answer = _Request(bytes(connection.head), connection.peer, self).answer
        except Exception as error:  # a fault of ours
            self.troubles.tell("request", f"a request failed: {type(error).__name__}: {cause(error)}", ERROR)
            answer = _refusal(HTTPStatus.INTERNAL_SERVER_ERROR)
        self._answers.put((connection, answer))
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):
            self._waker.send(b"\0")

    def _take_answers(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)
        with suppress(queue.Empty):
            while True:
                self._answer(*self._answers.get_nowait())

    def _refuse(self, connection: _Connection, status: HTTPStatus) -> None:
        if not connection.is_asked:
            connection.is_asked = True
            self._selector.unregister(connection.socket)
        self._answer(connection, _refusal(status))

    def _answer(self, connection: _Connection, answer: bytes) -> None:
        """Send what the client takes at once, and the rest as it takes it."""
        if connection not in self._open:
            return
        sending = [connection for connection in self._open if connection.answer is not None]
        if len(sending) >= MOST_ANSWERS:
            self._close(min(sending, key=lambda item: item.moved_at))
        connection.answer, connection.moved_at = memoryview(answer), time.monotonic()
        self._selector.register(connection.socket, selectors.EVENT_WRITE, lambda: self._send(connection))
        self._send(connection)

    def _send(self, connection: _Connection) -> None:
        assert connection.answer is not None
        try:
            sent = connection.socket.send(connection.answer)
        except _WAIT as error:
            self._await(connection, error, selectors.EVENT_WRITE)
            return
        except OSError:  # a client that went away is no news
            self._close(connection)
            return
        connection.answer, connection.moved_at = connection.answer[sent:], time.monotonic()
        if not connection.answer:
            with suppress(OSError, ValueError):
                if isinstance(connection.socket, ssl.SSLSocket):
                    connection.socket.unwrap()  # says that the answer was whole; nobody waits for the echo
                else:
                    connection.socket.shutdown(socket.SHUT_WR)
            self._close(connection)

    def _await(self, connection: _Connection, error: OSError, usual: int) -> None:
        """Come back when the socket is ready: TLS may have to write in order to read, and the other way round."""
        kinds: dict[type[OSError], int]
        kinds = {ssl.SSLWantReadError: selectors.EVENT_READ, ssl.SSLWantWriteError: selectors.EVENT_WRITE}
        key = self._selector.get_key(connection.socket)
        self._selector.modify(connection.socket, kinds.get(type(error), usual), key.data)

    def _close(self, connection: _Connection) -> None:
        self._open.pop(connection, None)
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()


class _Request(BaseHTTPRequestHandler):
    """One request (HTTP/1.0), from its bytes to the bytes of the answer."""

    server: Any
    server_version = "iolens"
    sys_version = ""

    def __init__(self, request: bytes, peer: str, server: MetricsServer) -> None:
        self._out = io.BytesIO()
        self.rfile, self.wfile = io.BytesIO(request), self._out
        super().__init__(request, (peer, 0), server)  # type: ignore[arg-type]  # never a socket here

    def setup(self) -> None:
        """There is no connection to set up."""

    def finish(self) -> None:
        """Nor to end."""

    @property
    def answer(self) -> bytes:
        """What is sent back."""
        return self._out.getvalue()

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
        if path not in OPEN_TO_ALL and not self._is_admitted():
            extra = {"WWW-Authenticate": 'Basic realm="iolens", charset="UTF-8"'}
            self._send(HTTPStatus.UNAUTHORIZED, PLAIN, b"a user and a password are needed\n", with_body, extra)
        elif path == "/metrics":
            kind, compress = content_type(self._header("Accept")), takes_gzip(self._header("Accept-Encoding"))
            page = self.server.exporter.page(kind, compress=compress, timeout_s=self._scraper_timeout_s())
            extra = {"Content-Encoding": "gzip"} if compress else {}
            self._send(HTTPStatus.OK, kind, page.body, with_body, {**extra, "Vary": "Accept, Accept-Encoding"})
        elif path == "/healthz":
            reason = self.server.exporter.staleness()
            status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
            self._send(status, PLAIN, f"{reason or 'ok: the samples are fresh'}\n".encode(), with_body)
        elif path == "/-/healthy":
            self._send(HTTPStatus.OK, PLAIN, b"iolens is healthy\n", with_body)
        elif path == "/":
            self._send(HTTPStatus.OK, PLAIN, b"iolens export prometheus: scrape /metrics\n", with_body)
        else:
            self._send(HTTPStatus.NOT_FOUND, PLAIN, b"not found; there is /metrics\n", with_body)

    def _is_admitted(self) -> bool:
        """Whether who asks may read; who may not is said, never what was sent."""
        passwords = self.server.access.passwords
        if passwords is None or passwords.admits(header := self._header("Authorization")):
            return True
        what = "a wrong user or password" if header else "no password"
        self.server.troubles.tell(("refused", what), f"a request from {self.client_address[0]} is refused: {what}")
        return False

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

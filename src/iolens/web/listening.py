"""Where the server listens, and its run until it is asked to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iolens.errors import UsageError

if TYPE_CHECKING:
    import ssl

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
MOST_HEADER_BYTES: Final = 64 << 10
KEEP_ALIVE_S: Final = 30
STOP_S: Final = 5  # for requests under way; live pages never end by themselves


class ListenAddress(NamedTuple):
    """Host and port; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """`127.0.0.1:8470`, `[::1]:8470`; ValueError for anything else."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise ValueError(f"{text!r} is no address to listen on: write HOST:PORT, such as 127.0.0.1:8470")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    def url(self, *, is_tls: bool) -> str:
        """What to type into a browser."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if is_tls else 'http'}://{host}:{self.port}"

    def bound(self) -> socket.socket:
        """A socket that listens there, or one line that says why not."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=512)
        except OSError as error:
            raise UsageError(f"cannot listen on {self.host}:{self.port}: {error.strerror or error}") from None


def serve(app: Any, listener: socket.socket, tls: ssl.SSLContext | None, started: Callable[[], None]) -> None:
    """Serve the application on a socket until SIGTERM or Ctrl-C."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,  # who asks is decided by `web.access`
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        http="h11",
        ws="none",
        lifespan="on",
    )
    if tls is not None:
        config.load()
        config.ssl = tls
    server = uvicorn.Server(config)
    config.callback_notify = None

    async def run() -> None:
        asked = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not asked.done():
            await asyncio.sleep(0.01)
        if server.started:
            started()
        await asked

    asyncio.run(run())

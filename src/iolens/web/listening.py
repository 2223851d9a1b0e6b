"""The run of the server: a socket, uvicorn, and an end when it is asked to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

from iolens.agent.exporter.server import Address
from iolens.errors import UsageError
from iolens.web.access.connections import listening_settings
from iolens.web.serve_config import ServeConfig

KEEP_ALIVE_S: Final = 30
STOP_S: Final = 3  # for requests under way
LOOK_EVERY_S: Final = 0.1  # as uvicorn does


def bound(address: Address) -> socket.socket:
    """A socket that listens there, or one line that says why not."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=512)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # which says the address again
        raise UsageError(f"cannot listen on {address.host}:{address.port}: {reason}") from None


def serve(
    app: Any, listener: socket.socket, config: ServeConfig, started: Callable[[], None], stopping: Callable[[], None]
) -> None:
    """Serve the application on a socket until SIGTERM or Ctrl-C.

    `started` is called when it answers, `stopping` when it is asked to end, before requests under way have.
    """
    import uvicorn

    settings: dict[str, Any] = listening_settings(config) | {"timeout_keep_alive": KEEP_ALIVE_S, "lifespan": "on"}
    server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=STOP_S, **settings))

    async def run() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            started()
        while not server.should_exit and not serving.done():
            await asyncio.sleep(LOOK_EVERY_S)
        stopping()
        await serving

    asyncio.run(run())

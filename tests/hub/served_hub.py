"""A hub under a real uvicorn on a real socket, in a process of its own; a stub says who asks.

`python -m tests.hub.served_hub STATE STORE PORT SETTINGS [CERTIFICATE KEY]` prints the port. The stub knows
tokens by the role they are called after: `Bearer agent`, or `Bearer agent.NAME` for the token of that name.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from iolens.agent.sampling.hub_client import HubAddress
from iolens.hub.hub_state import HubState, hub_state

START_S = 60.0


@dataclass
class ServedHub:
    """One server; it may be killed and started again on the same port."""

    state: Path
    store: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    port: int = 0
    certificate: tuple[Path, Path] | None = None  # and its key: served by https
    process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ServedHub:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.hub.served_hub", str(self.state), str(self.store), str(self.port)]
        words = [json.dumps(dict(self.settings)), *map(str, self.certificate or ())]
        self.process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the server ended with {self.process.wait()}"
        self.port = int(line)

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(START_S)
        self._let_go()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self._let_go()

    def _let_go(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None

    @property
    def address(self) -> HubAddress:
        if self.certificate is None:
            return HubAddress(f"http://127.0.0.1:{self.port}")
        return HubAddress(f"https://127.0.0.1:{self.port}", ca_file=self.certificate[0])

    def now(self) -> HubState:
        return hub_state(self.state, datetime.now(UTC))

    def wait_until_stored(self, seconds: float = 60.0) -> HubState:
        """Until nothing waits any more."""
        until = time.monotonic() + seconds
        while (now := self.now()).waiting_segments:
            assert time.monotonic() < until, f"{now.waiting_segments} segments still wait: {now.writer}"
            time.sleep(0.05)
        return now


def main(arguments: list[str]) -> None:
    """Serve until asked to stop."""
    import uvicorn
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse

    from iolens.config import Config
    from iolens.hub.hub import Hub
    from iolens.web.access.principal import SCOPE_KEY, Principal
    from iolens.web.hub_routes import hub_router

    state, store, port, settings, *tls = arguments
    hub = Hub.open(Config(hub=json.loads(settings)), Path(state), store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        hub.start()
        yield
        hub.stop()

    application = FastAPI(lifespan=lifespan)

    @application.middleware("http")
    async def identify(request: Request, call_next: Any) -> Any:
        role, _, name = request.headers.get("authorization", "").removeprefix("Bearer ").partition(".")
        if role not in ("agent", "operator", "viewer", "user"):
            return JSONResponse({"detail": "a token is needed"}, 401)
        request.scope[SCOPE_KEY] = Principal(name or role, role)  # type: ignore[arg-type]
        return await call_next(request)

    application.include_router(hub_router(hub))
    listening = socket.create_server(("127.0.0.1", int(port)), backlog=1024)
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        application, log_level="warning", access_log=False, ssl_certfile=certificate, ssl_keyfile=key
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1:])

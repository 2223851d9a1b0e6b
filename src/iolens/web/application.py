"""The application: pages, JSON API, static files and news, in front of one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from iolens import __version__
from iolens.config import Config
from iolens.errors import IolensError
from iolens.hub.hub import Hub
from iolens.views.dashboard.shell import message_html
from iolens.web.access.access import Access
from iolens.web.access.login import login_router
from iolens.web.alert_checks import check_regularly
from iolens.web.answers import Answers
from iolens.web.api_routes import ROOT, api_router
from iolens.web.changes import changes_router
from iolens.web.head_requests import HeadRequests
from iolens.web.hub_routes import hub_router
from iolens.web.page_routes import page_router
from iolens.web.replies import error_reply
from iolens.web.silence_routes import silence_router
from iolens.web.static_files import static_router

if TYPE_CHECKING:
    from iolens.api import OpenStore


@dataclass(frozen=True, slots=True)
class ServedStore:
    """The store that is served, and how it is opened: once for each thread that asks."""

    url: str
    config: str | None = None
    engine: str | None = None

    def opened(self) -> OpenStore:
        """Open it; one core for each thread."""
        from iolens.api import OpenStore

        return OpenStore(self.url, config=self.config, engine=self.engine, workers=None if self.engine else 1)


@dataclass(frozen=True, slots=True)
class SideWork:
    """What the server does besides answering: it checks alerts and takes samples of agents; None: it does not."""

    config: Config = field(default_factory=Config)
    state: Path = Path("iolens-state")
    alerts_every_s: float | None = None
    hub: Hub | None = None


def application(store: ServedStore, access: Access, side: SideWork | None = None) -> FastAPI:
    """The application; who may ask what is decided in front of it, by `web.access`."""
    answers = Answers(store.opened, running_each=access.config.questions_per_reader)
    beside = side or SideWork()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(work) for work in (answers.warm_up(), answers.watch())]
        if beside.alerts_every_s is not None:
            tasks.append(asyncio.create_task(check_regularly(answers, beside.state, beside.alerts_every_s)))
        if beside.hub is not None:
            beside.hub.start()
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if beside.hub is not None:
            await asyncio.to_thread(beside.hub.stop)
        answers.close()

    app = FastAPI(
        title="iolens",
        version=__version__,
        summary="Utilization, causes and plans of HPC storage",
        openapi_url=f"{ROOT}/openapi.json",
        docs_url=None,  # they would load programs from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.answers = answers
    app.add_middleware(HeadRequests)

    @app.exception_handler(IolensError)
    async def explained(request: Request, error: IolensError) -> Response:
        return error_reply(error, store.url, is_page=not request.url.path.startswith(ROOT))

    @app.exception_handler(404)
    async def not_found(request: Request, _: Exception) -> Response:
        if request.url.path.startswith(ROOT):
            return JSONResponse({"error": "there is nothing here"}, 404)
        return HTMLResponse(message_html("Not found", "There is no such page."), 404)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        queue = answers.turns.state()
        plain = {"status": "stuck" if queue.is_stuck else "ok", "running": queue.running, "waiting": queue.waiting,
                 "oldest_wait_s": round(queue.oldest_wait_s, 1)}  # fmt: skip
        return JSONResponse(plain, 503 if queue.is_stuck else 200, {"Cache-Control": "no-store"})

    routers = (
        api_router(answers),
        changes_router(answers),
        page_router(answers, store.url),
        static_router(),
        login_router(access),
        silence_router(answers, beside.config, beside.state),
        *([hub_router(beside.hub)] if beside.hub is not None else []),
    )
    for router in routers:
        app.include_router(router)
    return app

"""`iolens serve` from its options to its end: configuration, access, application, socket."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from iolens.agent.exporter.server import Address
from iolens.alerts.settings import alert_settings
from iolens.config import EARLIER_STATE, Config, load_config
from iolens.errors import OptionError
from iolens.hub.hub import Hub
from iolens.messages import say, warn
from iolens.web.access.access import Access
from iolens.web.access.middleware import protected
from iolens.web.application import ServedStore, SideWork, application
from iolens.web.listening import bound, serve
from iolens.web.serve_config import ServeConfig, serve_config


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line says; None: as the configuration, else the default."""

    store: str | None = None
    config: str | None = None
    engine: str | None = None
    state: Path | None = None
    listen: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    hub: bool | None = None
    alerts: bool = True

    def over(self, configured: ServeConfig) -> ServeConfig:
        """`[serve]` with what the options say instead."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise OptionError("--tls-cert and --tls-key go together")
        if self.listen is not None:
            try:
                configured = replace(configured, listen=Address.parse(self.listen))
            except ValueError as error:
                raise OptionError(f"--listen {error}") from None
        if self.tls_cert is not None:
            configured = replace(configured, tls_cert=self.tls_cert, tls_key=self.tls_key)
        return configured


def side_work(options: ServeOptions, config: Config, state: Path, url: str) -> SideWork:
    """Alerts unless they are not wanted, and the hub where it is wanted or configured."""
    is_hub = bool(config.hub) if options.hub is None else options.hub
    every_s = alert_settings(config).every_s if options.alerts else None
    return SideWork(config, state, every_s, Hub.open(config, state, url) if is_hub else None)


def _note_earlier_state(state: Path) -> None:
    earlier = Path(EARLIER_STATE).absolute()
    if earlier.is_dir() and not state.exists():
        warn(f"note: {earlier} is not used: this server keeps its state in {state}. Move it, or name it with --state")


def run_server(options: ServeOptions) -> None:
    """Serve until asked to stop."""
    signal.signal(signal.SIGTERM, _end)  # uvicorn ends what is under way, then raises the signal again
    config = load_config(options.config)
    settings = options.over(serve_config(config))
    state, url = config.state_path(options.state, options.store).absolute(), config.store_url(options.store)
    _note_earlier_state(state)
    os.environ["IOLENS_STATE"] = str(state)  # for everything that is asked here, and for the writer
    has_tls = settings.tls_cert is not None
    access = Access.of(settings, state, settings.listen, has_tls)
    for concern in access.concerns(settings.listen):
        warn(f"warning: {concern}")
    with bound(settings.listen) as listener:
        reached = Address(settings.listen.host, listener.getsockname()[1])
        store = ServedStore(url, options.config, options.engine)
        app = application(store, access, side_work(options, config, state, url))
        where = reached.url("https" if has_tls else "http")
        try:
            serve(
                protected(app, access), listener, settings,
                started=lambda: say(f"serving {url} at {where}; Ctrl-C stops"), stopping=app.state.answers.end_news,
            )  # fmt: skip
        finally:
            access.close()


def _end(*_: object) -> NoReturn:
    """Leave through every `finally`: without this, the second SIGTERM kills the process before its files are closed."""
    raise SystemExit(0)

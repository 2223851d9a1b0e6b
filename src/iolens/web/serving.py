"""`iolens serve` from its options to its end: configuration, access, application, socket."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from iolens.agent.exporter.server import Address
from iolens.config import load_config
from iolens.errors import OptionError
from iolens.messages import say, warn
from iolens.web.access.access import Access
from iolens.web.access.middleware import protected
from iolens.web.application import ServedStore, application
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


def run_server(options: ServeOptions) -> None:
    """Serve until asked to stop."""
    config = load_config(options.config)
    settings = options.over(serve_config(config))
    state, url = config.state_path(options.state), config.store_url(options.store)
    has_tls = settings.tls_cert is not None
    access = Access.of(settings, state, settings.listen, has_tls)
    for concern in access.concerns(settings.listen):
        warn(f"warning: {concern}")
    with bound(settings.listen) as listener:
        reached = Address(settings.listen.host, listener.getsockname()[1])
        app = protected(application(ServedStore(url, options.config, options.engine), access), access)
        where = reached.url("https" if has_tls else "http")
        try:
            serve(app, listener, settings, lambda: say(f"serving {url} at {where}; Ctrl-C stops"))
        finally:
            access.close()

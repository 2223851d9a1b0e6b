"""The centre in a browser: pages, JSON API, alerts and the hub of agents."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs
from iolens.cli.shared_store_options import store_options

DEFAULT_LISTEN = "127.0.0.1:8470"


@click.group(
    "serve",
    cls=LazyVerbs,
    under="serve",
    invoke_without_command=True,
    epilog="""\b
Examples:
  iolens serve --store centre
  iolens serve --store centre --listen 0.0.0.0:8470 --tls-cert site.crt --tls-key site.key
  iolens serve token add alice --role viewer
""",
)
@click.option("--listen", metavar="HOST:PORT", show_default=DEFAULT_LISTEN, help="Address to listen on")
@click.option("--engine", metavar="NAME", help="duckdb, local-spark, spark://HOST:PORT or sc://HOST:PORT")
@store_options
@click.pass_context
def COMMAND(
    context: click.Context, listen: str | None, engine: str | None, store: str | None, config: str | None
) -> None:
    """Serve a store to browsers and programs.

    On an address of this machine no log-in is needed. Any other address needs tokens (`iolens serve token add`), or a
    reverse proxy that says who asks. The pages load nothing from anywhere else.
    """
    if context.invoked_subcommand is not None:
        return
    from iolens.config import load_config
    from iolens.messages import say
    from iolens.web.application import ServedStore, application
    from iolens.web.listening import ListenAddress, serve

    known = load_config(config)
    address = ListenAddress.parse(listen or DEFAULT_LISTEN)
    listener = address.bound()
    reached = ListenAddress(address.host, listener.getsockname()[1])
    url = known.store_url(store)
    app = application(ServedStore(url, config, engine))
    serve(app, listener, None, lambda: say(f"serving {url} at {reached.url(is_tls=False)}; Ctrl-C stops"))

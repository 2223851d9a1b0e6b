"""Show the centre in a browser, and take what agents push."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb_group
from iolens.cli.shared_store_options import store_options


@verb_group(
    "serve",
    "Show the centre in a browser, and take what agents push",
    invoke_without_command=True,
    epilog="""\b
Examples:
  iolens serve --store centre
  iolens serve --store centre --listen 0.0.0.0:8470 --tls-cert site.crt --tls-key site.key
  iolens serve token add alice --role viewer
""",
)
@click.option("--listen", metavar="HOST:PORT", show_default="127.0.0.1:8470", help="Address to listen on")
@click.option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="Certificate, PEM; with --tls-key")
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Key of the certificate, PEM")
@click.option(
    "--state", type=click.Path(path_type=Path), metavar="DIR", show_default="$IOLENS_STATE, STORE-state",
    help="Directory for tokens, alerts, and samples that are not yet in the store",
)  # fmt: skip
@click.option(
    "--hub/--no-hub", default=None, show_default="where the configuration has [hub]",
    help="Take samples that agents push, and write them to the store",
)  # fmt: skip
@click.option("--alerts/--no-alerts", default=True, show_default=True, help="Check the rules for alerts regularly")
@click.option("--engine", metavar="NAME", help="duckdb, local-spark, spark://HOST:PORT or sc://HOST:PORT")
@store_options
@click.pass_context
def serve(
    context: click.Context,
    listen: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    state: Path | None,
    hub: bool | None,
    alerts: bool,
    engine: str | None,
    store: str | None,
    config: str | None,
) -> None:
    """Serve a store to browsers, programs and agents.

    On an address of this machine no log-in is needed. Any other address needs tokens (`iolens serve token add`), or a
    reverse proxy that says who asks. The pages load nothing from anywhere else. Stop with SIGTERM or Ctrl-C.
    """
    if context.invoked_subcommand is not None:
        return
    from iolens.web.serving import ServeOptions, run_server

    run_server(ServeOptions(store, config, engine, state, listen, tls_cert, tls_key, hub, alerts))

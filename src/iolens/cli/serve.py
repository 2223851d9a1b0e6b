"""`iolens serve`: the server, and the tokens that let people and agents in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.output_options import format_option
from iolens.cli.shared_store_options import store_options

if TYPE_CHECKING:
    from iolens.web.access.principal import Role


# Show the centre in a browser, and take what agents push --------------------------------------------------------------


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


# Tokens with which people and agents reach the server -----------------------------------------------------------------


@verb_group(
    "serve token",
    "Tokens with which people and agents reach the server",
    epilog="Example: iolens serve token add alice --role viewer",
)
def serve_token() -> None:
    """Make, list and revoke tokens of `iolens serve`. A running server follows at once."""


# `--state`, for verbs about the server's own files --------------------------------------------------------------------
# With the `--store` and `--config` that it is found by.

Function = TypeVar("Function", bound=Callable[..., Any])


def state_options(function: Function) -> Function:
    """`--state`, `--store` and `--config`."""
    state = click.option(
        "--state",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Directory of the server's own files [$IOLENS_STATE, STORE-state]",
    )
    return state(store_options(function))


def state_directory(state: Path | None, store: str | None, config: str | None) -> Path:
    """The directory that the options mean."""
    from iolens.config import load_config

    return load_config(config).state_path(state, store)


# Make a token and print it, once --------------------------------------------------------------------------------------


@verb(
    "serve token add",
    "Make a token and print it, once",
    epilog="""\b
Examples:
  iolens serve token add wall-screen --role viewer
  iolens serve token add ada --role user --user ada --expires 90d
  iolens serve token add oss1 --role agent > /etc/iolens-token
""",
)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "user", "operator", "agent"]),
    required=True,
    help="viewer: all pages; user: the own jobs; operator: also silences; agent: sends samples",
)
@click.option("--user", metavar="LOGIN", help="Whose jobs a token of the role user shows")
@click.option("--expires", metavar="DURATION", help="In force for so long, such as 90d; without it, until revoked")
@state_options
def serve_token_add(
    name: str,
    role: Role,
    user: str | None,
    expires: str | None,
    state: Path | None,
    store: str | None,
    config: str | None,
) -> None:
    """Make a token called NAME and print it on standard output.

    It is shown this once: only its hash is kept.
    """
    from iolens.units import parse_duration
    from iolens.web.access.token_changes import add_token

    try:
        seconds = None if expires is None else parse_duration(expires)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--expires") from None
    click.echo(add_token(state_directory(state, store, config), name, role, user, seconds))


# List tokens: names, roles, when made and last used -------------------------------------------------------------------


@verb(
    "serve token list",
    "List tokens: names, roles, when made and last used",
    epilog="Example: iolens serve token list --format json",
)
@format_option("table", "json")
@state_options
def serve_token_list(format_: str, state: Path | None, store: str | None, config: str | None) -> None:
    """List all tokens that were made, also those that are revoked or expired. No token is shown: none is kept.

    The last use is known to the hour.
    """
    import json

    from iolens.web.access.token_changes import listed_tokens, token_lines

    tokens = listed_tokens(state_directory(state, store, config))
    click.echo(json.dumps(tokens, indent=2) if format_ == "json" else "\n".join(token_lines(tokens)))


# Revoke a token; its sessions end -------------------------------------------------------------------------------------


@verb("serve token revoke", "Revoke a token; its sessions end", epilog="Example: iolens serve token revoke wall-screen")
@click.argument("name")
@state_options
def serve_token_revoke(name: str, state: Path | None, store: str | None, config: str | None) -> None:
    """Revoke the token called NAME. It is refused from now on, and browsers that logged in with it are logged out."""
    from iolens.web.access.token_changes import revoke_token

    revoke_token(state_directory(state, store, config), name)
